package spool

import (
	"errors"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/model"
)

// Any bytes as a part of a chunk are refused, or give only what Put may be given.
func FuzzChunk(f *testing.F) {
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
	for _, it := range []*record.Item{
		{Key: "k", Vectors: []model.Vector{model.Dense([]float32{1, 2, 3}), {}}, Labels: []string{"b", "a"}, Payload: []byte("p")},
		{Vectors: []model.Vector{{}, model.Sparse([]uint32{1, 8}, []float32{3, 4})}, Fields: []codec.Field{{ID: 0, Value: int64(7)}, {ID: 1, Value: "x"}}},
		{Payload: []byte("alone")},
	} {
		if err := c.add(it, 0, l.Lookup(it.Labels)); err != nil {
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
		check := func(err error) {
			t.Helper()
			if err != nil {
				t.Errorf("part %d has what is not for Put: %v", p, err)
			}
		}
		switch p {
		case chunkLabels:
			_ = h.eachLabel(b, func(name string) { check(record.CheckLabel(name)) })
		case chunkKeys:
			_ = h.eachKey(b, 2, func(key []byte) { check(record.CheckKey(string(key))) }, func(i, m int) {
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
				for _, label := range it.Labels {
					check(record.CheckLabel(label))
				}
				for _, field := range it.Fields {
					_, err := d.Fields[field.ID].CheckValue(field.Value)
					check(err)
				}
				for m, x := range it.Vectors {
					switch {
					case x.IsSparse():
						_, err = d.Modalities[m].OfSparse(x.Index, x.Value)
					case x.Present():
						_, err = d.Modalities[m].OfDense(x.Value)
					}
					check(err)
				}
			}
		}
		if _, err := decodeChunkHeader(b); err != nil && !errors.Is(err, codec.ErrCorrupt) {
			t.Error(err)
		}
	})
}
