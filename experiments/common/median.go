package common

import "slices"

// Median returns the median of at least one value, the upper one of an even number. It
// sorts the values.
func Median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
