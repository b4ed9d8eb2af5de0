package db

import (
	"context"
	"iter"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// A Coded is an item's place in the database, its key and its code.
type Coded struct {
	Row  uint32
	Key  string
	Code []byte // bits/8 bytes, as in Item; valid until the iteration goes on
}

// Codes yields the items that have a code and the modality to, in database order,
// with their codes, and without reading what else they hold. An empty one means all
// that have a code. Codes shows them as they are when the iteration starts. An error
// ends it.
func (c *Collection) Codes(ctx context.Context, to string) iter.Seq2[Coded, error] {
	return yielding(func(yield func(Coded) error) error {
		if err := c.loaded(ctx); err != nil {
			return err
		}
		return c.read(func(v *state.View, cv *state.CollectionView) error {
			return search.EachCode(ctx, cv, v.Snap, to, func(row uint32, key string, code []byte) error {
				return yield(Coded{row, key, code})
			})
		})
	})
}

// Encode returns the code that an item with these features would get without labels, bits/8 bytes, and the
// real-valued projection whose signs it is: that of the modalities given as the model fuses them
// (model.Fuse). What else the item holds, labels too, does not matter. Nothing is stored. The code of a query
// is another one, see EncodeQuery.
func (c *Collection) Encode(item *Item) (code []byte, z []float64, err error) {
	err = c.read(func(_ *state.View, cv *state.CollectionView) error {
		if err := search.CanEncode(cv); err != nil {
			return err
		}
		if len(item.Vectors)+len(item.Sparse) == 0 {
			return fault.Invalid("no vectors to encode")
		}
		var it record.Item
		if err := checkItem(&it, cv.Descriptor, &Item{Vectors: item.Vectors, Sparse: item.Sparse}, true); err != nil {
			return err
		}
		code, z, err = search.EncodeItem(cv, it.Vectors)
		return err
	})
	return code, z, err
}

// EncodeQuery returns the code that a query starts from, bits/8 bytes, and the
// real-valued projection whose signs it is, nil where the query has none: by a code, or
// by the key of an item without the vector. By a key it reads the item, as Get does.
func (c *Collection) EncodeQuery(ctx context.Context, q Query) (code []byte, z []float64, err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	err = c.read(func(v *state.View, cv *state.CollectionView) error {
		code, z, err = search.Encode(v, cv, q.inside())
		return err
	})
	return code, z, err
}
