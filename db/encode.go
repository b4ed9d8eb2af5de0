package db

import (
	"fmt"

	"github.com/fddhdb/fddhdb/codec"
)

// errFarAway is about a vector without a direction in code space.
var errFarAway = invalid("the vector is far from everything that the model has learned from: is it scaled as the training vectors were?")

// unlearned is about a modality that the model does not know.
func (cv *collectionView) unlearned(t int) error {
	return fmt.Errorf("%w: the model of collection %q knows nothing of modality %q, which no labelled item had when it was trained: train again",
		ErrNoModel, cv.Name, cv.Modalities[t].Name)
}

// Encode returns the code that an unlabelled item with these features would
// get, bits/8 bytes, and its real-valued projection: the sum over the modalities
// given, whose signs are the code. Nothing is stored.
func (c *Collection) Encode(vectors map[string][]float32) (code []byte, z []float64, err error) {
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
		sum, any, err := e.fuse(it.vectors)
		if err != nil {
			return invalid("encode: %w", err)
		}
		if !any {
			return errFarAway
		}
		z = append([]float64(nil), sum...)
		code = codec.PackSigns(codec.NewCode(cv.space.Bits), z).AppendBytes(nil, cv.space.Bits)
		return nil
	})
	return code, z, err
}
