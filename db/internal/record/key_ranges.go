package record

import (
	"bytes"
	"slices"
	"sort"
)

// A KeyRange is the keys from Lo up to, but without, Hi; a nil Hi is the end of all keys.
type KeyRange struct{ Lo, Hi []byte }

// endsAfter reports whether a key is in the range or before it.
func (r KeyRange) endsAfter(key []byte) bool { return r.Hi == nil || bytes.Compare(key, r.Hi) < 0 }

// KeyRanges are ranges that do not overlap, ascending: a set of keys. Verification and repair
// keep in one which keys of a damaged store could not be read, so that nothing is said to be
// missing there. The zero value is empty. A look-up takes the logarithm of their number.
type KeyRanges []KeyRange

// Overlapping returns the places [from, to) of the ranges that have keys in common with [lo,
// hi).
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

// Add returns the ranges with [lo, hi) added, made one with those that it overlaps. It copies
// lo and hi. As with append, rs is not to be used any more.
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

// KeyAfter returns the least key that is greater than key, in memory of the caller's own.
func KeyAfter(key []byte) []byte { return append(slices.Clone(key), 0) }
