package outfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/db"
)

func writeText(t *testing.T, path, text string) {
	t.Helper()
	clitest.Check(t, os.WriteFile(path, []byte(text), 0o666))
}

// One file has many names, and files of a database must not be written to.
func TestOutFilesAreTheirOwn(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	writeText(t, "a", "before")
	if err := os.Symlink("a", "link"); err != nil {
		t.Skip(err)
	}
	for _, other := range []string{"a", "./a", filepath.Join(dir, "a"), "link"} {
		var o Set
		if _, err := o.Create("a"); err != nil {
			t.Fatal(err)
		}
		if _, err := o.Create(other); err == nil {
			t.Errorf("a and %s were both opened", other)
		}
		o.Discard()
	}
	var o Set
	f := clitest.Must(o.Create("link"))(t)
	if _, err := f.WriteString("after"); err != nil {
		t.Fatal(err)
	}
	clitest.Check(t, o.Commit())
	if got, _ := os.ReadFile("a"); string(got) != "after" {
		t.Errorf("a holds %q", got)
	}
	if info, err := os.Lstat("link"); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}

	clitest.Check(t, os.MkdirAll(filepath.Join("d", "store"), 0o755))
	writeText(t, filepath.Join("d", db.MarkerName), "marker")
	for _, path := range []string{"d/" + db.MarkerName, "d/new", "d/store/000001.sst"} {
		var o Set
		if _, err := o.Create(path); exit.Code(err) != exit.Usage {
			t.Errorf("%s: %v", path, err)
		}
		o.Discard()
	}
}

func TestOutFiles(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	writeText(t, a, "before")
	write := func(o *Set) {
		for _, path := range []string{a, b, os.DevNull} {
			f := clitest.Must(o.Create(path))(t)
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
	var failed Set
	write(&failed)
	check("before", 3)
	failed.Discard()
	check("before", 1)

	var done Set
	write(&done)
	clitest.Check(t, done.Commit())
	check("after", 2)
	done.Discard()
	check("after", 2)
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("%s: %v, %v", os.DevNull, info, err)
	}
}
