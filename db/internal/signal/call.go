package signal

import (
	"context"
	"time"

	"github.com/fddhdb/fddhdb/db/event"
)

// A Call is a short call that is running, such as a search: it is counted and has a span, but
// no events. It is for the goroutine of the call. It is a value, so that it allocates nothing.
type Call struct {
	began time.Duration // since epoch
	Span  event.Span    // the caller ends it with the call; nil: there is no tracer
}

// epoch is the time from which short calls are measured. time.Since reads the monotonic clock
// alone, in half the time of time.Now. In a search of a microsecond that makes a difference.
var epoch = time.Now()

// Took returns how long the call has been going on.
func (c *Call) Took() time.Duration { return time.Since(epoch) - c.began }

// Call begins a call about a collection, "" for the whole database. The caller goes on with the
// returned context, and ends the span of the Call, if there is one. s is not nil.
func (s *Sender) Call(ctx context.Context, op event.Op, collection string) (context.Context, Call) {
	c := Call{began: time.Since(epoch)}
	if s.Tracer != nil {
		ctx, c.Span = s.Tracer.Start(ctx, event.Call{Op: op, Dir: s.dir, Collection: collection})
	}
	return ctx, c
}
