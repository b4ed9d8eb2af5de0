package db

import (
	"context"

	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/mih"
)

// maxShared is the number of queries that share scans: more would not go faster,
// and take scratch memory.
const maxShared = 16

// searchGroup answers some queries, at most maxShared, of which those that scan by distance
// share the scan. done gets the searcher of each, which has found its codes. at is the query
// that an error is about, -1 where it is about all.
func searchGroup(ctx context.Context, tools *searchTools, v *state.View, cv *state.CollectionView, queries []*searchQuery, done func(i int, s *searcher) error) (at int, err error) {
	searchers := make([]*searcher, len(queries))
	defer func() {
		for _, s := range searchers {
			if s != nil {
				s.close()
			}
		}
	}()
	shared := map[*state.CodeSetView]*sharedScan{}
	for i := range queries {
		q := queries[i]
		s, err := newSearcher(ctx, tools, v, cv, q)
		if err != nil {
			return i, err
		}
		searchers[i] = s
		if mq := s.query(); !s.byScore && !s.usesStore(mq, -1) {
			scan := shared[s.set]
			if scan == nil {
				scan = new(sharedScan)
				shared[s.set] = scan
			}
			scan.searchers, scan.asked, scan.k = append(scan.searchers, s), append(scan.asked, mq), append(scan.k, s.toFind(q.K))
		} else if err := s.nearest(ctx, s.toFind(q.K)); err != nil {
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

// A sharedScan is the queries of a group that look at the same codes.
type sharedScan struct {
	searchers []*searcher
	asked     []*mih.Query
	k         []int
}
