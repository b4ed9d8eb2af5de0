package cluster_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// percentiles sorts times and says where the half and nearly all of them end.
func percentiles(all []time.Duration) string {
	slices.Sort(all)
	return fmt.Sprintf("p50 %v, p99 %v", all[len(all)/2], all[len(all)*99/100])
}

// TestLatencies tells how long writes and searches take with everything on this machine: it asserts no
// time. With FDDHDB_ITEMS=1000000 it is the figure of docs/BENCHMARKS.md.
func TestLatencies(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures")
	}
	var n int
	if fmt.Sscan(os.Getenv("FDDHDB_ITEMS"), &n); n == 0 {
		n = 20_000
	}
	var nodes, shards int
	if fmt.Sscan(os.Getenv("FDDHDB_SHARDS"), &nodes, &shards); shards == 0 {
		nodes, shards = 4, 4
	}
	h := build(t, 3, nodes, shards, 1)
	c := h.connect()
	codes, err := c.CreateCollection(t.Context(), "codes", db.Schema{Bits: 64})
	if err != nil {
		t.Fatal(err)
	}
	items := dbkit.CodeItems(n, 64, 1, func(i int) string { return fmt.Sprint("k", i) })
	begin := time.Now()
	importAll(t, codes, items)
	t.Logf("%d items imported in %v: %.0f a second", n, time.Since(begin),
		float64(n)/time.Since(begin).Seconds())
	d, err := db.Open(filepath.Join(t.TempDir(), "one"), &db.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	one := mustCreate(t, d, "codes", db.Schema{Bits: 64})
	dbkit.PutAll(t, d, one, items)

	r := rand.New(rand.NewPCG(1, 2))
	embedded, err := cluster.Connect(t.Context(), h.conn("embedding"), "test",
		cluster.ClientOptions{Node: h.nodes["n0"]})
	if err != nil {
		t.Fatal(err)
	}
	defer embedded.Close()
	var puts, single, gathered, here []time.Duration
	for i := range 300 {
		begin := time.Now()
		if _, err := codes.Put(t.Context(), items[i%len(items)]); err != nil {
			t.Fatal(err)
		}
		puts = append(puts, time.Since(begin))
	}
	for range 2000 {
		code := slices.Clone(items[r.IntN(len(items))].Code)
		code[r.IntN(8)] ^= byte(1 << r.IntN(8))
		q := db.Query{Code: code, K: 10}
		begin := time.Now()
		want, err := one.Search(context.Background(), q)
		single = append(single, time.Since(begin))
		if err != nil {
			t.Fatal(err)
		}
		begin = time.Now()
		got, err := codes.Search(context.Background(), cluster.Query{Query: q})
		gathered = append(gathered, time.Since(begin))
		if err != nil || len(got.Hits) != len(want.Hits) {
			t.Fatal(err, len(got.Hits))
		}
		if nodes == 1 {
			begin = time.Now()
			_, err = embedded.Collection("codes").Search(context.Background(), cluster.Query{Query: q})
			here = append(here, time.Since(begin))
			if err != nil {
				t.Fatal(err)
			}
		}
		for i := range want.Hits {
			if got.Hits[i].Distance != want.Hits[i].Distance {
				t.Fatalf("hit %d at %d, want %d", i, got.Hits[i].Distance, want.Hits[i].Distance)
			}
		}
	}
	t.Logf("put, durable and visible: %s", percentiles(puts))
	t.Logf("search of one database: %s", percentiles(single))
	t.Logf("search of %d shards on %d nodes: %s", shards, nodes, percentiles(gathered))
	if nodes == 1 {
		t.Logf("search of %d shards of a node in the program of the client: %s", shards, percentiles(here))
	}
	t.Logf("%+v", c.Figures())
}

// TestJoin tells how long a node takes that begins with nothing, by the log and by a backup.
func TestJoin(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures")
	}
	var n int
	if fmt.Sscan(os.Getenv("FDDHDB_ITEMS"), &n); n == 0 {
		n = 20_000
	}
	h := build(t, 3, 2, 1, 2)
	c := h.connect()
	codes, err := c.CreateCollection(t.Context(), "codes", db.Schema{Bits: 64})
	if err != nil {
		t.Fatal(err)
	}
	importAll(t, codes, dbkit.CodeItems(n, 64, 1, func(i int) string { return fmt.Sprint("k", i) }))
	join := func(how string) {
		t.Helper()
		h.leave("n1")
		if err := os.RemoveAll(filepath.Join(h.dir, "n1")); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		h.open("n1")
		h.inStep(2, n)
		t.Logf("%d items, %s: %v", n, how, time.Since(begin))
	}
	join("by the log")
	if _, err := c.Backup(t.Context(), cluster.BackupOptions{Trim: true, Keep: 1}); err != nil {
		t.Fatal(err)
	}
	join("by a backup")
}
