package wire

import (
	"slices"

	"github.com/fddhdb/fddhdb/db"
)

// A Query is the form of a db.Query in messages: without field names, and with its vector as bytes.
type Query struct {
	_             struct{} `cbor:",toarray"`
	From, To      string
	Vector        floats
	Sparse        *sparse
	Key           string
	Code          []byte
	ExcludeSelf   bool
	Space         db.Space
	Where         string
	Args          []any
	K             int
	Rerank        db.Rerank
	After         string
	MinSimilarity float32
	Recall        float64
	Cursors       bool
	Include       db.Include
	Facets        []string
	FacetLimit    int
	Plan          db.Plan
	Revision      uint32
}

// QueryOf returns the form of a query in messages. It copies slices that the caller may change later.
func QueryOf(q db.Query) *Query {
	w := &Query{
		From: q.From, To: q.To, Vector: slices.Clone(q.Vector), Key: q.Key, Code: slices.Clone(q.Code), ExcludeSelf: q.ExcludeSelf, Space: q.Space,
		Where: q.Where, Args: slices.Clone(q.Args), K: q.K, Rerank: q.Rerank, After: q.After, MinSimilarity: q.MinSimilarity,
		Recall: q.Recall, Cursors: q.Cursors, Include: q.Include, Facets: slices.Clone(q.Facets), FacetLimit: q.FacetLimit, Plan: q.Plan, Revision: q.Revision,
	}
	if q.Sparse != nil {
		w.Sparse = &sparse{Index: slices.Clone(q.Sparse.Index), Value: slices.Clone(q.Sparse.Value)}
	}
	return w
}

// Query returns the query, which shares the parts of w.
func (w *Query) Query() db.Query {
	q := db.Query{
		From: w.From, To: w.To, Vector: w.Vector, Key: w.Key, Code: w.Code, ExcludeSelf: w.ExcludeSelf, Space: w.Space,
		Where: w.Where, Args: w.Args, K: w.K, Rerank: w.Rerank, After: w.After, MinSimilarity: w.MinSimilarity,
		Recall: w.Recall, Cursors: w.Cursors, Include: w.Include, Facets: w.Facets, FacetLimit: w.FacetLimit, Plan: w.Plan, Revision: w.Revision,
	}
	if w.Sparse != nil {
		q.Sparse = &db.Sparse{Index: w.Sparse.Index, Value: w.Sparse.Value}
	}
	return q
}

// SeveralOf combines requests to several shards of a node into one. A query that all of them share travels
// once.
func SeveralOf(requests []*Request) *Request {
	r := &Request{Verb: Several, Requests: requests}
	query := requests[0].Query
	if query == nil {
		return r
	}
	own := make([]Request, len(requests))
	r.Requests = make([]*Request, len(requests))
	for i, q := range requests {
		if q.Query != query {
			return &Request{Verb: Several, Requests: requests}
		}
		own[i] = *q
		own[i].Query = nil
		r.Requests[i] = &own[i]
	}
	r.Query = query
	return r
}

// Each returns the requests of Several, complete with the shared query.
func (r *Request) Each() []*Request {
	for _, q := range r.Requests {
		if r.Query != nil && q != nil && q.Query == nil {
			q.Query = r.Query
		}
	}
	return r.Requests
}
