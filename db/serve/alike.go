package serve

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"reflect"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/internal/rest"
)

// registerAlike adds the routes that find items that are alike.
func registerAlike(t *router) {
	alike(t, "pairs", "List all pairs of items that are alike: a pair a line",
		func(ctx context.Context, c api.Collection, r *request, in *rest.Pairs) (iter.Seq2[db.Pair, error],
			int, error) {
			if in.Against != "" && !r.access.sees(in.Against) {
				return nil, 0, fmt.Errorf("%w: the token is for other collections", rest.ErrForbidden)
			}
			return c.Pairs(ctx, db.PairQuery{Likeness: in.Likeness.Likeness(), Against: in.Against,
				After: in.After}), in.Limit, nil
		})
	alike(t, "groups", "List the groups of items that are alike: a group a line",
		func(ctx context.Context, c api.Collection, r *request, in *rest.Groups) (iter.Seq2[db.Group, error],
			int, error) {
			return c.Groups(ctx, db.GroupQuery{Likeness: in.Likeness.Likeness(), Keep: in.Keep,
				Connected: in.Connected, After: in.After}), in.Limit, nil
		})
}

// alike adds a route that answers with lines. It has a place until the first one: then the work is done, or,
// by vectors, goes on as fast as the client reads.
func alike[I, O any](t *router, verb, summary string, find func(context.Context, api.Collection, *request,
	*I) (all iter.Seq2[O, error], limit int, err error)) {
	o := handle(t, "POST", ofCollection+":"+verb, Read, summary,
		func(context.Context, *request, *I) (*none, error) { return nil, nil }, inSpace...)
	o.produces, o.line, o.status, o.untimed = []string{ndjson}, reflect.TypeFor[O](), http.StatusOK, true
	o.run = func(ctx context.Context, r *request) error {
		in := new(I)
		if err := r.decode(in); err != nil {
			return err
		}
		c, err := r.collection(ctx)
		if err != nil {
			return err
		}
		all, limit, err := find(ctx, c, r, in)
		if err != nil {
			return err
		}
		if limit < 0 {
			return fault.Invalid("limit: %d lines: 1 or more are possible, 0 is all", limit)
		}
		if err := r.s.wait(ctx); err != nil {
			return err
		}
		r.placed = true
		defer r.leave()
		return lines(ctx, r.w, func(yield func(O, error) bool) {
			for x, err := range first(all, limit) {
				r.leave()
				if !yield(x, err) {
					return
				}
			}
		})
	}
}
