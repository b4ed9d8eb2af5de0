package state

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// The committer indexes a field of existing items in blocks of rows, each block a commit between the commits
// of writers. The sets of the field are right for the rows below a bound, which rises with each block, and
// empty above it. A write updates the sets for a row below the bound, and leaves other rows to their block.
// Readers use the sets only after the last commit marks the field as indexed. Until then the stored
// descriptor says that its index is being made: sets left by a crash mean nothing, and the next attempt
// deletes them.

// A fieldIndexing is an index of fields under construction. It belongs to the committer.
type fieldIndexing struct {
	fields []string
	sets   *record.Descriptor // of the collection, with the fields indexed
	bound  uint64             // the sets are right for the rows below it
	last   uint64             // NextRow at the block before

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

// IndexFields indexes existing fields, and then commits a descriptor: alter gets the descriptor of the
// collection with the fields indexed, and returns the new one. Indexed fields stay indexed. IndexFields calls
// alter first to check for an error, and again at the end. On an error everything is as before. One call at a
// time may index fields of a collection.
func (c Collection) IndexFields(ctx context.Context, fields []string, alter func(*record.Descriptor) (*record.Descriptor, error)) error {
	var x *fieldIndexing
	err := c.Do(ctx, 0, func(tx *Tx, s *CollectionState) (err error) {
		x, err = tx.beginIndexing(s, fields, alter)
		return err
	})
	if x == nil || err != nil {
		return err
	}
	for done := false; !done && err == nil; {
		err = c.Do(ctx, indexBytes, func(tx *Tx, s *CollectionState) error {
			d, err := indexedBy(s, fields, alter)
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
func indexedBy(s *CollectionState, fields []string, alter func(*record.Descriptor) (*record.Descriptor, error)) (*record.Descriptor, error) {
	d, err := s.WithFields(fields, record.FieldIndexed)
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
		d, err := s.WithFields(x.fields, record.FieldNotIndexed)
		if err != nil {
			return err
		}
		s.indexing = nil
		return tx.emptyFields(s, d, x.fields)
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
func (tx *Tx) beginIndexing(s *CollectionState, fields []string, alter func(*record.Descriptor) (*record.Descriptor, error)) (*fieldIndexing, error) {
	if s.indexing != nil {
		return nil, fmt.Errorf("%w: fields of collection %q are being indexed: wait until that has ended", fault.ErrBusy, s.Name)
	}
	d, err := indexedBy(s, fields, alter)
	if err != nil {
		return nil, err
	}
	x := &fieldIndexing{last: s.Counters.NextRow}
	for _, name := range fields {
		if i, err := s.FieldOf(name); err == nil && !s.Fields[i].Indexed {
			x.fields = append(x.fields, name)
		}
	}
	if len(x.fields) == 0 {
		return nil, tx.AlterCollection(s, d)
	}
	if d, err = s.WithFields(x.fields, record.FieldIndexing); err != nil {
		return nil, err
	}
	s.indexing = x
	if err := tx.emptyFields(s, d, x.fields); err != nil {
		s.indexing = nil
		return nil, err
	}
	return x, nil
}

// emptyFields gives the collection a descriptor in which the fields are not indexed, and deletes their sets.
func (tx *Tx) emptyFields(s *CollectionState, d *record.Descriptor, fields []string) error {
	for _, name := range fields {
		i, err := s.FieldOf(name)
		if err != nil {
			return err
		}
		prefix := codec.FieldPrefix(s.ID, uint16(i)) // of layers, which Committer.edits does not count
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
	numbers := map[fieldContainer]*[codec.SliceCount]codec.Container{}
	read, bytes := 0, 0
	err = record.ForEachItemIn(tx.Committer.kv, s.ID, uint32(x.bound), bound, func(row uint32, value []byte) error {
		if !s.Live.B.Contains(row) {
			return nil
		}
		if bytes += len(value); read > 0 && (bytes > indexBytes && rows == indexRows || bytes > mostIndexBytes) {
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
	var fields []codec.Field
	for _, f := range rec.Fields {
		if int64(f.ID) < int64(len(s.Fields)) && s.Fields[f.ID].Indexing {
			fields = append(fields, f)
		}
	}
	if err := x.sets.CheckIndexed(fields); err != nil {
		return record.Terms{}, err
	}
	return x.sets.Terms(nil, fields)
}
