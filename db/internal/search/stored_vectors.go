package search

import (
	"bytes"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/model"
)

// storedVector reads the vector of a row that has modality t. The vector is valid until the next call. Rows
// need not ascend. All reads of a search share one iterator, which is several times as fast as a look-up for
// each. A missing vector is fault.ErrCorrupt.
func (s *Searcher) storedVector(row uint32, t int) (model.Vector, error) {
	m := s.Cv.Modalities[t]
	damaged := func(err error) (model.Vector, error) {
		return s.vector, fault.Corrupt(err, "features %q of row %d", m.Name, row)
	}
	if s.vectors == nil {
		lower := codec.CollectionKey(codec.KindFeatures, s.Cv.ID)
		it, err := s.V.Snap.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: codec.PrefixEnd(lower)})
		if err != nil {
			return s.vector, fault.ReadError(err, "features")
		}
		s.vectors = it
	}
	key := codec.FeatureKey(s.Cv.ID, row, uint16(t))
	if !s.vectors.SeekGE(key) || !bytes.Equal(s.vectors.Key(), key) {
		if err := s.vectors.Error(); err != nil {
			return s.vector, fault.ReadError(err, "features %q of row %d", m.Name, row)
		}
		return damaged(errors.New("missing"))
	}
	value, err := s.vectors.ValueAndErr()
	if err != nil {
		return s.vector, fault.ReadError(err, "features %q of row %d", m.Name, row)
	}
	if err := m.DecodeVector(&s.vector, value); err != nil {
		return damaged(err)
	}
	return s.vector, nil
}
