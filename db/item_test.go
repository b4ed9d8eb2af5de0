package db_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/seed"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
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
	stats, err := c.Stats(ctx)
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
	vectors := need(c.Get(ctx, "k3"))(t).Vectors
	found := func() bool {
		t.Helper()
		r := need(c.Search(ctx, db.Query{From: "text", To: "image", Vector: vectors["text"], K: 1 << 20}))(t)
		return slices.ContainsFunc(r.Hits, func(h db.Hit) bool { return h.Key == "place" })
	}
	var exported []string
	for key := range every(t, c.Keys(ctx, "place")) {
		it, err := c.Get(ctx, key)
		var again db.Item
		stopIf(t, err != nil || json.Unmarshal(need(json.Marshal(it))(t), &again) != nil, "%v", err)
		exported = append(exported, need(c.Put(ctx, &again))(t))
	}
	n := need(c.Count(t.Context(), ""))(t)
	failIf(t, !slices.Equal(exported, []string{"place"}) || found(), "exported: %q, found by a search: %t",
		exported, found())
	need(c.Merge(ctx, &db.Item{Key: "place", Vectors: vectors}))(t)
	if after := need(c.Count(t.Context(), ""))(t); !found() || after != n {
		t.Errorf("after its vectors have come: found %t, %d items, %d before", found(), after, n)
	}
}

// Every limit at its edge, and one beyond, on every way in.
func TestLimitsOfItems(t *testing.T) {
	dbkit.LongTest(t)
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer d.Close()
	c := need(d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 3},
		{Name: "words", Dim: db.MaxDim, Sparse: true}}, Fields: []db.Field{{Name: "text", Type: db.String},
		{Name: "word", Type: db.String, Indexed: true}, {Name: "n", Type: db.Int, Indexed: true},
		{Name: "x", Type: db.Float, Indexed: true}, {Name: "b", Type: db.Bool}}}))(t)
	labels := func(n int) []string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprint("l", i)
		}
		return all
	}
	text := func(n int) string { return strings.Repeat("é", n/2) + strings.Repeat("x", n%2) }
	field := func(name string, v any) *db.Item { return &db.Item{Key: "k", Fields: map[string]any{name: v}} }
	for name, limit := range map[string]struct{ edge, beyond *db.Item }{
		"key":          {&db.Item{Key: text(db.MaxKeyBytes)}, &db.Item{Key: text(db.MaxKeyBytes + 1)}},
		"key of noise": {nil, &db.Item{Key: "\xff"}},
		"label": {&db.Item{Key: "k", Labels: []string{text(db.MaxLabelBytes)}},
			&db.Item{Key: "k", Labels: []string{text(db.MaxLabelBytes + 1)}}},
		"no label":     {nil, &db.Item{Key: "k", Labels: []string{""}}},
		"label, noise": {nil, &db.Item{Key: "k", Labels: []string{"a\xc3"}}},
		"labels": {&db.Item{Key: "k", Labels: labels(db.MaxLabels)},
			&db.Item{Key: "k", Labels: labels(db.MaxLabels + 1)}},
		"field":         {field("text", text(db.MaxFieldBytes)), field("text", text(db.MaxFieldBytes+1))},
		"field, noise":  {nil, field("text", "\xff")},
		"indexed field": {field("word", text(db.MaxIndexedBytes)), field("word", text(db.MaxIndexedBytes+1))},
		"int":           {field("n", int64(math.MinInt64)), field("n", uint64(math.MaxUint64))},
		"float":         {field("x", math.MaxFloat64), field("x", math.Inf(1))},
		"no number":     {nil, field("x", math.NaN())},
		"unknown field": {nil, field("y", 1)},
		"payload": {&db.Item{Key: "k", Payload: make([]byte, db.MaxPayloadBytes)},
			&db.Item{Key: "k", Payload: make([]byte, db.MaxPayloadBytes+1)}},
		"dimension": {
			&db.Item{Key: "k", Sparse: map[string]db.Sparse{
				"words": {Index: []uint32{db.MaxDim - 1}, Value: []float32{1}}}},
			&db.Item{Key: "k", Sparse: map[string]db.Sparse{
				"words": {Index: []uint32{db.MaxDim}, Value: []float32{1}}}},
		},
		"dimensions": {
			&db.Item{Key: "k", Vectors: map[string][]float32{"image": {1, 2, 3}}},
			&db.Item{Key: "k", Vectors: map[string][]float32{"image": {1, 2, 3, 4}}},
		},
	} {
		if name == "payload" && !effort.Long() {
			limit.edge = nil // 64 MiB
		}
		for way, put := range map[string]func(*db.Item) error{
			"put":   func(it *db.Item) error { return errOf(c.Put(ctx, it)) },
			"merge": func(it *db.Item) error { return errOf(c.Merge(ctx, it)) },
			"bulk": func(it *db.Item) error {
				b := d.NewBatch()
				for i := range bulkItems {
					if err := b.Put(c, &db.Item{Key: fmt.Sprint(i)}); err != nil {
						return err
					}
				}
				return b.Put(c, it) // it is refused when it is added
			},
		} {
			if name == "payload" && way != "put" {
				continue // 64 MiB each time
			}
			if limit.edge != nil {
				fine(t, put(limit.edge), name, way, "at the edge")
			}
			err := put(limit.beyond)
			failIf(t, !errors.Is(err, db.ErrInvalid) || len(err.Error()) > 3<<10 ||
				strings.Count(err.Error(), "fddhdb:") != 1, "%s, %s, beyond: %.200v", name, way, err)
		}
		if it := limit.edge; it != nil {
			got, err := c.Get(ctx, it.Key)
			failIf(t, err != nil || len(got.Labels) < len(it.Labels) || len(got.Payload) < len(it.Payload),
				"%s: %v", name, err)
		}
	}
	long := text(db.MaxKeyBytes + 1)
	errorsAre(t, db.ErrInvalid, map[string]error{
		"delete":   errOf(c.Delete(ctx, long)),
		"register": d.NewBatch().RegisterLabels(c, []string{text(db.MaxLabelBytes + 1)}),
	})
}

// A batch that can never be stored does not grow.
func TestBatchEndsAtTheLimit(t *testing.T) {
	d, c := dbkit.OpenCodes(t)
	b := d.NewBatch()
	db.HoldBytes(b, db.MaxBulkBytes)
	for range 2 {
		errorIs(t, b.Put(c, &db.Item{Code: []byte{1, 2}}), db.ErrInvalid, "split it")
	}
	err := b.Commit(ctx)
	failIf(t, !errors.Is(err, db.ErrInvalid) || b.Len() != 0, "%d changes, %v", b.Len(), err)
}

func TestLimitsOfBatches(t *testing.T) {
	d, c := openNew(t, "db", &db.Options{FS: vfs.NewMem()}, db.Schema{Bits: 8})
	defer d.Close()
	for _, items := range []int{3, bulkItems} {
		b := d.NewBatch()
		for range items {
			must(t, b.Put(c, &db.Item{Code: []byte{1}}))
		}
		limit := db.MaxBulkBytes
		if items < bulkItems {
			limit = db.MaxBatchBytes
			if err := b.Delete(c, "none"); err != nil { // so that it is no bulk load, as large as it is
				t.Fatal(err)
			}
		}
		db.HoldBytes(b, limit+1) // gigabytes are too many for a test
		err := b.Commit(ctx)
		failIf(t, !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), "split it"),
			"%d items: %v", items, err)
		db.HoldBytes(b, limit)
		fine(t, b.Commit(ctx), items, "items")
	}
}

func TestLimitsOfSchemas(t *testing.T) {
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer d.Close()
	modalities := func(n int) db.Schema {
		var s db.Schema
		for i := range n {
			s.Modalities = append(s.Modalities, db.Modality{Name: fmt.Sprint("m", i), Dim: 1})
		}
		return s
	}
	fields := func(n int) db.Schema {
		s := db.Schema{Bits: 8}
		for i := range n {
			s.Fields = append(s.Fields, db.Field{Name: fmt.Sprint("f", i), Type: db.Bool, Indexed: true})
		}
		return s
	}
	name := func(n int) string { return strings.Repeat("n", n) }
	dim := func(n int) db.Schema { return db.Schema{Modalities: []db.Modality{{Name: "m", Dim: n}}} }
	i := 0
	create := func(s db.Schema) error {
		i++
		return errOf(d.CreateCollection(ctx, fmt.Sprint("c", i), s))
	}
	for what, limit := range map[string]struct{ edge, beyond db.Schema }{
		"modalities":       {modalities(db.MaxModalities), modalities(db.MaxModalities + 1)},
		"none":             {modalities(1), modalities(0)},
		"fields":           {fields(db.MaxFields), fields(db.MaxFields + 1)},
		"dimensions":       {dim(db.MaxDim), dim(db.MaxDim + 1)},
		"least dimensions": {dim(1), dim(0)},
		"no dimensions":    {dim(2), dim(math.MinInt)},
		"bits":             {db.Schema{Bits: 4096}, db.Schema{Bits: 4104}},
		"fewest bits":      {db.Schema{Bits: 8}, db.Schema{Bits: 7}},
		"bits below 0":     {db.Schema{Bits: 16}, db.Schema{Bits: -8}},
		"both": {db.Schema{Bits: 16},
			db.Schema{Bits: 16, Modalities: []db.Modality{{Name: "m", Dim: 1}}}},
		"modality name": {
			db.Schema{Modalities: []db.Modality{{Name: name(db.MaxNameBytes), Dim: 1}}},
			db.Schema{Modalities: []db.Modality{{Name: name(db.MaxNameBytes + 1), Dim: 1}}},
		},
		"field name": {
			db.Schema{Bits: 8, Fields: []db.Field{{Name: name(db.MaxNameBytes), Type: db.Int}}},
			db.Schema{Bits: 8, Fields: []db.Field{{Name: name(db.MaxNameBytes + 1), Type: db.Int}}},
		},
		"field type": {
			db.Schema{Bits: 8, Fields: []db.Field{{Name: "f", Type: db.Int}}},
			db.Schema{Bits: 8, Fields: []db.Field{{Name: "f", Type: db.FieldType(name(1 << 20))}}},
		},
		"noise": {db.Schema{Bits: 8}, db.Schema{Bits: 8, Fields: []db.Field{{Name: "\xff", Type: db.Int}}}},
		"twice": {db.Schema{Bits: 8},
			db.Schema{Bits: 8, Fields: []db.Field{{Name: "f", Type: db.Int}, {Name: "f", Type: db.Int}}}},
	} {
		fine(t, create(limit.edge), what, "at the edge")
		err := create(limit.beyond)
		failIf(t, !errors.Is(err, db.ErrInvalid) || len(err.Error()) > 1<<10, "%s, beyond: %.200v", what, err)
	}
	for _, n := range []string{"", name(db.MaxNameBytes + 1), "a b", "\xff", "1a", "a/b", "..",
		name(1 << 20)} {
		err := errOf(d.CreateCollection(ctx, n, db.Schema{Bits: 8}))
		failIf(t, !errors.Is(err, db.ErrInvalid) || len(err.Error()) > 1<<10, "collection %.40q: %.200v", n,
			err)
	}
	fine(t, errOf(d.CreateCollection(ctx, name(db.MaxNameBytes), db.Schema{Bits: 8})))
}

var countSchema = db.Schema{
	Modalities: []db.Modality{{Name: "image", Dim: 3}, {Name: "words", Dim: 1000, Sparse: true}},
	Fields: []db.Field{{Name: "n", Type: db.Int, Indexed: true}, {Name: "x", Type: db.Float},
		{Name: "s", Type: db.String}, {Name: "b", Type: db.Bool}, {Name: "at", Type: db.Time}},
}

func full(key string) *db.Item {
	return &db.Item{
		Key: key, Labels: []string{"b", "a"}, Payload: []byte("p"),
		Vectors: map[string][]float32{"image": {1, 0, float32(math.Copysign(0, -1))}},
		Sparse:  map[string]db.Sparse{"words": {Index: []uint32{3, 999}, Value: []float32{1, 2}}},
		Fields:  map[string]any{"n": 1, "x": .5, "s": "t", "b": true, "at": time.Unix(1, 0)},
	}
}

// An item is stored where what is there is what was read, in any of its parts.
func TestPutIf(t *testing.T) {
	d, c := openNew(t, t.TempDir(), nil, countSchema)
	defer d.Close()
	expect := func(what string, err, want error) {
		t.Helper()
		failIf(t, !errors.Is(err, want) || (want == nil) != (err == nil), "%s: %v, want %v", what, err, want)
	}
	expect("one that is not there", c.PutIf(ctx, full("k"), full("k")), db.ErrConflict)
	expect("a new one", c.PutIf(ctx, full("k"), nil), nil)
	expect("one that is there", c.PutIf(ctx, full("k"), nil), db.ErrConflict)
	for what, change := range map[string]func(*db.Item){
		"fewer labels":    func(it *db.Item) { it.Labels = it.Labels[:1] },
		"another label":   func(it *db.Item) { it.Labels[0] = "c" },
		"another payload": func(it *db.Item) { it.Payload = []byte("q") },
		"no payload":      func(it *db.Item) { it.Payload = nil },
		"another number":  func(it *db.Item) { it.Vectors["image"][1] = 1e-30 },
		"another zero":    func(it *db.Item) { it.Vectors["image"][2] = 0 },
		"no vector":       func(it *db.Item) { it.Vectors = nil },
		"another place":   func(it *db.Item) { it.Sparse["words"].Index[1] = 998 },
		"no sparse":       func(it *db.Item) { it.Sparse = nil },
		"another int":     func(it *db.Item) { it.Fields["n"] = 2 },
		"another float":   func(it *db.Item) { it.Fields["x"] = .25 },
		"another string":  func(it *db.Item) { it.Fields["s"] = "" },
		"another bool":    func(it *db.Item) { it.Fields["b"] = false },
		"another time":    func(it *db.Item) { it.Fields["at"] = time.Unix(1, 1000) },
		"fewer fields":    func(it *db.Item) { delete(it.Fields, "b") },
	} {
		old := full("k")
		change(old)
		expect(what, c.PutIf(ctx, full("k"), old), db.ErrConflict)
	}
	old := full("k")
	old.Labels = []string{"a", "b", "a"}
	expect("the same in other words", c.PutIf(ctx, full("k"), old), nil)
	got, err := c.Get(ctx, "k")
	expect("get", err, nil)
	expect("as it was read", c.PutIf(ctx, &db.Item{Key: "k"}, got), nil)
	expect("as it was read before", c.PutIf(ctx, &db.Item{Key: "k"}, got), db.ErrConflict)

	b := d.NewBatch()
	b.Put(c, full("other"))
	b.Expect(c, "k", full("k"))
	expect("a batch", b.Commit(ctx), db.ErrConflict)
	expect("what was with it", errOf(c.Get(ctx, "other")), db.ErrNotFound)
	b = d.NewBatch()
	b.Delete(c, "k")
	b.Expect(c, "k", &db.Item{Key: "k"}) // before the batch
	b.Put(c, full("k"))
	expect("a batch that changes it itself", b.Commit(ctx), nil)

	expect("no key", c.PutIf(ctx, &db.Item{}, nil), db.ErrInvalid)
	expect("another key", c.PutIf(ctx, full("k"), full("j")), db.ErrInvalid)
	expect("no item", c.PutIf(ctx, nil, nil), db.ErrInvalid)
	expect("an item that cannot be",
		c.PutIf(ctx, full("k"), &db.Item{Key: "k", Fields: map[string]any{"z": 1}}), db.ErrInvalid)
	snap, err := d.Snapshot()
	expect("snapshot", err, nil)
	defer snap.Close()
	past, err := snap.Collection("main")
	expect("its collection", err, nil)
	expect("a snapshot", past.PutIf(ctx, full("k"), nil), db.ErrReadOnly)
}

func TestPutIfOfCodes(t *testing.T) {
	d, c := openNew(t, t.TempDir(), nil, db.Schema{Bits: 16})
	defer d.Close()
	a, b := &db.Item{Key: "k", Code: []byte{1, 2}}, &db.Item{Key: "k", Code: []byte{1, 3}}
	must(t, errors.Join(c.PutIf(ctx, a, nil), c.PutIf(ctx, b, a)))
	errorIs(t, c.PutIf(ctx, a, a), db.ErrConflict)
}

// A condition among thousands of new items keeps them all out.
func TestExpectInABulkLoad(t *testing.T) {
	dbkit.LongTest(t)
	for _, at := range []int{0, bulkItems / 2, bulkItems + 10} {
		d, c := dbkit.OpenPairs(t)
		b := d.NewBatch()
		for i := range bulkItems + 20 {
			if i == at {
				b.Expect(c, "k3", &db.Item{Key: "k3"})
			}
			must(t, b.Put(c, &db.Item{Key: fmt.Sprint("k", i)}))
		}
		err := b.Commit(ctx)
		failIf(t, !errors.Is(err, db.ErrConflict), "condition at %d: %v", at, err)
		gives(t, 0, at)(c.Count(t.Context(), ""))
	}
}

// Sums that move between items of two collections by many writers at a time are kept.
func TestConditionsKeepSums(t *testing.T) {
	t.Parallel()
	d := need(db.Open(t.TempDir(), &db.Options{NoSync: true}))(t)
	defer d.Close()
	var cs [2]*db.Collection
	for i := range cs {
		cs[i] = need(d.CreateCollection(ctx, fmt.Sprint("c", i), countSchema))(t)
		for j := range 3 {
			must(t, errOf(cs[i].Put(ctx, &db.Item{Key: fmt.Sprint(j), Fields: map[string]any{"n": 100}})))
		}
	}
	amount := func(it *db.Item) int64 { return it.Fields["n"].(int64) }
	move := func(from, to *db.Collection, key string) error {
		for {
			a, err := from.Get(ctx, key)
			if err != nil {
				return err
			}
			z, err := to.Get(ctx, key)
			if err != nil {
				return err
			}
			b := d.NewBatch()
			b.PutIf(from, &db.Item{Key: key, Fields: map[string]any{"n": amount(a) - 1}}, a)
			b.PutIf(to, &db.Item{Key: key, Fields: map[string]any{"n": amount(z) + 1}}, z)
			if err := b.Commit(ctx); !errors.Is(err, db.ErrConflict) {
				return err
			}
		}
	}
	var writers sync.WaitGroup
	for w := range 6 {
		writers.Go(func() {
			for i := range 20 {
				fine(t, move(cs[w%2], cs[1-w%2], fmt.Sprint(i%3)))
			}
		})
	}
	writers.Wait()
	for j := range 3 {
		sum := int64(0)
		for _, c := range cs {
			it := need(c.Get(ctx, fmt.Sprint(j)))(t)
			sum += amount(it)
		}
		failIf(t, sum != 200, "item %d: the sum is %d", j, sum)
	}
}

// In a trained collection the codes do not count: they are not the user's.
func TestPutIfAfterTraining(t *testing.T) {
	t.Parallel()
	_, c, items := openPairs(t, -1, 40, synth.Config{})
	old := need(c.Get(ctx, "k7"))(t)
	dbkit.MustTrain(t, c, db.TrainOptions{})
	trained, err := c.Get(ctx, "k7")
	stopIf(t, err != nil || old.Code != nil || trained.Code == nil,
		"code %x before the training and %x after it, %v", old.Code, trained.Code, err)
	changed := *items[7]
	changed.Payload = []byte("changed")
	for what, expected := range map[string]*db.Item{"before": old, "after": trained} {
		fine(t, c.PutIf(ctx, &changed, expected), "as it was read", what, "the training")
		it, err := c.Get(ctx, "k7")
		failIf(t, err != nil || string(it.Payload) != "changed" || !bytes.Equal(it.Code, trained.Code),
			"stored is %q with code %x, %v", it.Payload, it.Code, err)
		if err := c.PutIf(ctx, items[7], expected); !errors.Is(err, db.ErrConflict) {
			t.Errorf("an item that is changed, as it was read %s the training: %v", what, err)
		}
		need(c.Put(ctx, items[7]))(t)
	}
}

// A batch that is refused takes no number from the counter of automatic keys.
func TestRefusedBatchesLeaveTheCounter(t *testing.T) {
	d, c := dbkit.OpenCoded(t, 8)
	need(c.Put(ctx, &db.Item{Key: "there", Code: []byte{1}}))(t)
	b := d.NewBatch()
	for range 3 {
		must(t, b.Put(c, &db.Item{Code: []byte{2}}))
	}
	must(t, b.PutIf(c, &db.Item{Key: "there", Code: []byte{3}}, nil))
	errorIs(t, b.Commit(ctx), db.ErrConflict)
	for range 2 {
		need(c.Put(ctx, &db.Item{Code: []byte{4}}))(t)
	}
	for _, key := range []string{"0", "1"} {
		fine(t, errOf(c.Get(ctx, key)))
	}
}

// A number that a batch frees can be taken by what it puts afterwards.
func TestBatchesReuseTheKeysThatTheyDelete(t *testing.T) {
	d, c := dbkit.OpenCoded(t, 8)
	need(c.Put(ctx, &db.Item{Key: "0", Code: []byte{1}}))(t)
	b := d.NewBatch()
	b.Delete(c, "0")
	b.Put(c, &db.Item{Code: []byte{2}})
	must(t, b.Commit(ctx))
	it, err := c.Get(ctx, "0")
	failIf(t, err != nil || it.Code[0] != 2, "%+v, %v", it, err)
}

// A twin is a collection with texts stored sparse, and another with the same items
// and texts stored dense: everything that can be asked has the same answer.
type twin struct {
	t             testing.TB
	d             *db.DB
	sparse, dense *db.Collection
}

func openTwin(t testing.TB, dir string) *twin {
	t.Helper()
	w := &twin{t: t, d: dbkit.MustOpen(t, dir, nil)}
	t.Cleanup(func() { _ = w.d.Close() })
	schema := func(sparse bool) db.Schema {
		return db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 6},
			{Name: "text", Dim: synth.NUSWideText, Sparse: sparse}}}
	}
	var err, other error
	w.sparse, err = w.d.CreateCollection(ctx, "sparse", schema(true))
	w.dense, other = w.d.CreateCollection(ctx, "dense", schema(false))
	must(t, errors.Join(err, other))
	return w
}

// same calls f for both collections, which must agree.
func (w *twin) same(what string, f func(c *db.Collection) (any, error)) any {
	w.t.Helper()
	a, errA := f(w.sparse)
	b, errB := f(w.dense)
	stopIf(w.t, (errA == nil) != (errB == nil), "%s: %v with sparse vectors, %v with dense ones", what, errA,
		errB)
	if reflect.DeepEqual(a, b) { // much faster
		return a
	}
	close := func(x, y float64) bool {
		return math.Abs(x-y) <= 1e-5*max(1, math.Abs(x)) || math.IsNaN(x) && math.IsNaN(y)
	}
	similar := func(x, y float32) bool { return close(float64(x), float64(y)) }
	diff := cmp.Diff(a, b, cmp.Comparer(close), cmp.Comparer(similar))
	stopIf(w.t, diff != "", "%s: sparse and dense differ:\n%s", what, diff)
	return a
}

// filled returns an item with its text in a dense vector.
func filled(it *db.Item) *db.Item {
	out := *it
	out.Vectors, out.Sparse = maps.Clone(it.Vectors), nil
	for name, x := range it.Sparse {
		if out.Vectors == nil {
			out.Vectors = map[string][]float32{}
		}
		out.Vectors[name] = record.Expand(model.Sparse(x.Index, x.Value), synth.NUSWideText)
	}
	return &out
}

func hits(r *db.Result, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return r.Hits, nil
}

func TestSparseIsDense(t *testing.T) {
	dbkit.LongTest(t)
	dir := t.TempDir()
	w := openTwin(t, dir)
	items := dbkit.Bags(t, 1, 600)
	form := seed.Rand(t, 1, 1)
	// Either form goes into either collection.
	given := func(it *db.Item) *db.Item {
		if form.IntN(2) == 0 {
			return filled(it)
		}
		return it
	}
	for _, c := range []*db.Collection{w.sparse, w.dense} {
		b := w.d.NewBatch()
		for _, it := range items[:400] {
			must(t, b.Put(c, given(it)))
		}
		must(t, b.Commit(ctx))
		for _, it := range items[400:450] {
			need(c.Put(ctx, given(it)))(t)
		}
		need(c.Merge(ctx, given(&db.Item{Key: "k3", Sparse: map[string]db.Sparse{
			"text": {[]uint32{4, 900}, []float32{1, 2}}}})))(t)
		need(c.Merge(ctx, &db.Item{Key: "k5", Labels: []string{"label1"}}))(t)
		need(c.Delete(ctx, "k6"))(t)
	}
	all := func(c *db.Collection) (any, error) {
		var out []*db.Item
		for it, err := range c.Items(ctx, "") {
			if err != nil {
				return nil, err
			}
			if _, inVectors := it.Vectors["text"]; inVectors != (c == w.dense) &&
				(inVectors || it.Sparse != nil) {
				t.Fatalf("%s: the text of %s is in the other form", c.Name(), it.Key)
			}
			out = append(out, filled(it))
		}
		return out, nil
	}
	stored := w.same("items", all).([]*db.Item)
	for i, it := range stored { // k6 is gone
		want := filled(items[i+min(1, i/6)])
		if want.Key == "k3" || want.Key == "k5" {
			continue
		}
		it.Code, it.CodeFrom = nil, ""
		slices.Sort(it.Labels)
		slices.Sort(want.Labels)
		if !reflect.DeepEqual(it, want) {
			t.Fatal(cmp.Diff(it, want))
		}
	}
	train := func(c *db.Collection) (any, error) {
		r, err := c.Train(ctx, db.TrainOptions{Options: fit.Options{
			Bits: 32, Anchors: 80, Map: map[string]model.MapKind{"text": model.MapRBF, "image": model.MapRBF},
			Gamma: map[string]float64{"text": .1, "image": .1},
		}})
		if err != nil {
			return nil, err
		}
		return r.Chosen, nil
	}
	w.same("training", train)
	check := func() {
		t.Helper()
		w.same("items", all)
		for i := 450; i < 460; i++ {
			x, ok := items[i].Sparse["text"]
			if !ok {
				continue
			}
			for _, rerank := range []db.Rerank{db.RerankProjection, db.RerankAsymmetric, db.RerankAuto} {
				q := db.Query{From: "text", Sparse: &x, K: 30, Rerank: rerank}
				w.same("search", func(c *db.Collection) (any, error) { return hits(c.Search(ctx, q)) })
				dense := db.Query{From: "text", Vector: filled(items[i]).Vectors["text"], K: 30,
					Rerank: rerank}
				a, err := w.sparse.Search(ctx, q)
				b, other := w.sparse.Search(ctx, dense)
				must(t, errors.Join(err, other))
				equal(t, a, b)
			}
			w.same("code", func(c *db.Collection) (any, error) {
				code, z, err := c.Encode(given(items[i]))
				return []any{code, z}, err
			})
		}
		for _, key := range []string{"k1", "k2", "k3", "k10"} {
			w.same("search by key", func(c *db.Collection) (any, error) {
				return hits(c.Search(ctx, db.Query{Key: key, From: "text", To: "image"}))
			})
		}
	}
	check()
	evaluation := db.Evaluation{Top: 20}
	var queries []db.Sparse
	for _, it := range items[450:520] {
		if x, ok := it.Sparse["text"]; ok {
			queries, evaluation.Labels = append(queries, x), append(evaluation.Labels, it.Labels)
		}
	}
	evaluation.Sparse = map[string][]db.Sparse{"text": queries}
	w.same("evaluation", func(c *db.Collection) (any, error) { return c.Evaluate(ctx, evaluation) })
	// Writes with a model, and reopening.
	for _, c := range []*db.Collection{w.sparse, w.dense} {
		for _, it := range items[520:] {
			need(c.Put(ctx, given(it)))(t)
		}
	}
	check()
	dbkit.MustClose(t, w.d)
	w.d = dbkit.MustOpen(t, dir, nil)
	w.sparse, w.dense = dbkit.MustCollection(t, w.d, "sparse"), dbkit.MustCollection(t, w.d, "dense")
	schema, err := w.sparse.Schema()
	failIf(t, err != nil || !schema.Modalities[1].Sparse || schema.Modalities[0].Sparse, "%+v, %v", schema,
		err)
	check()
	// In the store a text takes what it holds.
	it := items[20]
	x := it.Sparse["text"]
	n := len(codec.AppendSparseFeatures(nil, x.Index, x.Value))
	failIf(t, n > 7*len(x.Index), "%d words take %d bytes", len(x.Index), n)
}

// TestSparseBulk: in a load that goes around the log.
func TestSparseBulk(t *testing.T) {
	dbkit.LongTest(t)
	w := openTwin(t, t.TempDir())
	items := dbkit.Bags(t, 2, bulkItems+10)
	b := w.d.NewBatch()
	for i, it := range items {
		if i%2 == 0 {
			it = filled(it)
		}
		must(t, b.Put(w.sparse, it))
	}
	must(t, b.Commit(ctx))
	i := 0
	for it := range every(t, w.sparse.Items(ctx, "")) {
		got, want := filled(it), filled(items[i])
		slices.Sort(got.Labels)
		slices.Sort(want.Labels)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s", cmp.Diff(got, want))
			break
		}
		i++
	}
	failIf(t, i != len(items), "%d items of %d", i, len(items))
}

func TestSparseRefuses(t *testing.T) {
	w := openTwin(t, t.TempDir())
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, c := range []struct {
		item db.Item
		says string
	}{
		{db.Item{Sparse: map[string]db.Sparse{"text": {[]uint32{1}, nil}}}, "1 indices and 0 values"},
		{db.Item{Sparse: map[string]db.Sparse{"text": {[]uint32{5, 3}, []float32{1, 1}}}},
			"index 3 of a sparse vector follows 5"},
		{db.Item{Sparse: map[string]db.Sparse{"text": {[]uint32{5, 5}, []float32{1, 1}}}},
			"index 5 of a sparse vector follows 5"},
		{db.Item{Sparse: map[string]db.Sparse{"text": {[]uint32{1000}, []float32{1}}}},
			"index 1000, dimensions are 0 to 999"},
		{db.Item{Sparse: map[string]db.Sparse{"text": {[]uint32{3, 17}, []float32{1, nan}}}},
			"dimension 17 is NaN"},
		{db.Item{Sparse: map[string]db.Sparse{"image": {[]uint32{3}, []float32{inf}}}},
			"dimension 3 is -Inf"},
		{db.Item{Vectors: map[string][]float32{"text": {1, 2}}}, "2"},
		{db.Item{Sparse: map[string]db.Sparse{"sound": {}}}, `unknown modality "sound"`},
		{db.Item{Sparse: map[string]db.Sparse{"image": {}},
			Vectors: map[string][]float32{"image": make([]float32, 6)}}, "a dense and a sparse vector"},
	} {
		for _, col := range []*db.Collection{w.sparse, w.dense} {
			c.item.Key = "k"
			_, err := col.Put(ctx, &c.item)
			failIf(t, !errors.Is(err, db.ErrInvalid) && !errors.As(err, new(*db.DimensionError)) ||
				!strings.Contains(err.Error(), c.says), "%s: %v", c.says, err)
		}
	}
	// Zeros are dropped, and what is put is copied.
	x := db.Sparse{[]uint32{1, 2, 3}, []float32{0, 5, 0}}
	need(w.sparse.Put(ctx, &db.Item{Key: "k", Sparse: map[string]db.Sparse{"text": x}}))(t)
	x.Index[1], x.Value[1] = 9, 9
	it, err := w.sparse.Get(ctx, "k")
	failIf(t, err != nil || !slices.Equal(it.Sparse["text"].Index, []uint32{2}) ||
		!slices.Equal(it.Sparse["text"].Value, []float32{5}), "%+v, %v", it, err)
	for name, q := range map[string]db.Query{
		"both forms": {From: "text", Vector: make([]float32, 1000), Sparse: &db.Sparse{}},
		"NaN":        {From: "text", Sparse: &db.Sparse{[]uint32{1}, []float32{nan}}},
		"no From":    {Sparse: &db.Sparse{}},
	} {
		need(w.sparse.Put(ctx, &db.Item{Key: "l", Labels: []string{"a"},
			Sparse: map[string]db.Sparse{"text": {[]uint32{1}, []float32{1}}}}))(t)
		_, err := w.sparse.Search(ctx, q)
		failIf(t, err == nil, "%s: no error", name)
	}
	for name, e := range map[string]db.Evaluation{
		"both forms": {Queries: map[string][][]float32{"text": {nil}},
			Sparse: map[string][]db.Sparse{"text": {{}}}, Labels: [][]string{{"a"}}},
		"labels":   {Sparse: map[string][]db.Sparse{"text": {{}}}},
		"modality": {Sparse: map[string][]db.Sparse{"sound": {{}}}, Labels: [][]string{{"a"}}},
	} {
		_, err := w.sparse.Evaluate(ctx, e)
		failIf(t, !errors.Is(err, db.ErrInvalid), "%s: %v", name, err)
	}
}

// TestSparseFeatureOfAnotherForm: a record that is not of the form of its modality is damage, not a vector.
func TestSparseFeatureOfAnotherForm(t *testing.T) {
	m, n := record.Modality{Name: "a", Dim: 2, Sparse: true}, record.Modality{Name: "a", Dim: 2}
	var v model.Vector
	errorIs(t, m.DecodeVector(&v, codec.AppendFeatures(nil, []float32{1, 2})), codec.ErrCorrupt)
	errorIs(t, n.DecodeVector(&v, codec.AppendSparseFeatures(nil, nil, nil)), codec.ErrCorrupt)
}
