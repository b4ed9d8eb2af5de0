package search

import (
	"context"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/model"
)

// EachCode calls f with the items that have a code and the modality to, in ascending order of rows; "" means
// any modality. A code, of bits/8 bytes, is valid until f returns. A collection without a space has no codes.
func EachCode(ctx context.Context, cv *state.CollectionView, r pebble.Reader, to string, f func(row uint32, key string, code []byte) error) error {
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
	return record.ForEachEntry(r, codec.CollectionKey(codec.KindRowKeys, cv.ID), func(row uint32, entry []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if having != nil && !having.Contains(row) {
			return nil
		}
		n, found, err := set.NumberOf(r, row)
		if err != nil || !found {
			return err
		}
		code, err := set.CodeOf(r, n, row)
		if err != nil {
			return err
		}
		b = code.AppendBytes(b[:0], set.Bits)
		return f(row, string(entry), b)
	})
}

// CanEncode returns an error if the collection cannot encode features of items.
func CanEncode(cv *state.CollectionView) error {
	if cv.CodesOnly() {
		return fault.Invalid("collection %q has no model to encode with: its items bring codes", cv.Name)
	}
	_, err := cv.CodesFor("")
	return err
}

// EncodeItem returns the code that an item with these features would get without labels, bits/8 bytes, and
// the projection, whose signs are the code. The vectors are by modality.
func EncodeItem(cv *state.CollectionView, vectors []model.Vector) (code []byte, z []float64, err error) {
	sp := cv.Space
	e := sp.Encoders.Get().(*spaces.Encoder)
	defer sp.Encoders.Put(e)
	for t, x := range vectors {
		if _, known := e.Position(t); x.Present() && !known {
			return nil, nil, cv.Unlearned(t)
		}
	}
	if _, err := e.Project([][]model.Vector{vectors}); err != nil {
		return nil, nil, fault.Invalid("encode: %w", err)
	}
	fused, _ := e.Fuse(0)
	if spaces.IsZero(fused) {
		return nil, nil, ErrFarAway
	}
	z = slices.Clone(fused)
	return codec.PackSigns(codec.NewCode(sp.Bits), z).AppendBytes(nil, sp.Bits), z, nil
}
