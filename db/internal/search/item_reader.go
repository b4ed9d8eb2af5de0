package search

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/model"
)

// itemReader reads the items of rows in ascending order, in one pass over the store. Looking up each part
// would take several times as long. It is for one goroutine; close it.
type itemReader struct {
	cv       *state.CollectionView
	r        pebble.Reader
	records  *pebble.Iterator
	features *record.FeatureReader // nil without features
	vectors  []model.Vector
	read     uint32 // row of vectors, plus 1
	codes    rowBlock
}

// rowBlock is a block of codes of rows.
type rowBlock struct {
	block codec.Block
	at    uint32 // number of the block, plus 1
}

// EachItem calls f with the items that match an expression, in ascending order of rows; with all items if the
// expression is empty. args are the values of its placeholders. An item is valid until f returns.
func EachItem(ctx context.Context, cv *state.CollectionView, r pebble.Reader, expr string, args []any, f func(*Item) error) (err error) {
	rows, err := Matching(ctx, cv, r, expr, args)
	if err != nil {
		return err
	}
	from := uint32(0)
	if rows != nil {
		if rows.IsEmpty() {
			return nil
		}
		from = rows.Minimum()
	}
	items, err := newItemReader(r, cv, from)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := items.close(); err == nil {
			err = fault.ReadError(cerr, "items")
		}
	}()
	var it Item
	read := func(row uint32, key string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := it.read(cv, r, items, row, key); err != nil {
			return err
		}
		return f(&it)
	}
	if rows != nil {
		return EachKeyOf(cv, r, rows, read)
	}
	return record.ForEachEntry(r, codec.CollectionKey(codec.KindRowKeys, cv.ID), func(row uint32, key []byte) error {
		return read(row, string(key))
	})
}

// newItemReader returns a reader that is positioned before a row.
func newItemReader(r pebble.Reader, cv *state.CollectionView, from uint32) (*itemReader, error) {
	i := &itemReader{cv: cv, r: r, vectors: make([]model.Vector, len(cv.Modalities))}
	end := codec.PrefixEnd(codec.CollectionKey(codec.KindItem, cv.ID))
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: codec.NumberKey(codec.KindItem, cv.ID, from), UpperBound: end})
	if err != nil {
		return nil, fault.ReadError(err, "items")
	}
	i.records = it
	it.First()
	if len(cv.Modalities) > 0 && !cv.IndexOnly {
		if i.features, err = record.NewFeatureReader(r, cv.Descriptor, from); err != nil {
			return nil, errors.Join(err, it.Close())
		}
	}
	return i, nil
}

func (i *itemReader) close() error {
	err := i.records.Close()
	if i.features != nil {
		err = errors.Join(err, i.features.Close())
	}
	return err
}

// at returns the row of the current record. It is false at the end or after an error of the iterator, which
// at returns.
func (i *itemReader) at() (row uint32, ok bool, err error) {
	if !i.records.Valid() {
		return 0, false, fault.ReadError(i.records.Error(), "items")
	}
	if err := codec.CheckKey(i.records.Key()); err != nil {
		return 0, false, fault.Corrupt(err, "key")
	}
	return codec.LastNumber(i.records.Key()), true, nil
}

func (i *itemReader) record(row uint32) (*codec.ItemRecord, error) {
	at, ok, err := i.at()
	if ok && at < row { // the next record, or a later one
		i.records.Next()
		at, ok, err = i.at()
	}
	if ok && at < row {
		i.records.SeekGE(codec.NumberKey(codec.KindItem, i.cv.ID, row))
		at, ok, err = i.at()
	}
	if err == nil && (!ok || at != row) {
		err = fault.ErrMissing
	}
	var value []byte
	if err == nil {
		value, err = i.records.ValueAndErr()
	}
	if err != nil {
		return nil, fault.ReadError(err, "item in row %d", row)
	}
	rec, err := codec.DecodeItemRecord(value)
	if err != nil {
		return nil, fault.Corrupt(err, "item in row %d", row)
	}
	return rec, nil
}

func (i *itemReader) vector(row uint32, t int) (x model.Vector, found bool, err error) {
	if i.read != row+1 {
		if err := i.features.Seek(i.vectors, row); err != nil {
			return x, false, err
		}
		i.read = row + 1
	}
	i.features.Hand(t)
	x = i.vectors[t]
	return x, x.Present(), nil
}

func (i *itemReader) rowCode(row uint32) (rc codec.RowCode, found bool, err error) {
	b := &i.codes
	if number := row / codec.BlockRows; b.at != number+1 {
		key := i.cv.Codes.Block(codec.KindRowCodes, row)
		value, err := record.Get(i.r, key)
		if err != nil {
			return rc, false, fault.ReadError(err, "block %x", key)
		}
		b.block, b.at = codec.Block{}, number+1
		if value != nil {
			if b.block, err = codec.DecodeBlock(value); err != nil {
				return rc, false, fault.Corrupt(err, "block %x", key)
			}
		}
	}
	entry, found := b.block.Lookup(byte(row))
	if !found {
		return rc, false, nil
	}
	if rc, err = codec.DecodeRowCode(entry); err != nil {
		return rc, false, fault.Corrupt(err, "code of row %d", row)
	}
	return rc, true, nil
}
