package command

import (
	"os"
	"path/filepath"
	"testing"
)

func TestOutFiles(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	writeFile(t, a, "before")
	write := func(o *outFiles) {
		for _, path := range []string{a, b, os.DevNull} {
			f, err := o.create(path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteString("after"); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(wantA string, wantFiles int) {
		t.Helper()
		if got, err := os.ReadFile(a); err != nil || string(got) != wantA {
			t.Errorf("a: %q, %v", got, err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != wantFiles {
			t.Errorf("%v, %v", entries, err)
		}
	}
	var failed outFiles
	write(&failed)
	check("before", 3)
	failed.discard()
	check("before", 1)

	var done outFiles
	write(&done)
	if err := done.commit(); err != nil {
		t.Fatal(err)
	}
	check("after", 2)
	done.discard()
	check("after", 2)
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("%s: %v, %v", os.DevNull, info, err)
	}
}
