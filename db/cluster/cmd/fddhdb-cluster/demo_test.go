package main

import (
	"fmt"
	"testing"
)

// The demonstration calls an answer wrong that lacks something nearer, is out of order, or has something
// twice, and no other.
func TestNearest(t *testing.T) {
	var all, first []near
	for i := range demoK + 3 { // the last four are as near as each other
		all = append(all, near{min(i, demoK-1), fmt.Sprintf("k%02d", i)})
	}
	first = all[:demoK]
	change := func(i int, n near) []near {
		got := append([]near{}, first...)
		got[i] = n
		return got
	}
	extra := near{3, "new"}
	for what, c := range map[string]struct {
		got  []near
		may  map[near]bool
		fine bool
	}{
		"as it is":        {first, nil, true},
		"another as near": {change(demoK-1, all[demoK+2]), nil, true},
		"one that may be there": {append(append(append([]near{}, first[:4]...), extra), first[4:demoK-1]...),
			map[near]bool{extra: true}, true},
		"one that is not there": {append(append(append([]near{}, first[:4]...), extra), first[4:demoK-1]...),
			nil, false},
		"a nearer one is missed": {change(2, near{2, "other"}), nil, false},
		"too few":                {first[:demoK-1], nil, false},
		"none":                   {nil, nil, false},
		"out of order":           {change(2, near{9, "k09"}), nil, false},
		"one of them twice":      {change(3, all[2]), nil, false},
		"a wrong distance":       {change(1, near{2, "k01"}), nil, false},
	} {
		if why := nearest(c.got, all, c.may); (why == "") != c.fine {
			t.Errorf("%s: %q", what, why)
		}
	}
}
