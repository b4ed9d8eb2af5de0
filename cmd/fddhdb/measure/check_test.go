package measure

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
)

// Every kind of wrong answer is found, and no right one.
func TestCheckScan(t *testing.T) {
	c := newCheckScan(16)
	// At 0, 1, 1, 2, 9 bits from the query.
	for i, code := range [][]byte{{0xf0, 0x01}, {0xf0, 0x03}, {0xf1, 0x01}, {0xf3, 0x01}, {0x0f, 0x00}} {
		c.add(uint32(10*i), string(rune('a'+i)), code)
	}
	c.scan([]byte{0xf0, 0x01})
	for r, want := range map[int]int{-1: 0, 0: 1, 1: 3, 2: 4, 8: 4, 9: 5, 16: 5, 100: 5} {
		if got := c.count(r); got != want {
			t.Errorf("%d items within %d bits, want %d", got, r, want)
		}
	}
	a, b, d, e, f := db.Hit{Key: "a"}, db.Hit{Key: "b", Row: 10, Distance: 1}, db.Hit{Key: "c", Row: 20, Distance: 1},
		db.Hit{Key: "d", Row: 30, Distance: 2}, db.Hit{Key: "e", Row: 40, Distance: 9}
	for _, x := range []struct {
		hits []db.Hit
		n    int
		want string // part of the error; "" if the answer is right
	}{
		{nil, 0, ""},
		{[]db.Hit{a}, 1, ""},
		{[]db.Hit{a, b}, 2, ""},
		{[]db.Hit{a, d}, 2, ""}, // either of those at the same distance
		{[]db.Hit{a, d, b, e, f}, 5, ""},
		{nil, 1, "there are 0 hits, want 1"},
		{[]db.Hit{a, b}, 3, "there are 2 hits, want 3"},
		{[]db.Hit{a, b}, 1, "there are 2 hits, want 1"},
		{[]db.Hit{b}, 1, "0 hits are nearer than 1 bits, want 1"},
		{[]db.Hit{a, b, e}, 3, "2 hits are nearer than 2 bits, want 3"},
		{[]db.Hit{a, b, e, f}, 4, "3 hits are nearer than 9 bits, want 4"},
		{[]db.Hit{a, a}, 2, "row 0 comes twice"},
		{[]db.Hit{b, a}, 2, "comes after"},
		{[]db.Hit{a, {Key: "b", Row: 10, Distance: 2}}, 2, "row 10 is 1 bits away, not 2"},
		{[]db.Hit{a, {Key: "c", Row: 10, Distance: 1}}, 2, `row 10 has key "b", not "c"`},
		{[]db.Hit{a, {Key: "b", Row: 11, Distance: 1}}, 2, "row 11 is no item"},
	} {
		got, err := c.wrong(each(x.hits), x.n, true)
		if err != nil || (x.want == "") != (got == "") || !strings.Contains(got, x.want) {
			t.Errorf("%v: %q, %v, want %q", x.hits, got, err, x.want)
		}
		if slices.Contains(c.seen, true) {
			t.Fatalf("%v: something is seen afterwards", x.hits)
		}
	}
	if got, err := c.wrong(each([]db.Hit{{Row: 0}}), 1, false); got != "" || err != nil {
		t.Errorf("without keys: %q, %v", got, err)
	}
	broken := errors.New("broken")
	_, err := c.wrong(func(yield func(db.Hit, error) bool) { yield(db.Hit{}, broken) }, 0, true)
	if err != broken {
		t.Errorf("error %v", err)
	}
	c.scan([]byte{0x0f, 0x00}) // nothing is left of the last query
	if c.count(0) != 1 || c.count(6) != 1 || c.count(7) != 2 || c.count(10) != 5 {
		t.Errorf("within: %v", c.within)
	}
}

// each goes over hits.
func each(hits []db.Hit) iter.Seq2[db.Hit, error] {
	return func(yield func(db.Hit, error) bool) {
		for _, h := range hits {
			if !yield(h, nil) {
				return
			}
		}
	}
}
