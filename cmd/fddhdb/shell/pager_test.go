package shell

import (
	"context"
	"os"
	"runtime"
	"syscall"
	"testing"
)

// The pager counts lines as the terminal shows them.
func TestPagerCounts(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 0, "a\n": 1, "a\nb\n": 2, "1234567890": 0,
		"1234567890\n": 1, "12345678901\n": 2, "üüüüüüüüüü\n": 1} {
		p := &pager{columns: 10}
		p.count([]byte(text))
		if p.lines != want {
			t.Errorf("%q: %d lines, want %d", text, p.lines, want)
		}
	}
}

// A signal that comes while the process of a pager starts ends the pager.
func TestSignalBeforePager(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no sleep")
	}
	s, _ := testDialogue(t)
	s.pager = []string{"sleep", "1000"}
	s.terminal.endPager()
	p := s.newPager(t.Context(), func() {})
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	if err := p.end(); err == nil || s.terminal.pages() {
		t.Errorf("%v, the pager runs: %v", err, s.terminal.pages())
	}
}

// Ending a line does not wait for a pager that reads nothing, and ending the process
// ends the pager.
func TestSignalsAndPager(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no sleep")
	}
	s, _ := testDialogue(t)
	end := newTestSignals()
	defer end.begin(s.terminal)()
	s.pager = []string{"sleep", "1000"}
	var err error
	end.run(end.ctx, func(ctx context.Context) {
		err = s.withOutput(ctx, func(ctx context.Context) error {
			for !s.terminal.pages() {
				s.out.Stdout.WriteString("line\n")
				s.out.Stdout.Flush()
			}
			end.take(os.Interrupt) // it is for the pager, too, and the user leaves that
			if ctx.Err() == nil || end.asked != nil {
				t.Errorf("after Ctrl-C: %v, asked %v", ctx.Err(), end.asked)
			}
			s.out.Stdout.Write(make([]byte, 1<<20)) // more than a pipe holds
			s.out.Stdout.Flush()
			end.take(syscall.SIGTERM)
			return ctx.Err()
		})
	})
	if err != nil || s.terminal.pages() || end.ctx.Err() == nil || len(end.exits) > 0 {
		t.Errorf("%v, the pager runs: %v, exits %v", err, s.terminal.pages(), end.exits)
	}
}
