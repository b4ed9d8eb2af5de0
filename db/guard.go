package db

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

// enter counts a call, which must leave; an error says why it must not go on.
func (g *guard) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed == nil {
		g.calls++
	}
	return g.closed
}

func (g *guard) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls--; g.calls == 0 && g.closed != nil {
		close(g.idle)
	}
}

// close keeps new calls out and waits for the others; an error if it was closed
// already.
func (g *guard) close() error {
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
