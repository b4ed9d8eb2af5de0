package cluster

import "sync/atomic"

// A crew is goroutines that stay when they have done something, for what comes next: the stack of a new one
// is small, and to make it large again and again is a tenth of what a search takes.
type crew struct {
	work chan func()
	end  <-chan struct{}
	idle atomic.Int64
}

// mostIdle is how many stay.
const mostIdle = 64

// do has f done by a goroutine of the crew, or a new one.
func (c *crew) do(f func()) {
	select {
	case c.work <- f:
	default:
		go c.member(f)
	}
}

func (c *crew) member(f func()) {
	for {
		f()
		f = nil // nothing is held
		if c.idle.Add(1) > mostIdle {
			c.idle.Add(-1)
			return
		}
		select {
		case f = <-c.work:
			c.idle.Add(-1)
		case <-c.end:
			return
		}
	}
}
