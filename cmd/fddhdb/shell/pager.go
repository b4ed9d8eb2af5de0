package shell

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// pagerCommand returns the words of the command that shows long results: from
// $FDDHDB_PAGER, else $PAGER, else less if it exists. No words mean no pager.
func pagerCommand() []string {
	for _, name := range []string{"FDDHDB_PAGER", "PAGER"} {
		if line, set := os.LookupEnv(name); set {
			return pagerWords(line)
		}
	}
	if path, err := exec.LookPath("less"); err == nil {
		return []string{path, "-FRX"}
	}
	return nil
}

func pagerWords(line string) []string {
	split, _ := SplitWords(line)
	words := Unquoted(split)
	if len(words) == 1 && words[0] == "cat" {
		return nil
	}
	return words
}

// A pager keeps output until it fills the terminal. Then it starts a command that shows
// this and all later output. Shorter output goes to the terminal directly.
type pager struct {
	shell    *Shell
	ctx      context.Context // of the line
	terminal *os.File
	stop     func() // ends the verb, whose results are not read any more
	rows     int    // of the terminal
	columns  int

	// Output that waits, and its size on the terminal.
	kept   bytes.Buffer
	lines  int
	column int
	wide   bool // it has lines that are wider than the terminal, and must not be wrapped

	command *exec.Cmd
	in      io.WriteCloser // of the command
	release func() bool    // keeps in from being closed when the line ends
	through bool           // no command could be started
	left    bool           // the user has left it
}

func (s *Shell) newPager(ctx context.Context, stop func()) *pager {
	p := &pager{shell: s, ctx: ctx, terminal: s.terminal.out, stop: stop, rows: 24, columns: 80}
	if columns, rows, err := term.GetSize(int(p.terminal.Fd())); err == nil && columns > 0 && rows > 0 {
		p.rows, p.columns = rows, columns
	}
	return p
}

// Write implements io.Writer.
func (p *pager) Write(b []byte) (int, error) {
	switch {
	case p.through:
		return p.terminal.Write(b)
	case p.left:
		return len(b), nil
	case p.command != nil:
		p.feed(b)
		return len(b), nil
	}
	p.kept.Write(b)
	p.count(b)
	if p.lines < p.rows-1 {
		return len(b), nil
	}
	if p.ctx.Err() != nil {
		p.left = true // the command reads no more
		p.kept.Reset()
		return len(b), nil
	}
	return len(b), p.open()
}

// open starts the command and gives it what waits. If it does not start, that and all
// later output goes to the terminal directly.
func (p *pager) open() error {
	if err := p.start(); err != nil {
		p.through = true
		p.shell.out.Warnf("warning: the pager does not start: %v: .pager off does without", err)
		_, err := p.kept.WriteTo(p.terminal)
		return err
	}
	p.feed(p.kept.Bytes())
	p.kept.Reset()
	return nil
}

// sideways reports whether lines wider than the terminal can follow: less shows them
// without wrapping. Other commands, and less that runs already, wrap them.
func (p *pager) sideways() bool {
	if p.command == nil && !p.through && !p.left && isLess(p.shell.pager) {
		p.wide = true
	}
	return p.wide
}

// isLess reports whether the words of a command run less.
func isLess(words []string) bool {
	return strings.TrimSuffix(filepath.Base(words[0]), ".exe") == "less"
}

// count adds the approximate number of lines of the terminal that b takes.
func (p *pager) count(b []byte) {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		b = b[n:]
		switch {
		case r == '\n':
			p.lines++
			p.column = 0
		case p.column == p.columns && !p.wide:
			p.lines++
			p.column = 1
		default:
			p.column++
		}
	}
}

func (p *pager) start() error {
	words := p.shell.pager
	if p.wide {
		// Without -F: less would leave at once if only the height fits.
		words = append(slices.Clone(words), "-S", "-+F")
	}
	command := exec.Command(words[0], words[1:]...)
	command.Stdout, command.Stderr = p.terminal, os.Stderr
	if _, set := os.LookupEnv("LESS"); !set {
		command.Env = append(os.Environ(), "LESS=FRX") // for less under any name: shows colours
	}
	in, err := command.StdinPipe()
	if err != nil {
		return err
	}
	p.shell.terminal.lend()
	if err := command.Start(); err != nil {
		p.shell.terminal.takeBack()
		return err
	}
	p.shell.out.Paging.Store(true)
	p.shell.terminal.hasPager(command.Process)
	p.command, p.in = command, in
	// A pager that shows its first page reads no more. Writing must not wait for the
	// user when the line is to end.
	p.release = context.AfterFunc(p.ctx, func() { _ = in.Close() })
	return nil
}

func (p *pager) feed(b []byte) {
	if _, err := p.in.Write(b); err != nil {
		p.left = true
		p.stop()
	}
}

// end waits until the user leaves the pager, if there is one or wide lines need one.
func (p *pager) end() error {
	if p.command == nil && p.wide && !p.through && !p.left && p.ctx.Err() == nil {
		p.open()
	}
	if p.command == nil {
		_, err := p.kept.WriteTo(p.terminal)
		return err
	}
	p.release()
	_ = p.in.Close()
	err := p.command.Wait()
	p.shell.terminal.pager.Store(nil)
	p.shell.out.Paging.Store(false)
	p.shell.terminal.takeBack()
	return err
}
