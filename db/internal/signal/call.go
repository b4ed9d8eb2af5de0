package signal

import (
	"context"
	"time"

	"github.com/fddhdb/fddhdb/db/event"
)

// A Call is a short one that is going on: it is counted and traced, but no event tells of it.
type Call struct {
	began time.Duration // since epoch
	Span  event.Span    // to be ended with the call; nil: nobody asks
}

// epoch is what short calls are measured from: to read the monotonic clock alone takes half
// the time of time.Now, which tells in a search of a microsecond.
var epoch = time.Now()

// Took returns how long the call has been going on.
func (c *Call) Took() time.Duration { return time.Since(epoch) - c.began }

// Call begins a call; its span, if there is one, has to be ended.
func (s *Sender) Call(ctx context.Context, op event.Op, collection string) (context.Context, Call) {
	c := Call{began: time.Since(epoch)}
	if s.Tracer != nil {
		ctx, c.Span = s.Tracer.Start(ctx, event.Call{Op: op, Dir: s.dir, Collection: collection})
	}
	return ctx, c
}
