package shell

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

const (
	// grace is the time that work has to stop after a signal. Then the process ends
	// anyway.
	grace = 4 * time.Second
	// lastWords is the time that the ending process spends to print the reason and to
	// restore the terminal: both may hang.
	lastWords = 300 * time.Millisecond
	// sameKey is the time after Ctrl-C in which another one counts as the same in a
	// dialogue: holding the key down stops a line and not the shell.
	sameKey = time.Second
)

// Signals ends work when a signal asks for it. The first signal ends the context of the
// work. If the work has not stopped after the grace period, or when a second signal
// comes, the process ends at once. So work cannot hold the process, even if it waits
// for a file or a library without contexts.
//
// In a dialogue an interrupt is for the running line, or else for the prompt. Other
// signals are always for the process.
type Signals struct {
	in     chan os.Signal     // signals of the system
	done   chan struct{}      // closed by Stop
	end    context.CancelFunc // ends all work
	stderr io.Writer
	after  func(time.Duration) <-chan time.Time // time.After, except in tests
	now    func() time.Time                     // time.Now, except in tests
	exit   func(code int)                       // os.Exit, except in tests

	mu       sync.Mutex         // guards the fields below
	asked    os.Signal          // signal that running work has not followed yet; nil: none
	askedAt  time.Time          // time of asked
	deadline <-chan time.Time   // end of the grace period of asked
	dialogue *dialogue          // nil outside of a dialogue
	prompt   chan struct{}      // gets the interrupts at the prompt
	line     context.CancelFunc // ends the running line; nil at the prompt
	reload   func()             // what SIGHUP does in a server; nil elsewhere
	grace    time.Duration
}

// CatchSignals returns a context that signals end, until Stop: an interrupt, SIGTERM, and SIGHUP, which
// a terminal sends that closes, unless it is ignored, as under nohup.
func CatchSignals(stderr io.Writer) (context.Context, *Signals) {
	ctx, end := context.WithCancel(context.Background())
	s := &Signals{
		in: make(chan os.Signal, 4), done: make(chan struct{}), end: end, stderr: stderr,
		after: time.After, now: time.Now, exit: os.Exit, prompt: make(chan struct{}, 1),
		grace: grace,
	}
	signal.Notify(s.in, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(s.in, syscall.SIGHUP)
	}
	go s.watch()
	return ctx, s
}

// Serving is for a server: SIGHUP calls reload, on a goroutine of its own, and requests have so long to end
// after another signal.
func (s *Signals) Serving(grace time.Duration, reload func()) {
	s.set(func() { s.grace, s.reload = grace, reload })
}

// Stop leaves signals to the system again.
func (s *Signals) Stop() {
	signal.Stop(s.in)
	close(s.done)
	s.end()
}

func (s *Signals) watch() {
	for {
		s.mu.Lock()
		deadline := s.deadline
		s.mu.Unlock()
		select {
		case sig := <-s.in:
			s.take(sig)
		case <-deadline:
			s.late(deadline)
		case <-s.done:
			return
		}
	}
}

// take acts on a signal.
func (s *Signals) take(sig os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	interrupt := s.dialogue != nil && sig == os.Interrupt
	switch {
	case sig == syscall.SIGHUP && s.reload != nil:
		go s.reload()
	case interrupt && s.asked == nil && s.line == nil:
		select {
		case s.prompt <- struct{}{}:
		default:
		}
	case interrupt && s.asked == sig && s.now().Sub(s.askedAt) < sameKey:
	case s.asked != nil:
		s.die("", 128+signalNumber(sig))
	default:
		s.asked, s.askedAt, s.deadline = sig, s.now(), s.after(s.grace)
		if interrupt {
			s.line()
		} else {
			s.end()
		}
	}
}

// late ends the process if the work has not stopped by the deadline.
func (s *Signals) late(deadline <-chan time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if deadline != s.deadline {
		return // it has stopped just now
	}
	s.die(fmt.Sprintf("this has not stopped within %v of the signal (%v), and is ended as in a crash: what a database has acknowledged is kept, "+
		"and its next opening recovers it; of files that were being written, some that end in .tmp may be left", s.grace, s.asked), exit.Failed)
}

// die ends the process at once.
func (s *Signals) die(why string, code int) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if s.dialogue != nil {
			s.dialogue.abandon()
		}
		if why != "" {
			if term.File(s.stderr) != nil {
				why = "\nfddhdb: " + why // on the line below the progress bar
			} else {
				why = "fddhdb: " + why
			}
			fmt.Fprintln(s.stderr, why)
		}
	}()
	select {
	case <-done:
	case <-s.after(lastWords):
	}
	s.exit(code)
}

// begin passes interrupts to a dialogue, until end is called.
func (s *Signals) begin(d *dialogue) (end func()) {
	s.set(func() { s.dialogue = d })
	return func() { s.set(func() { s.dialogue = nil }) }
}

// run runs a line of a dialogue, with a context that an interrupt also ends.
func (s *Signals) run(ctx context.Context, f func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.set(func() { s.line = cancel })
	f(ctx)
	s.set(func() {
		s.line = nil
		if s.asked == os.Interrupt {
			s.asked, s.deadline = nil, nil
		}
	})
}

func (s *Signals) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// signalNumber returns the number of a signal. Shells add it to 128 for the exit code
// of a process that it has ended.
func signalNumber(sig os.Signal) int {
	if n, ok := sig.(syscall.Signal); ok {
		return int(n)
	}
	return 0
}
