package files

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
	"github.com/fddhdb/fddhdb/files/internal/text"
)

func jsonlReaderOf(t testing.TB, member, lines string) (*Vectors, error) {
	t.Helper()
	src := memory("x", []byte(lines))
	src.Member = member
	return text.OpenJSONL(src)
}

func TestJSONL(t *testing.T) {
	for name, c := range map[string]struct {
		member, text string
		want         [][]float32
	}{
		"arrays": {"", "\ufeff[1,2.5]\r\n [ -3e-1 , 0 ] \n\n\n", [][]float32{{1, 2.5}, {-.3, 0}}},
		"no end": {"", "[1]", [][]float32{{1}}},
		"members": {"image", "{\"key\":\"]\",\"image\":[1,2],\"x\":{\"image\":[1]}}\n{\"image\":[3,4]}\n",
			[][]float32{{1, 2}, {3, 4}}},
		"escaped": {"é", `{"\u00e9":[1]}`, [][]float32{{1}}},
		"sparse": {"", "{\"i\":[2,0],\"v\":[1,2]}\n{\"v\":[],\"i\":[]}\n{\"i\":[1],\"v\":[0]}\n",
			[][]float32{{2, 0, 1}, {0, 0, 0}, {0, 0, 0}}},
		"both": {"t", `{"t":{"i":[1],"v":[5]}}`, [][]float32{{0, 5}}},
	} {
		r, err := jsonlReaderOf(t, c.member, c.text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if r.Rows != len(c.want) || r.Cols != len(c.want[0]) {
			t.Errorf("%s: %d x %d", name, r.Rows, r.Cols)
		}
		row := make([]float32, r.Cols)
		for i, want := range c.want {
			if err := r.Next(row); err != nil || !slices.Equal(row, want) {
				t.Errorf("%s: row %d: %v, %v, want %v", name, i, row, err, want)
			}
		}
		if err := r.Next(row); err != io.EOF {
			t.Errorf("%s: %v at the end", name, err)
		}
	}
}

func TestJSONLThatIsNone(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "x: holds no vector",
		"\n\n":                          "x: holds no vector",
		"[1,2]\n\n[3,4]\n":              "x: line 2: is blank, and rows follow",
		"[1,2]\n[3]\n":                  "x: line 2: has 1 numbers where line 1 has 2",
		"[]\n":                          "x: holds no vector",
		"[]\n[1]\n":                     "x: line 1: has a vector without numbers",
		"1\n":                           "x: line 1: is a number, where a vector is expected",
		"[1,2\n":                        "x: line 1: byte 4: ',' or ']' is expected where the text ends",
		"[1] [2]\n":                     "x: line 1: byte 4: the end is expected",
		"[1]\n{\"i\":[0],\"v\":[1]}\n":  "x: line 2: is of another form than line 1",
		"{\"image\":[1]}\n":             `x: line 1: is an object with a member "image": say which of them is the vector with x:NAME`,
		"{\"i\":[0]}\n":                 "x: line 1: a sparse vector has",
		"{\"i\":[-1],\"v\":[1]}\n":      `x: line 1: "-1" is not a whole number`,
		"{\"i\":[1048576],\"v\":[1]}\n": "x: line 1: has a number in column 1048576, where at most 1,048,576 columns are possible",
		"[" + strings.Repeat("1,", matrix.MaxCols) + "1]": "x: line 1: has 1,048,577 columns",
	} {
		_, err := jsonlReaderOf(t, "", text)
		wantError(t, err, want)
	}
	_, err := jsonlReaderOf(t, "a", `{"b":[1]}`)
	wantError(t, err, `x: line 1: has no member "a"`)
	_, err = jsonlReaderOf(t, "a", `{"a":[1],"a":[2]}`)
	wantError(t, err, `x: line 1: has "a" twice`)
}

// A bad number costs its row only.
func TestJSONLRowsThatAreBad(t *testing.T) {
	for text, want := range map[string]string{
		"[1,NaN]":                      "x: line 2, column 1: NaN is not a finite number",
		"[1e99,2]":                     `x: line 2, column 0: "1e99" is too large for float32`,
		"[1,null]":                     "x: line 2, column 1: is null, where a number is expected",
		"[1,\"2\"]":                    "x: line 2, column 1: is a string",
		"[1,02]":                       "x: line 2, column 0: byte 3: a number is expected",
		"[1, [2, 3]]":                  "x: line 2, column 1: is an array",
		"{\"i\":[0,1],\"v\":[1]}":      "x: line 2, column 0: has 2 columns and 1 numbers",
		"{\"i\":[0,0],\"v\":[1,1]}":    "x: line 2, column 0: column 0 is there twice",
		"{\"i\":[0,1],\"v\":[1,1e40]}": `x: line 2, column 1: "1e40" is too large`,
	} {
		good := "[1,2]\n"
		if text[0] == '{' {
			good = "{\"i\":[1],\"v\":[1]}\n"
		}
		r, err := jsonlReaderOf(t, "", good+text+"\n"+good)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		row := make([]float32, r.Cols)
		for i := range 3 {
			err := r.Next(row)
			var e *Error
			switch {
			case i == 1 && (!errors.As(err, &e) || e.Row != 1 || e.Col < 0 ||
				!strings.Contains(err.Error(), want)):
				t.Errorf("%s: %v, want %s", text, err, want)
			case i != 1 && err != nil:
				t.Errorf("%s: row %d: %v", text, i, err)
			}
		}
	}
}

func FuzzJSONL(f *testing.F) {
	f.Add("", []byte("[1,2.5]\n[-3e-1,0]\n"))
	f.Add("a", []byte("{\"a\":[1],\"b\":[{}]}\n{\"a\":[NaN]}\n"))
	f.Add("", []byte("{\"i\":[2,0],\"v\":[1,2]}\n{\"v\":[],\"i\":[]}\n{\"i\":[0,0],\"v\":[1,1]}"))
	f.Add("", []byte("[1]\n[\"x\"]\n[[1]]\n[1e999]\n"))
	f.Fuzz(func(t *testing.T, member string, b []byte) {
		src := memory("x", b)
		src.Member = member
		// Two buffers of 64 KiB, one a pass, 4 MiB for a row of the greatest column, and errors of rows that
		// are refused.
		bounded(t, len(b), 5<<20, 512, func() {
			r, err := text.OpenJSONL(src)
			checkReader(t, r, err)
		})
	})
}
