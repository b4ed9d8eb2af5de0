package command

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/codec/parquetfile"
	"github.com/fddhdb/fddhdb/codec/vecfile"
	"github.com/fddhdb/fddhdb/db"
)

// vectorSource is a file of vectors of one modality, dense or sparse: either goes
// where the modality is of the other.
type vectorSource struct {
	modality string
	file     string
	r        vecfile.Reader
	sparse   vecfile.SparseReader // r, of a sparse file

	// What read has read: one of them, to be used again for the next row.
	x   []float32
	row db.Sparse
}

func openVectors(modality, file string) (*vectorSource, error) {
	r, err := openMatrix(file)
	if err != nil {
		return nil, err
	}
	s := &vectorSource{modality: modality, file: file, r: r}
	if s.sparse, _ = r.(vecfile.SparseReader); s.sparse == nil {
		s.x = make([]float32, r.Cols())
	}
	return s, nil
}

// openQueries is openVectors of a flag that takes a FILE, where others take NAME=FILE.
func openQueries(modality, file string) (*vectorSource, error) {
	s, err := openVectors(modality, file)
	if name, rest, ok := strings.Cut(file, "="); ok && errors.Is(err, os.ErrNotExist) {
		return nil, exit.Usagef("--vectors %q: FILE is expected here, not NAME=FILE: --from %s --vectors %s", file, name, rest)
	}
	return s, err
}

// openMatrix opens a file of vectors.
func openMatrix(file string) (vecfile.Reader, error) {
	if lower := strings.ToLower(file); strings.HasSuffix(lower, ".parquet") || strings.Contains(lower, ".parquet:") {
		return parquetfile.OpenVectors(file)
	}
	return vecfile.Open(file)
}

// isSparse says that rows are sparse.
func (s *vectorSource) isSparse() bool { return s.sparse != nil }

// cols is the number of columns.
func (s *vectorSource) cols() int { return s.r.Cols() }

func (s *vectorSource) path() string { return s.file }
func (s *vectorSource) rows() int    { return s.r.Rows() }
func (s *vectorSource) close() error { return s.r.Close() }

// read reads the next row.
func (s *vectorSource) read() (err error) {
	if s.sparse == nil {
		return s.r.Next(s.x)
	}
	s.row.Index, s.row.Value, err = s.sparse.NextSparse(s.row.Index[:0], s.row.Value[:0])
	return err
}

// vector returns a copy of the row as one of the two, nil the other.
func (s *vectorSource) vector() ([]float32, *db.Sparse) {
	if s.sparse == nil {
		return slices.Clone(s.x), nil
	}
	return nil, &db.Sparse{Index: slices.Clone(s.row.Index), Value: slices.Clone(s.row.Value)}
}

// query returns a query by the row, whose memory it shares.
func (s *vectorSource) query() db.Query {
	if s.sparse == nil {
		return db.Query{From: s.modality, Vector: s.x}
	}
	return db.Query{From: s.modality, Sparse: &s.row}
}

func (s *vectorSource) next(item *db.Item) error {
	err := s.read()
	var bad *vecfile.Error
	switch {
	case err == nil && s.sparse != nil:
		item.Sparse[s.modality] = s.row // what takes the item copies it
	case err == nil:
		item.Vectors[s.modality] = s.x // likewise
	case errors.As(err, &bad) && bad.Col >= 0:
		return &rowError{err}
	}
	return err
}

// checkDim holds the columns of the file against the dimensions of a modality.
func (s *vectorSource) checkDim(m db.Modality) error {
	if r, ok := s.r.(interface{ ColsAtLeast() bool }); ok && r.ColsAtLeast() && s.r.Cols() <= m.Dim {
		return nil
	}
	if s.r.Cols() != m.Dim {
		return exit.Failedf("%s has %s, modality %q has %s",
			s.file, term.Plural(s.r.Cols(), "column", "columns"), m.Name, term.Plural(m.Dim, "dimension", "dimensions"))
	}
	return nil
}
