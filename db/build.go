package db

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/fddhdb/fddhdb/mih"
)

// One goroutine a database indexes the codes that have come since it last
// looked. It works on a view, so that nobody waits for it, and hands what it has
// made to the committer, which shows it with the next view.

// due returns what there is to build, nil if nothing.
func (cv *collectionView) due() *mih.Build {
	if cv.table == nil {
		return nil
	}
	return cv.table.Build()
}

// wantBuild asks the builder to look.
func (d *DB) wantBuild() {
	select {
	case d.rebuild <- struct{}{}:
	default: // it will
	}
}

// buildIndexes builds what is due until the context ends.
func (d *DB) buildIndexes(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.rebuild:
		}
		for d.buildOne(ctx) {
		}
	}
}

// buildOne builds the index of one collection, if one is due, and reports
// whether it did.
func (d *DB) buildOne(ctx context.Context) bool {
	built, err := d.build(ctx, (*collectionView).due)
	if err != nil && ctx.Err() == nil {
		d.opts.Logger.Error("index not built", "error", err)
	}
	return built && err == nil
}

// build runs the first build that choose returns for a collection, and installs
// what it has made. Builds go one after the other, as each begins with what the
// one before has installed.
func (d *DB) build(ctx context.Context, choose func(*collectionView) *mih.Build) (built bool, err error) {
	d.building.Lock()
	defer d.building.Unlock()
	v := d.current.Load()
	for !v.acquire() {
		v = d.current.Load()
	}
	defer v.release()
	for _, cv := range v.collections {
		b := choose(cv)
		if b == nil {
			continue
		}
		b.Bare = !d.affords(v, cv, b)
		if err := recovered(func() error { return b.Run(ctx) }); err != nil {
			return false, annotate(err, "index collection %q", cv.Name)
		}
		return true, d.committer.submit(ctx, &request{quiet: true, shows: true, exclusive: func(g *group) error {
			if s := g.c.states[cv.ID]; s != nil && s.generation == cv.generation {
				s.table.Install(b)
				s.dirty = true
			}
			return nil
		}})
	}
	return false, nil
}

// affords reports whether the tables of a build stay within the budget, with
// those that all collections have now and keep.
func (d *DB) affords(v *view, cv *collectionView, b *mih.Build) bool {
	return int64(b.TableBytes()+b.KeptBytes()+v.tableBytes(cv)) <= d.opts.IndexCacheBytes
}

// tableBytes returns what the tables of all collections but one take.
func (v *view) tableBytes(except *collectionView) int {
	sum := 0
	for _, cv := range v.collections {
		if cv != except && cv.table != nil {
			sum += cv.table.Memory().Tables
		}
	}
	return sum
}

// recovered returns a panic of f as an error: what goes on in the background must
// not take the process down that the database is embedded in.
func recovered(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("fddhdb: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}
