package state

import (
	"sync"

	"github.com/fddhdb/fddhdb/db/fault"
)

// A guard counts running calls, so that Close can wait for them. Calls that begin after Close get an error
// instead of waiting, so a call within another call cannot deadlock with Close.
type guard struct {
	mu     sync.Mutex    // guards the fields below; held for moments
	calls  int           // calls that have entered and not left
	closed bool          // calls get ErrClosed
	idle   chan struct{} // made by Close, closed when the last call leaves
}

// Enter counts a call, which must Leave. If it returns ErrClosed, the call is not counted and must not go on.
// Enter never waits.
func (g *guard) Enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return fault.ErrClosed
	}
	g.calls++
	return nil
}

// Leave ends a call that has entered.
func (g *guard) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls--; g.calls == 0 && g.closed {
		close(g.idle)
	}
}

// Calls returns the number of running calls, for tests that wait for some.
func (g *guard) Calls() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls
}

// Close refuses new calls and waits for the running ones. A second Close returns ErrClosed at once. A call
// must not close the guard that it has entered.
func (g *guard) Close() error {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return fault.ErrClosed
	}
	g.closed, g.idle = true, make(chan struct{})
	if g.calls == 0 {
		close(g.idle)
	}
	g.mu.Unlock()
	<-g.idle
	return nil
}
