package db

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Every limit at its edge, and one beyond, on every way in.
func TestLimitsOfItems(t *testing.T) {
	longTest(t)
	d := mustOpen(t, "db", &Options{FS: vfs.NewMem()})
	defer d.Close()
	c, err := d.CreateCollection(ctx, "main", Schema{
		Modalities: []Modality{{Name: "image", Dim: 3}, {Name: "words", Dim: MaxDim, Sparse: true}},
		Fields:     []Field{{"text", String, false}, {"word", String, true}, {"n", Int, true}, {"x", Float, true}, {"b", Bool, false}},
	})
	if err != nil {
		t.Fatal(err)
	}
	labels := func(n int) []string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprint("l", i)
		}
		return all
	}
	text := func(n int) string { return strings.Repeat("é", n/2) + strings.Repeat("x", n%2) }
	field := func(name string, v any) *Item { return &Item{Key: "k", Fields: map[string]any{name: v}} }
	for name, limit := range map[string]struct{ edge, beyond *Item }{
		"key":           {&Item{Key: text(MaxKeyBytes)}, &Item{Key: text(MaxKeyBytes + 1)}},
		"key of noise":  {nil, &Item{Key: "\xff"}},
		"label":         {&Item{Key: "k", Labels: []string{text(MaxLabelBytes)}}, &Item{Key: "k", Labels: []string{text(MaxLabelBytes + 1)}}},
		"no label":      {nil, &Item{Key: "k", Labels: []string{""}}},
		"label, noise":  {nil, &Item{Key: "k", Labels: []string{"a\xc3"}}},
		"labels":        {&Item{Key: "k", Labels: labels(MaxLabels)}, &Item{Key: "k", Labels: labels(MaxLabels + 1)}},
		"field":         {field("text", text(MaxFieldBytes)), field("text", text(MaxFieldBytes+1))},
		"field, noise":  {nil, field("text", "\xff")},
		"indexed field": {field("word", text(MaxIndexedBytes)), field("word", text(MaxIndexedBytes+1))},
		"int":           {field("n", int64(math.MinInt64)), field("n", uint64(math.MaxUint64))},
		"float":         {field("x", math.MaxFloat64), field("x", math.Inf(1))},
		"no number":     {nil, field("x", math.NaN())},
		"unknown field": {nil, field("y", 1)},
		"payload":       {&Item{Key: "k", Payload: make([]byte, MaxPayloadBytes)}, &Item{Key: "k", Payload: make([]byte, MaxPayloadBytes+1)}},
		"dimension": {
			&Item{Key: "k", Sparse: map[string]Sparse{"words": {Index: []uint32{MaxDim - 1}, Value: []float32{1}}}},
			&Item{Key: "k", Sparse: map[string]Sparse{"words": {Index: []uint32{MaxDim}, Value: []float32{1}}}},
		},
		"dimensions": {
			&Item{Key: "k", Vectors: map[string][]float32{"image": {1, 2, 3}}},
			&Item{Key: "k", Vectors: map[string][]float32{"image": {1, 2, 3, 4}}},
		},
	} {
		for way, put := range map[string]func(*Item) error{
			"put":   func(it *Item) error { return second(c.Put(ctx, it)) },
			"merge": func(it *Item) error { return second(c.Merge(ctx, it)) },
			"bulk": func(it *Item) error {
				b := d.NewBatch()
				for i := range bulkItems {
					if err := b.Put(c, &Item{Key: fmt.Sprint(i)}); err != nil {
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
				if err := put(limit.edge); err != nil {
					t.Errorf("%s, %s, at the edge: %v", name, way, err)
				}
			}
			if err := put(limit.beyond); !errors.Is(err, ErrInvalid) || len(err.Error()) > 3<<10 || strings.Count(err.Error(), "fddhdb:") != 1 {
				t.Errorf("%s, %s, beyond: %.200v", name, way, err)
			}
		}
		if it := limit.edge; it != nil {
			got, err := c.Get(ctx, it.Key)
			if err != nil || len(got.Labels) < len(it.Labels) || len(got.Payload) < len(it.Payload) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	long := text(MaxKeyBytes + 1)
	for way, err := range map[string]error{
		"delete":   second(c.Delete(ctx, long)),
		"register": d.NewBatch().RegisterLabels(c, []string{text(MaxLabelBytes + 1)}),
	} {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %.200v", way, err)
		}
	}
}

// A batch that can never be stored does not grow.
func TestBatchEndsAtTheLimit(t *testing.T) {
	d, c := openCodes(t)
	b := d.NewBatch()
	HoldBytes(b, MaxBulkBytes)
	for range 2 {
		if err := b.Put(c, &Item{Code: []byte{1, 2}}); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "split it") {
			t.Error(err)
		}
	}
	if err := b.Commit(ctx); !errors.Is(err, ErrInvalid) || b.Len() != 0 {
		t.Errorf("%d changes, %v", b.Len(), err)
	}
}

func TestLimitsOfBatches(t *testing.T) {
	d := mustOpen(t, "db", &Options{FS: vfs.NewMem()})
	defer d.Close()
	c, err := d.CreateCollection(ctx, "main", Schema{Bits: 8})
	if err != nil {
		t.Fatal(err)
	}
	for _, items := range []int{3, bulkItems} {
		b := d.NewBatch()
		for range items {
			if err := b.Put(c, &Item{Code: []byte{1}}); err != nil {
				t.Fatal(err)
			}
		}
		limit := MaxBatchBytes
		if items == bulkItems {
			limit = MaxBulkBytes
		}
		HoldBytes(b, limit+1) // gigabytes are too many for a test
		if err := b.Commit(ctx); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "split it") {
			t.Errorf("%d items: %v", items, err)
		}
		HoldBytes(b, limit)
		if err := b.Commit(ctx); err != nil {
			t.Errorf("%d items: %v", items, err)
		}
	}
}

func TestLimitsOfSchemas(t *testing.T) {
	d := mustOpen(t, "db", &Options{FS: vfs.NewMem()})
	defer d.Close()
	modalities := func(n int) Schema {
		var s Schema
		for i := range n {
			s.Modalities = append(s.Modalities, Modality{Name: fmt.Sprint("m", i), Dim: 1})
		}
		return s
	}
	fields := func(n int) Schema {
		s := Schema{Bits: 8}
		for i := range n {
			s.Fields = append(s.Fields, Field{Name: fmt.Sprint("f", i), Type: Bool, Indexed: true})
		}
		return s
	}
	name := func(n int) string { return strings.Repeat("n", n) }
	dim := func(n int) Schema { return Schema{Modalities: []Modality{{Name: "m", Dim: n}}} }
	i := 0
	create := func(s Schema) error {
		i++
		return second(d.CreateCollection(ctx, fmt.Sprint("c", i), s))
	}
	for what, limit := range map[string]struct{ edge, beyond Schema }{
		"modalities":       {modalities(MaxModalities), modalities(MaxModalities + 1)},
		"none":             {modalities(1), modalities(0)},
		"fields":           {fields(MaxFields), fields(MaxFields + 1)},
		"dimensions":       {dim(MaxDim), dim(MaxDim + 1)},
		"least dimensions": {dim(1), dim(0)},
		"no dimensions":    {dim(2), dim(math.MinInt)},
		"bits":             {Schema{Bits: 4096}, Schema{Bits: 4104}},
		"fewest bits":      {Schema{Bits: 8}, Schema{Bits: 7}},
		"bits below 0":     {Schema{Bits: 16}, Schema{Bits: -8}},
		"both":             {Schema{Bits: 16}, Schema{Bits: 16, Modalities: []Modality{{Name: "m", Dim: 1}}}},
		"modality name": {
			Schema{Modalities: []Modality{{Name: name(MaxNameBytes), Dim: 1}}}, Schema{Modalities: []Modality{{Name: name(MaxNameBytes + 1), Dim: 1}}},
		},
		"field name": {
			Schema{Bits: 8, Fields: []Field{{Name: name(MaxNameBytes), Type: Int}}}, Schema{Bits: 8, Fields: []Field{{Name: name(MaxNameBytes + 1), Type: Int}}},
		},
		"field type": {
			Schema{Bits: 8, Fields: []Field{{Name: "f", Type: Int}}}, Schema{Bits: 8, Fields: []Field{{Name: "f", Type: FieldType(name(1 << 20))}}},
		},
		"noise": {Schema{Bits: 8}, Schema{Bits: 8, Fields: []Field{{Name: "\xff", Type: Int}}}},
		"twice": {Schema{Bits: 8}, Schema{Bits: 8, Fields: []Field{{Name: "f", Type: Int}, {Name: "f", Type: Int}}}},
	} {
		if err := create(limit.edge); err != nil {
			t.Errorf("%s, at the edge: %v", what, err)
		}
		if err := create(limit.beyond); !errors.Is(err, ErrInvalid) || len(err.Error()) > 1<<10 {
			t.Errorf("%s, beyond: %.200v", what, err)
		}
	}
	for _, n := range []string{"", name(MaxNameBytes + 1), "a b", "\xff", "1a", "a/b", "..", name(1 << 20)} {
		if err := second(d.CreateCollection(ctx, n, Schema{Bits: 8})); !errors.Is(err, ErrInvalid) || len(err.Error()) > 1<<10 {
			t.Errorf("collection %.40q: %.200v", n, err)
		}
	}
	if err := second(d.CreateCollection(ctx, name(MaxNameBytes), Schema{Bits: 8})); err != nil {
		t.Error(err)
	}
}
