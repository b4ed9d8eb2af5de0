package db

import (
	"context"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/model"
)

// Encode returns the code that an item with these features would get without labels,
// bits/8 bytes, and the real-valued projection whose signs it is: that of the
// modalities given as the model fuses them (model.Fuse). Where there are codes for each
// target modality, to names the one that counts; it is of no account where codes are
// shared. What else the item holds, labels too, does not matter. Nothing is stored. The
// code of a query is another one, see EncodeQuery.
func (c *Collection) Encode(to string, item *Item) (code []byte, z []float64, err error) {
	c = c.orNone()
	err = c.read(func(_ *state.View, cv *state.CollectionView) error {
		if cv.CodesOnly() {
			return fault.Invalid("collection %q has no model to encode with: its items bring codes", cv.Name)
		}
		set, err := cv.CodesFor(to)
		if err != nil {
			return err
		}
		if len(item.Vectors)+len(item.Sparse) == 0 {
			return fault.Invalid("no vectors to encode")
		}
		it, err := checkItem(cv.Descriptor, &Item{Vectors: item.Vectors, Sparse: item.Sparse}, true)
		if err != nil {
			return err
		}
		sp := cv.Space
		e := sp.Encoders.Get().(*spaces.Encoder)
		defer sp.Encoders.Put(e)
		for t, x := range it.Vectors {
			if _, known := e.Position(t); x.Present() && !known {
				return cv.Unlearned(t)
			}
		}
		if _, err := e.Project([][]model.Vector{it.Vectors}); err != nil {
			return fault.Invalid("encode: %w", err)
		}
		fused, _ := e.Fuse(0, slices.Index(sp.Targets, set.Target))
		if spaces.IsZero(fused) {
			return search.ErrFarAway
		}
		z = slices.Clone(fused)
		code = codec.PackSigns(codec.NewCode(sp.Bits), z).AppendBytes(nil, sp.Bits)
		return nil
	})
	return code, z, err
}

// EncodeQuery returns the code that a query starts from, bits/8 bytes, and the
// real-valued projection whose signs it is, nil where the query has none: by a code, or
// by the key of an item without the vector. Query.To matters only to a query by key, and
// need not be given with others: what a vector is encoded as does not depend on what is
// searched for. By a key it reads the item, as Get does.
func (c *Collection) EncodeQuery(ctx context.Context, q Query) (code []byte, z []float64, err error) {
	c = c.orNone()
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	err = c.read(func(v *state.View, cv *state.CollectionView) error {
		cv, err := cv.InSpace(uint32(q.Space))
		if err != nil {
			return err
		}
		var words codec.Code
		if words, z, err = search.Encode(v, cv, q.inside()); err != nil {
			return err
		}
		code = words.AppendBytes(nil, cv.Space.Bits)
		return nil
	})
	return code, z, err
}
