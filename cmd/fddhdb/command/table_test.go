package command

import (
	"bytes"
	"io"
	"testing"
)

func TestPrintTable(t *testing.T) {
	var out bytes.Buffer
	e := newPrinter(&out, io.Discard)
	e.printTable([]column{left("name"), right("n")}, [][]any{{"ü", 5}, {"longer", "1,000"}})
	e.stdout.Flush()
	if got, want := out.String(), "name        n\nü           5\nlonger  1,000\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
