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

// rank appends to dst the first k rows of a run that pass the filter and follow the
// cursor. Their order is (-cosine, row), or row alone if the query has no projection or
// the order is byCode. The row that the query starts from comes first.
//
// With cosines it reads the projections of all rows of the run, a block of 256 rows at a
// time. Without, and without a filter or cursor, it looks at k rows only: a run may be
// all items of a collection.
func (s *Searcher) rank(ctx context.Context, dst []rankedRow, r run, k int) ([]rankedRow, error) {
	set, err := s.rowsOf(r.number)
	if err != nil {
		return dst, err
	}
	// A run that the cursor stands in is ranked as a whole, with cosines, and then cut: the
	// position has the cosine of an item.
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

// first stands in for the cosine of the row that the query starts from. It is greater
// than every cosine, so that this row comes before the others of its run. In a cursor it
// says that the cursor stands behind that row.
var first = float32(math.Inf(1))

// putFirst gives the row that the query starts from the cosine first, and reports whether
// it is among rows.
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

// setCosines fills in the cosines of rows, which ascend by row. A row without features
// has no projection: its cosine stays 0, as if it were orthogonal to the query.
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

// A rankedRow is a row of a run with what decides on its place there.
type rankedRow struct {
	cosine float32 // between the projections of query and item; first for the item of the query; 0: not read, or none
	row    uint32
}

// compare orders by (-cosine, row). No two rows of a run are equal, and no cosine is NaN
// (see cosines), so the order is total.
func (a rankedRow) compare(b rankedRow) int {
	if a.cosine != b.cosine {
		return cmp.Compare(b.cosine, a.cosine)
	}
	return cmp.Compare(a.row, b.row)
}

// firstRanked returns the first k of the rows in order, in the memory of rows, which it
// reorders. For a small k it inserts into the list of the best so far. That is cheaper
// than sorting, as few of many rows get in. The list never reaches beyond the row that
// the loop is at, so no row is overwritten before it has been read.
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

// cosines fills in the cosines of rows of one block, with one read of the store. A block
// that is not there has no projections. Entries of another length, and entries whose
// product with the query is not a number, are fault.ErrCorrupt.
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
