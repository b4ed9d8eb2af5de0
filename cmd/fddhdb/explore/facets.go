package explore

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db"
)

// facetsForm has counts of items by labels, and by the values of fields.
type facetsForm struct {
	Facets []db.Facets `json:"facets"`
}

// facets counts items by labels and fields. If the parameters have a query, it counts the items of the
// answer, otherwise those that match the parameter where. The parameter by lists label and names of
// fields, separated by commas.
func (s *Server) facets(ctx context.Context, v url.Values) (*reply, error) {
	p := &parameters{values: v}
	by, limit := strings.Split(p.text("by", "label"), ","), p.number("limit", 10, 1, maxK)
	if p.err != nil {
		return nil, p.err
	}
	if slices.ContainsFunc([]string{"key", "code", "text", "picture", "upload"}, v.Has) {
		return s.facetsOfAnswer(ctx, v, by, limit)
	}
	at, where := p.place(), p.text("where", "")
	if err := p.end(); err != nil {
		return nil, err
	}
	return s.compute(ctx, func() (any, error) {
		c, err := s.at(at)
		if err != nil {
			return nil, err
		}
		out := facetsForm{Facets: []db.Facets{}}
		for _, name := range by {
			counts, err := c.Facets(ctx, db.FacetQuery{By: name, Where: where, Limit: limit})
			if err != nil {
				return nil, err
			}
			out.Facets = append(out.Facets, *counts)
		}
		return out, nil
	})
}

func (s *Server) facetsOfAnswer(ctx context.Context, v url.Values, by []string, limit int) (*reply, error) {
	v = maps.Clone(v)
	v.Del("by")
	v.Del("limit")
	q, c, dq, err := s.asked(ctx, v)
	if err != nil {
		return nil, err
	}
	dq.Facets, dq.FacetLimit = by, limit
	return s.compute(ctx, func() (any, error) {
		r, _, err := find(ctx, c, dq, q)
		if err != nil {
			return nil, err
		}
		return facetsForm{Facets: r.Facets}, nil
	})
}
