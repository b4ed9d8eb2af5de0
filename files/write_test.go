package files

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
	"github.com/fddhdb/fddhdb/files/npy"
)

// The bytes are those of numpy.save for the same matrix.
func TestWriterBytes(t *testing.T) {
	head := func(descr, shape string) string {
		s := "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }"
		return "\x93NUMPY\x01\x00\x76\x00" + s + strings.Repeat(" ", 117-len(s)) + "\n"
	}
	var file bytes.Buffer
	f := must(npy.NewWriter[float32](&file, 2, 2))(t)
	check(t, errors.Join(f.Write([]float32{1, -2, .5, 3}), f.Close()))
	if want := head("<f4", "(2, 2)") +
		"\x00\x00\x80\x3f\x00\x00\x00\xc0\x00\x00\x00\x3f\x00\x00\x40\x40"; file.String() != want {
		t.Errorf("got\n%swant\n%s", hex.Dump(file.Bytes()), hex.Dump([]byte(want)))
	}

	file.Reset()
	u := must(npy.NewWriter[uint8](&file, 1, 3))(t)
	check(t, errors.Join(u.Write([]byte{0, 1, 255}), u.Close()))
	if want := head("|u1", "(1, 3)") + "\x00\x01\xff"; file.String() != want {
		t.Errorf("got\n%swant\n%s", hex.Dump(file.Bytes()), hex.Dump([]byte(want)))
	}
}

// Data starts at a multiple of 64, whatever the length of the shape.
func TestWriterAlignment(t *testing.T) {
	for rows, digits := 0, 0; digits < 17; rows, digits = 10*rows+7, digits+1 {
		var file bytes.Buffer
		w := must(npy.NewWriter[uint8](&file, rows, 1))(t)
		w.Close()
		b := file.Bytes()
		if n := len(b); n%64 != 0 || b[n-1] != '\n' || int(b[8])+int(b[9])<<8 != n-10 {
			t.Errorf("a header of %d bytes for %d rows", n, rows)
		}
	}
}

func TestWriterMisuse(t *testing.T) {
	for _, shape := range [][2]int{{-1, 1}, {1, 0}, {1, -1}, {1, matrix.MaxCols + 1}} {
		if _, err := npy.NewWriter[float32](io.Discard, shape[0], shape[1]); err == nil {
			t.Errorf("a matrix of shape %v is written", shape)
		}
	}
	var file bytes.Buffer
	w := must(npy.NewWriter[float32](&file, 3, 2))(t)
	for _, c := range []struct {
		data []float32
		want string
	}{
		{make([]float32, 3), "3 values are not a multiple of the 2 columns of the matrix"},
		{make([]float32, 8), "4 rows are more than the 3 of 3 that are left of the matrix"},
	} {
		if err := w.Write(c.data); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	if err := w.Write(make([]float32, 4)); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err == nil || err.Error() != "1 of the 3 rows of the matrix were not written" {
		t.Errorf("Close with a row missing: %v", err)
	}
}

// The disk may be full at any byte: some call must return the error.
func TestWriterReportsErrors(t *testing.T) {
	full := errors.New("the disk is full")
	rows := make([]float32, 100*64)
	for room := 0; room < 128+4*100*len(rows); room += 99_991 {
		w := must(npy.NewWriter[float32](&limitedWriter{room, full}, 100*100, 64))(t)
		var err error
		for range 100 {
			err = errors.Join(err, w.Write(rows))
		}
		if err = errors.Join(err, w.Close()); !errors.Is(err, full) {
			t.Fatalf("room for %d bytes: %v", room, err)
		}
	}
}

type limitedWriter struct {
	room int
	err  error
}

func (w *limitedWriter) Write(b []byte) (int, error) {
	if len(b) > w.room {
		n := w.room
		w.room = 0
		return n, w.err
	}
	w.room -= len(b)
	return len(b), nil
}

// A file of WriteAll reads back. Rows that are no matrix are refused, with the name of the file.
func TestWriteAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.npy")
	for range 2 { // it replaces what is there
		check(t, npy.WriteAll(path, [][]float32{{1, -2, 3}, {4, 5, 6.5}}))
	}
	data, rows, cols, err := ReadAll(path)
	if err != nil || rows != 2 || cols != 3 || !slices.Equal(data, []float32{1, -2, 3, 4, 5, 6.5}) {
		t.Errorf("%v of %d x %d, %v", data, rows, cols, err)
	}
	for _, err := range []error{
		npy.WriteAll(path, [][]uint8{{1, 0}, {1}}), npy.WriteAll(path, [][]uint8{}),
		npy.WriteAll(path, [][]uint8{{}}),
		npy.WriteAll(filepath.Join(path, "b.npy"), [][]uint8{{1}}),
	} {
		var e *Error
		if !errors.As(err, &e) || !strings.HasPrefix(e.File, path) || strings.Count(err.Error(), path) != 1 {
			t.Errorf("%v", err)
		}
	}
}
