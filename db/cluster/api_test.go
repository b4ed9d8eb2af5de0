package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/db/shard"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model/fit"
)

// A cluster is a database of package api: it answers as its client does, and says what it cannot do.
func TestDatabase(t *testing.T) {
	h := build(t, 1, 2, 3, 1)
	c := h.connect()
	d := c.Database(cluster.DatabaseOptions{})
	if _, err := d.Collection(t.Context(), "pairs"); !errors.Is(err, db.ErrNotFound) {
		t.Error("a collection that is not there:", err)
	}
	pairs, err := d.CreateCollection(t.Context(), "pairs", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.CreateCollection(t.Context(), "pairs", dbkit.PairsSchema); !errors.Is(err, db.ErrExists) {
		t.Error("a collection that is there:", err)
	}
	items := dbkit.Pairs(300, synth.Config{Seed: 5})
	putAllThrough(t, d, pairs, items)
	same := c.Collection("pairs")

	if names, err := d.Collections(t.Context()); err != nil || !slices.Equal(names, []string{"pairs"}) ||
		pairs.Name() != "pairs" || pairs.ID() != 0 {
		t.Error(names, err)
	}
	n, err := pairs.Count(t.Context(), "has(image)")
	if want, werr := same.Count(t.Context(), "has(image)"); err != nil || werr != nil || n != want {
		t.Error(n, want, err, werr)
	}
	var bad *db.WhereError
	if _, err := pairs.Count(t.Context(), "nosuch = 1"); !errors.As(err, &bad) ||
		!errors.Is(err, db.ErrInvalid) {
		t.Error(err)
	}
	equal(t, "Get", result(pairs.Get(t.Context(), items[7].Key)), result(same.Get(t.Context(), items[7].Key)))
	equal(t, "Schema", result(pairs.Schema(t.Context())), result(same.Schema(t.Context())))
	equal(t, "Labels", result(pairs.Labels(t.Context())), result(same.Labels(t.Context())))
	equal(t, "Facets", result(pairs.Facets(t.Context(), db.FacetQuery{By: "label"})),
		result(same.Facets(t.Context(), db.FacetQuery{By: "label"})))

	s, err := pairs.Stats(t.Context())
	if err != nil || s.Items != 300 || s.Trained || s.Labels == 0 || len(s.Modalities) != 2 ||
		s.Modalities[0].Items != 300 {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := pairs.Update(t.Context(), db.UpdateOptions{}); !errors.Is(err, db.ErrNoModel) {
		t.Error(err)
	}
	first, err := pairs.Train(t.Context(),
		db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 20, Seed: 1}})
	if err != nil || first.Space != 1 || !first.Active || first.Items != 300 || first.TrainItems != 300 ||
		first.Revision != 1 || first.Seconds["total"] <= 0 {
		t.Fatalf("%+v, %v", first, err)
	}
	var file bytes.Buffer
	if err := pairs.ExportModel(t.Context(), &file); err != nil {
		t.Fatal(err)
	}
	second, err := pairs.ImportModel(t.Context(), &file, db.ImportModelOptions{})
	if err != nil || second.Space != 2 || second.Active || second.Items != 300 || second.TrainItems != 300 {
		t.Fatalf("%+v, %v", second, err)
	}
	u, err := pairs.Update(t.Context(), db.UpdateOptions{})
	if err != nil || u.Space != 1 || u.Revision != 2 || !u.Revised || u.Labelled != 300 ||
		u.Teacher != "labels" {
		t.Errorf("%+v, %v", u, err)
	}
	spaces, err := pairs.Spaces(t.Context())
	if err != nil || len(spaces) != 2 || spaces[0].State != report.SpaceActive ||
		spaces[1].State != report.SpaceStandby || spaces[0].Revision != 2 || spaces[1].Items != 300 {
		t.Errorf("%+v, %v", spaces, err)
	}
	other, err := pairs.InSpace(t.Context(), 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pairs.InSpace(t.Context(), 9, 0); !errors.Is(err, db.ErrNotFound) {
		t.Error(err)
	}
	q := db.Query{From: "image", Vector: items[3].Vectors["image"], To: "text", K: 7}
	for space, in := range map[db.Space]api.Collection{1: pairs, 2: other} {
		got, err := in.Search(t.Context(), q)
		want, werr := same.Search(t.Context(), cluster.Query{Query: q, Space: space})
		if err != nil || werr != nil || got.Space != space || !sameHits(got.Hits, want.Hits) {
			t.Errorf("space %d: %+v, %v, %v", space, got, err, werr)
		}
		within, err := in.SearchRadius(t.Context(), q, 4)
		want, werr = same.SearchRadius(t.Context(), cluster.Query{Query: q, Space: space}, 4)
		if err != nil || werr != nil || within.Total != want.Total || !sameHits(within.Hits, want.Hits) {
			t.Errorf("space %d: %+v, %v, %v", space, within, err, werr)
		}
		if s, err := in.Stats(t.Context()); err != nil || !s.Trained || s.Space != space || s.Bits != 16 ||
			s.CodedItems != 300 || s.Spaces != 2 {
			t.Errorf("space %d: %+v, %v", space, s, err)
		}
		if it, err := in.Get(t.Context(), items[3].Key); err != nil || len(it.Code) != 2 {
			t.Errorf("space %d: %+v, %v", space, it, err)
		}
	}
	x, err := pairs.IndexVectors(t.Context(), db.IndexOptions{Modality: "image", Recall: .9})
	if err != nil || !x.Complete || x.Entries != 300 || x.Recall != .9 || x.Waiting != nil {
		t.Errorf("%+v, %v", x, err)
	}
	if s, err := pairs.Stats(t.Context()); err != nil || len(s.VectorIndexes) != 1 ||
		!s.VectorIndexes[0].Complete {
		t.Errorf("%+v, %v", s, err)
	}
	if err := errors.Join(pairs.DropVectorIndex(t.Context(), "image"), pairs.Activate(t.Context(), 2),
		pairs.DropSpace(t.Context(), 1)); err != nil {
		t.Error(err)
	}
	if all, err := d.Stats(t.Context()); err != nil || all.Items != 300 || len(all.Collections) != 1 ||
		all.Collections[0].Space != 2 {
		t.Errorf("%+v, %v", all, err)
	}
	if n, err := pairs.Delete(t.Context(), items[0].Key, items[1].Key, "nosuch", "nosuch"); err != nil ||
		n != 3 {
		t.Error(n, err)
	}
	if n, err := pairs.Count(t.Context(), ""); err != nil || n != 298 {
		t.Error(n, err)
	}
	unsupported(t, d, pairs)
	if err := d.DropCollection(t.Context(), "pairs"); err != nil {
		t.Error(err)
	}
	if _, err := pairs.Get(t.Context(), items[7].Key); !errors.Is(err, db.ErrNotFound) {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// unsupported calls what a cluster cannot do.
func unsupported(t *testing.T, d api.Database, c api.Collection) {
	t.Helper()
	ctx := t.Context()
	one := func(_ any, err error) error { return err }
	for what, err := range map[string]error{
		"Mark":    one(d.Mark(ctx, "x")),
		"Compact": d.Compact(ctx),
		"Verify":  one(d.Verify(ctx, db.VerifyOptions{}, nil)),
		"Backup":  one(d.Backup(ctx, "file:///x", db.BackupOptions{})),
		"Alter":   c.Alter(ctx, db.Alteration{}), "RenameLabel": c.RenameLabel(ctx, "a", "b"),
		"DeleteWhere": one(c.DeleteWhere(ctx, "year = 1")),
		"Evaluate":    one(c.Evaluate(ctx, db.Evaluation{})),
		"Encode":      one(c.Encode(ctx, &db.Item{})),
		"EncodeQuery": one(c.EncodeQuery(ctx, db.Query{})),
		"DiskSize":    one(c.Stats(ctx, db.DiskSize)), "MeasuredDrift": one(c.Stats(ctx, db.MeasuredDrift)),
		"Reindex": one(c.Reindex(ctx, db.ReindexOptions{})), "Rollback": one(c.Rollback(ctx)),
		"RestoreRevision": one(c.RestoreRevision(ctx, 2, 1)),
		"Update by vectors": one(c.Update(ctx,
			db.UpdateOptions{Teacher: db.TeacherModality})),
		"ImportModel with a number": one(c.ImportModel(ctx, bytes.NewReader(nil),
			db.ImportModelOptions{Space: 7})),
		"IndexVectors with cells": one(c.IndexVectors(ctx, db.IndexOptions{Modality: "image", Cells: 7})),
		"Batch.Mark":              d.NewBatch().Mark("x", nil),
	} {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := c.Search(ctx, db.Query{Include: db.IncludeExplain}); !errors.Is(err, errors.ErrUnsupported) {
		t.Error("Explain:", err)
	}
	if _, err := c.Search(ctx, db.Query{Words: "red"}); !errors.Is(err, errors.ErrUnsupported) {
		t.Error("Words:", err)
	}
	for _, err := range c.Items(ctx, "") {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Error("Items:", err)
		}
	}
	for _, err := range c.Keys(ctx, "") {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Error("Keys:", err)
		}
	}
}

// A batch goes to each shard whole or not at all, and one with conditions to one shard.
func TestBatches(t *testing.T) {
	const shards = 3
	h := build(t, 1, 2, shards, 1)
	c := h.connect()
	codesOf(t, c)
	d := c.Database(cluster.DatabaseOptions{})
	codes, err := d.Collection(t.Context(), "codes")
	if err != nil {
		t.Fatal(err)
	}
	item := func(key string, n int) *db.Item {
		return &db.Item{Key: key, Code: []byte{byte(n), 1}, Fields: map[string]any{"year": n}}
	}
	b := d.NewBatch()
	reused := item("", 0)
	for i := range 100 {
		reused.Key, reused.Code[0], reused.Fields["year"] = fmt.Sprint("k", i), byte(i), i
		if err := b.Put(codes, reused); err != nil {
			t.Fatal(err)
		}
	}
	if b.Len() != 100 || b.Full() || b.Keys() != nil {
		t.Error(b.Len(), b.Full(), b.Keys())
	}
	if err := b.Commit(t.Context()); err != nil || len(b.Keys()) != 100 || b.Keys()[7] != "k7" {
		t.Fatal(b.Keys(), err)
	}
	if err := b.Commit(t.Context()); !errors.Is(err, db.ErrInvalid) {
		t.Error("a second commit:", err)
	}
	it, err := codes.Get(t.Context(), "k42")
	if err != nil || it.Code[0] != 42 || it.Fields["year"] != int64(42) {
		t.Errorf("%+v, %v", it, err)
	}

	// What a shard would refuse is refused at once.
	foreign, err := api.Folder(dbkit.MustOpen(t, t.TempDir(), nil), nil).CreateCollection(t.Context(), "x",
		db.Schema{Bits: 16})
	if err != nil {
		t.Fatal(err)
	}
	for what, put := range map[string]func(b api.Batch) error{
		"a short code": func(b api.Batch) error {
			return b.Put(codes, &db.Item{Key: "x", Code: []byte{1}})
		},
		"no key":             func(b api.Batch) error { return b.Put(codes, item("", 1)) },
		"no item":            func(b api.Batch) error { return b.Put(codes, nil) },
		"a foreign one":      func(b api.Batch) error { return b.Put(foreign, item("x", 1)) },
		"another key":        func(b api.Batch) error { return b.Expect(codes, "x", item("y", 1)) },
		"the deletion of ''": func(b api.Batch) error { return b.Delete(codes, "") },
	} {
		b := d.NewBatch()
		if err := put(b); !errors.Is(err, db.ErrInvalid) || !errors.Is(b.Commit(t.Context()), db.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}

	// Conditions.
	of := map[int][]string{}
	for i := range 100 {
		key := fmt.Sprint("k", i)
		of[shard.Of(key, shards)] = append(of[shard.Of(key, shards)], key)
	}
	conditional := func(expected, changed string) error {
		old, err := codes.Get(t.Context(), expected)
		if err != nil {
			t.Fatal(err)
		}
		b := d.NewBatch()
		return errors.Join(b.Expect(codes, expected, old), b.Merge(codes,
			&db.Item{Key: changed, Fields: map[string]any{"year": 1900}}), b.Delete(codes, expected),
			b.Commit(t.Context()))
	}
	if err := conditional(of[0][0], of[1][0]); !errors.Is(err, errors.ErrUnsupported) {
		t.Error("over two shards:", err)
	}
	if err := conditional(of[0][0], of[0][1]); err != nil {
		t.Error(err)
	}
	if _, err := codes.Get(t.Context(), of[0][0]); !errors.Is(err, db.ErrNotFound) {
		t.Error(err)
	}
	if it, err := codes.Get(t.Context(), of[0][1]); err != nil || it.Fields["year"] != int64(1900) {
		t.Error(it, err)
	}
	if err := codes.PutIf(t.Context(), item(of[1][0], 5), nil); !errors.Is(err, db.ErrConflict) {
		t.Error(err)
	}

	// A shard that refuses its part does not keep the others from theirs.
	if err := c.DropCollection(t.Context(), "codes"); err != nil {
		t.Fatal(err)
	}
	b = d.NewBatch()
	for _, key := range []string{of[0][0], of[1][0]} {
		if err := b.Put(codes, item(key, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Commit(t.Context()); !errors.Is(err, db.ErrNotFound) || b.Keys() != nil {
		t.Error(err)
	}
}

// A database that accepts partial answers tells which shards are missing.
func TestPartialDatabase(t *testing.T) {
	h := build(t, 1, 2, 2, 1)
	c := h.connect()
	codesOf(t, c)
	var missing []int
	open := func(o cluster.DatabaseOptions) api.Collection {
		codes, err := c.Database(o).Collection(t.Context(), "codes")
		if err != nil {
			t.Fatal(err)
		}
		return codes
	}
	whole := open(cluster.DatabaseOptions{})
	partial := open(cluster.DatabaseOptions{AllowPartial: func(shards []int) { missing = shards }})
	for i := range 20 {
		if _, err := whole.Put(t.Context(), &db.Item{Key: fmt.Sprint(i), Code: []byte{1, 2}}); err != nil {
			t.Fatal(err)
		}
	}
	q := db.Query{Code: []byte{1, 2}, K: 20}
	if r, err := partial.Search(t.Context(), q); err != nil || len(r.Hits) != 20 || missing != nil {
		t.Error(r, err, missing)
	}
	h.leave("n1")
	ctx, cancel := context.WithTimeout(t.Context(), 5e8)
	defer cancel()
	var silent *cluster.ShardError
	if _, err := whole.Search(ctx, q); !errors.As(err, &silent) {
		t.Error(err)
	}
	if r, err := partial.Search(t.Context(), q); err != nil || len(r.Hits) == 0 || len(r.Hits) == 20 ||
		!slices.Equal(missing, []int{1}) {
		t.Error(r, err, missing)
	}
}

// putAllThrough stores items in full batches.
func putAllThrough(t *testing.T, d api.Database, c api.Collection, items []*db.Item) {
	t.Helper()
	b := d.NewBatch()
	for i, it := range items {
		err := b.Put(c, it)
		if err == nil && (b.Full() || i == len(items)-1) {
			err = b.Commit(t.Context())
			b = d.NewBatch()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A resulting is what a call has returned.
type resulting struct {
	value any
	err   error
}

func result(v any, err error) resulting { return resulting{v, err} }

func equal(t *testing.T, what string, got, want resulting) {
	t.Helper()
	if got.err != nil || want.err != nil || !reflect.DeepEqual(got.value, want.value) {
		t.Errorf("%s: %+v, %v; the client: %+v, %v", what, got.value, got.err, want.value, want.err)
	}
}

// sameHits compares keys and distances.
func sameHits(a, b []db.Hit) bool {
	return slices.EqualFunc(a, b,
		func(a, b db.Hit) bool { return a.Key == b.Key && a.Distance == b.Distance })
}
