package main

import (
	"flag"
	"os"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"
)

// The example starts its own program as nodes.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-node" {
		main()
		return
	}
	flag.Parse()
	os.Exit(m.Run())
}

func TestShow(t *testing.T) {
	effort.Slow(t)
	t.Setenv("TMPDIR", t.TempDir())
	if err := show(t.Context(), 2000); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}
