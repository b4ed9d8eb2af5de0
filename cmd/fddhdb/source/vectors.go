package source

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/files"
	"github.com/fddhdb/fddhdb/internal/rows"
)

// Vectors is a file of vectors of one modality, dense or sparse. The modality may be of either form.
type Vectors struct {
	Modality string
	file     string
	r        *files.Vectors

	// The row of the last Read: one of the two. The next Read reuses the memory.
	x   []float32
	row db.Sparse
}

// OpenVectors opens a file of vectors of a modality.
func OpenVectors(modality, file string) (*Vectors, error) {
	return OpenVectorsOf(modality, Input{file, file})
}

// OpenVectorsOf is OpenVectors of an input.
func OpenVectorsOf(modality string, in Input) (*Vectors, error) {
	r, err := files.Open(in.Path, in.Name)
	if err != nil {
		return nil, err
	}
	s := &Vectors{Modality: modality, file: in.Name, r: r}
	if !r.Sparse {
		s.x = make([]float32, r.Cols)
	}
	return s, nil
}

// IsSparse reports whether rows are sparse.
func (s *Vectors) IsSparse() bool { return s.r.Sparse }

// Cols returns the number of columns.
func (s *Vectors) Cols() int { return s.r.Cols }

// HasHeader reports whether the first line of the file was taken for a header, and not for a row.
func (s *Vectors) HasHeader() bool { return s.r.Header }

// Path implements rows.Source, as do Rows, Close and Next.
func (s *Vectors) Path() string { return s.file }
func (s *Vectors) Rows() int    { return s.r.Rows }
func (s *Vectors) Close() error { return s.r.Close() }

// Read reads the next row.
func (s *Vectors) Read() (err error) {
	if !s.r.Sparse {
		return s.r.Next(s.x)
	}
	s.row.Index, s.row.Value, err = s.r.NextSparse(s.row.Index[:0], s.row.Value[:0])
	return err
}

// Skip leaves out the next n rows, or all that are left, bad ones too.
func (s *Vectors) Skip(ctx context.Context, n int) error { return s.r.SkipRows(ctx, n) }

// Copy returns a copy of the row: one result, the other is nil.
func (s *Vectors) Copy() ([]float32, *db.Sparse) {
	if !s.r.Sparse {
		return slices.Clone(s.x), nil
	}
	return nil, &db.Sparse{Index: slices.Clone(s.row.Index), Value: slices.Clone(s.row.Value)}
}

// Query returns a query by the row, which it aliases.
func (s *Vectors) Query() db.Query {
	if !s.r.Sparse {
		return db.Query{From: s.Modality, Vector: s.x}
	}
	return db.Query{From: s.Modality, Sparse: &s.row}
}

func (s *Vectors) Next(item *db.Item) error {
	err := s.Read()
	switch {
	case err == nil && s.r.Sparse:
		item.Sparse[s.Modality] = s.row // the receiver of the item copies it
	case err == nil:
		item.Vectors[s.Modality] = s.x // the receiver of the item copies it
	}
	return rows.Of(err)
}

// CheckDim checks the columns of the file against the dimensions of a modality.
func (s *Vectors) CheckDim(m db.Modality) error {
	if s.r.Cols != m.Dim && !(s.r.AtLeast && s.r.Cols <= m.Dim) {
		return exit.Failedf("%s has %s, modality %q has %s",
			s.file, term.Plural(s.r.Cols, "column", "columns"), m.Name,
			term.Plural(m.Dim, "dimension", "dimensions"))
	}
	return nil
}

// maxQueries bounds the rows in memory: a sparse file can claim any number of empty ones.
const maxQueries = 1 << 24

// All reads the rest of the file: one result, the other is nil.
func (s *Vectors) All() (dense [][]float32, sparse []db.Sparse, err error) {
	if s.Rows() > maxQueries {
		return nil, nil, fmt.Errorf("%s: %d rows are too many to evaluate at once, at most %d are: split the file",
			s.file, s.Rows(), maxQueries)
	}
	for range s.Rows() {
		if err := s.Read(); err != nil {
			return nil, nil, err
		}
		if x, y := s.Copy(); y != nil {
			sparse = append(sparse, *y)
		} else {
			dense = append(dense, x)
		}
	}
	return dense, sparse, nil
}

// ParseVector parses a vector that is typed: v,v,..., i:v,i:v,..., or JSON as encoders print it.
func ParseVector(s string) (x encoder.Vector, err error) {
	if s = strings.TrimSpace(s); strings.Contains(s, ":") && !strings.HasPrefix(s, "{") {
		x.Sparse = new(db.Sparse)
		*x.Sparse, err = parseSparse(s)
		return x, err
	}
	return encoder.ParseVector([]byte(s))
}

// parseSparse parses i:v,i:v,... in any order, or ":" for a vector without numbers.
func parseSparse(s string) (db.Sparse, error) {
	x := db.Sparse{}
	if strings.TrimSpace(s) == ":" {
		return x, nil
	}
	values := map[uint32]float32{}
	for i, f := range strings.Split(s, ",") {
		index, value, _ := strings.Cut(f, ":")
		j, err := strconv.ParseUint(strings.TrimSpace(index), 10, 32)
		if err != nil {
			return x, fmt.Errorf("entry %d, %q: a dimension, a colon and a number are expected, such as 3:1.5,17:2", i, f)
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(value), 32)
		if err != nil {
			return x, fmt.Errorf("entry %d, %q, is not a number: i:v,i:v,... is expected", i, value)
		}
		if _, twice := values[uint32(j)]; twice {
			return x, fmt.Errorf("dimension %d is given twice", j)
		}
		values[uint32(j)] = float32(v)
		x.Index = append(x.Index, uint32(j))
	}
	slices.Sort(x.Index)
	for _, j := range x.Index {
		x.Value = append(x.Value, values[j])
	}
	return x, nil
}
