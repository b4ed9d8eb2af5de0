package common

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A flag takes what its experiment can do, and refuses the rest before anything is measured.
func TestFlags(t *testing.T) {
	radius, items, seeds := Ints{1, 2}, Ints{5}, 3
	parse := func(args ...string) error {
		cmd := New("x", "X", "", cobra.NoArgs, func(*cobra.Command, []string) error { return nil })
		f := FlagsOf(cmd)
		f.Var(&radius, "radius", "")
		f.Items(&items)
		f.Seeds(&seeds)
		return Execute(context.Background(), cmd, args, io.Discard, io.Discard)
	}
	for _, c := range []struct {
		word string
		want Ints
	}{{"10,0,300", Ints{10, 0, 300}}, {"7", Ints{7}}, {"", nil}} {
		if err := parse("--radius", c.word); err != nil || !slices.Equal(radius, c.want) ||
			radius.String() != c.word {
			t.Errorf("%q: %v, %v", c.word, radius, err)
		}
	}
	if err := parse("--items", "4,9", "--seeds", "2"); err != nil || !slices.Equal(items, Ints{4, 9}) ||
		seeds != 2 {
		t.Errorf("%v, %d: %v", items, seeds, err)
	}
	for _, bad := range [][]string{
		{"--radius", "x"}, {"--radius", "10,,20"}, {"--radius", "-1"}, {"--radius", "1, 2"},
		{"--items", ""}, {"--items", "3,0"}, {"--items", "x"}, {"--seeds", "0"}, {"--seeds", "-1"},
		{"--seeds", "x"}, {"--other"}, {"more"},
	} {
		if err := parse(bad...); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	Head(&b, 1, "set", "items", "seconds")
	Row(&b, "U", "10", "0.5")
	if want := "| set | items | seconds |\n| --- | ---: | ---: |\n| U | 10 | 0.5 |\n"; b.String() != want {
		t.Error(b.String())
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{5, 1, 3}, 3}, {[]float64{4, 1, 3, 2}, 3}} {
		if got := Median(c.values); got != c.want {
			t.Errorf("%v: %v", c.values, got)
		}
	}
}
