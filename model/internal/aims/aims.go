// Package aims has what labels teach, in numbers: their vectors, their weights, and codes as +1 and -1.
package aims

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// unitGrain is the grain of the numbers of label vectors. Sums of their products are
// exact, so those of items that are forgotten leave nothing behind.
const unitGrain = 4096

// Unit returns the number that the vector of n labels has at each of them: 1/sqrt(n),
// rounded to the grain, so that its length is 1.
func Unit(n int) float32 {
	return float32(math.Round(unitGrain/math.Sqrt(float64(n))) / unitGrain)
}

// Weigh returns D: (mean count / n_l)^a for each label. Labels of less than one item
// count as one item, so that weights stay bounded. Labels without items have the weight 1,
// and are left out of the mean.
func Weigh(counts []float64, prior float64) []float64 {
	var sum, n float64
	for _, c := range counts {
		if c > 0 {
			sum += c
			n++
		}
	}
	weights := slices.Repeat([]float64{1}, len(counts))
	if n == 0 || prior == 0 {
		return weights
	}
	for l, c := range counts {
		if c > 0 {
			weights[l] = math.Pow(sum/n/max(c, 1), prior)
		}
	}
	return weights
}

// MeanWeight returns the mean weight of labels, rounded to the grain.
func MeanWeight(columns []int32, weights []float64) (w float64) {
	for _, l := range columns {
		w += weights[l]
	}
	return math.Round(unitGrain*w/float64(len(columns))) / unitGrain
}

// Known appends the columns of the known ones of labels. Both known and labels
// ascend, and so do the columns.
func Known(dst []int32, known, labels []uint32) []int32 {
	for _, l := range labels {
		if i, ok := slices.BinarySearch(known, l); ok {
			dst = append(dst, int32(i))
		}
	}
	return dst
}

// zeroSum is what counts as 0 in the sum of centred directions, which have a length of
// about 1: with all labels only rounding is left.
const zeroSum = 1e-9

// ClearZeros makes exact zeros of numbers that are 0 but for rounding.
func ClearZeros(z []float64) {
	for j, v := range z {
		if math.Abs(v) < zeroSum {
			z[j] = 0
		}
	}
}

// Signs writes the code as +-1.
func Signs(dst []float32, code []uint64) {
	for j := range dst {
		dst[j] = float32(int(code[j/64]>>(j%64)&1)*2 - 1)
	}
}

// AddSigns adds weight times the +-1 vector of the code.
func AddSigns(dst []float64, code []uint64, weight float64) {
	for j := range dst {
		if code[j/64]>>(j%64)&1 == 1 {
			dst[j] += weight
		} else {
			dst[j] -= weight
		}
	}
}

// Ascend reports whether the labels are sorted and distinct.
func Ascend(labels []uint32) bool {
	for i := 1; i < len(labels); i++ {
		if labels[i-1] >= labels[i] {
			return false
		}
	}
	return true
}

// AddDirections adds what AimLabels learns of a set of labels, as columns: the sum of their
// directions, rows of c with as many numbers as dst, times the number that the vector of the set
// has at each, and its weight.
func AddDirections(dst, c []float64, columns []int32, weights []float64) {
	u, q := float64(Unit(len(columns))), len(dst)
	for _, l := range columns {
		floats.AddScaled(dst, u*weights[l], c[int(l)*q:(int(l)+1)*q])
	}
}
