package term

import (
	"bytes"
	"io"
	"math"
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

// People see a few digits of a similarity, and programs all; small ones keep digits that count.
func TestSimilarityCell(t *testing.T) {
	for x, want := range map[float32]Cell{
		.9357143: {"0.936", "0.9357143"}, 1: {"1.000", "1"}, 0: {"0.000", "0"}, -.25: {"-0.250", "-0.25"},
		.0041234: {"0.00412", "0.0041234"}, -.00001234: {"-1.23e-05", "-1.234e-05"},
	} {
		if got := SimilarityCell(x); got != want {
			t.Errorf("%v: %q, want %q", x, got, want)
		}
	}
	if got := SimilarityCell(float32(math.NaN())); got != NoCell {
		t.Errorf("none: %q", got)
	}
}
