package mih

import (
	"context"
	"slices"
	"sync"

	"github.com/fddhdb/fddhdb/codec"
)

// A Match is a code number and its distance from the query.
type Match struct {
	Code     uint32
	Distance uint16
}

// An Index finds codes exactly. Code numbers are those of the table that it was
// made for; results are in order of (distance, number).
type Index interface {
	// Radius appends to dst the codes within r bits of the query.
	Radius(ctx context.Context, query codec.Code, r int, dst []Match) ([]Match, error)

	// Nearest appends to dst all codes within d bits of the query, d being the
	// smallest distance at which their weights add up to k; all codes where they
	// do not. So the codes of the last distance come complete and the caller may
	// order them as it likes. weight says how many results a code stands for,
	// 0 if none; codes without weight are left out.
	Nearest(ctx context.Context, query codec.Code, k int, weight func(code uint32) int, dst []Match) ([]Match, error)
}

// A Scan is the Index that reads every code. Time and scratch memory are linear
// in the number of distinct codes.
type Scan struct {
	codes codec.Codes
}

// NewScan returns an index over the codes that the table has now.
func NewScan(t *Table) Scan { return Scan{t.codes} }

var _ Index = Scan{}

// scanChunk codes are read between two looks at the context.
const scanChunk = 1 << 16

var distancePool = sync.Pool{New: func() any { return new([]uint16) }}

// distances fills a buffer from the pool with the distance of every code.
func (s Scan) distances(ctx context.Context, query codec.Code) (*[]uint16, error) {
	n := s.codes.Len()
	buf := distancePool.Get().(*[]uint16)
	*buf = slices.Grow((*buf)[:0], n)[:n]
	for from := 0; from < n; from += scanChunk {
		if err := ctx.Err(); err != nil {
			distancePool.Put(buf)
			return nil, err
		}
		to := min(from+scanChunk, n)
		codec.Distances((*buf)[from:to], query, s.codes.Slice(from, to))
	}
	return buf, nil
}

// Radius implements Index.
func (s Scan) Radius(ctx context.Context, query codec.Code, r int, dst []Match) ([]Match, error) {
	buf, err := s.distances(ctx, query)
	if err != nil {
		return dst, err
	}
	defer distancePool.Put(buf)
	start := len(dst)
	for i, d := range *buf {
		if int(d) <= r {
			dst = append(dst, Match{uint32(i), d})
		}
	}
	sortMatches(dst[start:])
	return dst, nil
}

// Nearest implements Index. It looks at the codes in shells of growing
// distance, so that weight is asked only for codes that are near enough.
func (s Scan) Nearest(ctx context.Context, query codec.Code, k int, weight func(code uint32) int, dst []Match) ([]Match, error) {
	buf, err := s.distances(ctx, query)
	if err != nil {
		return dst, err
	}
	defer distancePool.Put(buf)
	if k <= 0 {
		return dst, nil
	}
	q := s.codes.Bits()
	counts := make([]int, q+1)
	for _, d := range *buf {
		counts[d]++
	}
	total := 0
	for lo := 0; lo <= q && total < k; {
		if err := ctx.Err(); err != nil {
			return dst, err
		}
		// Take shells until they could hold what is missing, every code
		// standing for one result; rarely is another round needed, and then it
		// is at least twice as wide, so that the passes stay few.
		hi, codes := lo, 0
		for ; hi <= q; hi++ {
			if codes += counts[hi]; codes >= max(k-total, len(*buf)/64) {
				break
			}
		}
		hi = min(max(hi, 2*lo), q)
		start := len(dst)
		for i, d := range *buf {
			if int(d) >= lo && int(d) <= hi {
				dst = append(dst, Match{uint32(i), d})
			}
		}
		sortMatches(dst[start:])
		kept := dst[:start] // behind the range below, so it may share the memory
		last := uint16(0)
		for _, m := range dst[start:] {
			if total >= k && m.Distance > last {
				break
			}
			last = m.Distance
			if w := weight(m.Code); w > 0 {
				total += w
				kept = append(kept, m)
			}
		}
		dst = kept
		lo = hi + 1
	}
	return dst, nil
}

func sortMatches(m []Match) {
	slices.SortFunc(m, func(a, b Match) int {
		if a.Distance != b.Distance {
			return int(a.Distance) - int(b.Distance)
		}
		return int(int64(a.Code) - int64(b.Code))
	})
}
