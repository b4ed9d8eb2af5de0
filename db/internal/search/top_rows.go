package search

import (
	"math"
	"slices"
)

// A topRows collects the first k of the rows added, in the order of rankedRow.compare. It keeps rows as
// numbers, see rankKey, which are faster to compare and move.
type topRows struct {
	k     int
	slack int      // rows kept beyond k before a cut to k; 0: k. Only for k above fewRows
	keys  []uint64 // candidates, with the first k so far; in order if k is at most fewRows
	full  bool     // last is set
	last  uint64   // the k-th row; with k above fewRows, at the last cut
}

// fewRows is the largest k for which rows are kept in order. For larger k occasional cuts are cheaper.
const fewRows = 64

// rankKey maps a row to a number. Earlier rows have smaller numbers. The similarity is not NaN.
func rankKey(x rankedRow) uint64 {
	// The bits of positive floats have the order of the floats, the bits of negative ones the reverse order.
	// Adding 0 turns -0 into 0, so zero has one key.
	b := math.Float32bits(x.similarity + 0)
	if b>>31 == 0 {
		b = ^b &^ (1 << 31)
	}
	return uint64(b)<<32 | uint64(x.row)
}

// rankedRowOf is the inverse of rankKey.
func rankedRowOf(key uint64) rankedRow {
	b := uint32(key >> 32)
	if b>>31 == 0 {
		b = ^b &^ (1 << 31)
	}
	return rankedRow{math.Float32frombits(b), uint32(key)}
}

// add adds a row, and reports whether the floor may have risen.
func (t *topRows) add(x rankedRow) bool {
	key := rankKey(x)
	if t.k == 0 || t.full && key > t.last {
		return false
	}
	if t.k <= fewRows {
		return t.insert(key)
	}
	t.keys = append(t.keys, key)
	slack := t.slack
	if slack == 0 {
		slack = t.k
	}
	if len(t.keys)-t.k < slack {
		return false
	}
	selectFirst(t.keys, t.k)
	t.keys = t.keys[:t.k]
	t.full, t.last = true, slices.Max(t.keys)
	return true
}

// insert is add for small k.
func (t *topRows) insert(key uint64) bool {
	at := len(t.keys)
	for at > 0 && key < t.keys[at-1] {
		at--
	}
	if len(t.keys) < t.k {
		t.keys = append(t.keys, key)
	}
	copy(t.keys[at+1:], t.keys[at:])
	t.keys[at] = key
	if len(t.keys) == t.k {
		t.full, t.last = true, t.keys[t.k-1]
	}
	return t.full
}

// floor returns the similarity of the k-th row so far, once add has reported true.
func (t *topRows) floor() float32 { return rankedRowOf(t.last).similarity }

// appendTo appends the first k rows to dst, in order.
func (t *topRows) appendTo(dst []rankedRow) []rankedRow {
	if t.k < len(t.keys) {
		selectFirst(t.keys, t.k)
		t.keys = t.keys[:t.k]
	}
	if t.k > fewRows {
		slices.Sort(t.keys)
	}
	dst = slices.Grow(dst, len(t.keys))
	for _, key := range t.keys {
		dst = append(dst, rankedRowOf(key))
	}
	return dst
}

// selectFirst moves the k smallest keys to the front, in no order. It is Hoare's selection; k is at least 1
// and less than len(keys), and no two keys are equal.
func selectFirst(keys []uint64, k int) {
	for len(keys) > 1 {
		a, b, c := keys[0], keys[len(keys)/2], keys[len(keys)-1]
		pivot := max(min(a, b), min(max(a, b), c)) // the median
		i, j := 0, len(keys)-1
		for i <= j {
			for keys[i] < pivot {
				i++
			}
			for keys[j] > pivot {
				j--
			}
			if i <= j {
				keys[i], keys[j] = keys[j], keys[i]
				i, j = i+1, j-1
			}
		}
		switch { // keys up to j are the smaller ones, keys from i on the greater ones
		case k <= j+1:
			keys = keys[:j+1]
		case k > i:
			keys, k = keys[i:], k-i
		default:
			return
		}
	}
}
