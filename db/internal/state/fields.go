package state

import (
	"cmp"
	"errors"
	"hash/crc32"
	"math/bits"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// Filters read sets of rows: one for each label, one for each value of an indexed string field, and slices
// for other indexed fields, all cut into containers of 65,536 rows (codec/key.go, codec/slices.go). A write
// that changes the terms of an item changes the sets in the same batch. For that it needs the old terms,
// which only the old record has: resolve reads it, in collections with labels or indexed fields.

// indexes reports whether items of the collection can be in any set.
func (s *CollectionState) indexes() bool {
	if len(s.Labels.All()) > 0 || s.indexing != nil {
		return true
	}
	for _, f := range s.Fields {
		if f.Indexed {
			return true
		}
	}
	return false
}

// fetchTerms reads the terms of a row whose item is to be replaced or deleted, unless the transaction knows
// them. It returns about how many bytes removing the row from their sets takes. A damaged item can still be
// replaced and deleted: then fetchTerms searches the sets for its row.
func (tx *Tx) fetchTerms(s *CollectionState, row uint32) (bytes int, err error) {
	at := itemRow{s.ID, row}
	if it := tx.items[at]; it != nil {
		return s.TermBytes(it), nil
	}
	if !s.indexes() {
		return 0, nil
	}
	old, known := tx.terms[at]
	if known {
		return old.Bytes(), nil
	}
	rec, err := record.ReadItem(tx.Committer.kv, s.ID, row)
	if err == nil {
		if old, err = s.filteredAt(row).Terms(rec.Labels, rec.Fields); err != nil {
			err = fault.Corrupt(err, "item in row %d", row)
		}
	}
	if errors.Is(err, fault.ErrCorrupt) {
		old, err = tx.searchTerms(s, row)
	}
	if err != nil {
		return 0, err
	}
	tx.terms[at] = old
	return old.Bytes(), nil
}

// searchTerms finds a row in the sets, by reading one container of each.
func (tx *Tx) searchTerms(s *CollectionState, row uint32) (record.Terms, error) {
	var out record.Terms
	container := uint16(row >> 16)
	for id := range s.Labels.All() {
		rows, err := record.ReadRows(tx.Committer.kv, codec.RowsKey(s.ID, codec.SetLabel, uint32(id), container))
		if err != nil {
			return out, err
		}
		if rows.Contains(row & 0xffff) {
			out.Labels = append(out.Labels, uint32(id))
		}
	}
	for i, f := range s.filteredAt(row).Fields {
		if !f.Indexed {
			continue
		}
		number, any := record.Number{Field: uint16(i)}, false
		err := record.ForEach(tx.Committer.kv, codec.FieldRowsKey(s.ID, uint16(i), container, ""), func(key, b []byte) error {
			l, err := codec.DecodeLayer(b)
			if err != nil {
				return fault.Corrupt(err, "rows %x", key)
			}
			if !l.Added.Contains(row & 0xffff) {
				return nil
			}
			_, _, value := codec.FieldRowsKeyParts(key)
			switch {
			case f.Type == record.String:
				out.Texts = append(out.Texts, record.Text{Field: uint16(i), Text: string(value)})
			case len(value) == 1 && value[0] == codec.SliceExists:
				any = true
			case len(value) == 1 && value[0] < codec.SliceCount:
				number.Image |= 1 << (64 - value[0])
				any = true
			}
			return nil
		})
		if err != nil {
			return out, err
		}
		if any {
			out.Numbers = append(out.Numbers, number)
		}
	}
	return out, nil
}

// before returns the terms of a row as the transaction has left it so far. resolve has read them, and the row
// has an item.
func (tx *Tx) before(s *CollectionState, row uint32) record.Terms {
	at := itemRow{s.ID, row}
	if it := tx.items[at]; it != nil {
		old, _ := s.filteredAt(row).Terms(s.Labels.Lookup(it.Labels), it.Fields) // checked when it came
		return old
	}
	return tx.terms[at]
}

// index takes a row out of the sets of the terms before, and puts it into the sets of the terms after. It
// leaves the sets of equal terms alone.
func (tx *Tx) index(s *CollectionState, row uint32, before, after record.Terms) {
	container, low := uint16(row>>16), uint16(row)
	put := func(key []byte, in bool) {
		if l := tx.layer(key); in {
			l.Add(low)
		} else {
			l.Delete(low)
		}
	}
	record.Differences(before.Labels, after.Labels, cmp.Compare[uint32], func(id uint32, in bool) {
		put(codec.RowsKey(s.ID, codec.SetLabel, id, container), in)
		if s.relabelled != nil {
			s.relabelled.Add(id)
		}
	}, nil)
	record.Differences(before.Texts, after.Texts, record.Text.Compare, func(v record.Text, in bool) {
		put(codec.FieldRowsKey(s.ID, v.Field, container, v.Text), in)
	}, nil)
	record.Differences(before.Numbers, after.Numbers, record.Number.Compare, func(v record.Number, in bool) {
		slices := tx.slicesOf(s, v.Field, container)
		slices.Put(codec.SliceExists, low, in)
		slices.Change(low, v.Image, in)
	}, func(old, new record.Number) {
		slices := tx.slicesOf(s, old.Field, container)
		slices.Change(low, old.Image&^new.Image, false)
		slices.Change(low, new.Image&^old.Image, true)
	})
}

// FieldSlices are the changes to the bit slices of an indexed field in one container of rows, by slice
// (codec/slices.go). An unchanged slice is the zero Layer, without bitmaps. The zero value is ready.
type FieldSlices [codec.SliceCount]codec.Layer

// A fieldContainer identifies one container of a field.
type fieldContainer struct {
	collection       uint32 // id
	field, container uint16 // position of the field; row >> 16
}

// slicesOf returns the changes of this transaction to the slices of a field in a container.
func (tx *Tx) slicesOf(s *CollectionState, field, container uint16) *FieldSlices {
	at := fieldContainer{s.ID, field, container}
	slices := tx.slices[at]
	if slices == nil {
		slices = new(FieldSlices)
		tx.slices[at] = slices
	}
	return slices
}

// Put puts a row, given by its low 16 bits, into a slice, or takes it out.
func (f *FieldSlices) Put(slice byte, low uint16, in bool) {
	l := &f[slice]
	if l.Added == nil {
		*l = codec.NewLayer()
	}
	if in {
		l.Add(low)
	} else {
		l.Delete(low)
	}
}

// Change puts a row, given by its low 16 bits, into the slices of the bits set in image, or takes it out of
// them. Other slices stay as they are.
func (f *FieldSlices) Change(low uint16, image uint64, in bool) {
	for ; image != 0; image &= image - 1 {
		f.Put(codec.SliceOf(bits.TrailingZeros64(image)), low, in)
	}
}

// finishLayers adds to the batch the layers that the transaction has collected.
func (tx *Tx) finishLayers() error {
	for key, l := range tx.Layers {
		if err := tx.finishLayer([]byte(key), l); err != nil {
			return err
		}
	}
	for at, slices := range tx.slices {
		for i, l := range slices {
			if l.Added == nil {
				continue
			}
			key := codec.FieldRowsKey(at.collection, at.field, at.container, string([]byte{byte(i)}))
			if err := tx.finishLayer(key, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// finishLayer adds the change l of the set under key to the batch: as a layer that Pebble merges, or now and
// then as the whole set (see MaxLayers).
func (tx *Tx) finishLayer(key []byte, l codec.Layer) error {
	if tx.Committer.layers.due(key) {
		// A set that cannot be read now is reported when a filter reads it.
		if whole, err := tx.wholeLayer(key, l); err == nil {
			return tx.Batch.Set(key, whole, nil)
		}
	}
	return tx.records.Layer(key, l, false)
}

// wholeLayer returns the stored set under key merged with a layer, encoded as a whole set.
func (tx *Tx) wholeLayer(key []byte, l codec.Layer) ([]byte, error) {
	layer, err := l.Append(nil, false)
	if err != nil {
		return nil, err
	}
	base, err := record.Get(tx.Committer.kv, key)
	if err != nil {
		return nil, err
	}
	if base == nil {
		base, layer = layer, nil
	}
	m, err := codec.NewMerger(key, base)
	if err != nil {
		return nil, err
	}
	if layer != nil {
		m.Newer(layer)
	}
	return m.Finish(true)
}

// MaxLayers bounds, roughly, the layers of one set that wait to be merged. A filter merges every layer that
// the storage engine has not merged yet, so a set that gets rows one at a time is rewritten whole now and
// then.
const MaxLayers = 128

// layerCounts counts the layers written since each set was last written whole. A field with unique values has
// a set for every item, so sets share counters, by a hash of their keys. Some sets are thus rewritten
// earlier.
type layerCounts [1 << 12]uint8

// newLayerCounts returns counters that are spread between 0 and MaxLayers.
func newLayerCounts() *layerCounts {
	c := new(layerCounts)
	for i := range c {
		c[i] = uint8(37 * i % MaxLayers) // so that the slices of a field are not all due at once
	}
	return c
}

// due counts a layer and reports whether to write its set whole. Sets that are read only at opening are never
// due.
func (c *layerCounts) due(key []byte) bool {
	if key[0] == codec.KindRows {
		if set, _, _ := codec.RowsKeyParts(key); set != codec.SetLabel {
			return false
		}
	}
	n := &c[crc32.ChecksumIEEE(key)%uint32(len(c))]
	if *n++; *n < MaxLayers {
		return false
	}
	*n = 0
	return true
}
