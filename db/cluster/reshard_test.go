package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model/fit"
)

// said is what a cluster answers to everything that this test asks.
func said(t *testing.T, c *cluster.Client, keys []string) map[string]any {
	t.Helper()
	all := map[string]any{}
	note := func(what string, x any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(what, ": ", err)
		}
		all[what] = x
	}
	names, err := c.Collections(t.Context())
	note("collections", names, err)
	for _, name := range names {
		of := c.Collection(name)
		schema, err := of.Schema(t.Context())
		note(name+" schema", schema, err)
		spaces, err := of.Spaces(t.Context())
		for i := range spaces {
			spaces[i].Shards = 0
		}
		note(name+" spaces", spaces, err)
		labels, err := of.Labels(t.Context())
		note(name+" labels", labels, err)
		for _, by := range []string{"year", "label"} {
			facets, err := of.Facets(t.Context(), db.FacetQuery{By: by})
			note(name+" by "+by, facets, err)
		}
		n, err := of.Count(t.Context(), "year >= ?", 2000)
		note(name+" count", n, err)
		for _, key := range keys {
			it, err := of.Get(t.Context(), key)
			if errors.Is(err, db.ErrNotFound) {
				it, err = nil, nil
			}
			note(name+" item "+key, it, err)
		}
	}
	for _, space := range []db.Space{0, 1} {
		for _, key := range keys[:40] {
			// All of them, as the order of those that are equally near depends on their age in a shard.
			res, err := c.Collection("pairs").Search(t.Context(), cluster.Query{Space: space,
				Query: db.Query{Key: key, From: "image", K: 1000}})
			near := map[string]int{}
			if err == nil {
				for _, h := range res.Hits {
					near[h.Key] = h.Distance
				}
			}
			note(fmt.Sprint("near ", key, " in space ", space), near, err)
		}
	}
	return all
}

// A cluster of 3 shards becomes one of 5 by its backups, and answers as before.
func TestReshard(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	h := build(t, 1, 2, 3, 1)
	c := h.connect()
	schema := dbkit.PairsSchema
	schema.Fields = []db.Field{{Name: "year", Type: db.Int, Indexed: true}}
	pairs, err := c.CreateCollection(t.Context(), "pairs", schema)
	if err != nil {
		t.Fatal(err)
	}
	items := dbkit.Pairs(300, synth.Config{Seed: 3})
	var keys []string
	for i, it := range items {
		it.Fields, it.Payload = map[string]any{"year": int64(1990 + i%30)}, fmt.Append(nil, "p", i)
		if i%3 == 0 {
			it.Labels = nil
		}
		keys = append(keys, it.Key)
	}
	importAll(t, pairs, items)
	for i := range 2 {
		if _, err := pairs.Train(t.Context(), db.TrainOptions{Activate: true,
			Options: fit.Options{Bits: 16 + 16*i, Anchors: 20, Seed: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pairs.IndexVectors(t.Context(), "image", .9, nil); err != nil {
		t.Fatal(err)
	}
	codes, err := c.CreateCollection(t.Context(), "codes", db.Schema{Bits: 16, Fields: schema.Fields})
	if err != nil {
		t.Fatal(err)
	}
	large := dbkit.CodeItems(200, 16, 1, func(i int) string { return keys[i] })
	large[7].Payload = make([]byte, 700_000)
	importAll(t, codes, large)
	want := said(t, c, keys)
	if _, err := c.Backup(t.Context(), cluster.BackupOptions{}); err != nil {
		t.Fatal(err)
	}

	nc, place := h.conn("admin"), filepath.Join(h.dir, "other-backups")
	o := cluster.CreateOptions{Shards: 5, Servers: 1, Replicas: 2, Nodes: []string{"m0", "m1"},
		From: filepath.Join(h.dir, "backups"), LogBytes: 64 << 20}
	create := func(ctx context.Context) error { return cluster.Create(ctx, nc, "five", o) }
	if err := create(t.Context()); !errors.Is(err, db.ErrInvalid) {
		t.Error("no place for the new shards:", err)
	}
	o.Backups = o.From
	if err := create(t.Context()); !errors.Is(err, db.ErrInvalid) {
		t.Error("the place of the old shards:", err)
	}
	o.Backups = place
	for _, stage := range []string{"read", "load"} {
		ctx, cancel := context.WithCancel(t.Context())
		o.Progress = func(now string, done, of int64) {
			if now == stage && done == 2 {
				cancel()
			}
		}
		if err := create(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted as it was to %s: %v", stage, err)
		}
		cancel()
		if _, err := cluster.Connect(t.Context(), nc, "five", cluster.ClientOptions{}); !errors.Is(err,
			db.ErrNotFound) {
			t.Errorf("interrupted as it was to %s, there is a cluster: %v", stage, err)
		}
	}
	o.Progress = nil
	if err := create(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := create(t.Context()); !errors.Is(err, db.ErrExists) {
		t.Error("a second time:", err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
	for _, node := range o.Nodes {
		n, err := cluster.Open(t.Context(), cluster.NodeOptions{Cluster: "five", Node: node,
			Dir: filepath.Join(h.dir, node), Conn: h.conn(node), Backups: place,
			Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		h.nodes[node] = n
	}
	five, err := cluster.Connect(t.Context(), nc, "five", cluster.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer five.Close()
	if n := five.Shards(); n != 5 {
		t.Errorf("%d shards", n)
	}
	if d := cmp.Diff(want, said(t, five, keys)); d != "" {
		t.Error(d)
	}
	eventually(t, "its shards have indexed their vectors", func() bool {
		all, err := five.Collection("pairs").VectorIndexes(t.Context())
		return err == nil && len(all) == 1 && all[0].Shards == 5 && all[0].Entries == len(items)
	})
	// It goes on: with writes, a model with the next number, and backups of its own.
	item := &db.Item{Key: "new", Code: []byte{1, 2}}
	if _, err := five.Collection("codes").Put(t.Context(), item); err != nil {
		t.Error(err)
	}
	if tr, err := five.Collection("pairs").Train(t.Context(), db.TrainOptions{
		Options: fit.Options{Bits: 16, Anchors: 20}}); err != nil || tr.Space != 3 {
		t.Error(tr, err)
	}
	if _, err := five.Backup(t.Context(), cluster.BackupOptions{}); err != nil {
		t.Error(err)
	}
	if err := cluster.Create(t.Context(), nc, "six", o); !errors.Is(err, db.ErrExists) {
		t.Error("at the place of a cluster:", err)
	}
}
