package state

import (
	"sync"

	"github.com/fddhdb/fddhdb/db/fault"
)

// A guard counts the calls that are going on, so that Close can wait for them.
// Calls that begin after Close has are refused rather than made to wait, so that
// a call made inside another cannot deadlock with Close.
type guard struct {
	Mu     sync.Mutex
	Calls  int
	closed error         // that calls get; nil while it is open
	idle   chan struct{} // closed when the last call has gone, after close
}

// Enter counts a call, which must leave; an error says why it must not go on.
func (g *guard) Enter() error {
	g.Mu.Lock()
	defer g.Mu.Unlock()
	if g.closed == nil {
		g.Calls++
	}
	return g.closed
}

func (g *guard) Leave() {
	g.Mu.Lock()
	defer g.Mu.Unlock()
	if g.Calls--; g.Calls == 0 && g.closed != nil {
		close(g.idle)
	}
}

// Close keeps new calls out and waits for the others; an error if it was closed
// already.
func (g *guard) Close() error {
	g.Mu.Lock()
	if err := g.closed; err != nil {
		g.Mu.Unlock()
		return err
	}
	g.closed, g.idle = fault.ErrClosed, make(chan struct{})
	if g.Calls == 0 {
		close(g.idle)
	}
	g.Mu.Unlock()
	<-g.idle
	return nil
}
