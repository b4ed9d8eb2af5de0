package db

import (
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/model"
)

// A Sparse is a vector of which most numbers are 0: that in dimension Index[e] is
// Value[e], the indices strictly ascending and below the dimensions of the modality.
// Zeros among the values are dropped. A vector without any numbers, as that of an
// empty text, is one nevertheless: the item has the modality.
type Sparse struct {
	Index []uint32  `json:"i"`
	Value []float32 `json:"v"`
}

// vectorOf returns a vector in the form of its modality, of which one of the two is given;
// it may share the memory of what is given.
func vectorOf(m *record.Modality, dense []float32, sparse *Sparse) (model.Vector, error) {
	if sparse == nil {
		return m.OfDense(dense)
	}
	return m.OfSparse(sparse.Index, sparse.Value)
}
