package db

import (
	"cmp"
	"errors"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// A part of a chunk may be anything: it is refused, or its items are such as Put takes.
func FuzzStagedChunk(f *testing.F) {
	d := &record.Descriptor{
		Modalities: []record.Modality{{Name: "image", Dim: 3}, {Name: "words", Dim: 9, Sparse: true}},
		Fields:     []record.Field{{Name: "n", Type: record.Int, Indexed: true}, {Name: "s", Type: record.String, Indexed: false}},
	}
	l := state.NewLabels()
	l.Add("a")
	l.Add("b")
	var c chunk
	c.reset(0, 0)
	c.addLabel("a")
	c.addLabel("b")
	for _, it := range []*Item{
		{Key: "k", Vectors: map[string][]float32{"image": {1, 2, 3}}, Labels: []string{"b", "a"}, Payload: []byte("p")},
		{Sparse: map[string]Sparse{"words": {Index: []uint32{1, 8}, Value: []float32{3, 4}}}, Fields: map[string]any{"n": 7, "s": "x"}},
		{Payload: []byte("alone")},
	} {
		checked, err := checkItem(d, it, false)
		if err != nil {
			f.Fatal(err)
		}
		if err := c.add(checked, 0, l.Lookup(checked.Labels)); err != nil {
			f.Fatal(err)
		}
	}
	c.addSkip("why")
	for part, b := range c.parts {
		f.Add(byte(part), b)
	}
	f.Fuzz(func(t *testing.T, part byte, b []byte) {
		damaged := c
		p := int(part) % chunkParts
		damaged.parts[p] = b
		h, err := decodeChunkHeader(damaged.header())
		if err != nil {
			t.Fatal(err)
		}
		if err := h.sound(p, b); err != nil {
			t.Fatal(err)
		}
		check := func(it *Item) {
			it.Key = cmp.Or(it.Key, "k") // what it has besides is in other parts
			if _, err := checkItem(d, it, false); err != nil {
				t.Errorf("part %d: %v is not for Put: %v", p, it, err)
			}
		}
		switch p {
		case chunkLabels:
			_ = h.eachLabel(b, func(name string) { check(&Item{Labels: []string{name}}) })
		case chunkKeys:
			_ = h.eachKey(b, 2, func(key []byte) { check(&Item{Key: string(key), Payload: []byte("p")}) }, func(i, m int) {
				if i >= 3 || m >= 2 {
					t.Errorf("item %d has modality %d", i, m)
				}
			})
		case chunkSkips:
			_ = h.eachSkip(b, func(row uint64, _ string) {
				if row > 3 {
					t.Errorf("row %d", row)
				}
			})
		case chunkRecords, chunkVectors:
			var buf itemBuffer
			items := buf.prepare(3)
			if p == chunkRecords {
				err = h.decodeRecords(b, d, l.Name, items)
			} else {
				err = h.decodeVectors(b, d, items, &buf)
			}
			if err != nil {
				return
			}
			for _, it := range items {
				out := &Item{Key: "k", Labels: it.Labels, Payload: it.Payload, Vectors: map[string][]float32{}, Sparse: map[string]Sparse{}, Fields: map[string]any{}}
				for _, field := range it.Fields {
					out.Fields[d.Fields[field.ID].Name] = field.Value
				}
				for m, x := range it.Vectors {
					if x.IsSparse() {
						out.Sparse[d.Modalities[m].Name] = Sparse{x.Index, x.Value}
					} else if x.Present() {
						out.Vectors[d.Modalities[m].Name] = x.Value
					}
				}
				check(out)
			}
		}
		if _, err := decodeChunkHeader(b); err != nil && !errors.Is(err, ErrCorrupt) && !strings.Contains(err.Error(), "corrupt") {
			t.Error(err)
		}
	})
}
