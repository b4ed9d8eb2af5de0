package main

import (
	"io"
	"os"
	"strings"
	"testing"
)

// The first backup is as large as the database, and what is restored from it is as it
// was.
func TestBackup(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	main()
	os.Stdout = stdout
	w.Close()
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	text := string(out)
	if strings.Count(text, "of them new\n") != 2 || !strings.Contains(text, "the database finds what it found before: false\n") ||
		!strings.HasSuffix(text, "the restored one finds what it found before: true\n") {
		t.Errorf("output:\n%s", text)
	}
}
