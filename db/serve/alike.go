package serve

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"reflect"
	"time"

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

// alike adds a route that answers with lines. One such request works at a time, on all processors: it takes
// no place of others, and keeps what it has found in memory until the client has read it. Others wait, but
// not longer than a request may take.
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
		late := time.NewTimer(r.s.opt.Timeout)
		defer late.Stop()
		select {
		case r.s.joins <- struct{}{}:
			defer func() { <-r.s.joins }()
		case <-late.C:
			return rest.ErrOverloaded
		case <-ctx.Done():
			return ctx.Err()
		}
		r.w.timeout = r.s.opt.Timeout / 10 // a client that does not read keeps the others waiting
		return lines(ctx, r.w, first(all, limit))
	}
}
