package text

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"github.com/fddhdb/fddhdb/files/internal/jsontext"
	"github.com/fddhdb/fddhdb/files/internal/matrix"
)

// vectorLines are the lines of a .jsonl file of vectors: an array of numbers; or a sparse vector
//
//	{"i": [3, 17], "v": [1.5, 2]}
//
// of columns, in any order and each once, and their numbers; or an object with a member of one of these
// forms: FILE.jsonl:NAME. All lines have the same form.
type vectorLines struct {
	*Lines
	member string
	scan   jsontext.Scanner
	x      matrix.Sparse // scratch memory
}

// OpenJSONL opens a .jsonl of vectors. The first pass counts numbers and does not read them.
func OpenJSONL(src matrix.Source) (*matrix.Vectors, error) {
	array := isArray(src)
	r := &vectorLines{Lines: newJSONLines(src, array, Numbers), member: src.Member}
	f := matrix.Format{Name: src.Name, Closer: src.Closer}
	err := each(r.Lines, func() (int, bool, error) {
		line, err := r.Next()
		r.scan.Reset(line)
		return r.N, len(bytes.TrimSpace(line)) == 0, err
	}, func() error { return r.vector(func() error { return r.measure(&f) }) })
	if err != nil {
		return nil, err
	}
	if f.Rows == 0 {
		return nil, src.Fail("holds no vector, so the number of columns is unknown")
	}
	f.Cols = max(f.Cols, 1) // sparse, and no vector has numbers
	f.AtLeast = f.Sparse
	r.Lines = newJSONLines(src, array, Numbers)
	f.Line = func() int { return r.line() }
	f.Dense = func(dst []float32) error {
		return r.read(func() error {
			x, err := r.scan.Float32s(dst[:0:len(dst)], len(dst))
			if err == nil && len(x) != len(dst) {
				err = fmt.Errorf("has %s numbers where line 1 has %s", matrix.Thousands(len(x)),
					matrix.Thousands(len(dst)))
			}
			return err
		})
	}
	f.Entries = func(x *matrix.Sparse) error {
		return r.read(func() error { return scanSparse(&r.scan, x, f.Cols, true) })
	}
	return matrix.New(f), nil
}

// measure takes the form and the number of columns from a line.
func (r *vectorLines) measure(f *matrix.Format) error {
	sparse := r.scan.Kind() == jsontext.Object
	first := f.Rows == 0
	f.Rows++
	if first {
		f.Sparse = sparse
	} else if sparse != f.Sparse {
		return errors.New("is of another form than line 1: either all vectors are arrays of numbers or all are {\"i\":[...],\"v\":[...]}")
	}
	if sparse {
		r.x = matrix.Sparse{Index: r.x.Index[:0]}
		err := scanSparse(&r.scan, &r.x, matrix.MaxCols, false)
		if foreign := new(foreignMember); r.member == "" && errors.As(err, foreign) {
			return fmt.Errorf("is an object with a member %s: say which of them is the vector with %s:NAME",
				matrix.Quote(string(*foreign)), r.name)
		}
		for _, j := range r.x.Index {
			f.Cols = max(f.Cols, int(j)+1)
		}
		return err
	}
	n, err := r.scan.Count()
	switch {
	case err != nil:
		return err
	case n == 0:
		return errors.New("has a vector without numbers")
	case first:
		f.Cols = n
		return matrix.CheckCols(int64(n), "")
	case n != f.Cols:
		return fmt.Errorf("has %s numbers where line 1 has %s", matrix.Thousands(n), matrix.Thousands(f.Cols))
	}
	return nil
}

// read reads the next line. What is wrong with it costs only its row.
func (r *vectorLines) read(vector func() error) error {
	line, err := r.Next()
	if err != nil {
		return err
	}
	r.scan.Reset(line)
	if err = r.vector(vector); err == nil {
		return nil
	}
	var bad *matrix.BadValue
	if errors.As(err, &bad) {
		return bad
	}
	return matrix.Bad(0, err)
}

// vector finds the vector of a line, lets read read it, and checks the text around it.
func (r *vectorLines) vector(read func() error) error {
	s := &r.scan
	is := func(name string) error {
		if kind := s.Kind(); kind != jsontext.Array && kind != jsontext.Object {
			return fmt.Errorf("%sis %v, %w", name, kind, errNoVector)
		}
		return read()
	}
	if r.member == "" {
		return cmp.Or(is(""), s.End())
	}
	name, found := matrix.Quote(r.member), false
	err := s.Object(func(member []byte) error {
		if string(member) != r.member {
			return s.Skip()
		}
		if found {
			return fmt.Errorf("has %s twice", name)
		}
		found = true
		return is(name + " ")
	})
	if err == nil && !found {
		err = fmt.Errorf("has no member %s", name)
	}
	return cmp.Or(err, s.End())
}

var errNoVector = errors.New("where a vector is expected: an array of numbers, or {\"i\":[...],\"v\":[...]}")

// foreignMember is the name of a member that a sparse vector has not.
type foreignMember string

func (name foreignMember) Error() string {
	return fmt.Sprintf("has %s in a sparse vector, which has \"i\" and \"v\", each once",
		matrix.Quote(string(name)))
}

// scanSparse reads a sparse vector of at most cols columns, in the order of the file. Without values it does
// not read the numbers.
func scanSparse(s *jsontext.Scanner, x *matrix.Sparse, cols int, values bool) error {
	var hasIndex, hasValue bool
	var bad *matrix.BadValue
	n := 0 // numbers
	err := s.Object(func(name []byte) (err error) {
		switch {
		case string(name) == "i" && !hasIndex:
			hasIndex = true
			x.Index, err = s.Uint32s(x.Index, cols)
		case string(name) == "v" && !hasValue && values:
			hasValue = true
			if x.Value, err = s.Float32s(x.Value, cols); errors.As(err, &bad) {
				err = nil
			}
			n = len(x.Value)
		case string(name) == "v" && !hasValue:
			hasValue = true
			n, err = s.Count()
		default:
			err = foreignMember(name)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case !hasIndex || !hasValue:
		return errors.New("a sparse vector has \"i\", the columns of its numbers, and \"v\", the numbers")
	}
	for _, j := range x.Index {
		if int64(j) >= int64(cols) {
			return fmt.Errorf("has a number in column %d, where at most %s columns are possible", j,
				matrix.Thousands(cols))
		}
	}
	switch {
	case values && len(x.Index) != n:
		return fmt.Errorf("has %s columns and %s numbers", matrix.Thousands(len(x.Index)),
			matrix.Thousands(n))
	case bad != nil:
		return matrix.Bad(int(x.Index[bad.At]), bad.Err)
	}
	return nil
}
