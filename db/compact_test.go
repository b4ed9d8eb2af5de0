package db_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// After everything but a few items has been deleted, Compact gives the space
// back, on disk and in memory, and what is left is found as before, also after
// opening again.
func TestCompactGivesSpaceBack(t *testing.T) {
	dbkit.LongTest(t)
	opts := &db.Options{FS: vfs.NewMem()}
	d := dbkit.MustOpen(t, "db", opts)
	c, err := d.CreateCollection(ctx, "main", db.Schema{Bits: 64})
	if err != nil {
		t.Fatal(err)
	}
	const n = 6000
	b := d.NewBatch()
	for i := range n {
		b.Put(c, &db.Item{Key: fmt.Sprint("k", i), Code: codeAt(i), Payload: codeAt(7 * i)})
	}
	if err := b.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := d.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	if err := d.WaitForIndex(ctx); err != nil {
		t.Fatal(err)
	}
	index := func() (postings int) {
		for key := range storeKeys(t, d) {
			if key[0] == codec.KindSubstring || key[0] == codec.KindCodes {
				postings++
			}
		}
		return postings
	}
	full, err := d.Stats()
	if err != nil {
		t.Fatal(err)
	}
	fullIndex := index()
	s, err := d.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	then, err := s.Collection("main")
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for i := range n {
		if i%100 > 0 {
			keys = append(keys, fmt.Sprint("k", i))
		}
	}
	if k, err := c.Delete(ctx, keys...); k != len(keys) || err != nil {
		t.Fatal(k, err)
	}
	if err := d.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	for _, plan := range dbkit.AllPlans {
		if k, err := then.CountRadius(ctx, db.Query{Code: codeAt(5), Plan: plan}, 4); k == 0 || err != nil {
			t.Errorf("snapshot, plan %v: %d, %v", plan, k, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		st, err := d.Stats()
		if err != nil {
			t.Fatal(err)
		}
		cs := st.Collections[0]
		if st.Items != n/100 || cs.DistinctCodes != n/100 || 10*cs.MemoryBytes > 5*full.Collections[0].MemoryBytes {
			t.Errorf("round %d: %+v; it was %+v", round, cs, full.Collections[0])
		}
		if k := index(); 20*k > fullIndex {
			t.Errorf("round %d: %d keys of the index of %d", round, k, fullIndex)
		}
		for _, plan := range dbkit.AllPlans {
			for i := range n / 100 {
				res, err := c.Search(ctx, db.Query{Code: codeAt(100 * i), K: 1, Plan: plan})
				if err != nil || len(res.Hits) != 1 || res.Hits[0].Key != fmt.Sprint("k", 100*i) {
					t.Fatalf("item %d, plan %v: %v, %v", 100*i, plan, res, err)
				}
			}
		}
		if round == 0 {
			dbkit.MustClose(t, d)
			d = dbkit.MustOpen(t, "db", opts)
			c = dbkit.MustCollection(t, d, "main")
		}
	}
	dbkit.MustClose(t, d)
}

// Events tell how far Compact is: bytes of tables from none to all of them.
func TestProgressOfCompact(t *testing.T) {
	h := &heard{}
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem(), EventListener: h.listen})
	c, err := d.CreateCollection(ctx, "main", db.Schema{Bits: 64})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if _, err := c.Put(ctx, &db.Item{Key: fmt.Sprint("k", i), Code: codeAt(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	dbkit.MustClose(t, d)
	var stages []string
	for _, e := range h.of("fddhdb.compact.progress") {
		stages = append(stages, e.Stage)
		switch {
		case e.Stage != "rewrite" && (e.Done != 0 || e.Total != 0):
			t.Errorf("%d of %d of %s, of which nobody knows the length", e.Done, e.Total, e.Stage)
		case e.Stage == "rewrite" && (e.Total == 0 || e.Done < 0 || e.Done > e.Total):
			t.Errorf("%d of %d bytes", e.Done, e.Total)
		}
	}
	if stages = slices.Compact(stages); !slices.Equal(stages, []string{"sweep", "rewrite", "index"}) {
		t.Errorf("stages %q", stages)
	}
}
