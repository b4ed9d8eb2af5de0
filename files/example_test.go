package files_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/fddhdb/fddhdb/files"
	"github.com/fddhdb/fddhdb/files/npy"
)

// A matrix goes out row by row and comes back the same way.
func Example() {
	dir, err := os.MkdirTemp("", "files")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "image.npy")
	if err := write(path); err != nil {
		fmt.Println(err)
		return
	}
	if err := read(path); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 2 x 3
	// [1 2 3]
	// [4 5 6]
}

func write(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := npy.NewWriter[float32](f, 2, 3)
	if err != nil {
		return err
	}
	for _, row := range [][]float32{{1, 2, 3}, {4, 5, 6}} {
		if err := w.Write(row); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return f.Close()
}

func read(path string) error {
	r, err := files.Open(path, path)
	if err != nil {
		return err
	}
	defer r.Close()
	fmt.Println(r.Rows, "x", r.Cols)
	for x := make([]float32, r.Cols); ; {
		err := r.Next(x)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err // "image.npy: row 17, column 3: NaN is not ..."
		}
		fmt.Println(x)
	}
}
