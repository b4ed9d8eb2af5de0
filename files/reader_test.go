package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/files/npy"
)

func TestOpenByExtension(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"upper.NPY": string(build(t, 1, "<f4", "False", "(1, 2)", []float32{1, 2})),
		"x.csv":     "1,2\n",
		"x.CSV":     "1,2\n",
		"wrong.npy": "1,2\n",
	} {
		path := filepath.Join(dir, name)
		check(t, os.WriteFile(path, []byte(content), 0o666))
		data, rows, cols, err := ReadAll(path)
		if name == "wrong.npy" {
			wantError(t, err, path+": is not a .npy file")
			continue
		}
		if err != nil || rows != 1 || cols != 2 || data[0] != 1 || data[1] != 2 {
			t.Errorf("%s: %v, %d x %d, %v", name, data, rows, cols, err)
		}
	}
}

func TestOpenRejects(t *testing.T) {
	for path, want := range map[string]string{
		"x.npz":       "x.npz: no such file",
		"x.NPZ:train": "x.NPZ: no such file",
		"x.mat:train": "x.mat: no such file",
		"x.jsonl:a.b": "x.jsonl: no such file",
		"x.parquet":   "x.parquet: no such file",
		"x.txt":       `x.txt: ".txt" is not an extension that tells the format: vectors are read from .npy, .npz, .csv, .jsonl, .mat and .parquet files`,
		"x":           "x: the name has no extension to tell the format: vectors are read from .npy, .npz, .csv, .jsonl, .mat and .parquet files",
	} {
		_, err := Open(path, path)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// Every function names the file once, with the error of the system.
func TestMissingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none")
	functions := map[string]func(string) error{
		".npy":  func(p string) error { _, err := Open(p, p); return err },
		".csv":  func(p string) error { _, _, _, err := ReadAll(p); return err },
		"c.npy": func(p string) error { _, err := npy.ReadCodes(p); return err },
		"l.npy": func(p string) error { _, err := ReadLabels(p); return err },
		"l.txt": func(p string) error { _, err := ReadLabels(p); return err },
		"keys":  func(p string) error { _, err := ReadLines(p); return err },
	}
	for ext, read := range functions {
		err := read(path + ext)
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", ext, err)
		}
		if want := path + ext + ": no such file or directory"; err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}

	for ext, read := range functions {
		dir := path + ext
		check(t, os.Mkdir(dir, 0o777))
		wantError(t, read(dir), dir+": is a directory")
	}
}

// Rows are read into the caller's slice and take no memory of their own.
func TestNextAllocatesNothing(t *testing.T) {
	const rows, cols = 2000, 16
	for name, open := range testReaders(t, rows, cols) {
		r := open()
		row := make([]float32, cols)
		if err := r.Next(row); err != nil { // allocates the buffers
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(rows/2, func() {
			check(t, r.Next(row))
		}); n != 0 {
			t.Errorf("%s: %v allocations a row", name, n)
		}
	}
}

// testReaders returns what opens one matrix in several files.
func testReaders(t testing.TB, rows, cols int) map[string]func() *Vectors {
	t.Helper()
	data := make([]float32, rows*cols)
	var csv strings.Builder
	for i := range data {
		data[i] = float32(i%1000) / 1001
		end := byte(',')
		if i%cols == cols-1 {
			end = '\n'
		}
		fmt.Fprintf(&csv, "%v%c", data[i], end)
	}
	shape := fmt.Sprintf("(%d, %d)", rows, cols)
	readers := map[string]func() *Vectors{}
	for name, file := range map[string][]byte{
		"c.npy":       build(t, 1, "<f4", "False", shape, data),
		"fortran.npy": build(t, 1, "<f4", "True", shape, data),
		"big.npy":     build(t, 1, ">f4", "False", shape, data),
		"x.csv":       []byte(csv.String()),
	} {
		readers[name] = func() *Vectors {
			r := must(formats[Extension(name)](memory(name, file), false))(t)
			return r
		}
	}
	return readers
}
