package db_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// unposted returns how many code numbers of the collection are in no posting yet.
func unposted(t *testing.T, c *db.Collection) uint64 {
	t.Helper()
	v, done := need2(db.State(db.Of(c)).Acquire())(t)
	defer done()
	set := need(v.Collection(db.Inside(c).ID, db.Inside(c).Name))(t).Codes
	return set.NextCode - set.Posted
}

// postingKeys returns how many keys the postings of the database have.
func postingKeys(t *testing.T, d *db.DB) (n int) {
	for key := range storeKeys(t, d) {
		if key[0] == codec.KindSubstring {
			n++
		}
	}
	return n
}

// A Put writes no postings. A bulk load writes postings for its own codes, and for older codes without
// postings. Every plan finds the same items with and without postings.
func TestCodesGetPostingsLater(t *testing.T) {
	fsys := vfs.NewCrashableMem()
	d, c := openNew(t, "db", &db.Options{FS: fsys}, db.Schema{Bits: 64})
	items := made(2000, func(i int) *db.Item { return &db.Item{Key: fmt.Sprint("k", i), Code: codeAt(i)} })
	look := func(when string, want uint64) {
		t.Helper()
		got := unposted(t, c)
		failIf(t, got != want, "%s: %d codes without postings, want %d", when, got, want)
		for i := range 16 {
			q := db.Query{Code: items[i*3].Code, K: 5}
			want := need(dbkit.CountWithin(c, db.Query{Code: q.Code, Plan: db.PlanScan}, 9))(t, when)
			for _, plan := range dbkit.AllPlans {
				q.Plan = plan
				res := need(c.Search(ctx, q))(t, when, plan)
				failIf(t, res.Hits[0].Key != items[i*3].Key, "%s, plan %v: %v", when, plan, res.Hits)
				within := need(dbkit.CountWithin(c, q, 9))(t, when, plan)
				failIf(t, within != want, "%s, plan %v: %d within 9, want %d", when, plan, within, want)
			}
		}
		dbkit.CheckSound(t, d, when)
	}
	putEach(t, c, items[:50])
	must(t, db.State(d).Post(ctx, 1))
	look("all postings are written", 0)
	putEach(t, c, items[50:60]) // fewer than are due
	look("after puts", 10)

	// What a crash leaves, the next one that opens the database goes on with, and a reader reads.
	crash := &db.Options{FS: fsys.CrashClone(vfs.CrashCloneCfg{}), ReadOnly: true}
	was, wasOf := d, c
	d = dbkit.MustOpen(t, "db", crash)
	c = dbkit.MustCollection(t, d, "main")
	look("read only", 10)
	dbkit.MustClose(t, d)
	d, c = was, wasOf

	need(c.Delete(ctx, "k57", "k58", "k59"))(t)
	need(c.Put(ctx, items[57]))(t)
	putAll(t, c, items[58:])
	look("after a bulk load", 0)
	var keys []string
	for _, it := range items {
		keys = append(keys, it.Key)
	}
	gives(t, len(items))(c.Delete(ctx, keys...))
	must(t, d.Compact(ctx))
	must(t, d.Compact(ctx))
	failIf(t, postingKeys(t, d) > 0, "%d postings of no code", postingKeys(t, d))
	dbkit.MustClose(t, d)
}

// Writers delete items while another goroutine writes the postings of their codes.
func TestPostingsBesideWriters(t *testing.T) {
	d, c := openNew(t, "db", &db.Options{FS: vfs.NewMem()}, db.Schema{Bits: 64})
	var group sync.WaitGroup
	writing, end := context.WithCancel(ctx)
	for w := range 4 {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 5))
			for i := 0; i < 800 && t.Context().Err() == nil; i++ {
				key := fmt.Sprint(w, "-", rng.IntN(60))
				var err error
				if rng.IntN(3) == 0 {
					_, err = c.Delete(ctx, key)
				} else {
					_, err = c.Put(ctx, &db.Item{Key: key, Code: codeAt(rng.IntN(5000))})
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var waiting sync.WaitGroup
	waiting.Go(func() {
		for writing.Err() == nil {
			if err := db.State(d).Post(ctx, 1); err != nil {
				t.Error(err)
				return
			}
		}
	})
	group.Wait()
	end()
	waiting.Wait()
	must(t, db.State(d).Post(ctx, 1))
	failIf(t, unposted(t, c) > 0, "%d codes have no postings", unposted(t, c))
	dbkit.CheckSound(t, d, "after the writers")
	dbkit.MustClose(t, d)
}
