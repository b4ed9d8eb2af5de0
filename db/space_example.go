package db

import (
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/model"
)

// example returns an item as the model of the space takes it.
func (s *space) example(vectors []model.Vector, labels []uint32) model.Example {
	ex := model.Example{Vectors: make([]model.Vector, len(s.modalities)), Labels: labels}
	for i, t := range s.modalities {
		if has(vectors, t) {
			ex.Vectors[i] = vectors[t]
		}
	}
	return ex
}

// lesson returns what an item has taught from how it is stored.
func (s *space) lesson(l codec.Lesson, item model.Example) (model.Lesson, error) {
	size := codec.Bytes(s.Bits)
	codes := len(l.Codes) / size
	if codes != 1 && codes != len(s.modalities) {
		return nil, fmt.Errorf("lesson of %d codes for %d modalities", codes, len(s.modalities))
	}
	out := make(model.Lesson, codes)
	for i := range out {
		if codes > 1 && !item.Vectors[i].Present() {
			continue
		}
		out[i] = codec.NewCode(s.Bits)
		out[i].SetBytes(l.Codes[i*size : (i+1)*size])
	}
	return out, nil
}

// learnsFrom reports whether an item has something that the projections of the space
// can learn from.
func (s *space) learnsFrom(it *record.Item) bool {
	return slices.ContainsFunc(s.modalities, func(t int) bool { return has(it.Vectors, t) })
}
