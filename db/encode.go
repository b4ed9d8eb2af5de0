package db

import (
	"fmt"

	"github.com/fddhdb/fddhdb/codec"
)

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
		for t := e.modalities; t < len(it.vectors); t++ {
			if it.vectors[t] != nil {
				return fmt.Errorf("%w: the model of collection %q is older than modality %q: train again",
					ErrNoModel, cv.Name, cv.Modalities[t].Name)
			}
		}
		sum, _, err := e.fuse(it.vectors)
		if err != nil {
			return invalid("encode: %w", err)
		}
		z = append([]float64(nil), sum...)
		code = codec.PackSigns(codec.NewCode(cv.space.Bits), z).AppendBytes(nil, cv.space.Bits)
		return nil
	})
	return code, z, err
}
