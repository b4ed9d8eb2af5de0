package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/internal/rest"
)

// maxQueries bounds the queries of one request: they are in memory. So are the hits of those that are
// answered together, at most hitsTogether times those that one answer may have.
const (
	maxQueries      = 10_000
	queriesTogether = 1000
	hitsTogether    = 10
)

// registerMany adds the route that answers many queries.
func registerMany(t *router) {
	many := handle(t, "POST", ofCollection+":search-many", Read,
		"Answer many queries: a query a line, an answer a line, in their order",
		func(context.Context, *request, *none) (*none, error) { return nil, nil }, inSpace...)
	many.accepts, many.produces = []string{ndjson}, []string{ndjson}
	many.line, many.answers = reflect.TypeFor[rest.Query](), reflect.TypeFor[db.Result]()
	many.status, many.untimed, many.run = http.StatusOK, true, searchMany
}

// searchMany answers the queries of a body, some at a time: each of these parts takes a place, and the time
// of a request. The first error ends it and says which query it is about.
func searchMany(ctx context.Context, r *request) error {
	queries, radii, err := r.queries()
	if err != nil {
		return err
	}
	c, err := r.collection(ctx)
	if err != nil {
		return err
	}
	return lines(ctx, r.w, func(yield func(*db.Result, error) bool) {
		together := 16
		for from := 0; from < len(queries); {
			to, hits, start := from, 0, time.Now()
			for ; to < len(queries) && to-from < together; to++ {
				hits += cmp.Or(queries[to].K, 10) * (r.s.opt.MaxK / r.mostHits(queries[to]))
				if len(queries[to].Facets) > 0 { // as many counts as a field has values
					hits += r.s.opt.MaxK
				}
				if to > from && hits > hitsTogether*r.s.opt.MaxK {
					break
				}
			}
			results, err := r.answers(ctx, c, queries[from:to], radii[from:to])
			if time.Since(start) < r.s.opt.Timeout/10 { // so slow queries end in time, too
				together = min(2*together, queriesTogether)
			} else {
				together = max(1, together/4)
			}
			if about := (*db.QueryError)(nil); errors.As(err, &about) {
				about.Query += from
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, x := range results {
				if !yield(x, nil) {
					return
				}
			}
			from = to
		}
	})
}

// answers returns the results of queries, which it runs on all processors.
func (r *request) answers(ctx context.Context, c api.Collection, queries []db.Query,
	radii []int) ([]*db.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, r.s.opt.Timeout)
	defer cancel()
	if err := r.s.wait(ctx); err != nil {
		return nil, err
	}
	defer r.s.leave()
	// A folder shares scans among queries.
	folder, is := c.(interface {
		SearchAll(ctx context.Context, queries []db.Query) ([]*db.Result, error)
	})
	alone := slices.Max(radii) >= 0 || slices.ContainsFunc(queries, func(q db.Query) bool {
		return q.Include&db.IncludeExplain != 0
	})
	if is && !alone {
		return folder.SearchAll(ctx, queries)
	}
	results := make([]*db.Result, len(queries))
	return results, work.ParallelBy(ctx, work.All(), 1, len(queries), func(i int) (err error) {
		if radii[i] >= 0 {
			results[i], err = c.SearchRadius(ctx, queries[i], radii[i])
		} else {
			results[i], err = c.Search(ctx, queries[i])
		}
		if err != nil {
			err = &db.QueryError{Query: i, Err: err}
		}
		return err
	})
}

// queries returns the queries of a body, and the radius of each, negative without one.
func (r *request) queries() (all []db.Query, radii []int, err error) {
	dec := json.NewDecoder(bytes.NewReader(r.raw))
	dec.DisallowUnknownFields()
	for i := 0; ; i++ {
		var in rest.Query
		if err := dec.Decode(&in); err == io.EOF {
			return all, radii, nil
		} else if err != nil {
			return nil, nil, fault.Invalid("query %d: %s", i, strings.TrimPrefix(err.Error(), "json: "))
		}
		if i == maxQueries {
			return nil, nil, fmt.Errorf("%w: more than %d queries: send fewer at a time", rest.ErrTooLarge, maxQueries)
		}
		q, err := in.Query()
		if err == nil {
			err = r.bounded(q)
		}
		radius := -1
		switch {
		case err != nil:
		case in.Text != "" || in.FacetLimit != 0:
			err = fault.Invalid("text and facet_limit are for :search alone; :embed makes a vector or a code of a text")
		case in.Radius != nil && *in.Radius < 0:
			err = fault.Invalid("radius %d: 0 or more bits are possible", *in.Radius)
		case in.Radius != nil:
			radius = *in.Radius
		}
		if err != nil {
			return nil, nil, &db.QueryError{Query: i, Err: err}
		}
		all, radii = append(all, q), append(radii, radius)
	}
}
