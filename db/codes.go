package db

import (
	"context"
	"errors"
	"iter"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// A Coded is an item's place in the database, its key and its code.
type Coded struct {
	Row  uint32
	Key  string
	Code []byte // bits/8 bytes, as in Item; valid until the iteration goes on
}

// Codes yields the items that have a code and the modality to, in database order,
// with the codes by which searches for it find them, and without reading what else
// they hold. An empty one means all that have a code; where there are codes for each
// target modality it has to be named. Codes shows them as they are when the iteration
// starts. An error ends it.
func (c *Collection) Codes(ctx context.Context, to string) iter.Seq2[Coded, error] {
	c = c.orNone()
	return func(yield func(Coded, error) bool) {
		if err := c.loaded(ctx); err != nil {
			yield(Coded{}, err)
			return
		}
		err := c.read(func(v *state.View, cv *state.CollectionView) error {
			if cv.Space == nil {
				return nil
			}
			set, err := cv.CodesFor(to)
			if err != nil {
				return err
			}
			var having *roaring.Bitmap // nil: all
			if to != "" {
				t, err := cv.ModalityOf(to)
				if err != nil {
					return err
				}
				having = cv.Presence[t]
			}
			var b []byte
			return record.ForEachEntry(v.Snap, codec.CollectionKey(codec.KindRowKeys, cv.ID), func(row uint32, entry []byte) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				if having != nil && !having.Contains(row) {
					return nil
				}
				n, found, err := set.NumberOf(v.Snap, row)
				if err != nil || !found {
					return err
				}
				code, err := set.CodeOf(v.Snap, n, row)
				if err != nil {
					return err
				}
				b = code.AppendBytes(b[:0], set.Bits)
				if !yield(Coded{row, string(entry), b}, nil) {
					return record.ErrStopped
				}
				return nil
			})
		})
		if err != nil && !errors.Is(err, record.ErrStopped) {
			yield(Coded{}, err)
		}
	}
}

// WaitForIndex returns when the codes of all collections are in memory, and those
// that are due to be indexed are. Searches do not need it: they give the same
// answers before, later.
func (d *DB) WaitForIndex(ctx context.Context) error {
	d = d.orNone()
	if err := d.state.Guard.Enter(); err != nil {
		return err
	}
	defer d.state.Guard.Leave()
	if err := d.waitForCodes(ctx); err != nil {
		return err
	}
	for {
		built, err := d.state.Index(ctx, work.All(), d.state.Due)
		if !built || err != nil {
			return err
		}
	}
}

// waitForCodes waits until the codes of all collections are in memory.
func (d *DB) waitForCodes(ctx context.Context) error {
	var all []*state.Loading
	err := d.state.Read(func(v *state.View) error {
		for cv := range v.Collections.Values() {
			all = cv.AppendLoading(all)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return state.WaitForAll(ctx, all)
}
