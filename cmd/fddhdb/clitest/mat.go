package clitest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fddhdb/fddhdb/files"
)

// A Matrix is a variable of a .mat file.
type Matrix struct {
	Name string
	Rows [][]float32
}

// WriteMAT writes a .mat file of version 5 with several variables.
func WriteMAT(t testing.TB, path string, variables ...Matrix) {
	t.Helper()
	const header = 128 // the variables of several files stand one after the other behind one
	var all []byte
	for _, v := range variables {
		one := filepath.Join(t.TempDir(), "one.mat")
		f, err := os.Create(one)
		if err != nil {
			t.Fatal(err)
		}
		w, err := files.NewMATWriter(f, v.Name, len(v.Rows), len(v.Rows[0]))
		for _, row := range v.Rows {
			if err == nil {
				err = w.Write(row)
			}
		}
		if err == nil {
			err = w.Close()
		}
		if err == nil {
			err = f.Close()
		}
		b, readErr := os.ReadFile(one)
		if err != nil || readErr != nil {
			t.Fatal(err, readErr)
		}
		if all != nil {
			b = b[header:]
		}
		all = append(all, b...)
	}
	if err := os.WriteFile(path, all, 0o644); err != nil {
		t.Fatal(err)
	}
}
