package text

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/fddhdb/fddhdb/internal/seed"
)

// What encoding/csv writes is read as it was.
func TestRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		comma := rapid.SampledFrom([]rune{',', ';', '\t'}).Draw(t, "comma")
		field := rapid.StringOfN(rapid.SampledFrom([]rune{'a', 'b', comma, '"', ' ', '\n', '\'', 'é'}),
			0, 6, -1)
		cols := rapid.IntRange(1, 4).Draw(t, "columns")
		records := rapid.SliceOfN(rapid.SliceOfN(field, cols, cols), 1, 5).Draw(t, "records")
		records = append([][]string{slices.Repeat([]string{"x"}, cols)}, records...) // says what separates
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		w.Comma = comma
		w.UseCRLF = rapid.Bool().Draw(t, "CRLF")
		if err := w.WriteAll(records); err != nil {
			t.Fatal(err)
		}
		r := NewRecords("x", &b, Whole, cols)
		line := 1
		for _, want := range records {
			bad, err := r.Next()
			got := make([]string, len(r.Fields))
			for i, f := range r.Fields {
				got[i] = string(f)
			}
			if bad != nil || err != nil || !slices.Equal(got, want) || r.Line != line {
				t.Fatalf("line %d: %q, %v, %v, want %q in line %d", r.Line, got, bad, err, want, line)
			}
			line += 1 + strings.Count(strings.Join(want, ""), "\n")
		}
		if _, err := r.Next(); err != io.EOF {
			t.Error(err)
		}
	})
}

// A record that is wrong costs itself, and the next one is read.
func TestRecordsThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		"a\"b,c\nz":    `has a quote inside a field`,
		"\"a\"b;c\nz":  `"b;c" follows a closing quote instead of a semicolon`,
		"\"a\"b\nz":    `"b" follows a closing quote instead of a comma`,
		"a,b,c,d\nz":   "has more than 3 columns",
		"\"a\",,,\nz":  "has more than 3 columns",
		" \"a\" , b\n": "[a  b]",
		"\"a\nb\"\nz":  "[a\nb]",
		"\"\"\n":       "[]",
		"\"a\n":        "a quote is not closed",
	} {
		r := NewRecords("x", strings.NewReader(text), Whole, 3)
		bad, err := r.Next()
		got := fmt.Sprintf("%s", r.Fields)
		if bad != nil {
			got = bad.Error()
		}
		if err != nil || !strings.Contains(got, want) || r.Empty {
			t.Errorf("%q: %q, %v, want %s", text, got, err, want)
		}
		if _, err := r.Next(); strings.HasSuffix(text, "z") && (err != nil || string(r.Fields[0]) != "z") {
			t.Errorf("%q: %v, %s after it", text, err, r.Fields)
		}
	}
}
