package common

import (
	"math"
	"slices"
)

// Median returns the median of at least one value, the upper one of an even number. It
// sorts the values.
func Median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// MeanStd returns the mean and the standard deviation of at least one value.
func MeanStd(values []float64) (mean, std float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		std += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(std / float64(max(len(values)-1, 1)))
}
