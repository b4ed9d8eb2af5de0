package db

import (
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
)

// errFarAway is about a vector without a direction in code space.
var errFarAway = invalid("the vector is far from everything that the model has learned from: is it scaled as the training vectors were?")

// unlearned is about a modality that the model does not know.
func (cv *collectionView) unlearned(t int) error {
	return fmt.Errorf("%w: the model of collection %q knows nothing of modality %q, which no labelled item had when it was trained: train again",
		ErrNoModel, cv.Name, cv.Modalities[t].Name)
}

// Encode returns the code that an item with these features would get without labels,
// bits/8 bytes, and the real-valued projection whose signs it is: that of the
// modalities given as the model fuses them (model.Fuse). Nothing is stored. The code
// of a query is another one, see EncodeQuery.
func (c *Collection) Encode(vectors map[string][]float32) (code []byte, z []float64, err error) {
	return c.encode(vectors, func(e *encoder, x [][]float32) ([]float64, error) {
		_, err := e.project([][][]float32{x})
		z, _ := e.fuse(0, sharedView)
		return z, err
	})
}

// EncodeQuery returns the code that a vector of a modality has as a query, bits/8
// bytes, and its real-valued projection, whose signs it is.
func (c *Collection) EncodeQuery(from string, x []float32) (code []byte, z []float64, err error) {
	return c.encode(map[string][]float32{from: x}, func(e *encoder, vectors [][]float32) ([]float64, error) {
		for t, x := range vectors {
			if x != nil {
				i, _ := e.position(t)
				return e.fused, e.Project(e.fused, i, x)
			}
		}
		return e.fused, nil
	})
}

// encode calls project with vectors that the model knows, by modality of the
// collection, and returns the signs of what that returns, and a copy of it.
func (c *Collection) encode(vectors map[string][]float32, project func(e *encoder, x [][]float32) ([]float64, error)) (code []byte, z []float64, err error) {
	err = c.read(func(_ *view, cv *collectionView) error {
		if cv.codesOnly() {
			return invalid("collection %q has no model to encode with: its items bring codes", cv.Name)
		}
		if cv.space == nil {
			return fmt.Errorf("%w: collection %q: train it first", ErrNoModel, cv.Name)
		}
		if len(vectors) == 0 {
			return invalid("no vectors to encode")
		}
		it, err := cv.check(&Item{Vectors: vectors}, true)
		if err != nil {
			return err
		}
		e := cv.space.encoders.Get().(*encoder)
		defer cv.space.encoders.Put(e)
		for t, x := range it.vectors {
			if _, known := e.position(t); x != nil && !known {
				return cv.unlearned(t)
			}
		}
		projection, err := project(e, it.vectors)
		if err != nil {
			return invalid("encode: %w", err)
		}
		if isZero(projection) {
			return errFarAway
		}
		z = slices.Clone(projection)
		code = codec.PackSigns(codec.NewCode(cv.space.Bits), z).AppendBytes(nil, cv.space.Bits)
		return nil
	})
	return code, z, err
}
