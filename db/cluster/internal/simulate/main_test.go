package main

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// Without a network, without stragglers, a query takes what the slowest of its shards takes: the closed form
// for times that are uniform from 0 to 1 has the median .5^(1/shards).
func TestTheSlowestShardCounts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var service []float64
	for i := range 10_000 {
		service = append(service, float64(i)/10_000)
	}
	for _, shards := range []int{1, 4, 64} {
		s := &site{shards: shards, queries: 20_000, trip: [2]float64{1e-12, 1e-12}}
		o := s.run(r, service, 0)
		if want := math.Pow(.5, 1/float64(shards)); math.Abs(o.p50-want) > .01 || o.asked != 1 {
			t.Errorf("%d shards: %.3f, want %.3f", shards, o.p50, want)
		}
	}
	// A second replica after .5: a shard takes longer than .9 if the first does and the second takes more
	// than .4.
	s := &site{shards: 1, queries: 100_000, trip: [2]float64{1e-12, 1e-12}}
	o := s.run(r, service, .5)
	if math.Abs(o.asked-1.5) > .01 {
		t.Errorf("%.3f requests a query", o.asked)
	}
	// P(took > x) for x > .5 is (1-x)(1-(x-.5)) = .01.
	if want := .9807; math.Abs(o.p99-want) > .003 {
		t.Errorf("99 of 100 take less than %.4f, want %.4f", o.p99, want)
	}
}

func TestCommand(t *testing.T) {
	var out bytes.Buffer
	if err := command([]string{"-codes", "2000", "-shards", "4", "-queries", "500"}, &out); err != nil ||
		!strings.Contains(out.String(), "8000 codes in 4 shards") {
		t.Error(out.String(), err)
	}
	for _, args := range [][]string{{"-shards", "0"}, {"x"}, {"-nosuch"}} {
		if err := command(args, &out); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
