package files

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
	"github.com/fddhdb/fddhdb/files/internal/text"
	_ "github.com/fddhdb/fddhdb/internal/seed"
)

func readCSV(csv string) ([]float32, int, int, error) {
	r, err := text.OpenCSV(memory("x.csv", []byte(csv)))
	if err != nil {
		return nil, 0, 0, err
	}
	return restOf(r)
}

func TestCSV(t *testing.T) {
	for _, c := range []struct {
		name, text string
		cols       int
		want       [][]float32
	}{
		{"plain", "1,2\n3,4\n", 2, [][]float32{{1, 2}, {3, 4}}},
		{"no last newline", "1,2\n3,4", 2, [][]float32{{1, 2}, {3, 4}}},
		{"CRLF", "1,2\r\n3,4\r\n", 2, [][]float32{{1, 2}, {3, 4}}},
		{"byte order mark", "\ufeff1,2\n", 2, [][]float32{{1, 2}}},
		{"byte order mark before a quote", "\ufeff\"1\",2\n", 2, [][]float32{{1, 2}}},
		{"header", "a,b\n1,2\n", 2, [][]float32{{1, 2}}},
		{"header with digits", "x1,2nd\n1,2\n", 2, [][]float32{{1, 2}}},
		{"quoted header", "\"a, or \"\"b\"\"\" , c\r\n1,2\r\n", 2, [][]float32{{1, 2}}},
		{"header only", "a,b\n", 2, nil},
		{"one column", "1\n2\n", 1, [][]float32{{1}, {2}}},
		{"blanks", " 1 ,\t2\t\n", 2, [][]float32{{1, 2}}},
		{"semicolons", "1;2;3\n4;\"5\";6\n", 3, [][]float32{{1, 2, 3}, {4, 5, 6}}},
		{"semicolons below a header", "a;\"b,c,d\"\n3;4\n", 2, [][]float32{{3, 4}}},
		{"tabs", "a\tb, c\td\n3\t 4\t5\n", 3, [][]float32{{3, 4, 5}}},
		{"quotes", "\"1\", \"2\" \n", 2, [][]float32{{1, 2}}},
		{"blank lines at the end", "1,2\n\n \t\n\r\n", 2, [][]float32{{1, 2}}},
		{"spellings", "1e3,-.5,+2.,1E-2\n", 4, [][]float32{{1000, -.5, 2, .01}}},
		{"nearest", "0.1,16777217,1e-50,3.4028235e38\n", 4, [][]float32{{.1, 16777216, 0, math.MaxFloat32}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			data, rows, cols, err := readCSV(c.text)
			wantMatrix(t, data, rows, cols, err, c.want, c.cols)
		})
	}
}

func TestCSVRejects(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "x.csv: holds neither a header nor a row, so the number of columns is unknown"},
		{"blank", "\n\n", "x.csv: holds neither a header nor a row"},
		{"ragged", "a,b\n1,2\n3\n", "x.csv: line 3: has 1 columns where line 1 has 2"},
		{"ragged, more", "1,2\n3,4,\n", "x.csv: line 2: has 3 columns where line 1 has 2"},
		{"blank line", "1,2\n\n\n3,4\n",
			"x.csv: line 2: is blank, and rows follow: each line must hold a vector"},
		{"blank first line", "\n1,2\n", "x.csv: line 1: is blank, and rows follow"},
		{"quote not closed", "a,b\n\"1,2\n", "x.csv: line 2: a quote is not closed"},
		{"text after a quote", "a,b\n\"1\"2,3\n",
			`x.csv: line 2: "2,3" follows a closing quote instead of a comma`},
		{"NaN", "1,2\n3,nan\n", "x.csv: line 2, column 1: \"nan\" is not a finite number, which every value of a vector must be"},
		{"NaN on the first line", "NaN,2\n3,4\n", "x.csv: line 1, column 0: \"NaN\" is not a finite number"},
		{"Inf", "a,b\n1,2\n-Inf,2\n", "x.csv: line 3, column 0: \"-Inf\" is not a finite number"},
		{"infinity", "1,infinity\n", "x.csv: line 1, column 1: \"infinity\" is not a finite number"},
		{"too large", "1,1e39\n", "x.csv: line 1, column 1: \"1e39\" is too large for float32 (at most 3.4028235e+38): scale the column"},
		{"too large for float64", "1,-1e999\n",
			"x.csv: line 1, column 1: \"-1e999\" is too large for float32"},
		{"long number", "1," + strings.Repeat("9", 1000) + "\n",
			`x.csv: line 1, column 1: "` + strings.Repeat("9", 60) + `"... is too large for float32`},
		{"no number", "1,2\n3,x\n", `x.csv: line 2, column 1: "x" is not a number`},
		{"empty field", "1,2\n,3\n",
			"x.csv: line 2, column 0: the field is empty: every field must be a number"},
		{"row with a name", "1,NA,3\n4,5,6\n",
			`x.csv: line 1, column 1: "NA" is not a number; nor is the line a header, as column 0 has a number`},
		{"header in part", ",0\n1,2\n",
			"x.csv: line 1, column 0: the field is empty: every field must be a number; nor is the line a header, as column 1 has a number"},
		{"blanks", "1 2 3\n", `x.csv: line 1, column 0: "1 2 3" is not a number; commas separate numbers`},
		{"decimal commas", "1,5;2,5\n3,5;4,5\n",
			`x.csv: line 1, column 1: "5;2" is not a number; commas separate numbers`},
		{"long field", "1\n" + strings.Repeat("y", 1000) + "\n",
			`x.csv: line 2, column 0: "` + strings.Repeat("y", 60) + `"... is not a number`},
		{"too many columns", strings.Repeat("1,", matrix.MaxCols) + "1\n",
			"x.csv: line 1: has more than 1,048,576 columns, which is the most that is supported"},
		{"too long a line", "1\n" + strings.Repeat(" ", text.Numbers+1),
			"x.csv: line 2: is longer than 33,554,432 bytes: is this a text file?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, _, err := readCSV(c.text)
			wantError(t, err, c.want)
		})
	}

	// A program that skips bad rows needs the row; the text does not have it.
	_, _, _, err := readCSV("a,b\n1,2\n3,x\n")
	if e := wantError(t, err, "line 3, column 1"); e.Row != 1 || e.Line != 3 || e.Col != 1 {
		t.Errorf("line %d is row %d, column %d", e.Line, e.Row, e.Col)
	}
	_, _, _, err = readCSV("a,b\n1,2\n3\n")
	if e := wantError(t, err, "line 3"); e.Row != -1 || e.Col != -1 {
		t.Errorf("row %d, column %d of an error about a line", e.Row, e.Col)
	}
}

// Numbers with the fewest digits, with any quotes and blanks, come back to the bit.
func TestCSVRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(0, 20).Draw(t, "rows"), rapid.IntRange(1, 20).Draw(t, "cols")
		var text bytes.Buffer
		end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "line end")
		if rows == 0 || rapid.Bool().Draw(t, "header") {
			text.WriteString("x" + strings.Repeat(",y", cols-1) + end)
		}
		want := make([][]float32, rows)
		for i := range want {
			for j := range cols {
				x := rapid.Float32().Draw(t, "x")
				want[i] = append(want[i], x)
				if j > 0 {
					text.WriteByte(',')
				}
				text.WriteString(fmt.Sprintf(rapid.SampledFrom([]string{"%s", " %s", `"%s"`, "%s "}).Draw(t,
					"dress"),
					strconv.FormatFloat(float64(x), 'g', -1, 32)))
			}
			text.WriteString(end)
		}
		data, r, c, err := readCSV(text.String())
		if err != nil || r != rows || c != cols {
			t.Fatalf("%q: %d x %d, want %d x %d: %v", text.String(), r, c, rows, cols, err)
		}
		for i, x := range data {
			if math.Float32bits(x) != math.Float32bits(want[i/cols][i%cols]) {
				t.Fatalf("value %d is %v, want %v", i, x, want[i/cols][i%cols])
			}
		}
	})
}
