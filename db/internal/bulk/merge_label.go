package bulk

import (
	"context"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// A labelMerge hands the items of one label to another, in one commit of tables, so that it
// needs the memory of one item, however many there are. It lives for one request of the
// committer; its task only reads it.
type labelMerge struct {
	c          *state.Committer
	s          *state.CollectionState
	from, into uint32              // ids of the labels
	rows       *roaring.Bitmap     // that have from
	recode     []*state.SpaceState // whose model knows one of the labels, by ascending id
}

// MergeLabel gives all items that have the label from the label into in its place, in one
// commit, and returns how many they are. In spaces whose model knows one of the labels, the
// codes of these items become others: their rows are left in codec.SetRecode, and the caller
// recodes them.
//
// It runs in a request of its own, and keeps other writers waiting while it writes the records
// of the items again. Errors: ErrNotFound if no item has one of the labels; ErrBusy while a space is being
// trained or built, as that has read the labels as they were. With an error nothing has changed,
// or the database has failed.
func MergeLabel(ctx context.Context, c state.Collection, from, into string) (items int, err error) {
	err = c.Load(ctx, func(tx *state.Tx, s *state.CollectionState) error {
		m := &labelMerge{c: tx.Committer, s: s}
		if s.Changed != nil || s.Building() != nil {
			return fmt.Errorf("%w: collection %q: a space is being trained or built: wait until it is complete", fault.ErrBusy, s.Name)
		}
		r := tx.Committer.Reader()
		if m.into, _, err = s.LabelInUse(r, into); err != nil {
			return err
		}
		if m.from, m.rows, err = s.LabelInUse(r, from); err != nil {
			return err
		}
		for _, sp := range s.Spaces {
			if sp.Learned == nil {
				continue
			}
			known := sp.Learned.Labels()
			for _, id := range []uint32{m.from, m.into} {
				if _, knows := slices.BinarySearch(known, id); knows {
					m.recode = append(m.recode, sp)
					break
				}
			}
		}
		items = int(m.rows.GetCardinality())
		return fault.Annotate(m.run(ctx), "merge of label %q into %q", record.Shortened(from), record.Shortened(into))
	})
	if err != nil {
		return 0, err
	}
	return items, nil
}

// mergedItemBytes estimates the record of an item without payload. What payloads take is not
// known before; a disk that is full ends the merge and changes nothing.
const mergedItemBytes = 64

// run commits the merge. The tables have all that the commit changes: counters stay as they are.
func (m *labelMerge) run(ctx context.Context) error {
	t := m.c.Tables()
	write := t.Task(func(s *store.Stream) error {
		for _, part := range []func(*store.Stream) error{t.WriteSequence, m.writeItems, m.writeRecode, m.writeSets} {
			if err := part(s); err != nil { // the parts follow each other in the order of keys
				return err
			}
		}
		return nil
	})
	bytes := int64(m.rows.GetCardinality()) * mergedItemBytes
	return m.c.CommitTables(ctx, t, bytes, []work.Task{write}, func() {
		m.s.Relabelled(m.rows, m.recode)
		m.c.Touch(m.s)
	})
}

// writeItems writes the records of the items with the label changed.
func (m *labelMerge) writeItems(t *store.Stream) (err error) {
	prefix := codec.CollectionKey(codec.KindItem, m.s.ID)
	records, err := m.c.Reader().NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: codec.PrefixEnd(prefix)})
	if err != nil {
		return fault.ReadError(err, "items")
	}
	defer func() {
		if cerr := records.Close(); err == nil {
			err = fault.ReadError(cerr, "items")
		}
	}()
	for it := m.rows.Iterator(); it.HasNext(); {
		row := it.Next()
		rec, err := itemAt(records, codec.NumberKey(codec.KindItem, m.s.ID, row))
		if err != nil {
			return fault.ReadError(err, "item in row %d", row)
		}
		rec.Labels = slices.DeleteFunc(rec.Labels, func(id uint32) bool { return id == m.from })
		if i, has := slices.BinarySearch(rec.Labels, m.into); !has {
			rec.Labels = slices.Insert(rec.Labels, i, m.into)
		}
		if err := t.Records.Item(m.s.ID, row, *rec); err != nil {
			return err
		}
	}
	return nil
}

// itemAt returns the item record under a key, which is behind those that were asked for before.
func itemAt(records *pebble.Iterator, key []byte) (*codec.ItemRecord, error) {
	if !records.SeekGE(key) || !slices.Equal(records.Key(), key) {
		if err := records.Error(); err != nil {
			return nil, err
		}
		return nil, fault.ErrMissing
	}
	value, err := records.ValueAndErr()
	if err != nil {
		return nil, err
	}
	return codec.DecodeItemRecord(value)
}

// writeRecode adds the rows to those whose codes are to be made again.
func (m *labelMerge) writeRecode(t *store.Stream) error {
	for _, sp := range m.recode {
		err := record.ByContainer(m.rows, func(container uint16, layer codec.Layer) error {
			return putLayer(t, codec.OnlineRowsKey(m.s.ID, sp.ID, codec.SetRecode, container), layer, false)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// writeSets takes the rows out of the set of the one label, and adds them to that of the other.
func (m *labelMerge) writeSets(t *store.Stream) error {
	for _, id := range []uint32{min(m.from, m.into), max(m.from, m.into)} {
		err := record.ByContainer(m.rows, func(container uint16, layer codec.Layer) error {
			if id == m.from {
				layer.Added, layer.Deleted = layer.Deleted, layer.Added
			}
			return t.Records.Layer(codec.RowsKey(m.s.ID, codec.SetLabel, id, container), layer, false)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
