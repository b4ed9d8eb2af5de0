package common

import (
	"io"
	"slices"
	"strings"
	"testing"
)

func TestInts(t *testing.T) {
	numbers := Ints{1, 2}
	f := NewFlags("program", io.Discard)
	f.Var(&numbers, "n", "")
	for _, c := range []struct {
		word string
		want Ints
	}{{"10,0,300", Ints{10, 0, 300}}, {"7", Ints{7}}, {"", nil}} {
		if err := f.Parse([]string{"-n", c.word}); err != nil || !slices.Equal(numbers, c.want) || numbers.String() != c.word {
			t.Errorf("%q: %v, %v", c.word, numbers, err)
		}
	}
	for _, bad := range []string{"x", "10,,20", "-1", "1, 2"} {
		if err := f.Parse([]string{"-n", bad}); err == nil {
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
