package db_test

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

func TestPutRefusesBadItems(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	codes, err := d.CreateCollection(ctx, "codes", db.Schema{Bits: 16})
	must(t, err)
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	long := strings.Repeat("x", 1<<21)
	for name, tc := range map[string]struct {
		c    *db.Collection
		item db.Item
		says []string
	}{
		"key too long":  {c, db.Item{Key: long[:db.MaxKeyBytes+1]}, []string{"key"}},
		"key not UTF-8": {c, db.Item{Key: "\xff"}, []string{"key", "UTF-8"}},
		"unknown modality": {c, db.Item{Key: "k", Vectors: map[string][]float32{"smell": {1}}},
			[]string{`"smell"`, "image, text", "k"}},
		"wrong dimension": {c, db.Item{Key: "k", Vectors: map[string][]float32{"text": {1, 2}}},
			[]string{`"text"`, "5 dimensions", "2", "k"}},
		"NaN": {c, db.Item{Key: "k", Vectors: map[string][]float32{"text": {1, 2, nan, 4, 5}}},
			[]string{`"text"`, "dimension 2", "NaN"}},
		"Inf": {c, db.Item{Key: "k", Vectors: map[string][]float32{"text": {1, 2, 3, 4, inf}}},
			[]string{"dimension 4", "-Inf"}},
		"empty label":     {c, db.Item{Key: "k", Labels: []string{"a", ""}}, []string{"label"}},
		"label not UTF-8": {c, db.Item{Key: "k", Labels: []string{"\xff"}}, []string{"label"}},
		"unknown field": {c, db.Item{Key: "k", Fields: map[string]any{"size": 1}},
			[]string{`"size"`, "year"}},
		"type of field": {c, db.Item{Key: "k", Fields: map[string]any{"year": "new"}},
			[]string{`"year"`, "int", "string"}},
		"float of field NaN": {c, db.Item{Key: "k", Fields: map[string]any{"price": math.NaN()}},
			[]string{`"price"`, "NaN"}},
		"long field":     {c, db.Item{Key: "k", Fields: map[string]any{"title": long}}, []string{`"title"`}},
		"code too short": {codes, db.Item{Key: "k", Code: []byte{1}}, []string{"8 bits", "codes of 16"}},
		"no code":        {codes, db.Item{Key: "k"}, []string{"0 bits"}},
		"vectors with codes": {codes, db.Item{Key: "k", Code: []byte{1, 2},
			Vectors: map[string][]float32{"text": {1}}}, []string{"bring codes"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.c.Put(ctx, &tc.item)
			stopIf(t, !errors.Is(err, db.ErrInvalid), "got %v", err)
			for _, s := range tc.says {
				failIf(t, !strings.Contains(err.Error(), s), "%q does not say %q", err, s)
			}
			failIf(t, strings.Count(err.Error(), "fddhdb:") != 1, "prefix of %q", err)
			holds(t, tc.c, 0)
		})
	}
	var de *db.DimensionError
	_, err = c.Put(ctx, &db.Item{Key: "k", Vectors: map[string][]float32{"text": {1, 2}}})
	failIf(t, !errors.As(err, &de) || *de != (db.DimensionError{Modality: "text", Got: 2, Want: 5}), "%#v",
		err)
	var ie *db.ItemError
	failIf(t, !errors.As(err, &ie) || ie.Key != "k", "%#v", err)
}

// A bad item spoils its own batch and no other.
func TestBatchIsAllOrNothing(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	b := d.NewBatch()
	must(t, b.Put(c, &db.Item{Key: "good"}))
	errorIs(t, b.Put(c, &db.Item{Key: "bad", Labels: []string{""}}), db.ErrInvalid)
	errorIs(t, b.Put(c, &db.Item{Key: "good too"}), db.ErrInvalid)
	errorIs(t, b.Commit(ctx), db.ErrInvalid)
	n, _ := c.Count(t.Context(), "")
	failIf(t, n != 0, "%d items", n)
	b = d.NewBatch()
	b.Put(c, &db.Item{Key: "good"})
	must(t, b.Commit(ctx))
	errorIs(t, b.Commit(ctx), db.ErrInvalid)
	n, _ = c.Count(t.Context(), "")
	failIf(t, n != 1, "%d items", n)
}

func TestNothingPanics(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	var none db.Batch
	errorsAre(t, db.ErrInvalid, map[string]error{
		"Put nil":                 errOf(c.Put(ctx, nil)),
		"Merge nil":               errOf(c.Merge(ctx, nil)),
		"Batch.Put to nil":        d.NewBatch().Put(nil, &db.Item{Key: "k"}),
		"Batch.Delete from nil":   d.NewBatch().Delete(nil, "k"),
		"zero Batch.Put":          none.Put(c, &db.Item{Key: "k"}),
		"zero Batch.Commit":       none.Commit(ctx),
		"Delete of the empty key": errOf(c.Delete(ctx, "")),
	})
	fine(t, d.NewBatch().Commit(ctx))
	gives(t, 0)(c.Delete(ctx))
}

func TestSchemaIsACopy(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	s, err := c.Schema()
	must(t, err)
	s.Modalities[0].Name, s.Fields[0].Name = "gotcha", "gotcha"
	stats, err := c.Stats()
	must(t, err)
	stats.Fields[0].Name = "gotcha"
	_, err = c.Put(ctx, &db.Item{Key: "k", Vectors: map[string][]float32{"image": make([]float32, 8)},
		Fields: map[string]any{"year": 1}})
	fine(t, err)
}

// A merge with nothing cannot make an item without a code, whatever else is in the batch.
func TestCodesOnlyItemsHaveCodes(t *testing.T) {
	d, c := dbkit.OpenCodes(t)
	b := d.NewBatch()
	b.Put(c, &db.Item{Code: []byte{1, 2}})
	b.Merge(c, &db.Item{})
	errorIs(t, b.Commit(ctx), db.ErrInvalid)
	b = d.NewBatch()
	b.Put(c, &db.Item{Key: "k", Code: []byte{1, 2}})
	b.Delete(c, "k")
	b.Merge(c, &db.Item{Key: "k"})
	errorIs(t, b.Commit(ctx), db.ErrInvalid)
	n, _ := c.Count(t.Context(), "")
	failIf(t, n != 0, "%d items", n)
}

func TestMergeTakesAwayWhatIsEmpty(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	need(c.Put(ctx, &db.Item{Key: "k", Labels: []string{"a"}, Payload: []byte("p")}))(t)
	need(c.Merge(ctx, &db.Item{Key: "k"}))(t)
	it, _ := c.Get(ctx, "k")
	failIf(t, len(it.Labels) != 1 || string(it.Payload) != "p", "after merging nothing: %+v", it)
	need(c.Merge(ctx, &db.Item{Key: "k", Labels: []string{}, Payload: []byte{}}))(t)
	it, _ = c.Get(ctx, "k")
	failIf(t, len(it.Labels) != 0 || len(it.Payload) != 0, "after merging empty things: %+v", it)
}

func TestAutomaticKeysAvoidThoseInUse(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	b := d.NewBatch()
	b.Put(c, &db.Item{Key: "1"})
	for range 3 {
		b.Put(c, &db.Item{Payload: []byte("p")})
	}
	if keys := b.Keys(); keys != nil {
		t.Errorf("keys before the commit: %q", keys)
	}
	must(t, b.Commit(ctx))
	if keys, want := b.Keys(), []string{"1", "0", "2", "3"}; !slices.Equal(keys, want) {
		t.Errorf("keys of the batch %v, want %v", keys, want)
	}
	key, err := c.Put(ctx, &db.Item{Labels: []string{"a"}})
	failIf(t, key != "4" || err != nil, "the key is %q, %v", key, err)
	gives(t, "1")(c.Merge(ctx, &db.Item{Key: "1", Labels: []string{"b"}}))
	var keys []string
	for _, it := range dbkit.AllItems(t, c) {
		keys = append(keys, it.Key)
	}
	want := []string{"1", "0", "2", "3", "4"}
	failIf(t, !slices.Equal(keys, want), "keys %v, want %v", keys, want)
}

// An item with neither a key nor anything else is a mistake, however it is put.
func TestItemsWithNothing(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	// a code is ignored here
	nothing := &db.Item{Labels: []string{}, Vectors: map[string][]float32{}, Code: []byte{1}}
	errorsAre(t, db.ErrInvalid, map[string]error{
		"put":          errOf(c.Put(ctx, nothing)),
		"merge":        errOf(c.Merge(ctx, nothing)),
		"batch":        d.NewBatch().Put(c, &db.Item{}),
		"merging many": d.NewBatch().Merge(c, &db.Item{}),
	}, "nothing in it")
	n, _ := c.Count(t.Context(), "")
	failIf(t, n != 0, "%d items", n)
	gives(t, "0")(c.Put(ctx, &db.Item{Sparse: map[string]db.Sparse{"text": {}}}))
}

// An item of a key alone keeps the place of what comes later: it is taken once, searches do
// not find it, it is exported, and Merge makes it an item as all others.
func TestPlaceholders(t *testing.T) {
	_, c := filterable(t)
	ctx := t.Context()
	place := &db.Item{Key: "place"}
	must(t, c.PutIf(ctx, place, nil))
	errorIs(t, c.PutIf(ctx, place, nil), db.ErrConflict)
	vectors := must1[*db.Item](t)(c.Get(ctx, "item 3")).Vectors
	found := func() bool {
		t.Helper()
		r := must1[*db.Result](t)(c.Search(ctx, db.Query{From: "text", To: "image", Vector: vectors["text"],
			K: 1 << 20}))
		return slices.ContainsFunc(r.Hits, func(h db.Hit) bool { return h.Key == "place" })
	}
	var exported []string
	for key := range every(t, c.Keys(ctx, "place")) {
		it, err := c.Get(ctx, key)
		var again db.Item
		stopIf(t, err != nil || json.Unmarshal(must1[[]byte](t)(json.Marshal(it)), &again) != nil, "%v", err)
		exported = append(exported, must1[string](t)(c.Put(ctx, &again)))
	}
	n := must1[int](t)(c.Count(t.Context(), ""))
	failIf(t, !slices.Equal(exported, []string{"place"}) || found(), "exported: %q, found by a search: %t",
		exported, found())
	need(c.Merge(ctx, &db.Item{Key: "place", Vectors: vectors}))(t)
	if after := must1[int](t)(c.Count(t.Context(), "")); !found() || after != n {
		t.Errorf("after its vectors have come: found %t, %d items, %d before", found(), after, n)
	}
}
