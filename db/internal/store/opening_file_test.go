package store

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// What reads on in the background, when opening a store is given up, gets an error: its
// files are closed.
func TestNothingIsReadOfAFileThatIsClosed(t *testing.T) {
	mem := vfs.NewMem()
	f, err := mem.Create("000001.sst", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("table")); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	o := &opening{FS: mem, open: map[*kept]bool{}}
	if f, err = o.Open("000001.sst"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 5)
	if _, err := f.ReadAt(b, 0); err != nil || string(b) != "table" {
		t.Fatalf("%q, %v", b, err)
	}
	o.close()
	if _, err := f.ReadAt(b, 0); !errors.Is(err, fs.ErrClosed) {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
