package files

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/files/internal/text"
	"github.com/fddhdb/fddhdb/files/npy"
)

// bounded fails if f allocates more than a constant, for buffers, and factor times the input. It counts
// everything ever allocated, garbage included.
func bounded(t *testing.T, input, constant, factor int, f func()) {
	t.Helper()
	before := allocated()
	f()
	if n := allocated() - before; n > uint64(constant+factor*input) {
		t.Errorf("%d bytes allocated for %d bytes of input", n, input)
	}
}

// checkError checks that an error is about the file and a place in it.
func checkError(t *testing.T, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.File != "x" || e.Err == nil {
		t.Errorf("%#v is no *Error about the file", err)
	}
}

// checkReader reads a reader to its end: as many rows as it says, all finite.
func checkReader(t *testing.T, r *Vectors, err error) {
	t.Helper()
	if err != nil {
		checkError(t, err)
		return
	}
	row := make([]float32, r.Cols)
	for i := 0; ; i++ {
		err := r.Next(row)
		if err == io.EOF {
			if i != r.Rows {
				t.Errorf("%d rows of %d", i, r.Rows)
			}
			return
		}
		if err != nil {
			checkError(t, err)
			var e *Error
			if errors.As(err, &e) && (e.Row != i || e.Col < 0 || e.Col >= r.Cols) {
				t.Errorf("row %d: %v", i, err)
			}
			if i > r.Rows {
				t.Fatal("the reader does not end")
			}
			continue
		}
		for j, x := range row {
			if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
				t.Errorf("row %d, column %d is %v", i, j, x)
			}
		}
	}
}

func addNPY(f *testing.F) {
	f.Add(build(f, 1, "<f4", "False", "(2, 2)", []float32{1, 2, 3, 4}))
	f.Add(build(f, 2, ">f8", "True", "(2, 3)", []float64{1, 2, 3, 4, 5, math.NaN()}))
	f.Add(build(f, 3, "<f2", "False", "(3,)", []uint16{0x3c00, 0x7c00, 1}))
	f.Add(build(f, 1, "|u1", "False", "(2, 8)", []uint8{1, 0, 1, 0, 0, 0, 0, 1, 1, 0, 1, 0, 0, 0, 0, 1}))
	f.Add(build(f, 1, ">i8", "True", "(4,)", []int64{0, 5, 1, 2}))
	f.Add(build(f, 1, "|b1", "False", "(1L, 2L)", []bool{true, false}))
	f.Add(build(f, 1, "<u2", "False", "(0, 1048576)", []uint16{}))
	f.Add(buildNPY(1, dict("<f4", "False", "(4611686018427387904, 4)"), nil))
	f.Add(buildNPY(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", make([]byte, 4)))
	f.Add([]byte("\x93NUMPY\x02\x00\xff\xff\xff\xff"))
	f.Add([]byte("PK\x03\x04"))
}

func FuzzNPY(f *testing.F) {
	addNPY(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		// 4 MiB are a row of the largest matrix without rows.
		bounded(t, len(b), 5<<20, 8, func() {
			r, err := npy.Open(memory("x", b), false)
			checkReader(t, r, err)
		})
		// Codes of 8 bits take a word each.
		bounded(t, len(b), 1<<16, 16, func() {
			codes, err := npy.CodesOf(memory("x", b))
			if err != nil {
				checkError(t, err)
			} else if codec.CheckBits(codes.Bits()) != nil || codes.Len()*codes.Bits()/8 > len(b) {
				t.Errorf("%d codes of %d bits from %d bytes", codes.Len(), codes.Bits(), len(b))
			}
		})
	})
}

func FuzzCSV(f *testing.F) {
	f.Add([]byte("a,b\n1,2\n3,4\n"))
	f.Add([]byte("\ufeff\"1\" , \"2\"\r\n-3e-5,4\r\n\r\n"))
	f.Add([]byte("\"x \"\"y\"\", z\",w\n,\n"))
	f.Add([]byte("nan,1e999\n,\n0x1p-2,1_000\n"))
	f.Add([]byte(",,,,,,,,,,\n\"1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		// Two buffers of 64 KiB, one a pass; errors of rows that are refused.
		bounded(t, len(b), 1<<18, 256, func() {
			r, err := text.OpenCSV(memory("x", b))
			checkReader(t, r, err)
		})
	})
}

func FuzzLabels(f *testing.F) {
	addNPY(f)
	f.Add([]byte("dog, cat\n\ncat,cat\n"))
	f.Add([]byte("\ufeffa,,\r\n\xff\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		// A name for each of 1,048,576 columns or classes: header and digits.
		bounded(t, len(b), 40<<20, 256, func() {
			l, err := readLabelsNPY(memory("x", b))
			checkLabels(t, l, err)
		})
		bounded(t, len(b), 1<<17, 512, func() {
			l, err := textLabels("x", bytes.NewReader(b))
			checkLabels(t, l, err)
		})
		bounded(t, len(b), 1<<19, 1024, func() {
			l, err := csvLabels("x", bytes.NewReader(b))
			checkLabels(t, l, err)
		})
		bounded(t, len(b), 1<<17, 256, func() {
			lines, err := readLines("x", bytes.NewReader(b))
			if err != nil {
				checkError(t, err)
			}
			for _, s := range lines {
				if !utf8.ValidString(s) {
					t.Errorf("%q is not UTF-8", s)
				}
			}
		})
	})
}

func checkLabels(t *testing.T, l *Labels, err error) {
	t.Helper()
	if err != nil {
		checkError(t, err)
		return
	}
	for i, set := range l.Sets {
		if !slices.IsSorted(set) || len(slices.Compact(slices.Clone(set))) != len(set) {
			t.Errorf("item %d has labels %v", i, set)
		}
		if len(set) > 0 && (set[0] < 0 || set[len(set)-1] >= len(l.Names)) {
			t.Errorf("item %d has labels %v of %d", i, set, len(l.Names))
		}
	}
}
