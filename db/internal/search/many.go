package search

import (
	"context"
	"math"

	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/internal/quant"
	"github.com/fddhdb/fddhdb/mih"
)

// MaxShared is the largest number of queries that share a scan. More would not go faster
// and would take scratch memory.
const MaxShared = 16

// Group finds the codes of the K nearest items for each query, at most MaxShared of them.
// Queries by distance over the same codes in memory share one scan, where they need one,
// which reads each code once for all. Queries by score, or in the store, go alone.
//
// Once all codes are found it calls done with each query's number and its searcher, in
// order, which done reads and does not keep. It runs in the caller's goroutine: the caller
// gives each goroutine a group. The first error ends it. at is the number of the query
// that the error is about, -1 if it is about all.
func Group(ctx context.Context, tools *Tools, v *state.View, cv *state.CollectionView, queries []Query, done func(i int, s *Searcher) error) (at int, err error) {
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
		if mq := s.query(ctx, k); !s.byScore && !s.usesStore(mq, -1) {
			scan := shared[s.Set]
			if scan == nil {
				scan = new(sharedScan)
				shared[s.Set] = scan
			}
			scan.searchers, scan.asked, scan.k = append(scan.searchers, s), append(scan.asked, mq), append(scan.k, k)
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

// A rankedRun has the first k rows of the run with a number.
type rankedRun struct {
	number uint32
	rows   []rankedRow
	k      int
}

// minTogether is the number of rows from which on a run is ranked for several queries at once: so
// many vectors do not all stay in the caches from one query to the next.
const minTogether = 2048

// rankTogether ranks the first runs of the searchers, those of one run together, so that each
// projection, or vector, is fetched once for all. It leaves out runs of few rows, and searchers of
// which rank has more to ask than similarities of one kind that are all in memory.
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
		// Codes of thousands of items are few. Where many are as near, their scores are left alone.
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
		queries, floors, tops := make([]*quant.Query, len(group)), make([]float32, len(group)), make([]topRows, len(group))
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

// atHand returns what is in memory of what the query is compared with first, and the query.
func (s *Searcher) atHand() (*quant.Table, *quant.Query) {
	if s.p.features != nil {
		return s.Cv.Vectors[s.p.modality].Table, s.p.features
	}
	return s.Cv.Directions.Table, s.p.direction
}

// A sharedScan has the queries of a group over one code set. The three slices go
// together.
type sharedScan struct {
	searchers []*Searcher  // get the codes
	asked     []*mih.Query // query of each
	k         []int        // items to find for each
}
