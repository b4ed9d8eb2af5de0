package db

import (
	"cmp"
	"context"
	"runtime"
	"strconv"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// SearchAll answers queries as Search does, all from the same state of the
// collection, on all cores. Queries that need a scan by distance share it. The first error
// ends it and says which query it is about.
func (c *Collection) SearchAll(ctx context.Context, queries []Query) ([]*Result, error) {
	ctx, call := c.db.state.Signals.Call(ctx, event.OpSearchAll, c.name)
	results := make([]*Result, len(queries))
	err := c.read(func(v *state.View, cv *state.CollectionView) error {
		// A group of queries is one piece of work: enough of them to share
		// scans, and enough groups for all cores.
		group := min(max(len(queries)/(2*runtime.GOMAXPROCS(0)), 1), search.MaxShared)
		groups := (len(queries) + group - 1) / group
		return work.ParallelBy(ctx, work.All(), 1, groups, func(i int) error {
			from, to := i*group, min((i+1)*group, len(queries))
			asked := make([]search.Query, to-from)
			for j := range asked {
				q := queries[from+j]
				q.K = cmp.Or(q.K, defaultK)
				if err := q.check(); err != nil {
					return &QueryError{Query: from + j, Err: err}
				}
				asked[j] = q.inside()
			}
			at, err := search.Group(ctx, c.db.search, v, cv, asked, func(j int, s *search.Searcher) error {
				found, a, err := resultOf(ctx, s, asked[j].K, queries[from+j].wanted())
				if err != nil {
					return err
				}
				s.Observe(a)
				results[from+j] = found
				return nil
			})
			if err != nil && at >= 0 {
				err = &QueryError{Query: from + at, Err: err}
			}
			return err
		})
	})
	hits := 0
	for _, r := range results {
		if err == nil {
			hits += len(r.Hits)
		}
	}
	c.db.search.SearchedAll(&call, len(queries), hits, err)
	if err != nil {
		return nil, err
	}
	return results, nil
}

// A QueryError names the query of SearchAll that an error is about.
type QueryError struct {
	Query int // from 0
	Err   error
}

func (e *QueryError) Error() string { return e.Err.Error() + " (query " + strconv.Itoa(e.Query) + ")" }

// Unwrap returns the error itself.
func (e *QueryError) Unwrap() error { return e.Err }
