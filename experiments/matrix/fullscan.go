package matrix

import (
	"context"
	"iter"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
)

// A fullScan is the yardstick: the codes of all items in one array, in order
// of rows. Every search reads every word of it. It groups nothing, never stops early
// and looks up no keys. But it uses the kernels of the machine and does little besides
// reading. One goroutine at a time may search.
type fullScan struct {
	codes  codec.Codes
	rows   []uint32 // of the codes, ascending
	query  codec.Code
	block  []codec.Near // found in a block
	found  []codec.Near // found so far
	sorted []codec.Near // scratch memory of Search
	counts []int        // of found, by distance
}

// scanBlock is the number of codes that one call of the kernel reads.
const scanBlock = 4096

func newFullScan(q int) *fullScan {
	return &fullScan{
		codes:  codec.NewCodes(q, 0),
		query:  codec.NewCode(q),
		block:  make([]codec.Near, scanBlock),
		counts: make([]int, q+2),
	}
}

// add adds an item; rows must ascend.
func (f *fullScan) add(row uint32, code []byte) {
	f.query.SetBytes(code)
	f.codes.Append(f.query)
	f.rows = append(f.rows, row)
}

// within reads the codes from to to-1, at most scanBlock, and returns those within r
// bits of f.query. They are valid until the next call.
func (f *fullScan) within(from, to, r int) []codec.Near {
	return f.block[:codec.Within(f.block, f.query, f.codes.Slice(from, to), r, uint32(from))]
}

func (f *fullScan) Radius(ctx context.Context, q db.Query, r int) (runs, error) {
	f.query.SetBytes(q.Code)
	f.found = f.found[:0]
	for from := 0; from < len(f.rows); from += scanBlock {
		f.found = append(f.found, f.within(from, min(from+scanBlock, len(f.rows)), r)...)
	}
	return &fullRuns{f, f.found}, ctx.Err()
}

// fullRuns are the items of a radius search, valid until the next search.
type fullRuns struct {
	*fullScan
	found []codec.Near
}

func (r *fullRuns) Total() int   { return len(r.found) }
func (r *fullRuns) Close() error { return nil }

func (r *fullRuns) Hits(context.Context) iter.Seq2[db.Hit, error] {
	return func(yield func(db.Hit, error) bool) {
		for _, n := range slices.Sorted(slices.Values(r.found)) {
			if !yield(r.hit(n), nil) {
				return
			}
		}
	}
}

func (f *fullScan) hit(n codec.Near) db.Hit {
	return db.Hit{Row: f.rows[n.Position()], Distance: n.Distance(), Score: math.NaN()}
}

// Search returns the q.K best items by (distance, row).
//
// It keeps items within a bound. As soon as k codes are nearer the bound goes below the
// distance of the k-th, because later rows lose ties. Blocks start small, so that few
// codes are found before there is a bound. Reading as many codes again finds about k
// more: k log(n/k) in all.
func (f *fullScan) Search(ctx context.Context, q db.Query) (*db.Result, error) {
	f.query.SetBytes(q.Code)
	f.found = f.found[:0]
	clear(f.counts)
	n, k := len(f.rows), q.K
	bound := f.codes.Bits() // count counts codes within it
	count := 0
	for from := 0; from < n; {
		to := min(from+min(max(from, 64), scanBlock), n)
		r := bound
		if count >= k {
			r--
		}
		// At bound 0 nothing can be found any more, but everything must be read.
		for _, near := range f.within(from, to, max(r, 0)) {
			if d := near.Distance(); d <= r {
				f.counts[d]++
				count++
				f.found = append(f.found, near)
			}
		}
		for count-f.counts[bound] >= k {
			count -= f.counts[bound]
			bound--
		}
		if len(f.found) > 4*k+scanBlock {
			count = f.prune(bound, count, k)
		}
		from = to
	}
	f.prune(bound, count, k)

	// Codes were found in order of rows: a counting sort orders them by distance.
	at := 0
	for d, c := range f.counts[:bound+1] {
		f.counts[d] = at
		at += c
	}
	f.sorted = slices.Grow(f.sorted[:0], at)[:at]
	for _, near := range f.found {
		d := near.Distance()
		f.sorted[f.counts[d]] = near
		f.counts[d]++
	}
	hits := make([]db.Hit, at)
	for i, near := range f.sorted {
		hits[i] = f.hit(near)
	}
	return &db.Result{Hits: hits}, ctx.Err()
}

// prune drops codes that are not among the first k, and returns the number of those
// that are left.
func (f *fullScan) prune(bound, count, k int) int {
	spare := max(count-k, 0) // of those at the bound, the last ones
	atBound := f.counts[bound] - spare
	f.counts[bound] = atBound
	kept := f.found[:0]
	for _, near := range f.found {
		switch d := near.Distance(); {
		case d > bound:
			continue
		case d == bound:
			if atBound == 0 {
				continue
			}
			atBound--
		}
		kept = append(kept, near)
	}
	f.found = kept
	return count - spare
}
