package db

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

// readItem reads the whole item of a row in the terms of the caller.
func readItem(cv *state.CollectionView, r pebble.Reader, row uint32, key string) (*Item, error) {
	return itemOf(cv, r, storedParts{cv, r}, row, key)
}

// itemSource is where what makes an item is read.
type itemSource interface {
	record(row uint32) (*codec.ItemRecord, error)

	// vector returns features that become the caller's.
	vector(row uint32, t int) (x model.Vector, found bool, err error)

	// rowCode returns which code of a set a row has.
	rowCode(set int, row uint32) (rc codec.RowCode, found bool, err error)
}

// storedParts finds each part on its own.
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

func (p storedParts) rowCode(set int, row uint32) (codec.RowCode, bool, error) {
	return p.cv.Sets[set].RowCode(p.r, row)
}

// itemOf puts the item of a row together.
func itemOf(cv *state.CollectionView, r pebble.Reader, parts itemSource, row uint32, key string) (*Item, error) {
	rec, err := parts.record(row)
	if err != nil {
		return nil, err
	}
	it := &Item{Key: key, Payload: rec.Payload}
	for t, m := range cv.Modalities {
		if !cv.Presence[t].Contains(row) {
			continue
		}
		if cv.IndexOnly {
			it.Modalities = append(it.Modalities, m.Name)
			continue
		}
		x, found, err := parts.vector(row, t)
		if err == nil && !found {
			err = fault.Corrupt(errors.New("missing"), "features %q of row %d", m.Name, row)
		}
		if err != nil {
			return nil, err
		}
		if m.Sparse {
			if it.Sparse == nil {
				it.Sparse = map[string]Sparse{}
			}
			it.Sparse[m.Name] = Sparse(x)
			continue
		}
		if it.Vectors == nil {
			it.Vectors = map[string][]float32{}
		}
		it.Vectors[m.Name] = x.Value
	}
	if it.Labels, err = labelNames(cv, rec.Labels); err != nil {
		return nil, err
	}
	for _, f := range rec.Fields {
		if int(f.ID) >= len(cv.Fields) {
			return nil, fault.Corrupt(fmt.Errorf("field %d of %d", f.ID, len(cv.Fields)), "item in row %d", row)
		}
		if it.Fields == nil {
			it.Fields = map[string]any{}
		}
		it.Fields[cv.Fields[f.ID].Name] = f.Value
	}
	if cv.Space == nil {
		return it, nil
	}
	for i := range cv.Sets {
		set := &cv.Sets[i]
		rc, found, err := parts.rowCode(i, row)
		if err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		code, err := set.CodeOf(r, rc.Code, row)
		if err != nil {
			return nil, err
		}
		b, from := code.AppendBytes(nil, set.Bits), provenanceName(cv, rc.Provenance)
		t, is := set.Modality()
		if !is {
			it.Code, it.CodeFrom = b, from
			continue
		}
		if it.Codes == nil {
			it.Codes = map[string]TargetCode{}
		}
		it.Codes[cv.Modalities[t].Name] = TargetCode{b, from}
	}
	return it, nil
}

// provenanceName returns what Item.CodeFrom says: "labels", "fused", "given", or a modality.
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

// labelNames returns the names of labels that are stored by their ids.
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
