package vecfile

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
	} {
		t.Run(c.descr+c.shape, func(t *testing.T) {
			l, err := readLabelsNPY(memory("y.npy", build(t, 1, c.descr, "False", c.shape, c.values)))
			if err != nil {
				t.Fatal(err)
			}
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
		{"|u1", "(2, 2)", []uint8{0, 1, 2, 0}, "y.npy: row 1, column 0: 2 is neither 0 nor 1, which is what a matrix of labels holds; class numbers are an array of one dimension"},
		{"|i1", "(2, 2)", []int8{0, 1, 1, -1}, "y.npy: row 1, column 1: -1 is neither 0 nor 1"},
		{"|b1", "(1, 2)", []uint8{0, 7}, "y.npy: row 0, column 1: 7 is neither 0 nor 1"},
		{"<f8", "(1, 2)", []float64{0, .5}, "y.npy: row 0, column 1: 0.5 is neither 0 nor 1"},
		{"<f8", "(1, 2)", []float64{0, math.NaN()}, "y.npy: row 0, column 1: NaN is neither 0 nor 1"},
		{"<u8", "(1, 1)", []uint64{math.MaxUint64}, "y.npy: row 0, column 0: 18446744073709551615 is neither 0 nor 1"},
		{"<i8", "(3,)", []int64{0, 1, -1}, "y.npy: row 2: the class number -1 is negative: they count from 0; for an item without labels use a 0/1 matrix or a text file"},
		{"<i4", "(2,)", []int32{0, 1 << 20}, "y.npy: row 1: the class number 1048576 is too large: at most 1,048,576 labels are supported, numbered from 0"},
		{"<u8", "(1,)", []uint64{math.MaxUint64}, "y.npy: row 0: the class number 18446744073709551615 is too large"},
		{"<f4", "(1,)", []float32{.1}, "y.npy: row 0: 0.1 is not a class number: they are integers from 0"},
		{"<f4", "(1,)", []float32{float32(math.NaN())}, "y.npy: row 0: NaN is not a class number"},
		{"<f4", "(1,)", []float32{float32(math.Inf(1))}, "y.npy: row 0: +Inf is not a class number"},
		{"|b1", "(1,)", []uint8{2}, "y.npy: row 0: a bool is 0 or 1, not 2: the file is damaged"},
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
			l, err := readLabelsText("y.txt", strings.NewReader(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%q %v", l.Names, l.Sets); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	_, err := readLabelsText("y.txt", strings.NewReader("a\nb,\xff\n"))
	wantError(t, err, "y.txt: line 2: is not UTF-8 text: save the file in that encoding")

	var many strings.Builder
	for i := range maxLabels + 1 {
		fmt.Fprintln(&many, i)
	}
	_, err = readLabelsText("y.txt", strings.NewReader(many.String()))
	wantError(t, err, "y.txt: line 1048577: brings one label more than the 1,048,576 that are supported")
}

// Appending to the set of one item must not change that of the next.
func TestLabelsSetsAreSeparate(t *testing.T) {
	l, err := readLabelsText("y.txt", strings.NewReader("a\nb\n"))
	if err != nil {
		t.Fatal(err)
	}
	_ = append(l.Sets[0], 7)
	if l.Sets[1][0] != 1 {
		t.Errorf("item 1 has labels %v", l.Sets[1])
	}
}

func TestLabelsByExtension(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"y.npy":  string(build(t, 1, "|u1", "False", "(2, 2)", []uint8{1, 0, 0, 1})),
		"y.txt":  "0\n1\n",
		"y.csv":  "0\n1\n",
		"labels": "0\n1\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		l, err := ReadLabels(path)
		if err != nil || fmt.Sprint(l.Names, l.Sets) != "[0 1] [[0] [1]]" {
			t.Errorf("%s: %v, %v", name, l, err)
		}
	}
	_, err := ReadLabels("y.npz:y")
	wantError(t, err, "y.npz:y: .npz files are not supported: labels are read from .npy and text files; convert it with numpy.save")
	_, err = ReadLabels("y.jsonl")
	wantError(t, err, "y.jsonl: .jsonl files are not supported: labels are read from .npy and text files")
}
