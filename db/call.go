package db

import (
	"context"
	"time"

	"github.com/fddhdb/fddhdb/db/event"
)

// A call is a short one that is going on.
type call struct {
	began time.Duration // since epoch
	span  event.Span    // nil: nobody asks
}

// epoch is what short calls are measured from: to read the monotonic clock alone takes half
// the time of time.Now, which tells in a search of a microsecond.
var epoch = time.Now()

// took returns how long the call has been going on.
func (c *call) took() time.Duration { return time.Since(epoch) - c.began }

// call begins a call; its span, if there is one, has to be ended.
func (d *DB) call(ctx context.Context, op event.Op, collection string) (context.Context, call) {
	c := call{began: time.Since(epoch)}
	if t := d.state.Signals.Tracer; t != nil {
		ctx, c.span = t.Start(ctx, event.Call{Op: op, Dir: d.dir, Collection: collection})
	}
	return ctx, c
}
