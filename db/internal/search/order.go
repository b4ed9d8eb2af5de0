package search

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/mih"
)

// A rankedRow is a row of a run with the similarity that decides on its place.
type rankedRow struct {
	similarity float32 // of query and item, as in Hit; first for the item of the query
	row        uint32
}

// compare orders by (-similarity, row). It is total: no two rows of a run are equal, and no deciding
// similarity is NaN.
func (a rankedRow) compare(b rankedRow) int {
	switch {
	case a.similarity > b.similarity:
		return -1
	case a.similarity < b.similarity:
		return 1
	}
	return cmp.Compare(a.row, b.row)
}

// first is the similarity of the row that the query starts from. It exceeds every other similarity, so this
// row comes first in its run. In a cursor it means that the cursor is behind that row.
var first = float32(math.Inf(1))

// rank appends to dst the first k rows of a run that pass the filter and the least similarity, and follow the
// cursor. Their order is (-similarity, row), or row alone if the query has no projection or the order is
// byCode. The row that the query starts from comes first.
func (s *Searcher) rank(ctx context.Context, dst []rankedRow, r run, k int) ([]rankedRow, error) {
	if s.byVectors {
		var after *rankedRow
		if s.after != nil {
			after = s.afterItem()
		}
		return s.rankVectors(ctx, dst, after, k)
	}
	var after *rankedRow // the cursor, if it stands in this run
	if s.after != nil && s.after.compare(r.Scored) == 0 {
		if s.after.counted && k <= s.after.k { // weigh has ranked the run
			return append(dst, s.after.ranked[:min(k, len(s.after.ranked))]...), nil
		}
		after = s.afterItem()
	}
	if s.p.direction == nil {
		return s.rankByRow(dst, r.rows, after, k), nil
	}
	if a := s.ahead; a != nil && a.number == r.Number && k <= a.k {
		return append(dst, a.rows[:min(k, len(a.rows))]...), nil
	}
	top := topRows{k: k}
	_, err := s.rankBySimilarity(ctx, &top, r.rows, after)
	return top.appendTo(dst), err
}

// none is the similarity of a row if the order needs none.
var none = float32(math.NaN())

// rankByRow is rank without similarities. Unless a filter or a cursor leaves rows out, it visits only the
// rows that it returns: a run may be all items of a collection.
func (s *Searcher) rankByRow(dst []rankedRow, set mih.Rows, after *rankedRow, k int) []rankedRow {
	n := len(dst)
	if after == nil && s.self != noRow && set.Contains(s.self) && (s.filter == nil || s.filter.Contains(s.self)) {
		dst = append(dst, rankedRow{first, s.self})
	}
	for row := range set.From(after.next()) {
		if len(dst)-n >= k {
			break
		}
		if row != s.self && (s.filter == nil || s.filter.Contains(row)) {
			dst = append(dst, rankedRow{none, row})
		}
	}
	return dst
}

// next returns the first row that may follow a in the order of rows; 0 if a is nil, or is the row that the
// query starts from.
func (a *rankedRow) next() uint32 {
	if a == nil || a.similarity == first {
		return 0
	}
	return a.row + 1 // no row is MaxUint32
}

// rankBySimilarity adds to top all rows of a set that may be among the first. It returns the number of rows
// that pass the filter and the least similarity and follow the cursor.
func (s *Searcher) rankBySimilarity(ctx context.Context, top *topRows, set mih.Rows, after *rankedRow) (int, error) {
	floor := float32(math.Inf(-1))
	limited := s.limited()
	if limited {
		floor = math.Nextafter32(s.q.MinSimilarity, floor)
	}
	rows, above, before := 0, 0, 0 // that pass the filter, then are above the floor, then precede the cursor
	see := func(row uint32, similarity float32) float32 {
		above++
		x := rankedRow{similarity, row}
		if row == s.self {
			x.similarity = first
		}
		if after != nil && x.compare(*after) <= 0 {
			before++
			return floor
		}
		// With a least similarity the floor stays, so above counts every row that reaches it.
		if top.add(x) && !limited {
			floor = top.floor()
		}
		return floor
	}
	if n := min(set.Len(), 1024); len(s.rows) < n {
		s.rows = make([]uint32, n)
	}
	err := set.Parts(s.rows, s.filter, func(part []uint32) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		rows += len(part)
		// The row that the query starts from comes first, at any floor.
		if i, found := slices.BinarySearch(part, s.self); found && !limited {
			if err := s.similarities(part[i:i+1], float32(math.Inf(-1)), see); err != nil {
				return err
			}
			if err := s.similarities(part[:i], floor, see); err != nil {
				return err
			}
			part = part[i+1:]
		}
		return s.similarities(part, floor, see)
	})
	if limited {
		rows = above
	}
	return rows - before, err
}

// similarities calls f with each row whose similarity exceeds floor; f returns the new floor. The rows
// ascend. f gets them in this order, except by vectors. Rows that are not in memory are read from the store.
// A row without a projection has similarity 0, as if it were orthogonal to the query.
func (s *Searcher) similarities(rows []uint32, floor float32, f func(uint32, float32) float32) error {
	if len(rows) == 0 {
		return nil
	}
	if s.p.features != nil {
		return s.vectorSimilarities(rows, floor, f)
	}
	return s.directionSimilarities(rows, floor, f)
}

// directionSimilarities is similarities for projections.
func (s *Searcher) directionSimilarities(rows []uint32, floor float32, f func(uint32, float32) float32) error {
	t := s.Cv.Directions
	inMemory, _ := slices.BinarySearch(rows, t.Covered())
	t.Each(s.p.direction, rows[:inMemory], floor, func(row uint32, similarity float32) float32 {
		floor = f(row, similarity)
		return floor
	})
	if inMemory == len(rows) {
		return nil
	}
	return s.storedSimilarities(rows[inMemory:], floor, f)
}

// similarityOf returns the similarity of a hit, none if the order needs none.
func (s *Searcher) similarityOf(x rankedRow) (float32, error) {
	if s.byVectors {
		return s.shownOfVectors(x.similarity), nil
	}
	if x.similarity == first {
		return s.ownSimilarity(x.row)
	}
	return shown(x.similarity), nil
}

// ownSimilarity is similarityOf for the row that the query starts from.
func (s *Searcher) ownSimilarity(row uint32) (float32, error) {
	similarity := none
	if s.p.direction == nil {
		return similarity, nil
	}
	err := s.similarities([]uint32{row}, float32(math.Inf(-1)), func(_ uint32, got float32) float32 {
		similarity = got
		return got
	})
	return shown(similarity), err
}

// shown returns the similarity that a hit shows.
func shown(similarity float32) float32 {
	if similarity == lacking {
		return 0
	}
	return similarity
}

// countSimilar returns how many rows of a set pass the filter and the least similarity.
func (s *Searcher) countSimilar(ctx context.Context, set mih.Rows) (int, error) {
	if !s.limited() {
		return set.LenIn(s.filter), nil
	}
	return s.rankBySimilarity(ctx, &topRows{}, set, nil)
}

// checkSimilarity refuses a least similarity if hits have no similarity. It also refuses one with the order
// byAuto by codes, where the size of the collection would decide between projections and vectors.
func (s *Searcher) checkSimilarity(asked Order) error {
	least := s.q.MinSimilarity
	switch {
	case least == 0:
		return nil
	case s.byVectors && s.metric == record.Dot:
		if math.IsNaN(float64(least)) || math.IsInf(float64(least), 0) {
			return fault.Invalid("a least similarity of %v: finite numbers are possible", least)
		}
		return nil
	case !(least >= -1 && least <= 1):
		return fault.Invalid("a least similarity of %v: -1 to 1 are possible", least)
	case s.q.Order == byCode:
		return fault.Invalid("a least similarity has no meaning in the order none, which compares no vectors: choose another order")
	case s.byVectors:
		return nil
	case s.p.direction == nil:
		return fault.Invalid("a least similarity compares vectors, and the query is by code: give it a vector, or the key of an item that has one, and its modality")
	case asked == byAuto:
		return fault.Invalid("a least similarity needs to know what is compared: the orders projection and asymmetric compare projections, and a recall vectors")
	}
	return nil
}
