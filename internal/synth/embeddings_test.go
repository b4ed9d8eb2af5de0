package synth

import (
	"math"
	"reflect"
	"testing"
)

// Any part is the same by itself, another seed gives other vectors, all have length 1, and they have
// something in common.
func TestEmbeddings(t *testing.T) {
	all := Embeddings(0, 300, 48, 7)
	if part := Embeddings(100, 50, 48, 7); !reflect.DeepEqual(part, all[100:150]) {
		t.Error("a part differs")
	}
	if other := Embeddings(0, 300, 48, 8); reflect.DeepEqual(other[0], all[0]) {
		t.Error("another seed gives the same vector")
	}
	mean := make([]float64, 48)
	for i, x := range all {
		square := 0.0
		for j, v := range x {
			square += float64(v) * float64(v)
			mean[j] += float64(v) / 300
		}
		if math.Abs(square-1) > 1e-5 {
			t.Fatalf("vector %d has the squared length %v", i, square)
		}
	}
	common := 0.0
	for _, v := range mean {
		common += v * v
	}
	if common < .05 || common > .5 {
		t.Errorf("the mean has the squared length %.3f", common)
	}
	a, b := PairedEmbeddings(0, 40, 20, 30, 1)
	if c, _ := PairedEmbeddings(10, 5, 20, 30, 1); len(a) != 40 || len(b[0]) != 30 ||
		!reflect.DeepEqual(c, a[10:15]) {
		t.Error("a part of the pairs differs")
	}
}
