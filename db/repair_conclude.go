package db

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/model"
)

// conclude makes the descriptor of a collection from what its records say: models have
// names and dimensions of modalities, features the dimensions of all that items have,
// items the types of fields. What no record says is made up. It returns nil where
// neither features nor codes can be told.
func (m *mender) conclude(id uint32, name string) (*record.Descriptor, error) {
	d := &record.Descriptor{ID: id, Name: name}
	if name == "" {
		d.Name = fmt.Sprintf("collection-%d", id)
	}
	if err := m.concludeModalities(d); err != nil {
		return nil, err
	}
	if len(d.Modalities) == 0 {
		if err := m.concludeBits(d); err != nil || d.Bits == 0 {
			return nil, err
		}
	}
	if err := m.concludeFields(d); err != nil {
		return nil, err
	}
	if only, err := m.seemsIndexOnly(d); err != nil {
		return nil, err
	} else if only {
		d = d.WithoutVectors()
	}
	if d.Check() != nil {
		return nil, nil
	}
	return d, nil
}

// concludeModalities finds the modalities of a collection by the features that are
// stored, and by its models.
func (m *mender) concludeModalities(d *record.Descriptor) error {
	seen := map[int]record.Modality{}
	var index []uint32
	var value []float32
	err := record.ForEach(m.store, codec.CollectionKey(codec.KindFeatures, d.ID), func(key, b []byte) (err error) {
		_, t := codec.FeatureKeyParts(key)
		if t >= record.MaxModalities || len(b) == 0 {
			return nil
		}
		was, known := seen[int(t)]
		if index, value, err = codec.AppendDecodedSparse(index[:0], value[:0], record.MaxDim, b); err == nil {
			if len(index) > 0 && (!known || was.Sparse) {
				seen[int(t)] = record.Modality{Dim: max(was.Dim, int(index[len(index)-1])+1), Sparse: true}
			}
			return nil
		}
		if dim := (len(b) - 1) / 4; !known && dim >= 1 && dim <= record.MaxDim && codec.DecodeFeatures(make([]float32, dim), b) == nil {
			seen[int(t)] = record.Modality{Dim: dim}
		}
		return nil
	})
	if err != nil {
		return err
	}
	var models []*model.Model
	for _, space := range slices.Sorted(maps.Keys(m.collections[d.ID].spaces)) {
		if trained := m.storedModel(d.ID, space); trained != nil {
			models = append(models, trained)
		}
	}
	positions := 0
	if len(seen) > 0 {
		positions = slices.Max(slices.Collect(maps.Keys(seen))) + 1
	} else if len(models) > 0 { // no features: sets of rows say how many there are
		err := record.ForEach(m.store, append(codec.CollectionKey(codec.KindRows, d.ID), codec.SetModality), func(key, _ []byte) error {
			if _, t, _ := codec.RowsKeyParts(key); t < record.MaxModalities {
				positions = max(positions, int(t)+1)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	d.Modalities = make([]record.Modality, positions)
	for t, x := range seen {
		d.Modalities[t] = x
	}
	for _, trained := range models {
		for _, x := range trained.Modalities() { // in the order of the collection
			nameModality(d, x)
		}
	}
	for t := range d.Modalities {
		if x := &d.Modalities[t]; x.Name == "" {
			x.Name = fmt.Sprintf("modality%d", t)
		}
		d.Modalities[t].Dim = max(1, d.Modalities[t].Dim)
	}
	return nil
}

// name gives a modality of a model to the first of the collection that it can be.
func nameModality(d *record.Descriptor, x model.Modality) {
	if slices.ContainsFunc(d.Modalities, func(m record.Modality) bool { return m.Name == x.Name }) {
		return
	}
	for t := range d.Modalities {
		if m := &d.Modalities[t]; m.Name == "" && m.Sparse == x.Sparse && (m.Dim == x.Dim || m.Sparse && m.Dim <= x.Dim) {
			m.Name, m.Dim = x.Name, x.Dim
			return
		}
	}
	for t := range d.Modalities { // no item has it
		if m := &d.Modalities[t]; m.Name == "" && m.Dim == 0 {
			*m = record.Modality{Name: x.Name, Dim: x.Dim, Sparse: x.Sparse}
			return
		}
	}
	d.Modalities = append(d.Modalities, record.Modality{Name: x.Name, Dim: x.Dim, Sparse: x.Sparse})
}

// storedModel returns the model of a space by its chunks alone, nil if there is none.
func (m *mender) storedModel(collection, space uint32) *model.Model {
	b := m.storedChunks(collection, space)
	if b == nil {
		return nil
	}
	trained, err := model.Unmarshal(b)
	if err != nil {
		return nil
	}
	return trained
}

// storedChunks puts the chunks of a model together, as many as there are.
func (m *mender) storedChunks(collection, space uint32) []byte {
	var b []byte
	for i := uint32(0); ; i++ {
		chunk, err := record.Get(m.store, codec.ChunkKey(codec.KindModel, collection, space, i))
		if err != nil || chunk == nil {
			return b
		}
		b = append(b, chunk...)
	}
}

// concludeBits finds the length of the codes that the items of a collection bring.
func (m *mender) concludeBits(d *record.Descriptor) error {
	var s spaces.Stored
	b, err := record.Get(m.store, codec.NumberKey(codec.KindSpace, d.ID, 1))
	if err != nil {
		return err
	}
	if json.Unmarshal(b, &s) == nil && codec.CheckBits(s.Bits) == nil && s.Model.Chunks == 0 {
		d.Bits = s.Bits
		return nil
	}
	prefix := append(codec.NumberKey(codec.KindCodes, d.ID, 1), record.SharedTarget)
	return record.ForEach(m.store, prefix, func(_, value []byte) error {
		if block, err := codec.DecodeBlock(value); err == nil && d.Bits == 0 {
			if bits := 8 * (block.Width() - 4); codec.CheckBits(bits) == nil && codec.CodeEntryBytes(bits) == block.Width() {
				d.Bits = bits
			}
		}
		return nil
	})
}

// concludeFields finds the fields of a collection by the values that items have.
func (m *mender) concludeFields(d *record.Descriptor) error {
	types := map[uint32]record.FieldType{}
	err := record.ForEach(m.store, codec.CollectionKey(codec.KindItem, d.ID), func(_, value []byte) error {
		rec, err := codec.DecodeItemRecord(value)
		if err != nil {
			return nil
		}
		for _, f := range rec.Fields {
			if f.ID < record.MaxFields && types[f.ID] == "" {
				types[f.ID] = typeOf(f.Value)
			}
		}
		return nil
	})
	if err != nil || len(types) == 0 {
		return err
	}
	indexed := m.collections[d.ID].fields
	for i := range slices.Max(slices.Collect(maps.Keys(types))) + 1 {
		typ := types[i]
		if typ == "" {
			typ = record.String
		}
		d.Fields = append(d.Fields, record.Field{Name: fmt.Sprintf("field%d", i), Type: typ, Indexed: indexed[uint16(i)]})
	}
	return nil
}

// typeOf returns the type of a field with a value.
func typeOf(value any) record.FieldType {
	switch value.(type) {
	case int64:
		return record.Int
	case float64:
		return record.Float
	case bool:
		return record.Bool
	}
	return record.String
}
