package main

import (
	"io"
	"os"
	"strings"
	"testing"
)

// The program finds the right items, and the README shows it as it is.
func TestQuickstart(t *testing.T) {
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(source), "package main\n")
	if !strings.Contains(string(readme), "package main\n"+program) {
		t.Error("README.md shows another program than main.go")
	}

	t.Chdir(t.TempDir())
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
