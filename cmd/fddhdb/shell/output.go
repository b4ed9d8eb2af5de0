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

// endOutput closes the file of .output.
func (s *Shell) endOutput() error {
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
	if s.output != nil {
		defer s.out.RedirectToFile(bufio.NewWriter(s.output.f))()
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
