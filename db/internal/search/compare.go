package search

import (
	"math"

	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/internal/quant"
	"github.com/fddhdb/fddhdb/model"
)

// A Comparer compares vectors with one vector, by a metric. It is immutable, and safe for concurrent use.
type Comparer struct {
	Metric record.Metric
	Vector model.Vector
	square float64 // square of the length of Vector
}

// NewComparer returns a Comparer for x, which it keeps.
func NewComparer(metric record.Metric, x model.Vector) *Comparer {
	c := &Comparer{Metric: metric.OrCosine(), Vector: x}
	for _, v := range x.Value {
		c.square += float64(v) * float64(v)
	}
	return c
}

// Compare returns the similarity of a vector by the metric; for L2 the negative squared distance. It adds up
// in float64, by ascending dimension.
func (c *Comparer) Compare(x model.Vector) float32 {
	switch c.Metric {
	case record.Dot:
		return quant.Rounded(product(x, c.Vector))
	case record.L2:
		return quant.Rounded(-squaredDistance(x, c.Vector))
	}
	return c.cosine(x)
}

// Length returns the length of the vector.
func (c *Comparer) Length() float64 { return math.Sqrt(c.square) }

// product returns the inner product of two vectors, both dense or both sparse.
func product(x, y model.Vector) (xy float64) {
	if x.IsSparse() {
		eachEntry(x, y, func(a, b float64) { xy += a * b })
		return xy
	}
	for j, v := range y.Value {
		xy += float64(x.Value[j]) * float64(v)
	}
	return xy
}

// cosine returns the cosine between a vector and the query's vector, both dense or both sparse; 0 for a zero
// vector.
func (c *Comparer) cosine(x model.Vector) float32 {
	y := c.Vector
	var xx, xy float64
	if x.IsSparse() {
		for _, v := range x.Value {
			xx += float64(v) * float64(v)
		}
		xy = product(x, y)
	} else { // one loop for both sums, so neither waits for the other
		for j, w := range y.Value {
			v := float64(x.Value[j])
			xx += v * v
			xy += v * float64(w)
		}
	}
	if xx == 0 {
		return 0
	}
	return float32(max(-1, min(xy/(math.Sqrt(xx)*math.Sqrt(c.square)), 1)))
}

// squaredDistance returns the squared Euclidean distance of two vectors, both dense and of the same length,
// or both sparse. It adds up in float64, by ascending dimension, and leaves out dimensions that are zero in
// both: so the dense and the sparse form of the same vectors have the same distance.
func squaredDistance(x, y model.Vector) (sum float64) {
	add := func(a, b float64) { sum += (a - b) * (a - b) }
	if x.IsSparse() { // so is y
		eachEntry(x, y, add)
		return sum
	}
	for j, v := range y.Value {
		add(float64(x.Value[j]), float64(v))
	}
	return sum
}

// eachEntry calls f with the entries of two sparse vectors, by ascending dimension. A missing entry is 0.
func eachEntry(x, y model.Vector, f func(a, b float64)) {
	i, j := 0, 0
	for i < len(x.Index) && j < len(y.Index) {
		switch a, b := x.Index[i], y.Index[j]; {
		case a < b:
			f(float64(x.Value[i]), 0)
			i++
		case a > b:
			f(0, float64(y.Value[j]))
			j++
		default:
			f(float64(x.Value[i]), float64(y.Value[j]))
			i, j = i+1, j+1
		}
	}
	for _, v := range x.Value[i:] {
		f(float64(v), 0)
	}
	for _, v := range y.Value[j:] {
		f(0, float64(v))
	}
}
