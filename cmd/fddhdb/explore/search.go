package explore

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/forms"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/report"
)

// at returns the collection of a request, in its space.
func (s *Server) at(p place) (*db.Collection, error) { return s.in(s.db, p) }

// in is at, of the database or of a snapshot of it.
func (s *Server) in(from interface {
	Collection(name string) (*db.Collection, error)
}, p place) (*db.Collection, error) {
	c, err := from.Collection(p.collection)
	if errors.Is(err, db.ErrNotFound) {
		names, err := s.db.Collections()
		if err != nil {
			return nil, err
		}
		return nil, statusErrorf(http.StatusNotFound, "there is no collection %.100q: there is %s",
			p.collection, strings.Join(names, ", "))
	}
	if err != nil || p.space == 0 {
		return c, err
	}
	return c.InSpace(p.space, 0)
}

// searchForm is the answer to a search: that of the verb, and what the page shows
// beside it.
type searchForm struct {
	forms.Search
	Items []*itemForm `json:"items,omitempty"`      // of the hits, in order
	Code  string      `json:"query_code,omitempty"` // code of the query, in hexadecimal
	// of the code; 0 where vectors were compared, also beside codes
	Bits   int     `json:"bits"`
	TookUS float64 `json:"took_us"` // duration of the search alone
}

func (s *Server) search(ctx context.Context, v url.Values) (*reply, error) {
	q, _, dq, err := s.asked(ctx, v)
	if err != nil {
		return nil, err
	}
	return s.compute(ctx, func() (out any, err error) {
		// The items are those that were found: Query.Include brings no codes, which the page draws.
		snapshot, err := s.db.Snapshot()
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, snapshot.Close()) }()
		c, err := s.in(snapshot, q.place)
		if err != nil {
			return nil, err
		}
		return s.answerSearch(ctx, c, dq, q)
	})
}

func (s *Server) answerSearch(ctx context.Context, c *db.Collection, dq db.Query,
	q *query) (*searchForm, error) {
	start := time.Now()
	r, explain, err := find(ctx, c, dq, q)
	if err != nil {
		return nil, err
	}
	took := time.Since(start)
	form := &searchForm{
		Search: forms.NewSearch(q.name(), r, q.radius >= 0, explain),
		TookUS: float64(took.Nanoseconds()) / 1000,
	}
	if r.Space != 0 { // else it is by vectors alone, and the page is to show no codes
		code, _, err := c.EncodeQuery(ctx, dq)
		if err != nil {
			return nil, err
		}
		form.Code, form.Bits = hex.EncodeToString(code), 8*len(code)
	}
	if q.items {
		form.Items = make([]*itemForm, len(r.Hits))
		for i, h := range r.Hits {
			it, err := c.Get(ctx, h.Key)
			if err != nil {
				return nil, err
			}
			form.Items[i] = s.itemForm(q.place, it).shortened()
		}
	}
	return form, nil
}

// name returns the name of the query in the answer.
func (q *query) name() any {
	switch {
	case q.key != "":
		return q.key
	case q.code != "":
		return q.code
	case q.text != "":
		return q.text
	case q.picture != "":
		return q.file
	}
	return q.row
}

// asked parses the parameters. It returns them, their collection, and the query for the
// database. It waits for an encoder or a file if the query needs one.
func (s *Server) asked(ctx context.Context,
	v url.Values) (q *query, c *db.Collection, dq db.Query, err error) {
	if q, err = parseQuery(v); err == nil {
		if c, err = s.at(q.place); err == nil {
			dq, err = s.query(ctx, c, q)
		}
	}
	return q, c, dq, err
}

// query makes the query for the database.
func (s *Server) query(ctx context.Context, c *db.Collection, q *query) (db.Query, error) {
	out := db.Query{
		From: q.from, To: q.to, K: q.k, Where: q.where, After: q.after,
		Rerank: q.rerank, MinSimilarity: q.minSimilarity,
	}
	switch {
	case q.key != "":
		out.Key = q.key
		return out, nil
	case q.code != "":
		code, err := hex.DecodeString(q.code)
		if err != nil {
			return out, badRequest("code=%.40q is not hexadecimal: two digits a byte are expected", q.code)
		}
		out.Code = code
		return out, nil
	}
	dim := 0
	if q.from != "" {
		m, err := modalityOf(c, q.from)
		if err != nil {
			return out, err
		}
		dim = m.Dim
	}
	if q.upload != "" {
		x, err := s.rowOf(ctx, q)
		out.Vector, out.Sparse, out.Code = x.dense, x.sparse, x.code
		return out, err
	}
	if q.picture != "" {
		x, err := s.pictureVector(ctx, q, dim)
		out.Vector, out.Sparse = x.Dense, x.Sparse
		return out, err
	}
	if !s.encoders.Has(q.collection, q.from, db.InputText) {
		return out, badRequest("there is no encoder for %q: fddhdb encoder --set %s=COMMAND stores one",
			q.from, q.from)
	}
	x, err := s.encode(ctx, q, db.InputText, dim, q.text)
	out.Vector, out.Sparse = x.Dense, x.Sparse
	return out, err
}

// rowOf returns the row of the upload for a query. Requests for one file take turns
// outside of the computing room.
func (s *Server) rowOf(ctx context.Context, q *query) (vector, error) {
	u, err := s.uploads.use(q.upload)
	if err != nil {
		return vector{}, err
	}
	defer s.uploads.done(u)
	if u.picture != "" {
		return vector{}, badRequest("%s is a picture: give it as picture, not as upload", u.base())
	}
	if err := u.turn.enter(ctx); err != nil {
		return vector{}, err
	}
	defer u.turn.leave()
	if err := s.computing.enter(ctx); err != nil {
		return vector{}, err
	}
	defer s.computing.leave()
	return u.rowAt(ctx, q.member, q.row, q.from == "")
}

// modalityOf returns a modality by name, and refuses one that the collection does not have.
func modalityOf(c *db.Collection, name string) (db.Modality, error) {
	schema, err := c.Schema()
	if err != nil {
		return db.Modality{}, err
	}
	var names []string
	for _, m := range schema.Modalities {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	if len(names) == 0 {
		return db.Modality{}, badRequest(
			"there is no modality %.100q: items of this collection bring their codes", name)
	}
	return db.Modality{}, badRequest("there is no modality %.100q: there is %s", name,
		strings.Join(names, ", "))
}

// find answers a query.
func find(ctx context.Context, c *db.Collection, dq db.Query, q *query) (*db.Result, *report.Explain, error) {
	if q.explain {
		explain, r, err := c.Explain(ctx, dq, q.radius)
		return r, explain, err
	}
	if q.radius < 0 {
		r, err := c.Search(ctx, dq)
		return r, nil, err
	}
	runs, err := c.SearchRadius(ctx, dq, q.radius)
	if err != nil {
		return nil, nil, err
	}
	defer runs.Close()
	r, err := runs.First(ctx, q.k)
	return r, nil, err
}

// histogramForm has the number of items at each distance from a query.
type histogramForm struct {
	Items     int   `json:"items"`
	Bits      int   `json:"bits"`
	Distances []int `json:"distances"` // element d: at d bits; bits + 1 elements
}

// histogram counts items by distance. It reads all distinct codes, and with a least similarity
// of projections compares all items.
func (s *Server) histogram(ctx context.Context, v url.Values) (*reply, error) {
	_, c, dq, err := s.asked(ctx, v)
	if err != nil {
		return nil, err
	}
	return s.compute(ctx, func() (any, error) { return answerHistogram(ctx, c, dq) })
}

func answerHistogram(ctx context.Context, c *db.Collection, dq db.Query) (*histogramForm, error) {
	dq.After = ""
	if dq.MinSimilarity == 0 { // nothing else depends on the order
		dq.Rerank = db.RerankNone
	}
	runs, err := c.SearchRadius(ctx, dq, maxBits)
	if err != nil {
		return nil, err
	}
	defer runs.Close()
	counts, err := runs.Distances(ctx)
	if err != nil {
		return nil, err
	}
	return &histogramForm{Items: runs.Total(), Bits: len(counts) - 1, Distances: counts}, nil
}

const maxBits = 4096 // of any code

// planForm tells how one kind of search is done: its Explain has the plan and the
// predicted times of other plans.
type planForm struct {
	Op      string          `json:"op"` // knn or radius, as in bench
	K       int             `json:"k,omitempty"`
	Radius  *int            `json:"radius,omitempty"`
	Explain *report.Explain `json:"explain"`
}

// plans runs searches of several kinds for one query, by default the first item, and
// returns how they were done.
func (s *Server) plans(ctx context.Context, v url.Values) (any, error) {
	c, q, err := s.planQuery(ctx, v)
	if err != nil {
		return nil, err
	}
	out := struct {
		Plans []planForm `json:"plans"`
	}{[]planForm{}}
	if q == nil {
		return out, nil
	}
	for _, sort := range []struct{ k, radius int }{{10, -1}, {100, -1}, {10, 0}, {10, 2}, {10, 4}, {10, 8},
		{10, 16}} {
		q.K = sort.k
		explain, _, err := c.Explain(ctx, *q, sort.radius)
		if err != nil {
			return nil, err
		}
		form := planForm{Op: "knn", K: sort.k, Explain: explain}
		if sort.radius >= 0 {
			form.Op, form.K, form.Radius = "radius", 0, &sort.radius
		}
		out.Plans = append(out.Plans, form)
	}
	return out, nil
}

// planQuery returns a query by the stored code of the first item, nil if nothing can be
// searched.
func (s *Server) planQuery(ctx context.Context, v url.Values) (*db.Collection, *db.Query, error) {
	p := &parameters{values: v}
	at, to := p.place(), p.text("to", "")
	if err := p.end(); err != nil {
		return nil, nil, err
	}
	c, err := s.at(at)
	if err != nil {
		return nil, nil, err
	}
	for coded, err := range c.Codes(ctx, to) {
		if errors.Is(err, db.ErrNoModel) {
			break
		}
		return c, &db.Query{Code: append([]byte(nil), coded.Code...), To: to, Rerank: db.RerankNone}, err
	}
	return c, nil, nil
}
