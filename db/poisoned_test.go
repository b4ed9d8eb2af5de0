package db_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// breakable is a disk of which all changes fail while it is broken.
func breakable() (fsys vfs.FS, broken *atomic.Bool) {
	broken = new(atomic.Bool)
	return errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return errors.New("the disk is gone")
		}
		return nil
	})), broken
}

// A database that has failed answers reads from the last state that was acknowledged,
// refuses all else, and opening it again recovers.
func TestFailedDatabase(t *testing.T) {
	fsys, broken := breakable()
	opts := &db.Options{FS: fsys, UpdateItems: 1}
	d := dbkit.MustOpen(t, "db", opts)
	schema := dbkit.PairsSchema
	schema.Fields = []db.Field{{"year", db.Int, true}}
	c, err := d.CreateCollection(ctx, "main", schema)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.CreateCollection(ctx, "other", schema); err != nil {
		t.Fatal(err)
	}
	items := dbkit.Pairs(60, synth.Config{})
	for i, it := range items {
		it.Fields = map[string]any{"year": i}
	}
	putAll(t, c, items[:50])
	opt := db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}}
	dbkit.MustTrain(t, c, opt)
	second2 := dbkit.MustTrain(t, c, opt).Space
	before, err := c.Search(ctx, db.Query{Key: "k7", K: 50})
	if err != nil {
		t.Fatal(err)
	}
	early, err := d.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	runs, err := c.SearchRadius(ctx, db.Query{Key: "k7"}, 16)
	if err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	if _, err := c.Put(ctx, items[55]); !errors.Is(err, db.ErrFailed) {
		t.Fatal(err)
	}
	bulk := func() error {
		b := d.NewBatch()
		for i := range bulkItems {
			if err := b.Put(c, &db.Item{Key: fmt.Sprint(i)}); err != nil {
				t.Fatal(err)
			}
		}
		return b.Commit(ctx)
	}
	for what, err := range map[string]error{
		"put":              dbkit.Second(c.Put(ctx, items[56])),
		"merge":            dbkit.Second(c.Merge(ctx, items[3])),
		"delete":           dbkit.Second(c.Delete(ctx, "k3")),
		"delete where":     dbkit.Second(c.DeleteWhere(ctx, "year = 3")),
		"bulk":             bulk(),
		"create":           dbkit.Second(d.CreateCollection(ctx, "third", schema)),
		"alter":            c.Alter(ctx, db.Alteration{AddFields: []db.Field{place}}),
		"drop":             d.DropCollection(ctx, "other"),
		"drop space":       c.DropSpace(ctx, second2),
		"activate":         c.Activate(ctx, second2),
		"rollback":         dbkit.Second(c.Rollback(ctx)),
		"pin":              c.PinRevision(ctx, 1, 1, true),
		"restore revision": dbkit.Second(c.RestoreRevision(ctx, 1, 1)),
		"train":            dbkit.Second(c.Train(ctx, opt)),
		"reindex":          dbkit.Second(c.Reindex(ctx, db.ReindexOptions{})),
		"update":           dbkit.Second(c.Update(ctx, db.UpdateOptions{})),
		"compact":          d.Compact(ctx),
	} {
		if !errors.Is(err, db.ErrFailed) || strings.Count(err.Error(), "fddhdb:") != 1 {
			t.Errorf("%s: %v", what, err)
		}
	}
	reads := func(c *db.Collection) map[string]error {
		out := map[string]error{
			"get":        dbkit.Second(c.Get(ctx, "k3")),
			"radius":     dbkit.Second(c.CountRadius(ctx, db.Query{Key: "k7"}, 3)),
			"all":        dbkit.Second(c.SearchAll(ctx, []db.Query{{Key: "k7"}})),
			"spaces":     dbkit.Second(c.Spaces(ctx)),
			"statistics": dbkit.Second(c.Stats()),
			"labels":     dbkit.Second(c.Labels()),
		}
		if n, err := c.CountWhere(ctx, "year >= 0"); n != 50 || err != nil {
			out["count"] = fmt.Errorf("%d, %w", n, err)
		}
		if n, err := c.Count(); n != 50 || err != nil {
			out["items"] = fmt.Errorf("%d, %w", n, err)
		}
		res, err := c.Search(ctx, db.Query{Key: "k7", K: 50})
		if err != nil || fmt.Sprint(res.Hits) != fmt.Sprint(before.Hits) {
			out["search"] = fmt.Errorf("other hits, %w", err)
		}
		return out
	}
	late, err := d.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for when, c := range map[string]*db.Collection{
		"now":                    c,
		"a snapshot from before": second1(early.Collection("main")),
		"a snapshot from since":  second1(late.Collection("main")),
	} {
		for what, err := range reads(c) {
			if err != nil {
				t.Errorf("%s, %s: %v", when, what, err)
			}
		}
	}
	if res, err := runs.First(ctx, 50); err != nil || len(res.Hits) != 50 {
		t.Errorf("runs: %v", err)
	}
	if err := d.WaitForIndex(ctx); err != nil && !errors.Is(err, db.ErrFailed) {
		t.Errorf("wait for the index: %v", err)
	}
	dbkit.CheckSound(t, d, "failed")
	if err := errors.Join(runs.Close(), early.Close(), late.Close()); err != nil {
		t.Error(err)
	}
	if err := d.Close(); !errors.Is(err, db.ErrFailed) {
		t.Errorf("close: %v", err)
	}
	if err := d.Close(); !errors.Is(err, db.ErrClosed) {
		t.Errorf("close once more: %v", err)
	}
	broken.Store(false)
	d = dbkit.MustOpen(t, "db", opts)
	defer d.Close()
	c = dbkit.MustCollection(t, d, "main")
	for _, it := range items[:50] {
		if _, err := c.Get(ctx, it.Key); err != nil {
			t.Errorf("opened again: %v", err)
		}
	}
	if _, err := c.Put(ctx, items[57]); err != nil {
		t.Errorf("opened again: %v", err)
	}
	dbkit.CheckSound(t, d, "opened again")
}

func second1[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// What goes on while the database fails ends with the failure.
func TestFailureDuringLongWork(t *testing.T) {
	for _, phase := range []string{"scan", "statistics", "encode"} {
		t.Run(phase, func(t *testing.T) {
			fsys, broken := breakable()
			d := dbkit.MustOpen(t, "db", &db.Options{FS: fsys})
			c, err := d.CreateCollection(ctx, "main", dbkit.PairsSchema)
			if err != nil {
				t.Fatal(err)
			}
			items := dbkit.Pairs(60, synth.Config{})
			putAll(t, c, items)
			met := false
			opt := db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10, Progress: func(now string, _, _ int64) {
				if now == phase && !met {
					met = true
					broken.Store(true)
					if _, err := c.Put(ctx, &db.Item{Key: "late"}); !errors.Is(err, db.ErrFailed) {
						t.Errorf("put: %v", err)
					}
				}
			}}}
			if _, err := c.Train(ctx, opt); !met || !errors.Is(err, db.ErrFailed) {
				t.Errorf("the phase was met: %v; %v", met, err)
			}
			if _, err := c.Get(ctx, "k7"); err != nil {
				t.Error(err)
			}
			if err := d.Close(); !errors.Is(err, db.ErrFailed) {
				t.Errorf("close: %v", err)
			}
			broken.Store(false)
			d = dbkit.MustOpen(t, "db", &db.Options{FS: fsys})
			defer d.Close()
			c = dbkit.MustCollection(t, d, "main")
			if n, err := c.Count(); n < 60 || err != nil {
				t.Errorf("%d items, %v", n, err)
			}
			dbkit.CheckSound(t, d, "opened again")
			_, err = c.Train(ctx, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}})
			if errors.Is(err, db.ErrBusy) { // what the first one has learned is being completed
				_, err = c.Reindex(ctx, db.ReindexOptions{})
			}
			if err != nil {
				t.Errorf("train again: %v", err)
			}
		})
	}
}
