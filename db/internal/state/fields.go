package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math/bits"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// Filters read sets of rows: one for each label, one for each value of an indexed string field, slices for
// other indexed fields, and one for each term of the texts of fields with an index of words. All are cut into
// containers of 65,536 rows (codec/key.go, codec/sets.go). A write that changes the terms of an item changes
// the sets in the same batch. For that it needs the old terms, which only the old record has: resolve reads
// it, in collections with labels or indexed fields.

// indexes reports whether items of the collection can be in any set.
func (s *CollectionState) indexes() bool {
	if len(s.Labels.All()) > 0 || s.indexing != nil {
		return true
	}
	for _, f := range s.Fields {
		if f.Indexed || f.Words {
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
		rows, err := record.ReadRows(tx.Committer.kv, codec.RowsKey(s.ID, codec.SetLabel, uint32(id),
			container))
		if err != nil {
			return out, err
		}
		if rows.Contains(row & 0xffff) {
			out.Labels = append(out.Labels, uint32(id))
		}
	}
	for i, f := range s.filteredAt(row).Fields {
		if f.Words {
			var err error
			if out.Words, err = tx.searchWords(out.Words, s, uint16(i), row); err != nil {
				return out, err
			}
		}
		if !f.Indexed {
			continue
		}
		number, any := record.Number{Field: uint16(i)}, false
		err := record.ForEach(tx.Committer.kv, codec.FieldRowsKey(s.ID, uint16(i), container, ""),
			func(key, b []byte) error {
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

// searchWords appends the terms of a field whose sets have a row.
func (tx *Tx) searchWords(to []record.Text, s *CollectionState, field uint16, row uint32) ([]record.Text,
	error) {
	err := record.ForEach(tx.Committer.kv, codec.FieldWordsKey(s.ID, field, uint16(row>>16), ""),
		func(key, b []byte) error {
			l, err := codec.DecodeLayer(b)
			if err != nil {
				return fault.Corrupt(err, "rows %x", key)
			}
			if l.Added.Contains(row & 0xffff) {
				_, _, term := codec.FieldRowsKeyParts(key)
				to = append(to, record.Text{Field: field, Text: string(term)})
			}
			return nil
		})
	return to, err
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
	record.Differences(before.Words, after.Words, record.Text.Compare, func(v record.Text, in bool) {
		put(codec.FieldWordsKey(s.ID, v.Field, container, v.Text), in)
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
// (codec/sets.go). An unchanged slice is the zero Layer, without bitmaps. The zero value is ready.
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

// The committer indexes a field of existing items in blocks of rows, each block a commit between the commits
// of writers. The sets of the field are right for the rows below a bound, which rises with each block, and
// empty above it. A write updates the sets for a row below the bound, and leaves other rows to their block.
// Readers use the sets only after the last commit marks the field as indexed. Until then the stored
// descriptor says that its index is being made: sets left by a crash mean nothing, and the next attempt
// deletes them.

// A fieldIndexing is an index of fields under construction. It belongs to the committer.
type fieldIndexing struct {
	indexes []record.FieldIndex
	sets    *record.Descriptor // of the collection, with the indexes
	made    *record.Descriptor // the same with no other index than these
	bound   uint64             // the sets are right for the rows below it
	last    uint64             // NextRow at the block before

	// refused says why the fields cannot be indexed: a row below the bound has a value that an index does not
	// take. From then on writes do not update the sets.
	refused error
}

const (
	indexRows  = 8192    // rows of a block, at least
	indexBytes = 4 << 20 // bytes of item records that a block reads, about, at most

	mostIndexBytes = 16 * indexBytes // the same for a block with more rows, after many have come
)

// filteredAt returns the descriptor whose indexed fields have sets that hold the row.
func (s *CollectionState) filteredAt(row uint32) *record.Descriptor {
	if x := s.indexing; x != nil && x.refused == nil && uint64(row) < x.bound {
		return x.sets
	}
	return s.Descriptor
}

// TermBytes is Descriptor.TermBytes, with the fields whose index is being made.
func (s *CollectionState) TermBytes(it *record.Item) int {
	if s.indexing != nil {
		return s.indexing.sets.TermBytes(it)
	}
	return s.Descriptor.TermBytes(it)
}

// refuseIndex gives up an index if a row below its bound gets values that the index does not take. The write
// succeeds: its values suit the fields as they are.
func (s *CollectionState) refuseIndex(row uint32, it *record.Item) {
	if d := s.filteredAt(row); d != s.Descriptor {
		if err := d.CheckIndexed(it.Fields); err != nil {
			s.indexing.refused = fault.OfItem(it.Key, err)
		}
	}
}

// IndexFields makes indexes of existing fields, and then commits a descriptor: alter gets the descriptor of
// the collection with the indexes, and returns the new one. Indexes that exist stay. IndexFields calls
// alter first to check for an error, and again at the end. On an error everything is as before. One call at a
// time may index fields of a collection.
func (c Collection) IndexFields(ctx context.Context, indexes []record.FieldIndex,
	alter func(*record.Descriptor) (*record.Descriptor, error)) error {
	var x *fieldIndexing
	err := c.Do(ctx, 0, func(tx *Tx, s *CollectionState) (err error) {
		x, err = tx.beginIndexing(s, indexes, alter)
		return err
	})
	if x == nil || err != nil {
		return err
	}
	for done := false; !done && err == nil; {
		err = c.Do(ctx, indexBytes, func(tx *Tx, s *CollectionState) error {
			d, err := indexedBy(s, indexes, alter)
			if err != nil {
				return err
			}
			if done, err = tx.indexBlock(s, x); err != nil || !done {
				return err
			}
			s.indexing = nil
			if err = tx.AlterCollection(s, d); err != nil {
				s.indexing = x // so that it is abandoned
			}
			return err
		})
	}
	if err != nil {
		c.abandon(context.WithoutCancel(ctx), x)
	}
	return err
}

// indexedBy returns the final descriptor of IndexFields.
func indexedBy(s *CollectionState, indexes []record.FieldIndex,
	alter func(*record.Descriptor) (*record.Descriptor, error)) (*record.Descriptor, error) {
	d, err := s.WithFields(indexes, record.Indexed)
	if err != nil {
		return nil, err
	}
	return alter(d)
}

// abandon deletes an unfinished index. If that fails, for example on a full disk, the sets stay and mean
// nothing.
func (c Collection) abandon(ctx context.Context, x *fieldIndexing) {
	err := c.Free(ctx, func(tx *Tx, s *CollectionState) error {
		if s.indexing != x {
			return nil
		}
		d, err := s.WithFields(x.indexes, record.NotIndexed)
		if err != nil {
			return err
		}
		s.indexing = nil
		return tx.emptyFields(s, d, x.indexes)
	})
	if err != nil {
		_ = c.Look(ctx, func(s *CollectionState) error {
			if s.indexing == x {
				s.indexing = nil
			}
			return nil
		})
	}
}

// beginIndexing marks the fields as being indexed, and deletes the sets of an earlier attempt. If all fields
// are indexed already, it makes the alteration and returns nil.
func (tx *Tx) beginIndexing(s *CollectionState, indexes []record.FieldIndex,
	alter func(*record.Descriptor) (*record.Descriptor, error)) (*fieldIndexing, error) {
	if s.indexing != nil {
		return nil, fmt.Errorf("%w: fields of collection %q are being indexed: wait until that has ended",
			fault.ErrBusy, s.Name)
	}
	d, err := indexedBy(s, indexes, alter)
	if err != nil {
		return nil, err
	}
	x := &fieldIndexing{last: s.Counters.NextRow}
	for _, index := range indexes {
		i, err := s.FieldOf(index.Field)
		if err == nil && !(index.Words && s.Fields[i].Words || !index.Words && s.Fields[i].Indexed) {
			x.indexes = append(x.indexes, index)
		}
	}
	if len(x.indexes) == 0 {
		return nil, tx.AlterCollection(s, d)
	}
	if d, err = s.WithFields(x.indexes, record.Indexing); err != nil {
		return nil, err
	}
	s.indexing = x
	if err := tx.emptyFields(s, d, x.indexes); err != nil {
		s.indexing = nil
		return nil, err
	}
	return x, nil
}

// emptyFields gives the collection a descriptor without the indexes, and deletes their sets.
func (tx *Tx) emptyFields(s *CollectionState, d *record.Descriptor, indexes []record.FieldIndex) error {
	for _, x := range indexes {
		i, err := s.FieldOf(x.Field)
		if err != nil {
			return err
		}
		prefix := codec.FieldPrefix(s.ID, uint16(i)) // of layers, which Committer.edits does not count
		if x.Words {
			prefix = codec.FieldWordsPrefix(s.ID, uint16(i))
		}
		if err := tx.Batch.DeleteRange(prefix, codec.PrefixEnd(prefix), nil); err != nil {
			return err
		}
	}
	return tx.AlterCollection(s, d)
}

// indexBlock adds the next rows to the sets of the fields. done reports whether all rows are in. A block has
// at least twice as many rows as came since the block before, so indexing ends however fast others write.
func (tx *Tx) indexBlock(s *CollectionState, x *fieldIndexing) (done bool, err error) {
	if s.indexing != x || x.refused != nil {
		return false, x.refused
	}
	rows := max(indexRows, 2*(s.Counters.NextRow-x.last))
	bound := min(x.bound+rows, s.Counters.NextRow)
	var texts []rowText // read before anything changes
	layers := map[string]codec.Layer{}
	numbers := map[fieldContainer]*[codec.SliceCount]codec.Container{}
	read, bytes := 0, 0
	err = record.ForEachItemIn(tx.Committer.kv, s.ID, uint32(x.bound), bound,
		func(row uint32, value []byte) error {
			if !s.Live.B.Contains(row) {
				return nil
			}
			if bytes += len(value); read > 0 &&
				(bytes > indexBytes && rows == indexRows || bytes > mostIndexBytes) {
				bound = uint64(row)
				return errEnough
			}
			read++
			found, err := x.terms(s, value)
			switch {
			case errors.Is(err, fault.ErrInvalid):
				key, kerr := record.ReadKey(tx.Committer.kv, s.ID, row)
				if kerr != nil {
					return kerr
				}
				return fault.OfItem(key, err)
			case err != nil:
				return fault.Corrupt(err, "item in row %d", row)
			}
			for _, v := range found.Texts {
				texts = append(texts, rowText{row, v})
			}
			for _, v := range found.Words { // many rows have the same ones
				key := codec.FieldWordsKey(s.ID, v.Field, uint16(row>>16), v.Text)
				l, there := layers[string(key)]
				if !there {
					l = codec.NewLayer()
					layers[string(key)] = l
				}
				l.Add(uint16(row))
			}
			for _, v := range found.Numbers { // sets of 65,536 rows as words, many times as fast as bitmaps
				at := fieldContainer{s.ID, v.Field, uint16(row >> 16)}
				if numbers[at] == nil {
					numbers[at] = new([codec.SliceCount]codec.Container)
				}
				slices := numbers[at]
				slices[codec.SliceExists].Add(uint16(row))
				for image := v.Image; image != 0; image &= image - 1 {
					slices[codec.SliceOf(bits.TrailingZeros64(image))].Add(uint16(row))
				}
			}
			return nil
		})
	if err != nil && err != errEnough {
		return false, err
	}
	for _, v := range texts {
		tx.layer(codec.FieldRowsKey(s.ID, v.Field, uint16(v.row>>16), v.Text.Text)).Add(uint16(v.row))
	}
	maps.Copy(tx.Layers, layers) // the transaction does nothing else
	for at, slices := range numbers {
		to := tx.slicesOf(s, at.field, at.container)
		for i := range slices {
			if slices[i] != (codec.Container{}) {
				to[i] = codec.Layer{Added: slices[i].Rows(), Deleted: roaring.New()}
			}
		}
	}
	x.bound, x.last = bound, s.Counters.NextRow
	return bound == s.Counters.NextRow, nil
}

// A rowText is the value of a row in a field of strings.
type rowText struct {
	row uint32
	record.Text
}

// errEnough ends the reading of a block.
var errEnough = errors.New("enough rows")

// terms returns the terms of an item record for the fields being indexed. A value that an index does not take
// is an ErrInvalid; any other error is damage.
func (x *fieldIndexing) terms(s *CollectionState, value []byte) (record.Terms, error) {
	rec, err := codec.DecodeItemRecord(value)
	if err != nil {
		return record.Terms{}, err
	}
	if err := x.made.CheckIndexed(rec.Fields); err != nil {
		return record.Terms{}, err
	}
	return x.made.Terms(nil, rec.Fields)
}

// making sets the descriptor d of the collection with the indexes.
func (x *fieldIndexing) making(s *CollectionState, d *record.Descriptor) {
	made := *d
	made.Fields = slices.Clone(d.Fields)
	for i := range made.Fields {
		f := &made.Fields[i]
		f.Indexed, f.Words = s.Fields[i].Indexing, s.Fields[i].IndexingWords
	}
	x.sets, x.made = d, &made
}

// Filters caches the rows of the last filters that searches have evaluated in a view of a collection.
// Searches often repeat a filter, and evaluating it may take longer than the search. Views never change, so
// cached rows stay right; a write makes a new view, with empty Filters. Safe for concurrent use.
// number of goroutines.
type Filters struct {
	mu    sync.Mutex
	last  []filter // the most recently used first
	bytes int
}

type filter struct {
	text  string
	rows  *roaring.Bitmap
	bytes int
}

// Bounds of the cache of one view: number of filters, and bytes.
const (
	filtersKept = 32
	filterBytes = 4 << 20
)

// Rows returns the cached rows of a filter, nil if there are none. Do not write to them.
func (f *Filters) Rows(text string) *roaring.Bitmap {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.last, func(x filter) bool { return x.text == text })
	if i < 0 {
		return nil
	}
	x := f.last[i]
	f.last = slices.Insert(slices.Delete(f.last, i, i+1), 0, x)
	return x.rows
}

// Keep caches the rows of a filter. They must not be written to any more.
func (f *Filters) Keep(text string, rows *roaring.Bitmap) {
	x := filter{text, rows, len(text) + int(rows.GetSizeInBytes())}
	if x.bytes > filterBytes {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.ContainsFunc(f.last, func(x filter) bool { return x.text == text }) {
		return // another search has cached it
	}
	for f.bytes += x.bytes; f.bytes > filterBytes || len(f.last) == filtersKept; {
		n := len(f.last) - 1
		f.bytes -= f.last[n].bytes
		f.last = slices.Delete(f.last, n, n+1)
	}
	f.last = slices.Insert(f.last, 0, x)
}
