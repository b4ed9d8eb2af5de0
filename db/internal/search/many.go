package search

import (
	"context"

	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/mih"
)

// MaxShared is the number of queries that share scans: more would not go faster,
// and take scratch memory.
const MaxShared = 16

// Group answers some queries, at most MaxShared, of which those that scan by distance
// share the scan. done gets the searcher of each, which has found its codes. at is the query
// that an error is about, -1 where it is about all.
func Group(ctx context.Context, tools *Tools, v *state.View, cv *state.CollectionView, queries []*Query, done func(i int, s *Searcher) error) (at int, err error) {
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
		if mq := s.query(); !s.byScore && !s.usesStore(mq, -1) {
			scan := shared[s.Set]
			if scan == nil {
				scan = new(sharedScan)
				shared[s.Set] = scan
			}
			scan.searchers, scan.asked, scan.k = append(scan.searchers, s), append(scan.asked, mq), append(scan.k, s.ToFind(q.K))
		} else if err := s.Nearest(ctx, s.ToFind(q.K)); err != nil {
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
	searchers []*Searcher
	asked     []*mih.Query
	k         []int
}
