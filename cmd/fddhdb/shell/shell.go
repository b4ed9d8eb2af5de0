package shell

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db/api"
)

// A Host is the command line of a shell, and the database that it keeps open.
type Host interface {
	// Root returns a new tree of the verbs, because flags keep their values. Results
	// are printed in mode.
	Root(mode term.Mode) *cobra.Command

	// Execute runs a line by a root, and completes its output.
	Execute(ctx context.Context, root *cobra.Command, args []string) error

	// Meant returns the name that a mistyped word most likely means, "" for none.
	Meant(word string, names []string) string

	Dir() string    // folder of the database, as the user has named it
	ReadOnly() bool // the database is only read
	Database(ctx context.Context) (api.Database, error)
	Collection(ctx context.Context, name string) (api.Collection, error) // a collection of the database

	// PrintSchemas prints lines that create collections again, or JSON.
	PrintSchemas(ctx context.Context, names []string, json bool) error

	// Look opens the database in a folder, if possible, and calls f with it. It reports
	// no error.
	Look(ctx context.Context, dir string, f func(d api.Database))
	IsDatabase(path string) bool
}

// A Shell runs lines on the database of its host: verbs of the command line without
// DIR, and commands that begin with a dot. One goroutine runs them.
type Shell struct {
	host    Host
	out     *term.Printer
	stdin   io.Reader
	signals *Signals // nil: no dialogue is possible
	lines   []string // of -c

	// Settings that commands change.
	mode       term.Mode
	collection string // default of --collection
	timer      bool   // print the time of each line
	echo       bool   // print each line before it runs

	output *redirection // of .output; nil: none
	files  []string     // files of the .read commands that are running
	quit   bool         // .quit was run

	terminal      *dialogue      // nil in scripts
	historyWarned bool           // the user knows that history does not work
	commandLines  *regexp.Regexp // see inShell
}

// New returns a shell that runs lines or, if there are none, a script or a dialogue. It
// prints in mode until a line changes that. signals may be nil if no dialogue is
// possible.
func New(h Host, out *term.Printer, stdin io.Reader, s *Signals, lines []string, mode term.Mode) *Shell {
	root := h.Root(term.ModeTable)
	AddDefaultVerbs(root)
	return &Shell{
		host: h, out: out, stdin: stdin, signals: s, lines: lines, mode: mode, collection: "main",
		commandLines: CommandLines(VerbNames(root), h.Dir()),
	}
}

// Start runs the lines of -c, or a script or a dialogue from standard input.
func (s *Shell) Start(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, s.endOutput()) }()
	if s.lines != nil {
		for _, line := range s.lines {
			if err := s.runScript(ctx, "", strings.NewReader(line)); err != nil {
				var at *lineError
				if errors.As(err, &at) && !strings.Contains(line, "\n") {
					return at.err // there is only one line
				}
				return err
			}
			if s.quit {
				break
			}
		}
		return nil
	}
	if term.File(s.stdin) == nil {
		return s.runScript(ctx, "", &stoppable{ctx: ctx, r: s.stdin})
	}
	return s.interact(ctx)
}

// stoppable is a reader that stops waiting when the context ends: the next line of a
// script may not come for hours. Bytes that arrive after that are lost.
type stoppable struct {
	ctx context.Context
	r   io.Reader
	buf []byte
}

type readResult struct {
	n   int
	err error
}

func (s *stoppable) Read(p []byte) (int, error) {
	if s.buf == nil {
		s.buf = make([]byte, 4096) // not p: the caller may reuse it after a Read that was given up
	}
	done := make(chan readResult, 1)
	go func() {
		n, err := s.r.Read(s.buf[:min(len(p), len(s.buf))])
		done <- readResult{n, err}
	}()
	select {
	case got := <-done:
		copy(p, s.buf[:got.n])
		return got.n, got.err
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
}

// A lineError adds the line of a script to an error.
type lineError struct {
	file string // "" for standard input
	line int
	err  error
}

func (e *lineError) Error() string {
	at := fmt.Sprintf("line %d: ", e.line)
	if e.file != "" {
		at = e.file + ": " + at
	}
	return at + exit.Message(e.err)
}

// Worded returns the whole text for exit.Message.
func (e *lineError) Worded() string { return e.Error() }

func (e *lineError) Unwrap() error { return e.err }

// maxStatement bounds the length of a line of the shell.
const maxStatement = 64 << 20

// runScript runs lines up to the first error.
func (s *Shell) runScript(ctx context.Context, file string, script io.Reader) error {
	r := bufio.NewReader(script)
	var statement strings.Builder
	first := 1
	for n := 1; !s.quit; n++ {
		line, err := readLine(r)
		if err != nil && err != io.EOF {
			return &lineError{file, n, err}
		}
		if n == 1 {
			line = strings.TrimPrefix(line, "\uFEFF") // Windows editors begin files with it
		}
		if statement.Len()+len(line) > maxStatement {
			return &lineError{file, first, exit.Failedf("longer than %s", term.Size(maxStatement))}
		}
		atEnd := err == io.EOF
		if statement.Len() == 0 {
			first = n
		} else if !atEnd || line != "" {
			statement.WriteByte('\n')
		}
		statement.WriteString(line)
		if _, open := SplitWords(statement.String()); open != 0 && !atEnd {
			continue
		}
		err = ctx.Err()
		if err == nil {
			err = s.Run(ctx, statement.String())
		}
		if err != nil {
			return &lineError{file, first, err}
		}
		if atEnd {
			return nil
		}
		statement.Reset()
	}
	return nil
}

// readLine reads a line without its end. With io.EOF it returns the rest of the input.
func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == bufio.ErrBufferFull && len(line) > maxStatement:
			return string(line), nil // too long; the caller refuses it
		case err == bufio.ErrBufferFull:
			continue
		case err != nil:
			return strings.TrimSuffix(string(line), "\r"), err
		}
		return strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r"), nil
	}
}

// Run runs a line, or several lines if a quote spans their ends.
func (s *Shell) Run(ctx context.Context, line string) error {
	if err := s.runLine(ctx, line); err != nil {
		return &shellError{err, s.inShell(exit.Message(err))}
	}
	return nil
}

// A shellError is an error whose advice is in terms of the shell.
type shellError struct {
	err  error
	text string
}

func (e *shellError) Error() string { return e.text }

// Worded returns the whole text for exit.Message.
func (e *shellError) Worded() string { return e.text }

func (e *shellError) Unwrap() error { return e.err }

func (s *Shell) runLine(ctx context.Context, line string) error {
	words, open := SplitWords(line)
	switch open {
	case '\\':
		return exit.Usagef("a line follows the backslash at the end, and there is none")
	case '\'', '"':
		return exit.Usagef("the quote %c is not closed", open)
	}
	if len(words) == 0 {
		return nil
	}
	if s.echo {
		if err := s.echoed(line); err != nil {
			return err
		}
	}
	args := Unquoted(words)
	if strings.HasPrefix(args[0], ".") {
		return s.runDot(ctx, args)
	}
	if (args[0] == "quit" || args[0] == "exit") && len(args) == 1 {
		s.quit = true
		return nil
	}
	return s.runVerb(ctx, args)
}

// echoed prints a line before it runs.
func (s *Shell) echoed(line string) error {
	if s.output != nil {
		_, err := fmt.Fprintln(s.output.f, line)
		return err
	}
	fmt.Fprintln(s.out.Stdout, line)
	return s.out.Stdout.Flush()
}

// runVerb runs a verb. A line that begins with fddhdb is a command line with DIR.
func (s *Shell) runVerb(ctx context.Context, args []string) error {
	start := time.Now()
	err := s.withOutput(ctx, func(ctx context.Context) error {
		if args[0] == "fddhdb" {
			return s.host.Execute(ctx, s.host.Root(term.ModeTable), args[1:])
		}
		return s.host.Execute(ctx, s.root(), args)
	})
	if s.timer && err == nil {
		s.out.Notef("took %s", time.Since(start).Round(time.Microsecond))
	}
	return err
}
