package learn

import (
	"context"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// Resume returns what completes, in the background, the spaces of a view that are
// being built: nobody else does. An error leaves a space as it is, for Reindex or the
// next Open; its event says so.
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

// complete runs a builder in the background.
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
