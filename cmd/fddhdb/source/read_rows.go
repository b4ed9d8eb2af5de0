package source

import (
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/files"
)

// maxQueries bounds the rows in memory: a sparse file can claim any number of empty ones.
const maxQueries = 1 << 24

// ReadRows reads the rest of a dense file.
func ReadRows(s *Vectors) ([][]float32, error) {
	r := s.r
	if r.Rows > maxQueries {
		return nil, fmt.Errorf("%s: %d rows are too many to evaluate at once, at most %d are: split the file", s.file, r.Rows, maxQueries)
	}
	data, err := files.Rest(r)
	if err != nil {
		return nil, err
	}
	return slices.Collect(slices.Chunk(data, r.Cols)), nil
}

// ReadSparseRows reads the rest of a sparse file.
func ReadSparseRows(s *Vectors) ([]db.Sparse, error) {
	if s.Rows() > maxQueries {
		return nil, fmt.Errorf("%s: %d rows are too many to evaluate at once, at most %d are: split the file", s.file, s.Rows(), maxQueries)
	}
	out := make([]db.Sparse, s.Rows())
	for i := range out {
		if err := s.Read(); err != nil {
			return nil, err
		}
		_, row := s.Copy()
		out[i] = *row
	}
	return out, nil
}
