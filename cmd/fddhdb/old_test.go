package main

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"
)

// oldArchive is the golden database of the oldest format.
const oldArchive = "../../db/testdata/golden/format0.tar.gz"

func oldFormat(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: old DIR")
	}
	f, err := os.Open(oldArchive)
	ts.Check(err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	ts.Check(err)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		ts.Check(err)
		b, err := io.ReadAll(r)
		ts.Check(err)
		name := ts.MkAbs(filepath.Join(args[0], filepath.FromSlash(h.Name)))
		ts.Check(os.MkdirAll(filepath.Dir(name), 0o755))
		ts.Check(os.WriteFile(name, b, 0o666))
	}
}

func copyDir(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: cpdir FROM TO")
	}
	ts.Check(os.CopyFS(ts.MkAbs(args[1]), os.DirFS(ts.MkAbs(args[0]))))
}
