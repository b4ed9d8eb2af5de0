package term

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/fddhdb/fddhdb/internal/seed"
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

func fitted(columns []Column, rows [][]string, terminal int) (*tableLayout, []string) {
	l := layOut(columns, rows, terminal)
	lines := []string{l.spell(headings(columns))}
	for _, r := range rows {
		lines = append(lines, l.spell(r))
	}
	return l, lines
}

// On a terminal long text is cut, numbers are not, and what is short stays whole.
func TestTablesFit(t *testing.T) {
	columns := []Column{Left("key"), Left("labels"), Right("year"), Left("code")}
	long := strings.Repeat("日本", 30) // 120 columns of the terminal
	rows := [][]string{{"k1", long, "1999", strings.Repeat("f", 64)}, {"k2", "-", "-", "00"}}
	for _, c := range []struct {
		terminal int
		want     string
	}{
		{0, "k1   " + long + "  1999  " + strings.Repeat("f", 64)},
		{80, "k1   " + strings.Repeat("日本", 8) + "…   1999  " + strings.Repeat("f", 32) + "…"},
		{30, "k1   日本日本…  1999  fffffff…"},
		{10, "k1   日本…"},
	} {
		if _, lines := fitted(columns, rows, c.terminal); lines[1] != c.want {
			t.Errorf("%d columns:\n%s, want\n%s", c.terminal, lines[1], c.want)
		}
	}
}

// No line is wider than a terminal, and whatever fits is whole.
func TestTablesFitAnyTerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "columns")
		var columns []Column
		cell := rapid.StringOfN(rapid.RuneFrom([]rune("ab日é")), 0, 60, -1)
		for i := range n {
			if rapid.Bool().Draw(t, "number") {
				columns = append(columns, Right(fmt.Sprint("n", i)))
			} else {
				columns = append(columns, Left(fmt.Sprint("t", i)))
			}
		}
		rows := rapid.SliceOfN(rapid.SliceOfN(cell, n, n), 0, 4).Draw(t, "rows")
		terminal := rapid.IntRange(1, 200).Draw(t, "terminal")
		natural, whole := fitted(columns, rows, 0)
		_, lines := fitted(columns, rows, terminal)
		for _, line := range lines {
			if displayWidth(line) > terminal {
				t.Errorf("%d columns for %d: %q", displayWidth(line), terminal, line)
			}
		}
		if natural.width() <= terminal && !slices.Equal(lines, whole) {
			t.Errorf("%q fits into %d, and is printed as %q", whole, terminal, lines)
		}
	})
}

// A long table prints its rows before it has all of them. Later rows that are wider than
// the first stay whole where nothing is cut.
func TestLongTable(t *testing.T) {
	var out bytes.Buffer
	p := NewPrinter(&out, io.Discard)
	table := p.NewLongTable([]Column{Left("key"), Right("n")})
	for i := range firstRows + 1 {
		table.Add("k", i)
	}
	p.Stdout.Flush()
	if !strings.HasSuffix(out.String(), "\nk    200\n") {
		t.Errorf("printed so far: %q", out.String())
	}
	table.Add("wider", 1000)
	table.End()
	p.Stdout.Flush()
	if !strings.HasSuffix(out.String(), "\nwider  1000\n") || strings.Count(out.String(), "key") != 1 {
		t.Errorf("at the end: %q", out.String())
	}
}
