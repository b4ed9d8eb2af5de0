package search

import (
	"context"

	"github.com/fddhdb/fddhdb/db/internal/state"
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
	for i, s := range searchers {
		if err := done(i, s); err != nil {
			return i, err
		}
	}
	return -1, nil
}

// A sharedScan has the queries of a group over one code set. The three slices go
// together.
type sharedScan struct {
	searchers []*Searcher  // get the codes
	asked     []*mih.Query // query of each
	k         []int        // items to find for each
}
