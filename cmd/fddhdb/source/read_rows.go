package source

import (
	"fmt"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/files"
)

// maxQueries bounds the rows in memory: a sparse file can claim any number of empty
// ones.
const maxQueries = 1 << 24

// ReadRows reads the rest of a dense file.
func ReadRows(s *Vectors) ([][]float32, error) {
	r := s.r
	rows, cols := r.Rows(), r.Cols()
	if rows > maxQueries || int64(rows)*int64(cols) > files.MaxValues {
		return nil, fmt.Errorf("%d rows of %d values are too many to evaluate at once: split the file", rows, cols)
	}
	data := make([]float32, rows*cols)
	out := make([][]float32, rows)
	for i := range out {
		out[i] = data[i*cols : (i+1)*cols : (i+1)*cols]
		if err := r.Next(out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
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
