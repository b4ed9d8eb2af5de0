package makeset

import (
	"io"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/files"
)

func TestFiles(t *testing.T) {
	for set, want := range map[string]struct{ labels, image, text int }{"nuswide": {10, 500, 1000},
		"multilabel": {24, 64, 48}, "pairs": {20, 128, 128}, "tail": {20, 64, 32},
		"weak": {20, 128, 128}} {
		dir := filepath.Join(t.TempDir(), "new", set)
		if err := common.Execute(t.Context(), Command(),
			[]string{"--set", set, "--items", "90", "--queries", "20", "--seed", "3", dir}, io.Discard,
			io.Discard); err != nil {
			t.Fatal(err)
		}
		data, _, err := generate(set, 110, 3)
		if err != nil {
			t.Fatal(err)
		}
		for part, from := range map[string]int{"train": 0, "query": 90} {
			for m, name := range []string{"image", "text"} {
				x, rows, cols, err := files.ReadAll(filepath.Join(dir, part+"_"+name+".npy"))
				if err != nil || rows != map[string]int{"train": 90, "query": 20}[part] ||
					cols != []int{want.image, want.text}[m] {
					t.Fatalf("%s, %s: %d x %d, %v", part, name, rows, cols, err)
				}
				for j, v := range x[:cols] {
					if v != data.Vectors[m][from][j] {
						t.Fatalf("%s, %s: number %d of the first row is %v", part, name, j, v)
					}
				}
			}
			labels, err := files.ReadLabels(filepath.Join(dir, part+"_labels.npy"))
			if err != nil || len(labels.Names) != want.labels {
				t.Fatalf("%v, %v", labels.Names, err)
			}
			for i, l := range labels.Sets[0] {
				if labels.Names[l] != strconv.Itoa(int(data.Labels[from][i])) {
					t.Errorf("%s: labels %v, want %v", part, labels.Sets[0], data.Labels[from])
				}
			}
		}
	}
}

func TestErrors(t *testing.T) {
	for _, bad := range [][]string{{}, {"--set", "other", t.TempDir()}, {"--items", "0", t.TempDir()},
		{"--items", "2", "--parts", "3", t.TempDir()}, {"a", "b"}} {
		if err := common.Execute(t.Context(), Command(), bad, io.Discard, io.Discard); err == nil {
			t.Errorf("%v passes", bad)
		}
	}
}
