package state

import (
	"sync"

	"github.com/fddhdb/fddhdb/db/fault"
)

// A guard counts the calls that are going on, so that Close can wait for them.
// Calls that begin after Close has are refused rather than made to wait, so that
// a call made inside another cannot deadlock with Close.
type guard struct {
	mu     sync.Mutex
	calls  int
	closed error         // that calls get; nil while it is open
	idle   chan struct{} // closed when the last call has gone, after close
}

// Enter counts a call, which must leave; an error says why it must not go on.
func (g *guard) Enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed == nil {
		g.calls++
	}
	return g.closed
}

func (g *guard) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls--; g.calls == 0 && g.closed != nil {
		close(g.idle)
	}
}

// Calls returns how many calls are going on.
func (g *guard) Calls() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls
}

// Close keeps new calls out and waits for the others; an error if it was closed
// already.
func (g *guard) Close() error {
	g.mu.Lock()
	if err := g.closed; err != nil {
		g.mu.Unlock()
		return err
	}
	g.closed, g.idle = fault.ErrClosed, make(chan struct{})
	if g.calls == 0 {
		close(g.idle)
	}
	g.mu.Unlock()
	<-g.idle
	return nil
}
