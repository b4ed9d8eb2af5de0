package search

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/model"
)

// An Item is a stored item with its code, in the terms of its collection. The caller owns the memory that its
// slices point to; the next item read into it uses the slices themselves again.
type Item struct {
	Row uint32
	record.Item
	Code []byte // in the space of the view, bits/8 bytes; nil: no code
	From string // source of the code: "labels", "fused", "given", or a modality
}

// ReadItem reads the item of a row; key is its key.
func ReadItem(cv *state.CollectionView, r pebble.Reader, row uint32, key string) (*Item, error) {
	it := new(Item)
	return it, it.read(cv, r, storedParts{cv, r}, row, key)
}

// Item returns parts of the item of a hit: labels, fields and payload if rec is set, vectors if vectors is
// set. It returns no code.
func (s *Searcher) Item(h *Hit, rec, vectors bool) (*Item, error) {
	it := &Item{Row: h.Row, Item: record.Item{Key: h.Key, Vectors: make([]model.Vector, len(s.Cv.Modalities))}}
	parts := storedParts{s.Cv, s.V.Snap}
	if rec {
		if err := it.readRecord(s.Cv, parts); err != nil {
			return nil, err
		}
	}
	if vectors {
		if err := it.readVectors(s.Cv, parts); err != nil {
			return nil, err
		}
	}
	return it, nil
}

// itemSource reads the parts of items.
type itemSource interface {
	record(row uint32) (*codec.ItemRecord, error)

	// vector returns features that the caller owns.
	vector(row uint32, t int) (x model.Vector, found bool, err error)

	// rowCode returns the number and provenance of a row's code.
	rowCode(row uint32) (rc codec.RowCode, found bool, err error)
}

// storedParts reads each part by its own look-up.
type storedParts struct {
	cv *state.CollectionView
	r  pebble.Reader
}

func (p storedParts) record(row uint32) (*codec.ItemRecord, error) {
	return record.ReadItem(p.r, p.cv.ID, row)
}

func (p storedParts) vector(row uint32, t int) (model.Vector, bool, error) {
	return record.ReadVector(p.r, p.cv.ID, row, t, p.cv.Modalities[t])
}

func (p storedParts) rowCode(row uint32) (codec.RowCode, bool, error) {
	return p.cv.Codes.RowCode(p.r, row)
}

// read reads the item of a row into it.
func (it *Item) read(cv *state.CollectionView, r pebble.Reader, parts itemSource, row uint32, key string) error {
	if it.Vectors == nil {
		it.Vectors = make([]model.Vector, len(cv.Modalities))
	}
	it.Row, it.Key, it.Code, it.From = row, key, nil, ""
	if err := it.readRecord(cv, parts); err != nil {
		return err
	}
	if err := it.readVectors(cv, parts); err != nil {
		return err
	}
	if cv.Space == nil {
		return nil
	}
	rc, found, err := parts.rowCode(row)
	if err != nil || !found {
		return err
	}
	code, err := cv.Codes.CodeOf(r, rc.Code, row)
	if err != nil {
		return err
	}
	it.Code, it.From = code.AppendBytes(nil, cv.Codes.Bits), provenanceName(cv, rc.Provenance)
	return nil
}

// readRecord reads labels, fields and payload of the row.
func (it *Item) readRecord(cv *state.CollectionView, parts itemSource) error {
	rec, err := parts.record(it.Row)
	if err != nil {
		return err
	}
	it.Payload, it.Fields = rec.Payload, rec.Fields
	if it.Labels, err = labelNames(cv, rec.Labels); err != nil {
		return err
	}
	for _, f := range rec.Fields {
		if int(f.ID) >= len(cv.Fields) {
			return fault.Corrupt(fmt.Errorf("field %d of %d", f.ID, len(cv.Fields)), "item in row %d", it.Row)
		}
	}
	return nil
}

// readVectors reads the vectors of the row.
func (it *Item) readVectors(cv *state.CollectionView, parts itemSource) error {
	for t, m := range cv.Modalities {
		it.Vectors[t] = model.Vector{}
		if cv.IndexOnly || !cv.Presence[t].Contains(it.Row) {
			continue
		}
		x, found, err := parts.vector(it.Row, t)
		if err == nil && !found {
			err = fault.Corrupt(errors.New("missing"), "features %q of row %d", m.Name, it.Row)
		}
		if err != nil {
			return err
		}
		it.Vectors[t] = x
	}
	return nil
}

// provenanceName returns the value of Item.From.
func provenanceName(cv *state.CollectionView, p codec.Provenance) string {
	switch {
	case p == codec.ProvenanceLabels:
		return "labels"
	case p == codec.ProvenanceFused:
		return "fused"
	case p == codec.ProvenanceGiven:
		return "given"
	case p >= codec.ProvenanceModality && int(p-codec.ProvenanceModality) < len(cv.Modalities):
		return cv.Modalities[p-codec.ProvenanceModality].Name
	}
	return fmt.Sprintf("unknown (%d)", p)
}

// labelNames returns the names of stored label ids.
func labelNames(cv *state.CollectionView, ids []uint32) ([]string, error) {
	var out []string
	for _, id := range ids {
		name, ok := cv.Labels.Name(id)
		if !ok {
			return nil, fault.Corrupt(fmt.Errorf("id %d", id), "label")
		}
		out = append(out, name)
	}
	return out, nil
}
