package inside

import (
	"os"
	"path/filepath"
	"testing"
)

// A path is in a database if the file would be made there, however it is spelt, and
// whether or not it exists.
func TestDatabase(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	database := filepath.Join(root, "a.db")
	outside := filepath.Join(root, "outside")
	damaged := filepath.Join(root, "damaged.db")
	for _, dir := range []string{filepath.Join(database, "other"), filepath.Join(damaged, "store"), outside} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(database, markerName), `{"fddhdb": "database", "format": 1}`)
	write(filepath.Join(damaged, markerName), "\x00")
	write(filepath.Join(outside, markerName), "\x7fELF, the command on a file system without case")
	var cases = map[string]string{
		database:                                    database,
		filepath.Join(database, "other"):            database,
		filepath.Join(database, "backups"):          database,
		filepath.Join(database, "a", "b", "c", "d"): database,
		filepath.Join(outside, "..", "a.db", "x"):   database,
		filepath.Join(damaged, "store", "x"):        damaged,
		outside:                                     "",
		filepath.Join(outside, "a.db"):              "",
		filepath.Join(root, "a.db.copy"):            "",
		filepath.Join(root, "missing", "a.db"):      "",
	}
	if os.Symlink(filepath.Join(database, "other"), filepath.Join(outside, "link")) == nil {
		cases[filepath.Join(outside, "link")] = database
		cases[filepath.Join(outside, "link", "x", "y")] = database
	}
	if os.Symlink(outside, filepath.Join(database, "elsewhere")) == nil {
		cases[filepath.Join(database, "elsewhere", "x")] = ""
	}
	if _, err := os.Stat(filepath.Join(root, "A.DB")); err == nil { // on file systems that ignore case
		cases[filepath.Join(root, "A.DB", "x")] = database
	}
	for path, want := range cases {
		got := Database(path)
		if info, err := os.Stat(got); want != "" && err == nil {
			there, err := os.Stat(want)
			if err != nil || !os.SameFile(info, there) {
				t.Errorf("%s: %q, want %q", path, got, want)
			}
		} else if got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	t.Chdir(database)
	if got := Database(filepath.Join("checkpoints", "x")); got != database {
		t.Errorf("of a relative path: %q", got)
	}
}
