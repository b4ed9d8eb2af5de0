package parquet

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
	"github.com/fddhdb/fddhdb/files/table"
)

// Files of DuckDB, Polars and arrow-rs: see testdata/README.md.
func TestFilesOfOtherWriters(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.parquet"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		r, err := OpenItems(must(matrix.Open(file, file))(t))
		var columns []table.Column
		if err == nil {
			columns, err = r.Columns()
		}
		if err == nil {
			err = r.Map(usesOf(columns))
		}
		if err != nil {
			t.Error(err)
			continue
		}
		if r.Rows() != 12 {
			t.Errorf("%s has %d rows", file, r.Rows())
		}
		duckdb, arrow := strings.Contains(file, "duckdb"), strings.Contains(file, "arrow")
		var it table.Item
		for i := 0; ; i++ {
			err := r.Next(&it)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Error(err)
				break
			}
			if d := cmp.Diff(normal(it), normal(otherItem(i, duckdb, arrow))); d != "" {
				t.Errorf("%s: row %d: %s", file, i, d)
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func otherItem(i int, duckdb, arrow bool) table.Item {
	it := table.Item{Key: fmt.Sprint("k", i), Labels: []string{fmt.Sprint("l", i%3), "x"},
		Vectors: map[string][]float32{}, Fields: map[string]any{}}
	if i == 4 {
		it.Labels = nil
	}
	x := []float32{.25*float32(i) + 1, -float32(i), .001}
	if i != 5 {
		it.Vectors["image"] = x
	}
	if duckdb || arrow && i != 5 {
		it.Vectors["fixed"] = x
	}
	if arrow {
		it.Vectors["half"] = []float32{.5 * float32(i), -float32(i)}
	}
	if i%5 != 0 {
		it.Fields["year"] = int64(i)
	}
	if duckdb {
		it.Payload = fmt.Append(nil, "p", i)
		it.Vectors["ints"] = []float32{float32(i), 300 - float32(i)}
		it.Sparse = map[string]table.Sparse{"bag": {Index: []uint32{1, uint32(3 + i%5)}, Value: []float32{1.5,
			float32(i + 1)}}}
		it.Fields["even"], it.Fields["x"], it.Fields["title"] = i%2 == 0, float64(i)/4,
			fmt.Sprint("title ", i)
	}
	return it
}

// opened opens a column of vectors.
func opened(t *testing.T, path, column string) (*matrix.Vectors, error) {
	t.Helper()
	src := must(matrix.Open(path, path))(t)
	t.Cleanup(func() { _ = src.Close() })
	if src.Member = column; column != "" {
		src.Name += ":" + column
	}
	return Open(src)
}

// Columns of vectors, one at a time.
func TestVectorsOfOtherWriters(t *testing.T) {
	path := filepath.Join("testdata", "duckdb_snappy.parquet")
	for column, cols := range map[string]int{"image": 3, "fixed": 3, "ints": 2, "bag": 8} {
		r, err := opened(t, path, column)
		if err != nil {
			t.Error(err)
			continue
		}
		if r.Rows != 12 || r.Cols != cols {
			t.Errorf("%s is %d x %d", column, r.Rows, r.Cols)
		}
		x := make([]float32, cols)
		for i := range 12 {
			err := r.Next(x)
			if column == "image" && i == 5 {
				wantError(t, err, path+":image: row 5, column 0: the vector is null")
				continue
			}
			want := otherItem(i, true, false).Vectors[column]
			if column == "bag" {
				want = make([]float32, cols)
				want[1], want[3+i%5] = 1.5, float32(i+1)
			}
			if err != nil || !slices.Equal(x, want) {
				t.Errorf("%s, row %d: %v, %v, want %v", column, i, x, err, want)
			}
		}
		if err := r.Next(x); err != io.EOF {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := r.Next(x); err == nil || err == io.EOF {
			t.Errorf("%v after Close", err)
		}
	}
	for column, want := range map[string]string{
		"":       `has several columns of vectors: say which with`,
		"title":  `column "title" has strings: vectors are`,
		"labels": `column "labels" has lists of strings: vectors are`,
		"nosuch": `has no column "nosuch": there is`,
	} {
		_, err := opened(t, path, column)
		wantError(t, err, want)
	}
	r, err := opened(t, filepath.Join("testdata", "polars.parquet"), "") // its only column of vectors
	if err != nil || r.Cols != 3 {
		t.Fatal(r, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
