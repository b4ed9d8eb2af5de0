package db

import (
	"context"
	"time"

	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// Explain answers a query as Search does, or within a radius that is not negative
// the first K items as SearchRadius, and tells how.
func (c *Collection) Explain(ctx context.Context, q Query, radius int) (*Explain, *Result, error) {
	if q.K == 0 {
		q.K = defaultK
	}
	var e *Explain
	var res *Result
	err := c.read(func(v *state.View, cv *state.CollectionView) error {
		start := time.Now()
		s, err := c.searcher(ctx, v, cv, &q)
		if err != nil {
			return err
		}
		defer s.Close()
		s.Explain = &search.Timings{Encode: time.Since(start)}
		if radius >= 0 {
			err = s.Within(ctx, radius)
		} else {
			err = s.Nearest(ctx, s.ToFind(q.K))
		}
		if err != nil {
			return err
		}
		if res, _, err = resultOf(ctx, s, q.K, q.wanted()); err == nil {
			e = s.Report(radius, len(res.Hits))
		}
		return err
	})
	return e, res, err
}
