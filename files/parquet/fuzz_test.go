package parquet

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
	"github.com/fddhdb/fddhdb/files/table"
)

// fuzzMemory bounds the memory of a reader in a fuzz test, and fuzzRows the rows that are read: a file of a
// few bytes may have any number of null rows.
const (
	fuzzMemory = 4 << 20
	fuzzRows   = 500
)

func checkError(t *testing.T, err error) {
	t.Helper()
	var e *matrix.Error
	if !errors.As(err, &e) || e.File != "x.parquet" || e.Err == nil {
		t.Errorf("%#v is no *matrix.Error about the file", err)
	}
}

// bounded fails if f allocates more than most bytes, garbage included.
func bounded(t *testing.T, most int, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > uint64(most) {
		t.Errorf("%d bytes allocated, %d may be", n, most)
	}
}

func finite(t *testing.T, x []float32) {
	t.Helper()
	for _, v := range x {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			t.Errorf("%v is among %v", v, x)
		}
	}
}

func FuzzParquet(f *testing.F) {
	f.Add(written(f, someItems()))
	f.Add(written(f, nil))
	names, err := filepath.Glob(filepath.Join("testdata", "*.parquet"))
	if err != nil || len(names) == 0 {
		f.Fatal(names, err)
	}
	for _, name := range names {
		b := must(os.ReadFile(name))(f)
		f.Add(b)
	}
	for _, e := range encodings {
		f.Add(encoded(f, e.node, 20, 1, false))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		// Memory for pages, the memory of decompressors, and errors of rows.
		bounded(t, 64<<20+200*len(b)+fuzzRows*2000, func() {
			file, err := memory(b)
			if err != nil {
				checkError(t, matrix.FileError("x.parquet", err))
				return
			}
			file.memory.free = fuzzMemory
			r, err := tableOf(file)
			if len(b)%2 == 1 && err == nil {
				r = file.items()
				err = mapAnyhow(r, len(b)/2)
			}
			if err != nil {
				checkError(t, matrix.FileError("x.parquet", err))
				return
			}
			if r.Rows() <= fuzzRows {
				if _, err := r.Shape(); err != nil {
					checkError(t, err)
				}
			}
			var it table.Item
			for i := range fuzzRows {
				err := r.Next(&it)
				if err == io.EOF {
					if i != r.Rows() {
						t.Errorf("%d rows of %d", i, r.Rows())
					}
					break
				}
				var e *matrix.Error
				if err != nil {
					if checkError(t, err); errors.As(err, &e) && e.Row >= 0 {
						continue
					}
					break
				}
				for _, x := range it.Vectors {
					finite(t, x)
				}
				for _, x := range it.Sparse {
					finite(t, x.Value)
				}
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
		bounded(t, 64<<20+200*len(b)+fuzzRows*2000, func() {
			file, err := memory(b)
			if err != nil || file.rows > fuzzRows {
				return
			}
			file.memory.free = fuzzMemory
			r, err := file.vectors("")
			if err != nil {
				checkError(t, matrix.FileError("x.parquet", err))
				return
			}
			row := make([]float32, r.Cols)
			for {
				err := r.Next(row)
				if err == io.EOF {
					break
				}
				var e *matrix.Error
				if err != nil {
					if checkError(t, err); errors.As(err, &e) && e.Row >= 0 {
						continue
					}
					break
				}
				finite(t, row)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	})
}
