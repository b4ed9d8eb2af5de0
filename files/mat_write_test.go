package files

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestMATComesBack(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	random := rand.New(rand.NewPCG(1, 2))
	path := filepath.Join(t.TempDir(), "x.mat")
	for _, size := range [][2]int{{0, 3}, {1, 1}, {7, 3}, {5, 8}, {matBlock/4/3 + 5, 3}} {
		rows, cols := size[0], size[1]
		x := make([]float32, rows*cols)
		for i := range x {
			x[i] = float32(random.NormFloat64())
		}
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w, err := NewMATWriter(f, "x", rows, cols)
		if err != nil {
			t.Fatal(err)
		}
		for row := range slices.Chunk(x, cols) {
			if err := w.Write(row); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Write(make([]float32, cols)); err == nil {
			t.Error("a row too many is written")
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		got, n, d, err := ReadAll(path)
		if err != nil || n != rows || d != cols || !slices.Equal(got, x) {
			t.Errorf("%d x %d comes back as %d x %d, %v", rows, cols, n, d, err)
		}
	}
}

func TestSparseMATComesBack(t *testing.T) {
	var out bytes.Buffer
	w, err := NewMATSparseWriter(&out, "some_1", 4)
	if err != nil {
		t.Fatal(err)
	}
	rows := []sparseRow{{[]uint32{0, 3}, []float32{1, -.1}}, {}, {[]uint32{1, 2, 3}, []float32{3e38, 1e-45, 5}}, {}}
	for _, x := range rows {
		if err := w.Write(x.index, x.value); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	src := memory("x", out.Bytes())
	src.member = "some_1"
	r, err := openMAT(src)
	if err != nil || r.Rows() != len(rows) || r.Cols() != 4 {
		t.Fatal(r, err)
	}
	for i, want := range rows {
		index, value, err := r.(SparseReader).NextSparse(nil, nil)
		if err != nil || !slices.Equal(index, want.index) || !slices.Equal(value, want.value) {
			t.Errorf("row %d: %v %v, %v", i, index, value, err)
		}
	}
}

// sparseRow is a row of a test.
type sparseRow struct {
	index []uint32
	value []float32
}

func TestMATNames(t *testing.T) {
	for name, want := range map[string]bool{"x": true, "image_1": true, "": false, "1x": false, "a b": false, "é": false, "_x": false} {
		if matName(name) != want {
			t.Errorf("%q is taken to be a name: %t", name, !want)
		}
	}
}
