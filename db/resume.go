package db

import "context"

// resume returns what completes, in the background, the spaces of a view that are
// being built: nobody else does. An error leaves a space as it is, for Reindex or the
// next Open.
func (d *DB) resume(ctx context.Context, v *view) func() {
	var left []*builder
	for id, cv := range v.collections {
		for i := range cv.spaces {
			if n := &cv.spaces[i].numbers; n.Building {
				c := &Collection{db: d, id: id, name: cv.Name}
				left = append(left, &builder{c: c, space: uint32(n.ID), workers: backgroundWorkers()})
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
func (d *DB) complete(ctx context.Context, b *builder) {
	ctx, op := d.signals.beginInBackground(ctx, OpReindex, b.c.name)
	b.progress = func(done, total int) { op.progress("encode", int64(done), int64(total)) }
	built := builtSpace{Space: b.space}
	err := recovered(func() error {
		done, err := b.run(ctx)
		if err == nil {
			built = done
		}
		return err
	})
	op.end(err, built.event())
}
