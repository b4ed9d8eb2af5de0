package shell

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/peterh/liner"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// A dialogue reads lines from a terminal.
type dialogue struct {
	out    *os.File
	editor *liner.State      // nil if the terminal cannot edit
	plain  *bufio.Reader     // reads lines without an editor
	cooked liner.ModeApplier // restores the terminal as it was found
}

// errDropped says that the user has dropped the line.
var errDropped = errors.New("the line is dropped")

// interact reads lines and runs them until the user leaves.
func (s *Shell) interact(ctx context.Context) error {
	s.terminal = s.newDialogue()
	defer s.terminal.close()
	// An interrupt is for the running verb. Other signals end the shell, which closes
	// the database.
	signals := s.signals
	defer signals.begin(s.terminal)()
	s.greet()
	for !s.quit {
		line, err := s.ask(ctx, signals.prompt)
		var failed *editorError
		switch {
		case err == errDropped:
			continue
		case errors.As(err, &failed):
			s.terminal.doWithoutEditor(s.stdin)
			s.out.Warnf("warning: %v", failed)
			continue
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		s.guarded("the history", func() { s.remember(line) })
		signals.run(ctx, func(ctx context.Context) {
			if err := s.Run(ctx, line); err != nil {
				s.out.Errorf("%s", exit.Message(err))
			}
		})
		if ctx.Err() != nil {
			return exit.Failedf("ended by a signal")
		}
	}
	return nil
}

// ask reads a line, or several if a quote or a backslash is open.
func (s *Shell) ask(ctx context.Context, interrupts <-chan struct{}) (string, error) {
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
		if _, open := SplitWords(statement); open == 0 {
			return statement, nil
		}
		statement += "\n"
		prompt = strings.Repeat(" ", max(0, len(s.prompt())-5)) + "...> "
	}
}

// prompt returns the name of the database and, unless it is main, the current
// collection.
func (s *Shell) prompt() string {
	name := s.host.Dir()
	if abs, err := filepath.Abs(name); err == nil {
		name = filepath.Base(abs)
	}
	if s.collection != "main" {
		name += "/" + s.collection
	}
	name = term.Plain(name)
	if runes := []rune(name); len(runes) > 30 {
		name = string(runes[:29]) + "…"
	}
	return name + "> "
}

// greet prints which database is open.
func (s *Shell) greet() {
	only := ""
	if s.host.ReadOnly() {
		only = ", only to look at"
	}
	fmt.Fprintf(s.terminal.out, "%s%s\n.help lists verbs and commands, .quit leaves.\n",
		term.Plain(s.host.Dir()), only)
}

func (s *Shell) newDialogue() *dialogue {
	t := &dialogue{out: os.Stdout}
	stdin, stdout := term.File(s.stdin), term.File(os.Stdout)
	if stdin != os.Stdin || stdout == nil || !liner.TerminalSupported() {
		t.plain = bufio.NewReader(s.stdin)
		if stdout == nil {
			t.out = os.Stderr // stdout is for results
		}
		return t
	}
	var err error
	if t.cooked, err = liner.TerminalMode(); err != nil {
		t.plain = bufio.NewReader(s.stdin)
		return t
	}
	t.editor = liner.NewLiner()
	t.editor.SetCtrlCAborts(true)
	t.editor.SetMultiLineMode(true)
	t.editor.SetTabCompletionStyle(liner.TabPrints)
	t.editor.SetBeep(false)
	t.editor.SetWordCompleter(s.Complete)
	s.guarded("the history", func() {
		for _, line := range s.readHistory() {
			t.editor.AppendHistory(line)
		}
	})
	return t
}

// doWithoutEditor reads lines from stdin from now on.
func (t *dialogue) doWithoutEditor(stdin io.Reader) {
	_ = t.cooked.ApplyMode()
	t.editor, t.plain = nil, bufio.NewReader(stdin)
}

func (t *dialogue) close() {
	if t.editor != nil {
		_ = t.editor.Close()
	}
}

// abandon restores the terminal, whatever is running.
func (t *dialogue) abandon() {
	if t.cooked != nil {
		_ = t.cooked.ApplyMode()
	}
}

// An editorError says that the line editor has panicked.
type editorError struct{ mistake any }

func (e *editorError) Error() string {
	return fmt.Sprintf("the editor of lines failed, and the line is dropped: %v; there is no editing from here on: press Enter to go on", e.mistake)
}

type typed struct {
	line string
	err  error
}

// ask reads one line. It returns errDropped after Ctrl-C and io.EOF after Ctrl-D.
func (t *dialogue) ask(ctx context.Context, interrupts <-chan struct{}, prompt string) (string, error) {
	answers := make(chan typed, 1)
	go func() { answers <- t.read(prompt) }()
	for {
		select {
		case a := <-answers:
			return a.line, a.err
		case <-interrupts:
			if t.plain != nil { // the terminal has dropped the line; an editor would see the key itself
				fmt.Fprintf(t.out, "\n%s", prompt)
			}
		case <-ctx.Done():
			return "", exit.Failedf("ended by a signal")
		}
	}
}

func (t *dialogue) read(prompt string) (answer typed) {
	defer func() {
		if mistake := recover(); mistake != nil {
			answer = typed{err: &editorError{mistake}}
		}
	}()
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
	line = recalled(line)
	switch {
	case errors.Is(err, liner.ErrPromptAborted):
		err = errDropped
	case err == io.EOF:
		fmt.Fprintln(t.out)
	}
	return typed{line, err}
}
