package matrix

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
)

// A Format is what a decoder knows of a matrix of vectors, and how it reads the next row. Its functions are
// called once a row, at most Rows times. An error that is a BadValue costs only that row, any other one is
// final.
type Format struct {
	Name string // of the file, for errors
	Rows int
	Cols int // at least 1

	Sparse  bool // the file has only numbers that are not 0: NextSparse gives them
	AtLeast bool // the file does not say how many dimensions there are: Cols is one more than its last column
	Header  bool // the first line is a header
	Flat    bool // an array of one dimension, each number of which is a row

	Dense   func(dst []float32) error // fills dst with a row; dst has Cols numbers
	Entries func(*Sparse) error       // appends the numbers of a sparse row in any order; nil if not Sparse
	Sum     bool                      // Entries of one column are added up

	// These may be nil.
	Numbers func(dst []float64) error // as Dense, without a check: what is no vector may have any number
	Skip    func(n int)               // leaves out the next n rows
	Line    func() int                // line of the row that was read last
	Closer  io.Closer
}

// Vectors are the rows of a matrix in a file, read from the first to the last. It is not safe for concurrent
// use.
type Vectors struct {
	Format
	next   int
	err    error  // the final error
	row    Sparse // the row that is read
	sorter Sorter
}

// New returns the rows of a matrix.
func New(f Format) *Vectors { return &Vectors{Format: f} }

// Next writes the next row to dst, which belongs to the caller and must have the length Cols. It returns
// io.EOF after the last row. Values are rounded to the nearest float32.
//
// A value that is NaN, infinite, too large for float32 or no number gives an *Error with row (Row >= 0) and
// column. It costs only that row: the next call reads the row after it. A dst of the wrong length costs no
// row. Any other error is final; it is an *Error, too. After an error dst has no valid values.
//
// It costs O(Cols) and amortised input. It allocates nothing for a row.
func (v *Vectors) Next(dst []float32) error {
	if !v.Sparse {
		if err := v.begin(len(dst)); err != nil {
			return err
		}
		return v.end(v.Dense(dst))
	}
	if v.err == nil && len(dst) != v.Cols {
		return v.begin(len(dst))
	}
	var err error
	if v.row.Index, v.row.Value, err = v.NextSparse(v.row.Index[:0], v.row.Value[:0]); err != nil {
		return err
	}
	clear(dst)
	for e, j := range v.row.Index {
		dst[j] = v.row.Value[e]
	}
	return nil
}

// NextSparse is Next of a Sparse matrix: it appends the numbers of the next row that are not 0 to value, and
// their columns to index. Columns ascend strictly. Next and NextSparse read the same rows; a caller may use
// either. It costs as much as sorting the numbers of the row.
func (v *Vectors) NextSparse(index []uint32, value []float32) ([]uint32, []float32, error) {
	if err := v.begin(v.Cols); err != nil {
		return index, value, err
	}
	n := len(index)
	x := &v.row
	x.Index, x.Value = index[n:], value[n:]
	err := v.Entries(x)
	if err == nil {
		if err = v.sorter.Sort(x, v.Sum); err != nil {
			var bad *BadValue
			if !errors.As(err, &bad) {
				err = Bad(0, err)
			}
		}
	}
	if err != nil {
		return index, value, v.end(err)
	}
	return append(index, x.Index...), append(value, x.Value...), nil
}

// NextNumbers is Next for numbers that need not be of a vector: NaN and infinities are as good as others.
func (v *Vectors) NextNumbers(dst []float64) error {
	if err := v.begin(len(dst)); err != nil {
		return err
	}
	if v.Numbers == nil {
		return v.end(errors.New("has vectors, not numbers of another kind"))
	}
	return v.end(v.Numbers(dst))
}

// SkipRows leaves out the next n rows, or all that are left, bad ones too. It is fast where rows need not be
// read to find the next.
func (v *Vectors) SkipRows(ctx context.Context, n int) error {
	if v.Skip != nil {
		n = min(n, v.Rows-v.next)
		v.Skip(n)
		v.next += n
		return nil
	}
	row := make([]float32, v.Cols)
	for range n {
		if err := ctx.Err(); err != nil { // a file of a few bytes may claim any number of sparse rows
			return err
		}
		var bad *Error
		var err error
		if v.Sparse {
			_, _, err = v.NextSparse(nil, nil)
		} else {
			err = v.Next(row)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil && (!errors.As(err, &bad) || bad.Row < 0) {
			return err
		}
	}
	return nil
}

// begin begins a row of n numbers.
func (v *Vectors) begin(n int) error {
	switch {
	case v.err != nil:
		return v.err
	case n != v.Cols:
		return FileError(v.Name, fmt.Errorf("a row has %d values, the slice for it %d", v.Cols, n))
	case v.next == v.Rows:
		v.err = io.EOF
		return v.err
	}
	v.next++
	return nil
}

// end ends a row, with its error if there is one.
func (v *Vectors) end(err error) error {
	if err == nil {
		return nil
	}
	var bad *BadValue
	if errors.As(err, &bad) {
		return v.Bad(bad.At, bad.Err)
	}
	v.err = FileError(v.Name, err)
	return v.err
}

// Bad returns an error about a column of the row that was read last; -1 stands for the row as a whole.
func (v *Vectors) Bad(col int, err error) error {
	e := &Error{File: v.Name, Row: v.next - 1, Col: min(col, v.Cols-1), Err: err}
	if v.Line != nil {
		e.Line = v.Line()
	}
	return e
}

// Close closes the file; Next then fails with os.ErrClosed. A second Close does nothing.
func (v *Vectors) Close() error {
	if errors.Is(v.err, os.ErrClosed) {
		return nil
	}
	v.err = FileError(v.Name, os.ErrClosed)
	if v.Closer == nil {
		return nil
	}
	return v.Closer.Close()
}

// CheckCols refuses a number of columns that no matrix has. shape is what the file says of them.
func CheckCols(cols int64, shape string) error {
	switch {
	case cols < 1:
		return fmt.Errorf("has no columns%s", shape)
	case cols > MaxCols:
		return fmt.Errorf("has %s columns%s: at most %s are supported; rows are items, is the matrix transposed?", Thousands(cols), shape, Thousands(MaxCols))
	}
	return nil
}

// float16 converts an IEEE 754 half-precision number, given by its bits: 1 sign bit, 5 exponent bits with
// bias 15, 10 fraction bits. The result is always exact.
func float16(h uint16) float32 {
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch exp {
	case 0: // zero or subnormal: frac * 2^-24, exact in float32
		x := float32(frac) * 0x1p-24
		return math.Float32frombits(math.Float32bits(x) | sign)
	case 0x1f: // infinity or NaN
		return math.Float32frombits(sign | 0xff<<23 | frac<<13)
	default:
		return math.Float32frombits(sign | (exp-15+127)<<23 | frac<<13)
	}
}

// Sparse is a vector that holds only its nonzero numbers: Value[e] in column Index[e]. Columns ascend
// strictly.
type Sparse struct {
	Index []uint32
	Value []float32
}

// A Sorter sorts sparse vectors. The zero Sorter is ready. It keeps memory for the next vector, and belongs
// to one goroutine at a time.
type Sorter struct{ entries []entry }

type entry struct {
	column uint32
	value  float32
}

// Sort sorts the columns of a vector and drops zeros, in place. Numbers of one column are added up if sum,
// else they are an error. It costs as much as sorting n numbers.
func (s *Sorter) Sort(x *Sparse, sum bool) error {
	s.entries = s.entries[:0]
	for e, j := range x.Index {
		s.entries = append(s.entries, entry{j, x.Value[e]})
	}
	slices.SortStableFunc(s.entries, func(a, b entry) int { return cmp.Compare(a.column, b.column) })
	x.Index, x.Value = x.Index[:0], x.Value[:0]
	for i := 0; i < len(s.entries); {
		first := s.entries[i]
		i++
		total := float64(first.value)
		for ; i < len(s.entries) && s.entries[i].column == first.column; i++ {
			if !sum {
				return fmt.Errorf("column %d is there twice", first.column)
			}
			total += float64(s.entries[i].value)
		}
		switch v := float32(total); {
		case math.IsInf(float64(v), 0):
			return Bad(int(first.column), TooLarge(fmt.Sprint(total)))
		case v != 0:
			x.Index, x.Value = append(x.Index, first.column), append(x.Value, v)
		}
	}
	return nil
}

// MaxCols bounds the columns of a matrix and the labels of a file. The size of a file cannot contradict a
// matrix without rows, so without a bound its caller would allocate a row of any length. No dense vector has
// so many dimensions: such a file is most likely transposed.
const MaxCols = 1 << 20

// MaxInflation bounds the expansion of deflate: 258 bytes of a match take two bits.
const MaxInflation = 1032

// A Source is the bytes of a file. Decoders take a Source rather than a path, so that tests and fuzzers need
// no file.
type Source struct {
	Name   string // for errors
	Member string // of a file with several matrices; "" if none is named
	io.ReaderAt
	Size   int64
	Closer io.Closer // nil: nothing to close
}

// Open opens a regular file; errors call it name. One whose name ends in .gz or .zst is decompressed first.
func Open(path, name string) (Source, error) {
	info, err := os.Stat(path) // opening a named pipe would wait for somebody to write to it
	switch {
	case err != nil:
	case info.IsDir():
		err = errors.New("is a directory")
	case !info.Mode().IsRegular():
		err = errors.New("is not a regular file: its size has to be known; copy it to one")
	default:
		var f *os.File
		if f, err = os.Open(path); err == nil {
			src := Source{Name: name, ReaderAt: f, Size: info.Size(), Closer: f}
			if _, packed := Inner(path); packed {
				return unpack(path, src)
			}
			return src, nil
		}
	}
	return Source{}, FileError(name, err)
}

// Fail returns an error about the file as a whole.
func (s Source) Fail(format string, args ...any) error {
	return FileError(s.Name, fmt.Errorf(format, args...))
}

// ReadFull fills b with the bytes from position at on.
func (s Source) ReadFull(b []byte, at int64) error {
	// io.ReaderAt may return io.EOF with the last byte of the file.
	if n, err := s.ReadAt(b, at); n < len(b) {
		return FileError(s.Name, err)
	}
	return nil
}

// Reader returns a reader of all bytes from the first one on.
func (s Source) Reader() io.Reader { return io.NewSectionReader(s, 0, s.Size) }

// Close closes the source if there is something to close.
func (s Source) Close() error {
	if s.Closer == nil {
		return nil
	}
	return s.Closer.Close()
}

// Closers are closed together. Some may be nil.
type Closers []io.Closer

// Close closes all of them.
func (c Closers) Close() error {
	var errs []error
	for _, x := range c {
		if x != nil {
			errs = append(errs, x.Close())
		}
	}
	return errors.Join(errs...)
}
