package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/internal/rest"
)

// maxQueries bounds the queries of one request, maxHits the hits of its answers: both are in memory.
const (
	maxQueries = 10_000
	maxHits    = 1_000_000
)

// registerMany adds the route that answers many queries.
func registerMany(t *router) {
	many := handle(t, "POST", ofCollection+":search-many", Read,
		"Answer many queries: a query a line, an answer a line, in their order",
		func(context.Context, *request, *none) (*none, error) { return nil, nil }, inSpace...)
	many.accepts, many.produces, many.large = []string{ndjson}, []string{ndjson}, true
	many.line, many.answers, many.status = reflect.TypeFor[rest.Query](), reflect.TypeFor[db.Result](), 200
	many.run = searchMany
}

// searchMany answers the queries of a body on all processors. The first error ends it and says which query it
// is about.
func searchMany(ctx context.Context, r *request) error {
	queries, radii, err := r.queries()
	if err != nil {
		return err
	}
	c, err := r.collection(ctx)
	if err != nil {
		return err
	}
	results := make([]*db.Result, len(queries))
	// A folder shares scans among queries.
	folder, is := c.(interface {
		SearchAll(ctx context.Context, queries []db.Query) ([]*db.Result, error)
	})
	if is && radii == nil {
		results, err = folder.SearchAll(ctx, queries)
	} else {
		err = work.ParallelBy(ctx, work.All(), 1, len(queries), func(i int) (err error) {
			if radii != nil && radii[i] >= 0 {
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
	if err != nil {
		return err
	}
	r.leave()
	return lines(r.Context(), r.w, func(yield func(*db.Result, error) bool) {
		for _, x := range results {
			if !yield(x, nil) {
				return
			}
		}
	})
}

// queries returns the queries of a body, and the radius of each, negative without one. radii is nil if none
// has one.
func (r *request) queries() (all []db.Query, radii []int, err error) {
	hits, within := 0, false
	dec := json.NewDecoder(bytes.NewReader(r.raw))
	dec.DisallowUnknownFields()
	for i := 0; ; i++ {
		var in rest.Query
		if err := dec.Decode(&in); err == io.EOF {
			break
		} else if err != nil {
			return nil, nil, fault.Invalid("query %d: %s", i, strings.TrimPrefix(err.Error(), "json: "))
		}
		q, err := in.Query()
		if err == nil {
			err = r.bounded(q)
		}
		if err == nil && in.Text != "" {
			err = fault.Invalid("text: one is possible at a time, for :search; :embed makes its vector")
		}
		if err != nil {
			return nil, nil, &db.QueryError{Query: i, Err: err}
		}
		if hits += cmp.Or(q.K, 10); i == maxQueries || hits > maxHits {
			return nil, nil, fmt.Errorf("%w: more than %d queries, or than %d hits of all: send fewer at a time",
				rest.ErrTooLarge, maxQueries, maxHits)
		}
		radius := -1
		if in.Radius != nil {
			radius, within = *in.Radius, true
			if radius < 0 {
				return nil, nil, &db.QueryError{Query: i,
					Err: fault.Invalid("radius %d: 0 or more bits are possible", radius)}
			}
		}
		all, radii = append(all, q), append(radii, radius)
	}
	if !within {
		radii = nil
	}
	return all, radii, nil
}
