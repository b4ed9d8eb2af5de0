package main

import (
	"io"
	"os"
	"strings"
	"testing"
)

// The first backup has everything, and the database that is restored from it is as it
// was then.
func TestBackup(t *testing.T) { testBackup(t) }

func TestBackupToFolder(t *testing.T) {
	if testing.Short() {
		t.Skip("the same as without a folder, but for where it is")
	}
	dir := t.TempDir()
	testBackup(t, dir)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) == 0 {
		t.Errorf("%d entries in the folder of the backups, %v", len(entries), err)
	}
}

func testBackup(t *testing.T, args ...string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, given := os.Stdout, os.Args
	os.Stdout, os.Args = w, append([]string{"backup"}, args...)
	main()
	os.Stdout, os.Args = stdout, given
	w.Close()
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	text := string(out)
	if strings.Count(text, "of them new\n") != 2 ||
		!strings.HasSuffix(text, "\n5 of the 10 items that the database finds came after the first backup\n"+
			"the restored database finds the same 10 items as the database did then\n") {
		t.Errorf("output:\n%s", text)
	}
}
