package search

import (
	"context"
	"math"

	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/internal/quant"
	"github.com/fddhdb/fddhdb/mih"
)

// MaxShared is the largest number of queries that share a scan. More would not be faster and would take
// scratch memory.
const MaxShared = 16

// Group finds the codes of the K nearest items for each query, of at most MaxShared. Queries by distance over
// the same codes in memory share one scan, if they need one; it reads each code once for all. Queries by
// score, or in the store, search alone.
//
// Once all codes are found, Group calls done with the number and the searcher of each query, in order. done
// must not keep the searcher. Group runs in the caller's goroutine; the caller gives each goroutine a group.
// The first error ends it. at is the number of the query with the error, -1 if the error concerns all.
func Group(ctx context.Context, tools *Tools, v *state.View, cv *state.CollectionView, queries []Query,
	done func(i int, s *Searcher) error) (at int, err error) {
	searchers := make([]*Searcher, len(queries))
	defer func() {
		for _, s := range searchers {
			if s != nil {
				s.Close()
			}
		}
	}()
	shared := map[*state.CodeSetView]*sharedScan{}
	for i := range queries {
		q := queries[i]
		s, err := New(ctx, tools, v, cv, q)
		if err != nil {
			return i, err
		}
		searchers[i] = s
		k := s.ToFind(q.K)
		if s.byVectors {
			continue
		}
		if mq := s.query(ctx, k); !s.byScore && mq.Recall == 0 && !s.usesStore(mq, -1) {
			scan := shared[s.Set]
			if scan == nil {
				scan = new(sharedScan)
				shared[s.Set] = scan
			}
			scan.searchers, scan.asked, scan.k = append(scan.searchers, s), append(scan.asked, mq),
				append(scan.k, k)
		} else if err := s.Nearest(ctx, k); err != nil {
			return i, err
		}
	}
	for set, scan := range shared {
		found, err := set.Table.NearestEach(ctx, scan.asked, scan.k)
		if err != nil {
			return -1, err
		}
		for i, s := range scan.searchers {
			s.matches = found[i]
		}
	}
	if err := rankTogether(ctx, searchers); err != nil {
		return -1, err
	}
	for i, s := range searchers {
		if err := done(i, s); err != nil {
			return i, err
		}
	}
	return -1, nil
}

// A rankedRun has the first k rows of the run of code number.
type rankedRun struct {
	number uint32
	rows   []rankedRow
	k      int
}

// minTogether is the number of rows from which on a run is ranked for several queries at once. The vectors of
// so many rows do not stay in the caches from one query to the next.
const minTogether = 2048

// rankTogether ranks the first run of each searcher. It ranks searchers with the same run together, so that
// each projection or vector is fetched once for all. It leaves out runs of few rows, and searchers whose rank
// needs more than similarities in memory: a filter, a cursor, a least similarity or a row of the query.
func rankTogether(ctx context.Context, searchers []*Searcher) error {
	type key struct {
		set   *state.CodeSetView
		n     uint32
		table *quant.Table
	}
	groups := map[key][]*Searcher{}
	for _, s := range searchers {
		plain := s.p.direction != nil && s.filter == nil && s.self == noRow && !s.weighs()
		table, _ := s.atHand()
		// Few codes have thousands of items. If many codes are equally near, do not compute their scores.
		if n := len(s.matches); n > 16 && s.matches[16].Distance() == s.matches[0].Distance() {
			continue
		}
		if !plain || s.Set.Table == nil || table == nil || uint64(table.Covered()) < s.Cv.NextRow {
			continue
		}
		for r, err := range s.runs(ctx) {
			if err != nil {
				return err
			}
			if r.rows.Len() >= minTogether {
				k := key{s.Set, r.Number, table}
				groups[k] = append(groups[k], s)
			}
			break
		}
	}
	for k, group := range groups {
		if len(group) == 1 {
			continue
		}
		queries, floors, tops := make([]*quant.Query, len(group)), make([]float32, len(group)),
			make([]topRows, len(group))
		for i, s := range group {
			_, queries[i] = s.atHand()
			floors[i], tops[i].k = float32(math.Inf(-1)), s.ToFind(s.q.K)
		}
		see := func(i int, row uint32, similarity float32) float32 {
			if tops[i].add(rankedRow{similarity, row}) {
				floors[i] = tops[i].floor()
			}
			return floors[i]
		}
		err := k.set.Table.Rows(k.n).Parts(make([]uint32, 1024), nil, func(rows []uint32) error {
			k.table.EachOf(queries, rows, floors, see)
			return ctx.Err()
		})
		if err != nil {
			return err
		}
		for i, s := range group {
			s.ahead = &rankedRun{k.n, tops[i].appendTo(nil), tops[i].k}
		}
	}
	return nil
}

// atHand returns the rows in memory that the query is first compared with, and the query.
func (s *Searcher) atHand() (*quant.Table, *quant.Query) {
	if s.p.features != nil {
		return s.Cv.Vectors[s.p.modality].Table, s.p.features
	}
	return s.Cv.Directions.Table, s.p.direction
}

// A sharedScan has the queries of a group over one code set. Its three slices are parallel.
type sharedScan struct {
	searchers []*Searcher  // receive the codes
	asked     []*mih.Query // query of each
	k         []int        // items to find for each
}
