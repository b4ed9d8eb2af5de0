package shell

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
)

// testSignals are signals with a clock of the test, and without ending the process.
type testSignals struct {
	*Signals
	ctx   context.Context
	out   bytes.Buffer
	at    time.Time
	alarm chan time.Time // the last alarm that was set
	exits []int
}

func newTestSignals() *testSignals {
	s := &testSignals{Signals: &Signals{in: make(chan os.Signal, 1), prompt: make(chan struct{}, 1)}}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.stderr = &s.out
	s.now = func() time.Time { return s.at }
	s.after = func(d time.Duration) <-chan time.Time {
		s.alarm = make(chan time.Time)
		return s.alarm
	}
	s.exit = func(code int) { s.exits = append(s.exits, code) }
	return s
}

// exited returns the exit codes so far, and forgets them.
func (s *testSignals) exited() []int {
	codes := s.exits
	s.exits = nil
	return codes
}

// A verb that ignores its context ends with the process: after the grace period, or at
// once after a second signal.
func TestSignalsEndTheProcess(t *testing.T) {
	s := newTestSignals()
	s.take(syscall.SIGTERM)
	if s.ctx.Err() == nil || len(s.exited()) > 0 {
		t.Fatalf("the first signal: %v, exits %v", s.ctx.Err(), s.exits)
	}
	s.late(s.deadline)
	if codes := s.exited(); len(codes) != 1 || codes[0] != exit.Failed {
		t.Errorf("after the grace period: exits %v", codes)
	}
	for _, want := range []string{"fddhdb: ", "terminated",
		"what a database has acknowledged is kept, and its next opening recovers it"} {
		if !strings.Contains(s.out.String(), want) {
			t.Errorf("it says %q, without %q", &s.out, want)
		}
	}

	s = newTestSignals()
	s.take(os.Interrupt)
	s.take(syscall.SIGTERM)
	if codes := s.exited(); len(codes) != 1 || codes[0] != 128+15 {
		t.Errorf("a second signal: exits %v", codes)
	}
}

// In a dialogue an interrupt ends the line, and the shell only if the line does not
// end.
func TestSignalsInADialogue(t *testing.T) {
	terminal := &testTerminal{}
	s := newTestSignals()
	d := &dialogue{cooked: terminal}
	defer s.begin(d)()

	s.take(os.Interrupt) // at the prompt
	select {
	case <-s.prompt:
	default:
		t.Error("the prompt is not told")
	}
	var deadline <-chan time.Time
	s.run(s.ctx, func(ctx context.Context) {
		s.take(os.Interrupt)
		if ctx.Err() == nil {
			t.Error("the line goes on")
		}
		s.at = s.at.Add(sameKey / 2)
		s.take(os.Interrupt) // the key is held down
		deadline = s.deadline
	})
	s.late(deadline)
	if s.ctx.Err() != nil || len(s.exited()) > 0 || terminal.applied > 0 {
		t.Fatalf("the line has ended, and the shell with it: %v, exits %v", s.ctx.Err(), s.exits)
	}
	s.run(s.ctx, func(context.Context) {
		s.take(os.Interrupt)
		s.late(s.deadline)
		if codes := s.exited(); len(codes) != 1 || codes[0] != exit.Failed || terminal.applied != 1 {
			t.Errorf("a line that does not end: exits %v, the terminal set right %d times", codes,
				terminal.applied)
		}
	})
	s.run(s.ctx, func(context.Context) {
		s.take(os.Interrupt)
		s.at = s.at.Add(sameKey)
		s.take(os.Interrupt)
		if codes := s.exited(); len(codes) != 1 || codes[0] != 128+2 || terminal.applied != 2 {
			t.Errorf("a second interrupt: exits %v, the terminal set right %d times", codes, terminal.applied)
		}
	})
	s.run(s.ctx, func(ctx context.Context) {
		s.take(syscall.SIGTERM)
		if s.ctx.Err() == nil || ctx.Err() == nil {
			t.Error("SIGTERM does not end the shell")
		}
	})
	s.late(s.deadline) // after the line, closing the database can hang, too
	if codes := s.exited(); len(codes) != 1 || terminal.applied != 3 {
		t.Errorf("the shell does not end: exits %v", codes)
	}
}

// A terminal or stderr that hangs does not delay the end.
func TestSignalsSayNothingInVain(t *testing.T) {
	r, w := io.Pipe() // nobody reads
	defer r.Close()
	s := newTestSignals()
	s.stderr = w
	s.take(syscall.SIGTERM)
	s.after = func(time.Duration) <-chan time.Time {
		over := make(chan time.Time)
		close(over)
		return over
	}
	s.late(s.deadline)
	if codes := s.exited(); len(codes) != 1 {
		t.Errorf("exits %v", codes)
	}
}

// A testTerminal counts how often its mode was set.
type testTerminal struct{ applied int }

func (t *testTerminal) ApplyMode() error {
	t.applied++
	return nil
}
