package record

import (
	"bytes"
	"slices"
	"sort"
)

// A KeyRange is the keys from Lo up to and without Hi; nil: to the end.
type KeyRange struct{ Lo, Hi []byte }

// endsAfter reports whether a key is in the range or before it.
func (r KeyRange) endsAfter(key []byte) bool { return r.Hi == nil || bytes.Compare(key, r.Hi) < 0 }

// KeyRanges are ranges that do not overlap, ascending, such as those that could not be read.
type KeyRanges []KeyRange

// Overlapping returns which of the ranges have keys in common with another one.
func (rs KeyRanges) Overlapping(lo, hi []byte) (from, to int) {
	from = sort.Search(len(rs), func(i int) bool { return rs[i].endsAfter(lo) })
	to = from + sort.Search(len(rs)-from, func(i int) bool { return hi != nil && bytes.Compare(rs[from+i].Lo, hi) >= 0 })
	return from, to
}

// Has reports whether a key is in one of the ranges.
func (rs KeyRanges) Has(key []byte) bool {
	from, to := rs.Overlapping(key, KeyAfter(key))
	return from < to
}

// Add adds a range, made one with those that it overlaps.
func (rs KeyRanges) Add(lo, hi []byte) KeyRanges {
	from, to := rs.Overlapping(lo, hi)
	sum := KeyRange{slices.Clone(lo), slices.Clone(hi)}
	if from < to {
		if first := rs[from].Lo; bytes.Compare(first, lo) < 0 {
			sum.Lo = first
		}
		if last := rs[to-1]; hi != nil && last.endsAfter(hi) {
			sum.Hi = last.Hi
		}
	}
	return slices.Replace(rs, from, to, sum)
}

// KeyAfter returns the first key behind a key.
func KeyAfter(key []byte) []byte { return append(slices.Clone(key), 0) }
