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
	log := d.opts.Logger.With("collection", b.c.name, "space", b.space)
	log.Info("going on with a space that was being built")
	var built builtSpace
	err := recovered(func() (err error) {
		built, err = b.run(ctx)
		return err
	})
	switch {
	case err == nil:
		log.Info("space complete", "items", built.Items, "active", built.Active)
	case ctx.Err() == nil:
		log.Error("space not complete: reindex goes on with it, and so does the next Open", "error", err)
	}
}
