package explore

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/forms"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/report"
)

// databaseForm is everything that the page must know before a search. It costs nothing.
type databaseForm struct {
	Name        string           `json:"name"`
	UUID        string           `json:"uuid,omitempty"`
	Format      int              `json:"format"`
	Version     string           `json:"version"`
	Collections []collectionForm `json:"collections"`
	MaxK        int              `json:"max_k"`
}

// collectionForm has the names of the verb collections, as far as they cost nothing.
type collectionForm struct {
	Name       string        `json:"name"`
	IndexOnly  bool          `json:"index_only,omitempty"`
	Items      int           `json:"items"`
	Modalities []db.Modality `json:"modalities"`
	Fields     []db.Field    `json:"fields"`
	Encoders   []string      `json:"encoders"`         // modalities that can be searched from by text
	Pictures   []string      `json:"picture_encoders"` // modalities that can be searched from by picture
	Trained    bool          `json:"trained"`
	Space      db.Space      `json:"space,omitempty"` // active space
	Spaces     []spaceForm   `json:"spaces"`
}

// spaceForm has the names of the verb models.
type spaceForm struct {
	Space    db.Space          `json:"space"`
	State    report.SpaceState `json:"state"`
	Bits     int               `json:"bits"`
	Revision uint32            `json:"revision"`
	Items    int               `json:"items"`
	Codes    int               `json:"distinct_codes"`
}

func (s *Server) database(ctx context.Context, v url.Values) (any, error) {
	p := &parameters{values: v}
	if err := p.end(); err != nil {
		return nil, err
	}
	out := databaseForm{
		Name: s.opt.Name, UUID: s.db.UUID(), Format: db.Format, Version: s.opt.Version,
		Collections: []collectionForm{}, MaxK: maxK,
	}
	names, err := s.db.Collections()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		form, err := s.collectionForm(ctx, name)
		if err != nil {
			return nil, err
		}
		out.Collections = append(out.Collections, *form)
	}
	return out, nil
}

func (s *Server) collectionForm(ctx context.Context, name string) (*collectionForm, error) {
	c, err := s.db.Collection(name)
	if err != nil {
		return nil, err
	}
	schema, err := c.Schema()
	if err != nil {
		return nil, err
	}
	out := &collectionForm{
		Name: name, IndexOnly: schema.IndexOnly,
		Modalities: append([]db.Modality{}, schema.Modalities...),
		Fields:     append([]db.Field{}, schema.Fields...),
		Encoders:   s.encodersFor(name, schema.Modalities, db.InputText),
		Pictures:   s.encodersFor(name, schema.Modalities, db.InputFile), Spaces: []spaceForm{},
	}
	if out.Items, err = c.Count(ctx, ""); err != nil {
		return nil, err
	}
	spaces, err := c.Spaces(ctx)
	if err != nil {
		return nil, err
	}
	for _, sp := range spaces {
		out.Spaces = append(out.Spaces, spaceForm{
			Space: sp.Space, State: sp.State, Bits: sp.Bits,
			Revision: sp.Revision, Items: sp.Items, Codes: sp.Codes,
		})
		if sp.State == report.SpaceActive {
			out.Space, out.Trained = sp.Space, true
		}
	}
	return out, nil
}

// stats answers like the verb.
func (s *Server) stats(ctx context.Context, v url.Values) (any, error) {
	p := &parameters{values: v}
	if err := p.end(); err != nil {
		return nil, err
	}
	return s.allStats(ctx)
}

func (s *Server) allStats(ctx context.Context) (*forms.Stats, error) {
	out, err := s.db.Stats()
	if err != nil {
		return nil, err
	}
	return forms.NewStats(ctx, api.Folder(s.db, nil), out)
}

// collections answers like the verb, as one list.
func (s *Server) collections(ctx context.Context, v url.Values) (any, error) {
	p := &parameters{values: v}
	if err := p.end(); err != nil {
		return nil, err
	}
	all, err := s.allStats(ctx)
	if err != nil {
		return nil, err
	}
	return struct {
		Collections []forms.Collection `json:"collections"`
	}{all.Collections}, nil
}

// models answers like the verb, as one list.
func (s *Server) models(ctx context.Context, v url.Values) (any, error) {
	p := &parameters{values: v}
	name := p.text("collection", "main")
	if err := p.end(); err != nil {
		return nil, err
	}
	c, err := s.at(place{collection: name})
	if err != nil {
		return nil, err
	}
	spaces, err := c.Spaces(ctx)
	if err != nil {
		return nil, err
	}
	if spaces == nil {
		spaces = []report.SpaceInfo{}
	}
	return struct {
		Spaces []report.SpaceInfo `json:"spaces"`
	}{spaces}, nil
}

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
	dq.Facets = by
	return s.compute(ctx, func() (any, error) {
		r, _, err := find(ctx, c, dq, q)
		if err != nil {
			return nil, err
		}
		for i := range r.Facets {
			f := &r.Facets[i]
			f.Counts = f.Counts[:min(limit, len(f.Counts))]
		}
		return facetsForm{Facets: r.Facets}, nil
	})
}
