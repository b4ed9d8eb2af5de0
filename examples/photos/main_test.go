package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/files"
)

func TestFiles(t *testing.T) {
	dirs := []string{filepath.Join(t.TempDir(), "a", "b"), t.TempDir()}
	for _, dir := range dirs {
		if err := command([]string{dir}, io.Discard, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	words, err := files.ReadLines(filepath.Join(dirs[0], "words.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for roll, n := range map[string]int{"photos": 1000, "test": 200, "later": 300, "latertest": 100} {
		image, rows, cols, err := files.ReadAll(filepath.Join(dirs[0], roll+"_image.npy"))
		if err != nil || rows != n || cols != 48 || slices.Min(image) < 0 || slices.Max(image) > 1 {
			t.Errorf("%s: images are %d x %d: %v", roll, rows, cols, err)
		}
		text, rows, cols, err := files.ReadAll(filepath.Join(dirs[0], roll+"_text.npy"))
		if err != nil || rows != n || cols != len(words) {
			t.Errorf("%s: texts are %d x %d: %v", roll, rows, cols, err)
			continue
		}
		labels, err := files.ReadLabels(filepath.Join(dirs[0], roll+"_labels.txt"))
		if err != nil || len(labels.Sets) != n || len(labels.Names) != 10 {
			t.Errorf("%s: %d sets of %d labels: %v", roll, len(labels.Sets), len(labels.Names), err)
		}
		keys, err := files.ReadLines(filepath.Join(dirs[0], roll+"_keys.txt"))
		if err != nil || len(keys) != n {
			t.Errorf("%s: %d keys: %v", roll, len(keys), err)
		}
		fields, err := files.ReadLines(filepath.Join(dirs[0], roll+"_fields.csv"))
		if err != nil || len(fields) != n+1 {
			t.Fatalf("%s: %d lines of fields: %v", roll, len(fields), err)
		}
		// The vector of a caption has the words of the caption, and no others.
		for i, line := range fields[1:] {
			_, caption, _ := strings.Cut(line, ",")
			for j, word := range words {
				has := slices.Contains(strings.Fields(caption), word)
				if has != (text[i*cols+j] == 1) {
					t.Fatalf("%s: %q, but %v for %q", roll, caption, text[i*cols+j], word)
				}
			}
		}
		for _, file := range []string{"_image.npy", "_text.npy", "_labels.txt", "_keys.txt", "_fields.csv"} {
			a, errA := os.ReadFile(filepath.Join(dirs[0], roll+file))
			b, errB := os.ReadFile(filepath.Join(dirs[1], roll+file))
			if errA != nil || errB != nil || !bytes.Equal(a, b) {
				t.Errorf("%s differs from run to run: %v, %v", roll+file, errA, errB)
			}
		}
	}
}

func TestAsk(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ask.npy")
	var stderr bytes.Buffer
	if err := command([]string{"-ask", "A puppy at the shore, dancing", file}, io.Discard,
		&stderr); err != nil {
		t.Fatal(err)
	}
	x, rows, _, err := files.ReadAll(file)
	if err != nil || rows != 1 {
		t.Fatal(rows, err)
	}
	var asked []string
	for i, word := range vocabulary() {
		if x[i] != 0 {
			asked = append(asked, word)
		}
	}
	if !slices.Equal(asked, []string{"puppy", "shore"}) || !strings.Contains(stderr.String(), `["dancing"]`) {
		t.Errorf("%q is asked, with the note %s", asked, &stderr)
	}
}

func TestErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{}, {"a", "b"}, {"-other"}, {file}, {"-ask", "dog"}} {
		if err := command(args, io.Discard, io.Discard); err == nil {
			t.Errorf("%q passes", args)
		}
	}
}
