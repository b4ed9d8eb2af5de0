package state

import (
	"sync"

	"github.com/fddhdb/fddhdb/db/fault"
)

// A guard counts the calls that are going on, so that Close can wait for them.
// Calls that begin after Close has are refused rather than made to wait, so that
// a call made inside another cannot deadlock with Close.
type guard struct {
	mu     sync.Mutex    // guards the fields below; held for moments
	calls  int           // that have entered and not left
	closed bool          // calls get ErrClosed
	idle   chan struct{} // made by Close; closed when the last call has left after that
}

// Enter counts a call, which must Leave. With ErrClosed it does not count and must not go on.
// It never waits.
func (g *guard) Enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return fault.ErrClosed
	}
	g.calls++
	return nil
}

// Leave is the end of a call that has entered.
func (g *guard) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls--; g.calls == 0 && g.closed {
		close(g.idle)
	}
}

// Calls returns how many calls are going on, for tests that wait until some are.
func (g *guard) Calls() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls
}

// Close keeps new calls out and waits until all others have left. A second Close
// returns ErrClosed, and waits for nobody. A call must not close the guard that it has
// entered.
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
