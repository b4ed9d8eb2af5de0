package model

import (
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/internal/synth"
)

// Moments in parts are those of the whole, whatever the parts.
func TestMomentsMerge(t *testing.T) {
	sparse, _, _ := texts(t, 1, 0, 999)
	dense := synth.Embeddings(0, 999, 5, 2)
	for mod, xs := range [][]Vector{denseAll(dense), sparse} {
		ms := []Modality{{Dim: 5}, {Dim: synth.NUSWideText, Sparse: true}}
		whole := newMoments(ms[mod])
		whole.add(xs, 1)
		parts := newMoments(ms[mod])
		for part := range slices.Chunk(xs, 100) {
			p := newMoments(ms[mod])
			p.add(part, 1)
			parts.merge(p)
			parts.merge(newMoments(ms[mod]))
		}
		whole.settle()
		parts.settle()
		for j := range whole.mean {
			if d := whole.mean[j] - parts.mean[j]; d*d > 1e-18*(1+whole.mean[j]*whole.mean[j]) {
				t.Fatalf("mean %g, not %g", parts.mean[j], whole.mean[j])
			}
			if d := whole.m2[j] - parts.m2[j]; d*d > 1e-18*(1+whole.m2[j]*whole.m2[j]) {
				t.Fatalf("squares %g, not %g", parts.m2[j], whole.m2[j])
			}
			if whole.low[j] != parts.low[j] {
				t.Fatalf("least %g, not %g", parts.low[j], whole.low[j])
			}
		}
	}
}
