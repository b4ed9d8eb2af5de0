package files

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/fddhdb/fddhdb/files/internal/jsontext"
)

// A .jsonl file of vectors has one on each line: an array of numbers; or a sparse
// vector
//
//	{"i": [3, 17], "v": [1.5, 2]}
//
// of columns, in any order and each once, and their numbers; or an object with a member
// of one of these forms: FILE.jsonl:NAME. All lines have the same form.

// maxJSONLine bounds a line in bytes, as maxCSVLine does.
const maxJSONLine = maxCSVLine

// jsonlReader is the Reader of a .jsonl file of dense vectors.
type jsonlReader struct {
	src        source
	rows, cols int
	sparse     bool // the vectors are sparse
	lines      *lines
	scan       jsontext.Scanner
	next       int   // the row that Next returns
	err        error // the final error

	index   []uint32 // scratch memory
	value   []float32
	entries []entry
}

// sparseJSONLReader is the SparseReader of a .jsonl file of sparse vectors.
type sparseJSONLReader struct{ jsonlReader }

// openJSONL does the first pass, which counts numbers and does not read them.
func openJSONL(src source) (Reader, error) {
	r := &jsonlReader{src: src}
	r.rewind()
	err := r.lines.each("line must hold a vector", func(line []byte) error {
		if err := r.measure(line); err != nil {
			return err
		}
		r.rows++
		return nil
	})
	if err != nil {
		return nil, err
	}
	switch {
	case r.rows == 0:
		return nil, src.fail("holds no vector, so the number of columns is unknown")
	case r.cols == 0:
		r.cols = 1 // sparse, and no vector has numbers
	}
	r.rewind()
	if r.sparse {
		return &sparseJSONLReader{*r}, nil
	}
	return r, nil
}

// measure takes the form and the number of columns from a line.
func (r *jsonlReader) measure(line []byte) error {
	r.scan.Reset(line)
	first := r.rows == 0
	return r.vector(func() error {
		sparse := r.scan.Kind() == jsontext.Object
		if first {
			r.sparse = sparse
		} else if sparse != r.sparse {
			return errors.New("is of another form than line 1: either all vectors are arrays of numbers or all are {\"i\":[...],\"v\":[...]}")
		}
		if sparse {
			err := r.parts(func() (err error) {
				r.index, err = r.scan.Uint32s(r.index[:0], maxCols)
				return err
			}, func() (err error) {
				_, err = r.scan.Count()
				return err
			})
			for _, j := range r.index {
				r.cols = max(r.cols, int(j)+1)
			}
			return cmp.Or(err, checkCols(r.cols))
		}
		n, err := r.scan.Count()
		switch {
		case err != nil:
			return err
		case n == 0:
			return errors.New("has a vector without numbers")
		case first:
			r.cols = n
			return checkCols(n)
		case n != r.cols:
			return fmt.Errorf("has %s numbers where line 1 has %s", thousands(n), thousands(r.cols))
		}
		return nil
	})
}

func checkCols(n int) error {
	if n > maxCols {
		return fmt.Errorf("has %s columns: at most %s are supported", thousands(n), thousands(maxCols))
	}
	return nil
}

// vector finds the vector of a line, lets read read it, and checks the text around it.
func (r *jsonlReader) vector(read func() error) error {
	s := &r.scan
	name := r.src.member
	if name == "" {
		if kind := s.Kind(); kind != jsontext.Array && kind != jsontext.Object {
			return fmt.Errorf("is %v, where a vector is expected: an array of numbers, or {\"i\":[...],\"v\":[...]}", kind)
		}
		return cmp.Or(read(), s.End())
	}
	found := false
	err := s.Object(func(member []byte) error {
		if string(member) != name {
			return s.Skip()
		}
		if found {
			return fmt.Errorf("has %s twice", quote([]byte(name)))
		}
		found = true
		if kind := s.Kind(); kind != jsontext.Array && kind != jsontext.Object {
			return fmt.Errorf("%s is %v, where a vector is expected: an array of numbers, or {\"i\":[...],\"v\":[...]}", quote([]byte(name)), kind)
		}
		return read()
	})
	if err == nil && !found {
		err = fmt.Errorf("has no member %s", quote([]byte(name)))
	}
	return cmp.Or(err, s.End())
}

// parts reads the two lists of a sparse vector.
func (r *jsonlReader) parts(index, value func() error) error {
	s := &r.scan
	var hasIndex, hasValue bool
	err := s.Object(func(name []byte) error {
		switch {
		case string(name) == "i" && !hasIndex:
			hasIndex = true
			return index()
		case string(name) == "v" && !hasValue:
			hasValue = true
			return value()
		case string(name) == "i" || string(name) == "v":
			return fmt.Errorf("has %s twice", quote(name))
		case r.src.member == "":
			return fmt.Errorf("is an object with a member %s: say which of them is the vector with %s:NAME", quote(name), r.src.name)
		}
		return fmt.Errorf("has %s in a sparse vector, which has \"i\" and \"v\"", quote(name))
	})
	if err == nil && !(hasIndex && hasValue) {
		err = errors.New("a sparse vector has \"i\", the columns of its numbers, and \"v\", the numbers")
	}
	return err
}

// rewind starts at the first line.
func (r *jsonlReader) rewind() {
	r.lines = newLines(r.src.name, io.NewSectionReader(r.src, 0, r.src.size), maxJSONLine)
}

func (r *jsonlReader) fail(line, row, col int, err error) error {
	return &Error{File: r.src.name, Line: line, Row: row, Col: col, Err: err}
}

func (r *jsonlReader) Rows() int { return r.rows }
func (r *jsonlReader) Cols() int { return r.cols }

// line reads the next line and returns its row.
func (r *jsonlReader) line() (int, error) {
	if r.err == nil && r.next == r.rows {
		r.err = io.EOF
	}
	if r.err != nil {
		return 0, r.err
	}
	line, err := r.lines.next()
	switch {
	case err == io.EOF:
		err = readError(r.src.name, err)
	case err != nil:
		err = textLine(err)
	}
	if err != nil {
		r.err = err
		return 0, err
	}
	r.scan.Reset(line)
	r.next++
	return r.next - 1, nil
}

// bad returns an error about a row, which costs only that row.
func (r *jsonlReader) bad(row int, err error) error {
	col := 0
	var number *jsontext.NumberError
	if errors.As(err, &number) {
		col, err = number.At, number.Err
	}
	return r.fail(r.lines.line, row, min(col, r.cols-1), err)
}

func (r *jsonlReader) Next(dst []float32) error {
	if r.err == nil && len(dst) != r.cols {
		return r.src.fail("a row has %d values, the slice for it %d", r.cols, len(dst))
	}
	row, err := r.line()
	if err != nil {
		return err
	}
	err = r.vector(func() error {
		x, err := r.scan.Float32s(dst[:0:len(dst)], len(dst))
		if err == nil && len(x) != len(dst) {
			err = fmt.Errorf("has %s numbers where line 1 has %s", thousands(len(x)), thousands(len(dst)))
		}
		return err
	})
	if err != nil {
		return r.bad(row, err)
	}
	return nil
}

// ColsAtLeast returns true: no line states the number of dimensions, so Cols is one
// more than the last column of the file that has a number.
func (r *sparseJSONLReader) ColsAtLeast() bool { return true }

func (r *sparseJSONLReader) Next(dst []float32) (err error) {
	if r.err == nil && len(dst) != r.cols {
		return r.src.fail("a row has %d values, the slice for it %d", r.cols, len(dst))
	}
	var index []uint32
	var value []float32
	if index, value, err = r.NextSparse(nil, nil); err != nil {
		return err
	}
	clear(dst)
	for e, j := range index {
		dst[j] = value[e]
	}
	return nil
}

func (r *sparseJSONLReader) NextSparse(index []uint32, value []float32) ([]uint32, []float32, error) {
	row, err := r.line()
	if err != nil {
		return index, value, err
	}
	var number *jsontext.NumberError
	err = r.vector(func() error {
		return r.parts(func() (err error) {
			r.index, err = r.scan.Uint32s(r.index[:0], r.cols)
			return err
		}, func() (err error) {
			r.value, err = r.scan.Float32s(r.value[:0], r.cols)
			if errors.As(err, &number) {
				err = nil
			}
			return err
		})
	})
	switch {
	case err != nil:
		return index, value, r.bad(row, err)
	case len(r.index) != len(r.value):
		return index, value, r.bad(row, fmt.Errorf("has %s columns and %s numbers", thousands(len(r.index)), thousands(len(r.value))))
	case number != nil:
		return index, value, r.fail(r.lines.line, row, min(int(r.index[number.At]), r.cols-1), number.Err)
	}
	r.entries = r.entries[:0]
	for e, j := range r.index {
		if int(j) >= r.cols {
			return index, value, r.bad(row, fmt.Errorf("column %d was not there before: the file changes while it is read", j))
		}
		r.entries = append(r.entries, entry{j, r.value[e]})
	}
	slices.SortFunc(r.entries, func(a, b entry) int { return cmp.Compare(a.column, b.column) })
	for e, x := range r.entries {
		if e > 0 && r.entries[e-1].column == x.column {
			return index, value, r.fail(r.lines.line, row, int(x.column), errors.New("the column is there twice"))
		}
	}
	for _, x := range r.entries {
		if x.value != 0 {
			index, value = append(index, x.column), append(value, x.value)
		}
	}
	return index, value, nil
}

func (r *jsonlReader) Close() error {
	if errors.Is(r.err, os.ErrClosed) {
		return nil
	}
	r.err = fileError(r.src.name, os.ErrClosed)
	return r.src.close()
}
