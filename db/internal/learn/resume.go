package learn

import (
	"context"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// Resume returns a function that completes the spaces which are being built in view v, one
// after the other: an earlier process has left them. Open runs the function in a goroutine
// that Close waits for. The function does not use v, so release v before it runs. If it fails
// with a space, or ctx ends, the space stays as far as it has got, for Reindex or the next
// Open; the event says so.
func (d *Database) Resume(ctx context.Context, v *state.View) func() {
	var left []*builder
	for id, cv := range v.Collections.All() {
		for i := range cv.Spaces {
			if n := &cv.Spaces[i].Numbers; n.Building {
				c := d.Of(state.Collection{DB: d.State, ID: id, Name: cv.Name})
				left = append(left, &builder{c: c, space: uint32(n.ID), workers: work.Background()})
			}
		}
	}
	return func() {
		for _, b := range left {
			d.complete(ctx, b)
		}
	}
}

// complete runs a builder as an operation of the background, with events and a span. A panic
// becomes the error of its event.
func (d *Database) complete(ctx context.Context, b *builder) {
	ctx, op := d.State.Signals.BeginInBackground(ctx, event.OpReindex, b.c.Name)
	b.progress = op.Progress
	var built builtSpace
	err := work.Safely(func() (err error) {
		built, err = b.run(ctx)
		return err
	})
	e := b.c.Unbuilt(b.space)
	if err == nil {
		e = built.event()
	}
	op.End(err, e)
}
