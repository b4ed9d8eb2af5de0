package clitest

import (
	"bytes"
	"os"
	"testing"

	"github.com/fddhdb/fddhdb/files/npy"
)

// WriteFile writes a text file.
func WriteFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// WriteNPY writes a matrix as .npy.
func WriteNPY[T float32 | uint8](t *testing.T, path string, rows [][]T) {
	t.Helper()
	var b bytes.Buffer
	w, err := npy.NewWriter[T](&b, len(rows), len(rows[0]))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if err := w.Write(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	WriteFile(t, path, b.String())
}

// OneGoroutine skips a test in short runs, which use the race detector: a test that is
// slow with it and runs one goroutine. make race runs it.
func OneGoroutine(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long with the race detector, and is one goroutine")
	}
}

// Check ends the test if there is an error.
func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Must ends the test if there is an error, and returns the value beside it if there is none.
func Must[T any](x T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Check(t, err)
		return x
	}
}
