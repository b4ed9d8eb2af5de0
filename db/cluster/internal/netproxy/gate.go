package netproxy

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// gate is the one place at which all bytes of a proxy wait: for their delay, and for the end of a cut.
type gate struct {
	delay atomic.Int64 // time.Duration

	mu     sync.Mutex
	opened chan struct{} // closed while the gate is open; guarded by mu
	isOpen bool          // guarded by mu
}

// newGate returns an open gate.
func newGate() *gate {
	g := &gate{opened: make(chan struct{}), isOpen: true}
	close(g.opened)
	return g
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isOpen {
		g.isOpen, g.opened = false, make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.isOpen {
		g.isOpen = true
		close(g.opened)
	}
}

// due returns the time at which a byte that was read now may pass.
func (g *gate) due() time.Time { return time.Now().Add(time.Duration(g.delay.Load())) }

// pass waits until due and then until the gate is open. It reports false if ctx ended first.
func (g *gate) pass(ctx context.Context, due time.Time) bool {
	if wait := time.Until(due); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false
		}
	}
	for {
		g.mu.Lock()
		opened, isOpen := g.opened, g.isOpen
		g.mu.Unlock()
		if isOpen {
			return ctx.Err() == nil
		}
		select {
		case <-opened:
		case <-ctx.Done():
			return false
		}
	}
}
