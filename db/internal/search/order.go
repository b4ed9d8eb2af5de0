package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
)

// rank appends to dst the first k rows of a run, behind the cursor, in order of
// (-cosine, row); in order of rows where there is no cosine. The row that the query
// starts from comes before the others.
func (s *Searcher) rank(ctx context.Context, dst []rankedRow, r run, k int) ([]rankedRow, error) {
	set, err := s.rowsOf(r.number)
	if err != nil {
		return dst, err
	}
	resumes := s.after != nil && s.after.compare(r) == 0
	if s.p.unit == nil && !resumes && set.Len() > k && s.filter == nil {
		if s.self != noRow && set.Contains(s.self) {
			dst = append(dst, rankedRow{first, s.self})
		}
		for row := range set.All() { // in order already
			if len(dst) == k {
				return dst, nil
			}
			if row != s.self {
				dst = append(dst, rankedRow{row: row})
			}
		}
		return dst, nil
	}
	rows := set.AppendTo(s.rows[:0], s.filter)
	s.rows = rows
	ranked := slices.Grow(dst, len(rows))
	for _, row := range rows {
		ranked = append(ranked, rankedRow{row: row})
	}
	if s.p.unit != nil && (len(rows) > 1 || resumes) {
		if err := s.setCosines(ctx, ranked); err != nil {
			return dst, err
		}
	}
	has := s.putFirst(ranked)
	if resumes {
		last := rankedRow{s.after.cosine, s.after.row}
		if last.cosine == first {
			last.row = noRow // it has been seen, also if it was deleted and stored anew since
		}
		ranked = slices.DeleteFunc(ranked, func(x rankedRow) bool { return x.compare(last) <= 0 })
	}
	if s.p.unit == nil && !has {
		return ranked[:min(k, len(ranked))], nil
	}
	return firstRanked(ranked, k), nil
}

// first is the cosine, so to speak, of the row that the query starts from: it is before
// all others, and in a cursor tells that it has been seen.
var first = float32(math.Inf(1))

// putFirst makes the row that the query starts from the first in order, and reports
// whether it is among some.
func (s *Searcher) putFirst(rows []rankedRow) bool {
	if s.self == noRow {
		return false
	}
	for i := range rows {
		if rows[i].row == s.self {
			rows[i].cosine = first
			return true
		}
	}
	return false
}

// setCosines fills in the cosines of rows, ascending. A row without features has
// no projection and counts as orthogonal.
func (s *Searcher) setCosines(ctx context.Context, rows []rankedRow) error {
	for i := 0; i < len(rows); {
		if err := ctx.Err(); err != nil {
			return err
		}
		block := rows[i].row / codec.BlockRows
		end := i
		for end < len(rows) && rows[end].row/codec.BlockRows == block {
			end++
		}
		if err := s.cosines(block, rows[i:end]); err != nil {
			return err
		}
		i = end
	}
	return nil
}

type rankedRow struct {
	cosine float32
	row    uint32
}

func (a rankedRow) compare(b rankedRow) int {
	if a.cosine != b.cosine {
		return cmp.Compare(b.cosine, a.cosine)
	}
	return cmp.Compare(a.row, b.row)
}

// firstRanked returns the first k of the rows in order, in the same memory. For a
// small k it inserts into the list of the best so far, which is cheaper than
// sorting because few of many rows get in.
func firstRanked(rows []rankedRow, k int) []rankedRow {
	const small = 64
	if k > small || len(rows) <= k {
		slices.SortFunc(rows, rankedRow.compare)
		return rows[:min(k, len(rows))]
	}
	best := rows[:0]
	for _, r := range rows {
		if len(best) == k && r.compare(best[k-1]) >= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, r, rankedRow.compare)
		if len(best) < k {
			best = append(best, r)
		}
		copy(best[at+1:], best[at:])
		best[at] = r
	}
	return best
}

// cosines fills in the cosines of rows that share a block.
func (s *Searcher) cosines(block uint32, rows []rankedRow) error {
	key := s.Cv.Space.Projections(s.Cv.ID).Block(codec.KindProjection, block*codec.BlockRows)
	value, closer, err := s.V.Snap.Get(key)
	if errors.Is(err, fault.ErrMissing) {
		return nil
	}
	first, last := block*codec.BlockRows, block*codec.BlockRows+codec.BlockRows-1
	if err != nil {
		return fault.ReadError(err, "projections of rows %d to %d", first, last)
	}
	defer closer.Close()
	b, err := codec.DecodeBlock(value)
	if err == nil && b.Len() > 0 && b.Width() != s.Cv.Space.ProjectionBytes() {
		err = fmt.Errorf("entries of %d bytes", b.Width())
	}
	if err != nil {
		return fault.Corrupt(err, "projections of rows %d to %d", first, last)
	}
	for i, r := range rows {
		if entry, ok := b.Lookup(byte(r.row)); ok {
			x := codec.ProjectionDot(entry, s.p.unit)
			if x != x {
				return fault.Corrupt(errors.New("not a number"), "projection of row %d", r.row)
			}
			rows[i].cosine = x
		}
	}
	return nil
}
