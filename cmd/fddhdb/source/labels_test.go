package source

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
)

func TestOpenLabels(t *testing.T) {
	dir := t.TempDir()
	clitest.WriteNPY(t, filepath.Join(dir, "matrix.npy"), [][]uint8{{0, 1, 1}, {0, 0, 0}, {1, 0, 0}})
	clitest.WriteFile(t, filepath.Join(dir, "text.txt"), "dog,cat\n\nant\n")
	clitest.WriteFile(t, filepath.Join(dir, "names.txt"), "ant\ncat\ndog\n")
	clitest.WriteFile(t, filepath.Join(dir, "more.txt"), "ant\ncat\ndog\nelk\n")
	for _, c := range []struct {
		file, names string
		labels      []string
		rows        [][]string
		ordered     bool
	}{
		{"matrix.npy", "", []string{"0", "1", "2"}, [][]string{{"1", "2"}, nil, {"0"}}, true},
		{"matrix.npy", "names.txt", []string{"ant", "cat", "dog"}, [][]string{{"cat", "dog"}, nil, {"ant"}},
			true},
		{"text.txt", "", []string{"dog", "cat", "ant"}, [][]string{{"dog", "cat"}, nil, {"ant"}}, false},
		{"text.txt", "more.txt", []string{"ant", "cat", "dog", "elk"},
			[][]string{{"cat", "dog"}, nil, {"ant"}}, true},
	} {
		names := c.names
		if names != "" {
			names = filepath.Join(dir, names)
		}
		s, err := OpenLabels(filepath.Join(dir, c.file), names)
		if err != nil {
			t.Errorf("%s, %s: %v", c.file, c.names, err)
			continue
		}
		rows := s.All()
		for i, row := range rows {
			if c.file == "text.txt" && c.names != "" && i == 0 && len(row) == 2 {
				rows[i] = []string{min(row[0], row[1]), max(row[0], row[1])} // sets have no order
			}
		}
		if diff := cmp.Diff(c.labels, s.read.Names); diff != "" {
			t.Errorf("%s, %s: names: %s", c.file, c.names, diff)
		}
		if diff := cmp.Diff(c.rows, rows); diff != "" || s.Ordered != c.ordered {
			t.Errorf("%s, %s: ordered %v, rows: %s", c.file, c.names, s.Ordered, diff)
		}
	}
	if _, err := OpenLabels(filepath.Join(dir, "matrix.npy"), filepath.Join(dir, "more.txt")); err == nil {
		t.Error("a matrix of 3 columns takes 4 names")
	}
}
