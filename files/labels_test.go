package files

import (
	"archive/zip"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
	"github.com/fddhdb/fddhdb/files/npy"
)

func readLabelsNPY(src matrix.Source) (*Labels, error) {
	v, err := npy.Open(src, true)
	if err != nil {
		return nil, err
	}
	return labelsOf(v)
}

func TestLabelsNPY(t *testing.T) {
	matrix := "[0 1 2] [[0 2] [] [1]]"
	vector := "[0 1 2] [[2] [0] [2]]"
	for _, c := range []struct {
		descr, shape string
		values       any
		want         string
	}{
		{"|u1", "(3, 3)", []uint8{1, 0, 1, 0, 0, 0, 0, 1, 0}, matrix},
		{"|i1", "(3, 3)", []int8{1, 0, 1, 0, 0, 0, 0, 1, 0}, matrix},
		{"|b1", "(3, 3)", []uint8{1, 0, 1, 0, 0, 0, 0, 1, 0}, matrix},
		{"<i2", "(3, 3)", []int16{1, 0, 1, 0, 0, 0, 0, 1, 0}, matrix},
		{">u4", "(3, 3)", []uint32{1, 0, 1, 0, 0, 0, 0, 1, 0}, matrix},
		{">i8", "(3, 3)", []int64{1, 0, 1, 0, 0, 0, 0, 1, 0}, matrix},
		{"<f4", "(3, 3)", []float32{1, 0, 1, 0, 0, 0, 0, 1, 0}, matrix},
		{"<f8", "(3, 3)", []float64{1, 0, 1, 0, 0, 0, 0, 1, 0}, matrix},
		{"|u1", "(3, 1)", []uint8{1, 0, 1}, "[0] [[0] [] [0]]"}, // n x 1 is a matrix
		{"|u1", "(0, 3)", []uint8{}, "[0 1 2] []"},
		{"|u1", "(3,)", []uint8{2, 0, 2}, vector},
		{"<i8", "(3,)", []int64{2, 0, 2}, vector},
		{">u8", "(3,)", []uint64{2, 0, 2}, vector},
		{"<f8", "(3,)", []float64{2, 0, 2}, vector},
		{"<f2", "(3,)", []uint16{0x4000, 0, 0x4000}, vector},
		{"|b1", "(2,)", []uint8{1, 0}, "[0 1] [[1] [0]]"},
		{"<i4", "(0,)", []int32{}, "[] []"},
		{"<i4", "(3,)", []int32{2, -1, 2}, "[0 1 2] [[2] [] [2]]"},
		{"<f4", "(2,)", []float32{0, float32(math.NaN())}, "[0] [[0] []]"},
	} {
		t.Run(c.descr+c.shape, func(t *testing.T) {
			l := must(readLabelsNPY(memory("y.npy", build(t, 1, c.descr, "False", c.shape, c.values))))(t)
			if got := fmt.Sprint(l.Names, " ", l.Sets); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestLabelsNPYRejects(t *testing.T) {
	for _, c := range []struct {
		descr, shape string
		values       any
		want         string
	}{
		{"|u1", "(2, 2)", []uint8{0, 1, 2, 0},
			"y.npy: row 1, column 0: 2 is neither 0 nor 1, which is what a matrix of labels holds; class numbers are an array of one dimension"},
		{"|i1", "(2, 2)", []int8{0, 1, 1, -1}, "y.npy: row 1, column 1: -1 is neither 0 nor 1"},
		{"|b1", "(1, 2)", []uint8{0, 7},
			"y.npy: row 0, column 1: a bool is 0 or 1, not 7: the file is damaged"},
		{"<f8", "(1, 2)", []float64{0, .5}, "y.npy: row 0, column 1: 0.5 is neither 0 nor 1"},
		{"<f8", "(1, 2)", []float64{0, math.NaN()}, "y.npy: row 0, column 1: NaN is neither 0 nor 1"},
		{"<u8", "(1, 1)", []uint64{math.MaxUint64},
			"y.npy: row 0, column 0: 18446744000000000000 is neither 0 nor 1"},
		{"<i8", "(3,)", []int64{0, 1, -2},
			"y.npy: row 2: the class number -2 is negative: they count from 0, and -1 stands for none"},
		{"<i4", "(2,)", []int32{0, 1 << 20},
			"y.npy: row 1: the class number 1048576 is too large: at most 1,048,576 labels are supported, numbered from 0"},
		{"<u8", "(1,)", []uint64{math.MaxUint64},
			"y.npy: row 0: the class number 18446744000000000000 is too large"},
		{"<f4", "(1,)", []float32{.1}, "y.npy: row 0: 0.1 is not a class number: they are integers from 0"},
		{"<f4", "(1,)", []float32{float32(math.Inf(1))}, "y.npy: row 0: +Inf is not a class number"},
		{"|b1", "(1,)", []uint8{2}, "y.npy: row 0, column 0: a bool is 0 or 1, not 2: the file is damaged"},
		{"|u1", "(1, 1, 1)", []uint8{1}, "y.npy: has 3 dimensions"},
	} {
		t.Run(c.descr+c.shape, func(t *testing.T) {
			_, err := readLabelsNPY(memory("y.npy", build(t, 1, c.descr, "False", c.shape, c.values)))
			wantError(t, err, c.want)
		})
	}
}

func TestLabelsLargestClass(t *testing.T) {
	l, err := readLabelsNPY(memory("y.npy", build(t, 1, "<i4", "False", "(1,)", []int32{maxLabels - 1})))
	if err != nil || len(l.Names) != maxLabels || l.Names[maxLabels-1] != "1048575" {
		t.Errorf("%d names, %v", len(l.Names), err)
	}
}

func TestLabelsText(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	for _, c := range []struct{ name, text, want string }{
		{"lines", "dog\ncat\ndog\n", `["dog" "cat"] [[0] [1] [0]]`},
		{"no last newline", "dog\ncat", `["dog" "cat"] [[0] [1]]`},
		{"several", "dog, cat\n cat ,old dog,dog\t\n", `["dog" "cat" "old dog"] [[0 1] [0 1 2]]`},
		{"ascending", "a,b,c\nc,a\n", `["a" "b" "c"] [[0 1 2] [0 2]]`},
		{"twice on a line", "b,a,b,a\n", `["b" "a"] [[0 1]]`},
		{"none", "a\n\n  \n,\nb\n\n", `["a" "b"] [[0] [] [] [] [1] []]`},
		{"spreadsheet", "\ufeffa,,\r\n,b,\r\n", `["a" "b"] [[0] [1]]`},
		{"case matters", "A,a\n", `["A" "a"] [[0 1]]`},
		{"not ASCII", "Straße,日本\n", `["Straße" "日本"] [[0 1]]`},
		{"empty", "", `[] []`},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := must(textLabels("y.txt", strings.NewReader(c.text)))(t)
			if got := fmt.Sprintf("%q %v", l.Names, l.Sets); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	_, err := textLabels("y.txt", strings.NewReader("a\nb,\xff\n"))
	wantError(t, err, "y.txt: line 2: is not UTF-8 text: save the file in that encoding")

	var many strings.Builder
	for i := range maxLabels + 1 {
		fmt.Fprintln(&many, i)
	}
	_, err = textLabels("y.txt", strings.NewReader(many.String()))
	wantError(t, err, "y.txt: line 1048577: brings one label more than the 1,048,576 that are supported")
}

// Appending to the set of one item must not change that of the next.
func TestLabelsSetsAreSeparate(t *testing.T) {
	l := must(textLabels("y.txt", strings.NewReader("a\nb\n")))(t)
	_ = append(l.Sets[0], 7)
	if l.Sets[1][0] != 1 {
		t.Errorf("item 1 has labels %v", l.Sets[1])
	}
}

// The same labels in each format that has matrices or classes.
func TestLabelsOfOtherFormats(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string, b []byte) string {
		t.Helper()
		check(t, os.WriteFile(path(name), b, 0o666))
		return path(name)
	}
	matrix := build(t, 1, "|u1", "False", "(2, 3)", []uint8{1, 0, 1, 0, 0, 0})
	classes := build(t, 1, "<i8", "False", "(4,)", []int64{2, -1, 0, 1})
	write("y.npz", buildNPZ(t, zip.Deflate, member{"m", matrix}, member{"c", classes}))
	row := matWritten(t, "c", 1, 4, []float32{2, -1, 0, 1})
	for name, want := range map[string]string{
		path("y.npz:m"): "[0 1 2] [[0 2] []]",
		path("y.npz:c"): "[0 1 2] [[2] [] [0] [1]]",
		write("m.mat", matWritten(t, "m", 2, 3, []float32{1, 0, 1, 0, 0, 0})): "[0 1 2] [[0 2] []]",
		write("c.mat", matWritten(t, "c", 4, 1, []float32{2, -1, 0, 1})):      "[0 1 2] [[2] [] [0] [1]]",
		write("row.mat", row):                    "[0 1 2] [[2] [] [0] [1]]",
		write("m.csv", []byte("1,0,1\n0,0,0\n")): "[0 1 2] [[0 2] []]",
		write("named.csv", []byte(
			"red,\"a, b\",blue\r\n1,0,1\r\n0,0,0\r\n")): "[red a, b blue] [[0 2] []]",
		write("twice.csv", []byte("a,a,c\n1,0,1\n0,0,0\n")):   "[0 1 2] [[0 2] []]",
		write("c.csv", []byte("class\n2\n-1\n0\n1\nNaN\n\n")): "[0 1 2] [[2] [] [0] [1] [] []]",
		write("years.csv", []byte(
			"1999\n2001\n1999\n")): "[1999 2001] [[0] [1] [0]]",
		write("text.csv", []byte("a,b\n1\n\"\n")):                                  "[a b 1 \"] [[0 1] [2] [3]]",
		write("ragged.csv", []byte("1,0\n1\n")):                                    "[1 0] [[0 1] [0]]",
		write("numbers.csv", []byte("3,0\n1,2\n")):                                 "[3 0 1 2] [[0 1] [2 3]]",
		write("y.npy", build(t, 1, "|u1", "False", "(2, 2)", []uint8{1, 0, 0, 1})): "[0 1] [[0] [1]]",
		write("y.txt", []byte("0\n1\n")):                                           "[0 1] [[0] [1]]",
		write("y.csv", []byte("0\n1\n")):                                           "[0 1] [[0] [1]]",
		write("labels", []byte("0\n1\n")):                                          "[0 1] [[0] [1]]",
		write("empty.csv", nil):                                                    "[] []",
	} {
		l, err := ReadLabels(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := fmt.Sprint(l.Names, " ", l.Sets); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	_, err := ReadLabels("y.jsonl")
	wantError(t, err, "y.jsonl: .jsonl files are not supported: labels are read from .npy, .npz, .mat, .csv and text files")
	if _, err := ReadLabels(write("two.mat", matWritten(t, "m", 2, 2, []float32{1, 0, 2, 0}))); err == nil ||
		!strings.Contains(err.Error(), "row 1, column 0: 2 is neither 0 nor 1") {
		t.Error(err)
	}
}

// matWritten returns a .mat file of one matrix.
func matWritten(t *testing.T, name string, rows, cols int, values []float32) []byte {
	t.Helper()
	var columns []float64
	for c := range cols {
		for i := range rows {
			columns = append(columns, float64(values[i*cols+c]))
		}
	}
	m := newMAT(false)
	return m.add(m.matrix(name, mxDouble, int32(rows), int32(cols), m.doubles(columns...))).b
}
