package main

import (
	"io"
	"os"
	"strings"
	"testing"
)

// The program finds the right items.
func TestQuickstart(t *testing.T) {
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
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 3 {
		t.Fatalf("output:\n%s", out)
	}
	for _, line := range lines {
		if !strings.HasPrefix(line, "dark blue ") {
			t.Errorf("a hit for dark blue: %s", line)
		}
	}
}
