package sets

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// matFile returns a .mat file, version 5, of matrices of doubles: by name rows of numbers.
func matFile(variables map[string][][]float64) []byte {
	var b bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			binary.Write(&b, binary.LittleEndian, v)
		}
	}
	b.WriteString(strings.Repeat(" ", 124))
	put(uint16(0x0100), []byte("IM"))
	for name, rows := range variables {
		padded := name + strings.Repeat("\x00", (8-len(name)%8)%8)
		n, cols := len(rows), len(rows[0])
		put(uint32(14), uint32(16+16+8+len(padded)+8+8*n*cols)) // miMATRIX
		put(uint32(6), uint32(8), uint32(6), uint32(0))         // flags: double
		put(uint32(5), uint32(8), int32(n), int32(cols))
		put(uint32(1), uint32(len(name)), []byte(padded))
		put(uint32(9), uint32(8*n*cols))
		for c := range cols {
			for i := range n {
				put(rows[i][c])
			}
		}
	}
	return b.Bytes()
}

// Published .mat files are read in every layout, and the files are named for an import.
func TestLayouts(t *testing.T) {
	for _, l := range layouts {
		all := map[string][][]float64{
			l[0][0]: {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {1, 1, 1}}, l[0][1]: {{0, 1}, {1, 0}, {1, 1}, {2, 2}},
			l[0][2]: {{1, 0, 0}, {0, 1, 1}, {0, 0, 0}, {0, 0, 1}}, // the third has no label
		}
		if l[1][0] != "" {
			all[l[1][0]], all[l[1][1]], all[l[1][2]] = [][]float64{{9, 9, 9}, {8, 8, 8}},
				[][]float64{{3, 3}, {4, 4}}, [][]float64{{0, 1, 0}, {1, 0, 0}}
		}
		path := filepath.Join(t.TempDir(), "published.mat")
		if err := os.WriteFile(path, matFile(all), 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := Read(path)
		if err != nil {
			t.Errorf("%v: %v", l, err)
			continue
		}
		if !slices.Equal(s.Modalities, []string{"image", "text"}) || !slices.Equal(s.Dims, []int{3, 2}) ||
			len(s.Items.Labels) != 3 || !slices.Equal(s.Items.Labels[1], []string{"1", "2"}) ||
			!slices.Equal(s.Items.Vectors[0][1], []float32{4, 5, 6}) ||
			s.Train.Vectors[1] != path+":"+l[0][1] {
			t.Errorf("%v: %+v", l, s)
		}
		if (s.Queries == nil) != (l[1][0] == "") ||
			s.Queries != nil && !slices.Equal(s.Queries.Vectors[1][0], []float32{3, 3}) {
			t.Errorf("%v: queries %+v", l, s.Queries)
		}
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	rows := [][]float64{{1, 2}, {3, 4}}
	for name, c := range map[string]struct {
		variables map[string][][]float64
		says      string
	}{
		"other.mat": {map[string][][]float64{"X": rows}, "these layouts are known: I_tr T_tr L_tr"},
		"short.mat": {map[string][][]float64{"I_tr": rows, "T_tr": rows, "L_tr": {{1, 0}, {0, 1}, {1, 1}},
			"I_te": rows, "T_te": rows, "L_te": {{1, 0}, {0, 1}}}, "has 2 rows, the labels 3"},
		"wide.mat": {map[string][][]float64{"I_tr": rows, "T_tr": rows, "L_tr": {{1, 0}, {0, 1}},
			"I_te": {{1, 2, 3}, {4, 5, 6}}, "T_te": rows, "L_te": {{1, 0}, {0, 1}}}, "queries of [3 2]"},
		"lost.mat": {map[string][][]float64{"L_tr": {{1, 0}, {0, 1}}}, "there is L_tr; these layouts are known"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, matFile(c.variables), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "no files train_NAME.npy") {
		t.Error(err)
	}
}
