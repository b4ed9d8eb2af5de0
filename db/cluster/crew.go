package cluster

import "sync/atomic"

// A crew is a pool of goroutines. A new goroutine has a small stack, and growing it for each search costs a
// tenth of the search.
type crew struct {
	work chan func()
	end  <-chan struct{}
	idle atomic.Int64
}

// mostIdle bounds the idle goroutines.
const mostIdle = 64

// do runs f in an idle goroutine of the pool, or in a new one.
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
		f = nil // so that an idle goroutine keeps nothing alive
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
