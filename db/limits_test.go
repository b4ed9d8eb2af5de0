package db_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/effort"
)

// Every limit at its edge, and one beyond, on every way in.
func TestLimitsOfItems(t *testing.T) {
	dbkit.LongTest(t)
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer d.Close()
	c := need(d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 3},
		{Name: "words", Dim: db.MaxDim, Sparse: true}}, Fields: []db.Field{{"text", db.String, false},
		{"word", db.String, true}, {"n", db.Int, true}, {"x", db.Float, true}, {"b", db.Bool, false}}}))(t)
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
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer d.Close()
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 8}))(t)
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
