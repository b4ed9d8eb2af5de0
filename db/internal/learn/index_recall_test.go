package learn

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/db/internal/search"
)

// A measurement says what the part of the queries finds that finds least, by how far their neighbors are,
// without its worst query.
func TestPointOfParts(t *testing.T) {
	var asked []*probe
	for i := range 160 {
		p := &probe{recall: 1, comparer: new(search.Comparer)}
		p.nearest = []neighbor{{similarity: float32(i)}}
		if i < 10 { // those with the farthest neighbours
			p.recall = .5
		}
		asked = append(asked, p)
	}
	asked[3].recall, asked[80].recall = 0, 0
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(asked), func(i, j int) {
		asked[i], asked[j] = asked[j],
			asked[i]
	})
	at := pointOf(asked, 10, .7)
	if want := (160 - 10*.5 - .5 - 1) / 160; at.K != 10 || at.Reach != .7 ||
		math.Abs(at.Recall-want) > 1e-9 || math.Abs(at.Worst-.5) > 1e-9 {
		t.Errorf("%+v, want a recall of %v", at, want)
	}
}

// Some of the probes are so many as are wanted, and all are either among them or among the others.
func TestSplitProbes(t *testing.T) {
	for n := range 20 {
		probes := make([]*probe, n)
		for i := range probes {
			probes[i] = &probe{row: uint32(i)}
		}
		some, others := split(probes, 7)
		rows := map[uint32]bool{}
		for _, p := range slices.Concat(some, others) {
			rows[p.row] = true
		}
		if len(some) != min(n, 7) || len(rows) != n || len(others) != n-len(some) {
			t.Errorf("%d probes: %d and %d, %d in all", n, len(some), len(others), len(rows))
		}
	}
}
