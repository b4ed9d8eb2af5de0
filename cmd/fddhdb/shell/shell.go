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
	"github.com/fddhdb/fddhdb/db"
)

// A Host is the command line that a shell runs lines of, and the database that it keeps open.
type Host interface {
	// Root returns the verbs of the command line anew, as flags keep their values; results are
	// printed in a mode.
	Root(mode term.Mode) *cobra.Command

	// Execute runs a line by a root, and ends what it prints.
	Execute(ctx context.Context, root *cobra.Command, args []string) error

	// Meant returns which of the names a word that is none of them may stand for, "" for none.
	Meant(word string, names []string) string

	Dir() string    // of the database, as the user has named it
	ReadOnly() bool // it is only looked at
	Database() (*db.DB, error)
	Collection(name string) (*db.Collection, error) // of the database

	// PrintSchemas prints lines that create collections again, or JSON.
	PrintSchemas(names []string, json bool) error

	// Look runs f on the database in a folder, if it can be opened, and says nothing if not.
	Look(dir string, f func(d *db.DB))
	IsDatabase(path string) bool
}

// A Shell runs lines on the database of its host: verbs, which are those of the command
// line without DIR, and commands that begin with a dot.
type Shell struct {
	host    Host
	out     *term.Printer
	stdin   io.Reader
	signals *Signals
	lines   []string // of -c

	mode       term.Mode
	collection string // the default of --collection
	timer      bool
	echo       bool
	pager      []string // the words of the command; none: no pager

	output *redirection // of .output
	once   *onceFile    // of .once
	files  []string     // that .read is in
	quit   bool

	terminal      *dialogue // of an interactive shell
	historyWarned bool
	commandLines  *regexp.Regexp
}

// New returns a shell that runs some lines, or where there are none a script or a
// dialogue, and prints in a mode until a line changes that. signals may be nil where no
// dialogue is possible.
func New(h Host, out *term.Printer, stdin io.Reader, s *Signals, lines []string, mode term.Mode) *Shell {
	root := h.Root(term.ModeTable)
	AddDefaultVerbs(root)
	return &Shell{
		host: h, out: out, stdin: stdin, signals: s, lines: lines, mode: mode, collection: "main",
		commandLines: commandLines(VerbNames(root), h.Dir()),
	}
}

// Start runs the lines of -c, else a script or a dialogue from standard input.
func (s *Shell) Start(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, s.endOutput()) }()
	if s.lines != nil {
		for _, line := range s.lines {
			if err := s.runScript(ctx, "", strings.NewReader(line)); err != nil {
				var at *lineError
				if errors.As(err, &at) && !strings.Contains(line, "\n") {
					return at.err // there is but one line
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

// A stoppable reader stops waiting for its reader when the context ends: the next line of a
// script may not come for hours. Bytes that the reader returns after that are lost.
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
		s.buf = make([]byte, 4096) // p may have another use after a Read that was given up
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

// A lineError says which line of a script an error is about.
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

// Worded is for exit.Message.
func (e *lineError) Worded() string { return e.Error() }

func (e *lineError) Unwrap() error { return e.err }

// maxStatement bounds what a line of the shell may grow to.
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
			line = strings.TrimPrefix(line, "\uFEFF") // editors of Windows begin files so
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

// readLine reads up to the end of a line, which it takes off; with io.EOF comes what is
// left.
func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == bufio.ErrBufferFull && len(line) > maxStatement:
			return string(line), nil // the caller refuses it
		case err == bufio.ErrBufferFull:
			continue
		case err != nil:
			return strings.TrimSuffix(string(line), "\r"), err
		}
		return strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r"), nil
	}
}

// Run runs a line, or several where a quote goes over their ends.
func (s *Shell) Run(ctx context.Context, line string) error {
	if err := s.runLine(ctx, line); err != nil {
		return &shellError{err, s.inShell(exit.Message(err))}
	}
	return nil
}

// A shellError is an error that says in words of the shell what to do.
type shellError struct {
	err  error
	text string
}

func (e *shellError) Error() string { return e.text }

// Worded is for exit.Message.
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

// echoed prints a line before it runs. What .once writes to is for results alone.
func (s *Shell) echoed(line string) error {
	if s.output != nil {
		_, err := fmt.Fprintln(s.output.f, line)
		return err
	}
	fmt.Fprintln(s.out.Stdout, line)
	return s.out.Stdout.Flush()
}

// runVerb runs a verb. A line that begins with fddhdb is one of the command line, with DIR.
func (s *Shell) runVerb(ctx context.Context, args []string) error {
	var took time.Duration // without that of whoever reads it in a pager
	err := s.withOutput(ctx, func(ctx context.Context) error {
		start := time.Now()
		defer func() { took = time.Since(start) }()
		if args[0] == "fddhdb" {
			return s.host.Execute(ctx, s.host.Root(term.ModeTable), args[1:])
		}
		return s.host.Execute(ctx, s.root(), args)
	})
	if s.timer && err == nil {
		s.out.Notef("took %s", took.Round(time.Microsecond))
	}
	return err
}
