package main

import (
	"math"
	"strings"
	"testing"
)

// What was measured comes out again, to within a tenth: processor seconds of train and build,
// docs/BENCHMARKS.md.
func TestMeasuredRunsComeOut(t *testing.T) {
	sum := func(j job, names ...string) (core float64) {
		for _, s := range j.stages(&measured) {
			for _, name := range names {
				if s.name == name {
					core += s.core
				}
			}
		}
		return core
	}
	pairs := job{items: 1e6, dims: []float64{128, 128}, labels: 20, bits: 64, anchors: 800, files: 16,
		shards: 4, workers: 1, cores: 2, disk: 1e9}
	// 8 bytes an item
	codes := job{items: 1e7, dims: []float64{2}, bits: 64, anchors: 0, files: 16, shards: 8, workers: 1,
		cores: 2, disk: 1e9}
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"train", sum(pairs, "survey", "scan", "statistics") + 2*measured.choose, 53.5},
		{"build", sum(pairs, "survey", "split", "load"), 43.2},
		{"build of codes", sum(codes, "survey", "split", "load"), 49.9},
	} {
		if math.Abs(c.got-c.want) > .1*c.want {
			t.Errorf("%s: %.1f core seconds, measured %.1f", c.what, c.got, c.want)
		}
	}
}

func TestCommand(t *testing.T) {
	var out strings.Builder
	if err := command([]string{"-items", "1e9", "-workers", "100"}, &out); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"survey", "statistics", "load", "all"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no %s in\n%s", line, &out)
		}
	}
	for _, args := range [][]string{{"-items", "0"}, {"-items", "x"}, {"-dims", "1,,2"}, {"more"}} {
		if err := command(args, &out); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
