package text

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/fddhdb/fddhdb/files/table"
)

// An array of objects gives the items and errors of the same objects a line, with rows for places.
func TestArray(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"\ufeff[{\"key\":\"a\",\"labels\":[\"x, y\",\"]\"]},\r\n {\"key\":\n\"b\"}\n]\n",
			[]string{`{"f":{},"k":"a","l":["x, y","]"],"v":{}}`, `{"f":{},"k":"b","l":null,"v":{}}`}},
		{`[]`, nil},
		{` [ {"key":"\"\\"}, {"key":1}, {} ] `, []string{`{"f":{},"k":"\"\\","l":null,"v":{}}`,
			`x: row 1: key: byte 8: a string is expected, not "1}"`, `{"f":{},"k":"","l":null,"v":{}}`}},
		{`[{"key":"a` + "\n" + `b"},{}]`, []string{
			`x: row 0: key: byte 10: a string has the control character '\r', which has to be escaped`,
			`{"f":{},"k":"","l":null,"v":{}}`}},
		{`[{},{}}`, []string{`{"f":{},"k":"","l":null,"v":{}}`,
			`x: row 1: byte 2: the end is expected, not "}"`}},
		{`[{} {}]`, []string{`x: row 0: byte 4: the end is expected, not "{}"`}},
	} {
		r, err := OpenItems(memory(c.text))
		check(t, err)
		got := rows(t, r)
		if len(got) != len(c.want) {
			t.Errorf("%q: %q", c.text, got)
		}
		for i := range min(len(got), len(c.want)) {
			if got[i] != c.want[i] {
				t.Errorf("%q: got  %s\nwant %s", c.text, got[i], c.want[i])
			}
		}
	}
	for text, want := range map[string]string{
		`[{"key":"a"}`:   "x: ends inside its array: the file is truncated",
		`[{"key":"a"}]x`: `x: has more than one array: "x" follows it`,
	} {
		if _, err := OpenItems(memory(text)); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	v, err := OpenJSONL(memory("[[1,2],\n[3]]"))
	if want := "x: row 1: has 1 numbers where line 1 has 2"; err == nil || err.Error() != want {
		t.Errorf("%v, %v", v, err)
	}
	columns := must(must(OpenJSONLTable(memory(`[{"x":[1,2]},{"x":[1]},{"x":[3]},{"x":[4,5]}]`)))(t).Columns())(t)
	if want := "2 in row 0, 1 in row 1"; columns[0].Ragged != want {
		t.Errorf("%+v", columns[0])
	}
	if _, ok := must(OpenItems(memory(`[{"id":1}]`)))(t).(*table.Table); !ok {
		t.Error("an array of other objects is no table")
	}
}

// A JSON array has the elements that encoding/json finds, whatever the blocks in which it is read.
func FuzzArray(f *testing.F) {
	for _, s := range []string{`[{"a":[1,{"b":"],\\\""}]},{}]`, "[[1,2] ,\n\t[3]\r\n]\n", `[]`, `[{}`, `[{}}`,
		`[[1]] 2`, `[{}},{]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		src := memory(string(b))
		if !isArray(src) {
			return
		}
		var got [][]byte
		var failed error
		l := newJSONLines(src, true, Whole)
		for failed == nil {
			var line []byte
			if line, failed = l.Next(); failed == nil && len(bytes.TrimSpace(line)) > 0 {
				got = append(got, slices.Clone(line))
			}
		}
		slow, err := io.ReadAll(&elements{r: iotest.OneByteReader(bytes.NewReader(b))})
		if again, err2 := io.ReadAll(&elements{r: bytes.NewReader(b)}); !bytes.Equal(slow, again) ||
			(err == nil) != (err2 == nil) {
			t.Errorf("%q and %q, %v and %v", slow, again, err, err2)
		}
		var want []json.RawMessage
		if !json.Valid(b) || json.Unmarshal(b, &want) != nil {
			return
		}
		if failed != io.EOF || len(got) != len(want) {
			t.Fatalf("%q: %q, %v", b, got, failed)
		}
		for i := range got {
			var x, y bytes.Buffer
			check(t, json.Compact(&x, got[i]))
			check(t, json.Compact(&y, want[i]))
			if x.String() != y.String() {
				t.Errorf("%q: element %d is %s, not %s", b, i, &x, &y)
			}
		}
	})
}

// A file with an object or a vector a line is none, whatever its name.
func TestIsArray(t *testing.T) {
	for text, want := range map[string]bool{"": false, "[": false, "[1,2]": false, "{}": false, " [\n{": true,
		"\ufeff[[": true, "[]\n": true, "[]\n[1]": false, strings.Repeat(" ", 10000) + "[ [": true} {
		if isArray(memory(text)) != want {
			t.Errorf("%.20q", text)
		}
	}
}
