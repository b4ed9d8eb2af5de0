package db

import (
	"context"
	"runtime"
	"strconv"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/mih"
)

// SearchAll answers queries as Search does, all from the same state of the
// collection, on all cores. Queries that need a scan by distance share it. The first error
// ends it and says which query it is about.
func (c *Collection) SearchAll(ctx context.Context, queries []Query) ([]*Result, error) {
	c = c.orNone()
	ctx, call := c.db.call(ctx, event.OpSearchAll, c.name)
	results := make([]*Result, len(queries))
	err := c.read(func(v *state.View, cv *state.CollectionView) error {
		// A group of queries is one piece of work: enough of them to share
		// scans, and enough groups for all cores.
		group := min(max(len(queries)/(2*runtime.GOMAXPROCS(0)), 1), maxShared)
		groups := (len(queries) + group - 1) / group
		return work.ParallelBy(ctx, work.All(), 1, groups, func(i int) error {
			from, to := i*group, min((i+1)*group, len(queries))
			return c.searchGroup(ctx, v, cv, queries[from:to], results[from:to], from)
		})
	})
	c.db.counters.searchedAll(&call, results, err)
	if err != nil {
		return nil, err
	}
	return results, nil
}

// maxShared is the number of queries that share scans: more would not go faster,
// and take scratch memory.
const maxShared = 16

// searchGroup answers some queries, of which the first has the number first.
func (c *Collection) searchGroup(ctx context.Context, v *state.View, cv *state.CollectionView, queries []Query, results []*Result, first int) error {
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
		if q.K == 0 {
			q.K = defaultK
		}
		s, err := c.newSearcher(ctx, v, cv, &q)
		if err != nil {
			return queryError(first+i, err)
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
			return queryError(first+i, err)
		}
	}
	for set, scan := range shared {
		found, err := set.Table.NearestEach(ctx, scan.asked, scan.k)
		if err != nil {
			return err
		}
		for i, s := range scan.searchers {
			s.matches = found[i]
		}
	}
	for i, s := range searchers {
		var err error
		if results[i], err = s.first(ctx, s.q.K); err != nil {
			return queryError(first+i, err)
		}
		s.observe(results[i])
	}
	return nil
}

// A sharedScan is the queries of a group that look at the same codes.
type sharedScan struct {
	searchers []*searcher
	asked     []*mih.Query
	k         []int
}

// queryError says which query an error is about.
func queryError(i int, err error) error { return &QueryError{Query: i, Err: err} }

// A QueryError names the query of SearchAll that an error is about.
type QueryError struct {
	Query int // from 0
	Err   error
}

func (e *QueryError) Error() string { return e.Err.Error() + " (query " + strconv.Itoa(e.Query) + ")" }

// Unwrap returns the error itself.
func (e *QueryError) Unwrap() error { return e.Err }
