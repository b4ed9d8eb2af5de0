package main

import (
	"context"
	"os"
	"testing"
)

func Example() {
	if err := find(context.Background(), paintings(), os.Stdout); err != nil {
		panic(err)
	}
	// Output:
	// picture 60 cropped is like picture 60: 16 of 256 bits differ
	// picture 120 darker is like picture 120: 2 of 256 bits differ
	// picture 180 smaller is like picture 180: 26 of 256 bits differ
	// picture 240 saved badly is like picture 240: 2 of 256 bits differ
}

// The pictures can be saved, for the command to read them.
func TestSave(t *testing.T) {
	dir := t.TempDir()
	if err := save(dir, paintings()); err != nil {
		t.Fatal(err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 304 {
		t.Errorf("%d files: %v", len(files), err)
	}
}
