package learn

import (
	"math"
	"testing"
)

// A measurement says what the part of the queries finds that finds least, by how far their neighbours are, without
// its worst query.
func TestPointOfParts(t *testing.T) {
	var asked []*probe
	for i := range 160 {
		p := &probe{recall: 1}
		if i < 10 { // those with the farthest neighbours
			p.recall = .5
		}
		asked = append(asked, p)
	}
	asked[3].recall, asked[80].recall = 0, 0
	at := pointOf(asked, 10, .7)
	if want := (160 - 10*.5 - .5 - 1) / 160; at.K != 10 || at.Reach != .7 || math.Abs(at.Recall-want) > 1e-9 || math.Abs(at.Worst-.5) > 1e-9 {
		t.Errorf("%+v, want a recall of %v", at, want)
	}
}
