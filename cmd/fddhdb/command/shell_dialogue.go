package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/peterh/liner"
)

// A dialogue asks for lines on a terminal.
type dialogue struct {
	out    *os.File
	editor *liner.State // nil where the terminal cannot edit
	plain  *bufio.Reader
	cooked liner.ModeApplier // the terminal as it was found
	raw    liner.ModeApplier // and as the editor wants it
}

// errDropped says that the user does not want the line any more.
var errDropped = errors.New("the line is dropped")

// interact asks for lines and runs them until the user leaves.
func (s *shell) interact(ctx context.Context) error {
	// An interrupt is for the verb that runs. What ends the process ends the shell, which
	// closes the database.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	ctx, stop := signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	s.terminal = s.newDialogue()
	defer s.terminal.close()
	if s.terminal.editor != nil {
		s.pager = pagerCommand()
	}
	s.greet()
	for !s.quit {
		line, err := s.ask(ctx, interrupts)
		switch {
		case err == errDropped:
			continue
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		s.remember(line)
		s.runInterruptible(ctx, line)
		drain(interrupts)
		if ctx.Err() != nil {
			return failuref("ended by a signal")
		}
	}
	return nil
}

// runInterruptible runs a line, whose errors do not end the dialogue.
func (s *shell) runInterruptible(ctx context.Context, line string) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	if err := s.run(ctx, line); err != nil {
		s.env.printError(err)
	}
}

// ask reads a line, or several where a quote or a backslash goes on.
func (s *shell) ask(ctx context.Context, interrupts <-chan os.Signal) (string, error) {
	prompt := s.prompt()
	statement := ""
	for {
		line, err := s.terminal.ask(ctx, interrupts, prompt)
		if err == io.EOF && statement != "" {
			fmt.Fprintln(s.terminal.out)
			return "", errDropped // Ctrl-D leaves the line, not the shell
		}
		if err != nil {
			return "", err
		}
		statement += line
		if _, open := splitWords(statement); open == 0 {
			return statement, nil
		}
		statement += "\n"
		prompt = strings.Repeat(" ", max(0, len(s.prompt())-5)) + "...> "
	}
}

// prompt names the database and, if it is not main, the collection that verbs work on.
func (s *shell) prompt() string {
	name := s.env.session.dir
	if abs, err := filepath.Abs(name); err == nil {
		name = filepath.Base(abs)
	}
	if s.collection != "main" {
		name += "/" + s.collection
	}
	name = plain(name)
	if runes := []rune(name); len(runes) > 30 {
		name = string(runes[:29]) + "…"
	}
	return name + "> "
}

// greet says what is open.
func (s *shell) greet() {
	only := ""
	if s.env.session.readOnly {
		only = ", only to look at"
	}
	fmt.Fprintf(s.terminal.out, "%s%s\n.help lists verbs and commands, .quit leaves.\n", plain(s.env.session.dir), only)
}

func (s *shell) newDialogue() *dialogue {
	t := &dialogue{out: os.Stdout}
	stdin, stdout := terminal(s.env.stdin), terminal(os.Stdout)
	if stdin != os.Stdin || stdout == nil || !liner.TerminalSupported() {
		t.plain = bufio.NewReader(s.env.stdin)
		if stdout == nil {
			t.out = os.Stderr // the output is for results
		}
		return t
	}
	var err error
	if t.cooked, err = liner.TerminalMode(); err != nil {
		t.plain = bufio.NewReader(s.env.stdin)
		return t
	}
	t.editor = liner.NewLiner()
	if t.raw, err = liner.TerminalMode(); err != nil {
		t.raw = t.cooked
	}
	t.editor.SetCtrlCAborts(true)
	t.editor.SetMultiLineMode(true)
	t.editor.SetTabCompletionStyle(liner.TabPrints)
	t.editor.SetBeep(false)
	t.editor.SetWordCompleter(s.complete)
	for _, line := range s.readHistory() {
		t.editor.AppendHistory(line)
	}
	return t
}

func (t *dialogue) close() {
	if t.editor != nil {
		_ = t.editor.Close()
	}
}

// lend gives the terminal to another program as it was found.
func (t *dialogue) lend() {
	if t.editor != nil {
		_ = t.cooked.ApplyMode()
	}
}

func (t *dialogue) takeBack() {
	if t.editor != nil {
		_ = t.raw.ApplyMode()
	}
}

type typed struct {
	line string
	err  error
}

// ask reads one line. It returns errDropped after Ctrl-C and io.EOF after Ctrl-D.
func (t *dialogue) ask(ctx context.Context, interrupts <-chan os.Signal, prompt string) (string, error) {
	answers := make(chan typed, 1)
	go func() { answers <- t.read(prompt) }()
	for {
		select {
		case a := <-answers:
			return a.line, a.err
		case <-interrupts:
			if t.plain != nil { // the terminal has dropped the line; the editor sees the key
				fmt.Fprintf(t.out, "\n%s", prompt)
			}
		case <-ctx.Done():
			return "", failuref("ended by a signal")
		}
	}
}

func (t *dialogue) read(prompt string) typed {
	if t.plain != nil {
		fmt.Fprint(t.out, prompt)
		line, err := readLine(t.plain)
		if err == io.EOF && line != "" {
			err = nil
		} else if err == io.EOF {
			fmt.Fprintln(t.out)
		}
		return typed{line, err}
	}
	line, err := t.editor.Prompt(prompt)
	switch {
	case errors.Is(err, liner.ErrPromptAborted):
		err = errDropped
	case err == io.EOF:
		fmt.Fprintln(t.out)
	}
	return typed{line, err}
}

func drain(c <-chan os.Signal) {
	for {
		select {
		case <-c:
		default:
			return
		}
	}
}
