package shell

import (
	"bufio"
	"context"
	"os"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/outfile"
)

// A redirection is the file of .output, to which results of lines go.
type redirection struct {
	path string
	f    *os.File
}

// A onceFile is the file of .once, to which the results of one line go.
type onceFile struct {
	files outfile.Set
	to    *outfile.File
}

// redirect sends the results of later lines to a file; "" sends them to the original
// output again.
func (s *Shell) redirect(path string) error {
	if err := s.endOutput(); err != nil || path == "" {
		return err
	}
	if _, err := outfile.Path(path); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return outfile.Error(path, err)
	}
	s.output = &redirection{path, f}
	return nil
}

// redirectOnce sends the results of the next line with results to a file. The file gets
// its name when they are complete.
func (s *Shell) redirectOnce(path string) error {
	var once onceFile
	var err error
	if once.to, err = once.files.Create(path); err != nil {
		return err
	}
	s.dropOnce()
	s.once = &once
	return nil
}

func (s *Shell) dropOnce() {
	if s.once != nil {
		s.once.files.Discard()
		s.once = nil
	}
}

// endOutput closes the files of .output and .once.
func (s *Shell) endOutput() error {
	s.dropOnce()
	if s.output == nil {
		return nil
	}
	o := s.output
	s.output = nil
	if err := o.f.Close(); err != nil {
		return outfile.Error(o.path, err)
	}
	return nil
}

// withOutput runs f with its output redirected as the user wants.
func (s *Shell) withOutput(ctx context.Context, f func(context.Context) error) (err error) {
	e := s.out
	switch {
	case s.once != nil:
		once := s.once
		s.once = nil
		defer once.files.Discard()
		defer e.RedirectToFile(once.to.Writer)()
		if err := f(ctx); err != nil {
			return err
		}
		return once.files.Commit()
	case s.output != nil:
		defer e.RedirectToFile(bufio.NewWriter(s.output.f))()
		return f(ctx)
	}
	return f(ctx)
}

// print runs f, which writes to the printer, with its output redirected.
func (s *Shell) print(f func()) error {
	return s.withOutput(context.Background(), func(context.Context) error {
		f()
		return s.out.Stdout.Flush()
	})
}
