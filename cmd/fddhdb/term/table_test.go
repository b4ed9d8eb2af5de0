package term

import (
	"bytes"
	"io"
	"testing"
)

func TestPrintTable(t *testing.T) {
	var out bytes.Buffer
	e := NewPrinter(&out, io.Discard)
	e.PrintTable([]Column{Left("name"), Right("n")}, [][]any{{"ü", 5}, {"longer", "1,000"}})
	e.Stdout.Flush()
	if got, want := out.String(), "name        n\nü           5\nlonger  1,000\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
