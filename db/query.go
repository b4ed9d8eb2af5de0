package db

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/mih"
)

// A Query asks for the items whose codes are near. What it starts from is one of
// Vector and Sparse (with From), Key and Code.
//
// A collection that is not trained has no codes. It is answered by vectors, exactly unless there is an
// index of them (see Recall): items come by
// the Metric of the modality From between the vector of the query and theirs, the most similar first;
// then by row. Their Distance is -1 and their Score NaN. The vectors of an item that are compared are
//
//   - without To, all of the space of From (Modality.SpaceOf); the item counts as the most similar of
//     them, and is found if it has one;
//   - with a To that shares the space, that of To;
//   - with a To of another space, that of From, of items that have To as well.
//
// Such a query starts from a vector of From, or from the Key of an item that has one; where there is
// one modality a Key needs no From. Its Rerank is RerankAuto. All items are compared with 8 bits a
// dimension, as far as vectors are in memory (Options.RerankCacheBytes). Some more than K vectors are
// read, and all that are not in memory. What needs codes is ErrNoModel: a Code, other orders, a
// radius; MinSimilarity is the radius there.
type Query struct {
	// From is the modality of Vector or Sparse, which are the same in the two forms;
	// either goes where the modality is of the other. With Key, it is the modality whose stored
	// features of that item are encoded; where it is empty, or the item lacks
	// it, the stored code of the item is used. An index-only collection has no features, so it is the stored code there.
	From string

	// To, if not empty, restricts the answer to items that have this modality.
	To string

	Vector []float32
	Sparse *Sparse
	Key    string
	Code   []byte // bits/8 bytes, as in Item

	// ExcludeSelf leaves the item of Key out of the answer, and of its Total. Otherwise
	// it is a hit as every item that To and Where admit, at the place of its code: the
	// first of the items that share its code. A
	// query that is its stored code has it as the first hit of all. One by its features
	// may be nearer to other codes, as its code can come from its labels.
	ExcludeSelf bool

	// Space is the code space that is searched. One that is being built cannot be searched
	// yet (ErrBusy).
	Space Space

	// Revision, if not 0, is a revision of the space that is kept: the query is encoded by its projections in place
	// of the present ones, and a cursor of that revision goes on. So databases whose revisions have the same numbers
	// (ImportRevision) answer alike while a new one comes to them, one after the other. One that is not there is
	// ErrNotFound. The first search by another revision than the present one reads its projections.
	Revision uint32

	// Where, if not empty, restricts the answer to items that match an expression
	// such as
	//
	//	label = 'cat' AND year IN (2020, 2021) AND NOT (price >= 10 OR has(image))
	//
	// of comparisons with fields, of label, which is true of the items
	// whose labels contain the string, and of has, true of those that have the
	// modality or a value of the field, or with has(label) any label. A comparison with a field that an
	// item lacks is false, that with != too; NOT is true of all items of which
	// what follows is not. docs/SHELL.md has the grammar. A mistake is a
	// *WhereError. The time is that of reading what is indexed of the labels and
	// fields that it names, with has(label) of all labels: for a label a bit an
	// item at worst, for a number 64. Of fields without an index (Field.Indexed) the values
	// are read from the items, a fraction of a microsecond each; Explain.ScannedFields names them.
	Where string

	// Args are the values of the placeholders in Where, in order: each ? stands for the
	// next one, where a value may stand.
	//
	//	Where: "label = ? AND price < ? AND year IN (?)",
	//	Args:  []any{name, 9.5, []int{2020, 2021}},
	//
	// They are strings, numbers, bools and, for fields of times, time.Time, also of types that are made of these, and
	// behind IN slices of them, which are not empty. Nothing in a string is read as part
	// of the expression, so that it can come from anybody. A number of arguments that is
	// not that of the placeholders, and one of another type than what it is compared with,
	// is a *WhereError, which names it. All have 1 MiB together at most. They are read
	// during the call, and not kept.
	Args []any

	// K is the number of items that Search returns; 0 means 10.
	K int

	// Rerank is the order of the answer.
	Rerank Rerank

	// After, if not empty, is the cursor of a Result of the same query: the
	// answer goes on behind it. It says where in the order that answer ended, so
	// that items that come or go in between do not shift what follows.
	After string

	// MinSimilarity, if not 0, leaves out hits with less Similarity, from -1 to 1, as if the
	// items were not there. Where answers are by vectors alone (see RerankAuto) it is a similarity by the
	// Metric of From, by Dot any number. Else it is of projections: for RerankProjection and
	// RerankAsymmetric, and queries by a vector, or by the key of an item that has one. Each
	// item of each code that may be in the answer is then compared with the query, some nanoseconds each.
	MinSimilarity float32

	// Recall is the part of the K nearest items that an answer by vectors is to have, on average
	// over queries, where there is an index of vectors (Collection.IndexVectors): above 0 and up
	// to 1, which is exact; 0 is the recall that the index was made with. Result.Approximate says
	// that an answer may lack items. Those that it has are in order, with exact similarities, and
	// match Where. What a page lacks no later page has: its cursor is behind it. Where a collection has
	// codes a Recall asks for an answer by vectors. Searches by codes are always exact.
	Recall float64

	// Cursors gives each hit a cursor of its own, Hit.Cursor, so that an answer can go on behind any of
	// them, as that of several databases does of which each has given some hits. It costs 90 bytes a hit.
	Cursors bool

	// Include says which parts of its item each hit brings with it, in Hit.Item, as of the
	// state that was searched: nobody needs a Get for each hit, nor meets another item there.
	// A hit costs a read of its record for any of labels, fields and payload, and one of each
	// vector.
	Include Include

	// Facets are what the items of the answer are counted by, into Result.Facets: each is label or
	// a field, as FacetQuery.By. Within a radius all items within it count, as in Result.Total, else
	// the hits. FacetLimit is how many counts of each come back, as FacetQuery.Limit; 0 is all.
	Facets     []string
	FacetLimit int

	// Plan is the way to find the codes; the fastest is chosen unless set. The
	// answer is the same.
	Plan Plan
}

// A Plan is a way to find the codes near a query; see the constants.
type Plan = mih.Plan

// Plans.
const (
	PlanAuto      = mih.PlanAuto      // whichever is predicted to be fastest
	PlanMemory    = mih.PlanMemory    // substring tables in memory
	PlanScan      = mih.PlanScan      // all codes in memory
	PlanFilter    = mih.PlanFilter    // the codes of the rows that the filter admits
	PlanDisk      = mih.PlanDisk      // substring postings in the store
	PlanBlockScan = mih.PlanBlockScan // all codes in the store
)

// Rerank is an order of answers. Each of them is the same by every Plan.
type Rerank int

const (
	// RerankAuto is RerankProjection, but the items of one code come by the cosine between their vectors and
	// that of the query, at 8 bits a dimension, where the query is a vector of a dense modality that all items
	// have, up to 40,000 of them and 16 MiB. Without codes, or for a Query.Recall, it compares vectors alone.
	//
	// Result.Rerank and Explain say which of these it was. It does not depend on what is in memory, nor on
	// Options. With a cursor an answer goes on in the order in which it has begun.
	RerankAuto Rerank = iota
	// RerankProjection orders items by distance, then by the score of their code,
	// and those of one code by Hit.Similarity: the cosine between the real-valued
	// projection of the query and theirs; then by row. Items that share a code share every
	// score that the code can give, so without it the oldest of them would always come first.
	RerankProjection
	// RerankNone is the same, with the items of one code by row.
	RerankNone
	// RerankAsymmetric orders items by the score of their code, over all codes
	// whatever their distance, and those of one code by Similarity; then by row. It
	// is exact: no item outside an answer has a better score than one inside. It
	// finds what is relevant better than distances do, as it knows which bits of the
	// query are sure. Within a radius it is the order of what lies within. A query
	// by code has the scores that its distances give it, and so the order of
	// RerankNone. The postings of PlanDisk do not find scores: it reads all codes.
	RerankAsymmetric
)

// possibleReranks lists the names in errors.
const possibleReranks = "auto, projection, none and asymmetric"

func (r Rerank) String() string {
	if r.known() {
		return search.OrderNames[r]
	}
	return fmt.Sprintf("Rerank(%d)", int(r))
}

func (r Rerank) known() bool { return r >= 0 && int(r) < len(search.OrderNames) }

// ParseRerank returns the order of that name.
func ParseRerank(s string) (Rerank, error) {
	if i := slices.Index(search.OrderNames[:], strings.ToLower(s)); i >= 0 {
		return Rerank(i), nil
	}
	return 0, fault.Invalid("unknown rerank %q: %s are possible", s, possibleReranks)
}

// A Hit is one item of an answer. A struct that embeds one takes over its MarshalJSON.
type Hit struct {
	Key      string
	Row      uint32
	Distance int // Hamming, in bits; -1 of an answer by vectors (see RerankAuto), in which no codes were compared

	// Score is z . h, the inner product of the projection of the query with the
	// code of the item as +-1: the larger the nearer. NaN for queries by code.
	Score float64

	// Similarity is what decided. Of an answer by vectors alone (see RerankAuto) it is that of these, by
	// their Metric. Else it is the cosine between the projection of the query and that of the item, or
	// between their vectors where these decide, with 8 bits a dimension; 0 for an item that has none. NaN
	// where nothing was compared: for queries by code, and for RerankNone.
	Similarity float32

	Cursor string // behind this hit, if Query.Cursors asks for it; "" of Neighbors

	// Item has the key and what Query.Include asks for; nil if it asks for nothing. It is the
	// caller's.
	Item *Item
}

// Include says which parts of its item a Hit brings with it: a sum of the constants. The zero
// value is none.
type Include int

// Parts of items.
const (
	IncludeLabels  Include = 1 << iota // Item.Labels
	IncludeFields                      // Item.Fields
	IncludePayload                     // Item.Payload
	IncludeVectors                     // Item.Vectors and Sparse; of an index-only collection Modalities

	includeAll = IncludeLabels | IncludeFields | IncludePayload | IncludeVectors
)

// A Result is the answer to a query: items by (distance, -score of the code),
// and where that is equal, as for a query by code, by the age of the code; the
// items of one code together, by (-Similarity, row), the item of Query.Key before the
// others. See Rerank for other orders.
type Result struct {
	Hits     []Hit
	Next     string // cursor, for Query.After; empty at the end
	Total    int    // of a search by radius: items within it, whether in Hits or not
	Space    Space  // that the codes are of
	Revision uint32

	// Rerank is the order of the answer. RerankAuto says that vectors have decided: alone where Space is 0,
	// else among the items of each code.
	Rerank Rerank

	// Facets are the counts that Query.Facets asks for, in that order.
	Facets []Facets

	// Approximate says that items may be missing, see Query.Recall.
	Approximate bool
}

const defaultK = 10

// Search returns the K nearest items by Hamming distance between codes, or by
// another order (see Rerank), exactly: no item outside is nearer than one inside.
// Fewer come back only when there are
// no more. The time is that of encoding the query, of finding the codes (see
// Explain), and of the items of the codes that are reached.
func (c *Collection) Search(ctx context.Context, q Query) (*Result, error) {
	if q.K == 0 {
		q.K = defaultK
	}
	ctx, call := c.db.state.Signals.Call(ctx, event.OpSearch, c.name)
	var res *Result
	hits, plan := 0, PlanAuto
	err := c.read(func(v *state.View, cv *state.CollectionView) error {
		s, err := c.searcher(ctx, v, cv, &q)
		if err != nil {
			return err
		}
		defer s.Close()
		if err := s.Nearest(ctx, s.ToFind(q.K)); err != nil {
			return err
		}
		found, a, err := resultOf(ctx, s, q.K, q.wanted())
		if err != nil {
			return err
		}
		s.Observe(a)
		res, hits, plan = found, len(found.Hits), s.How().Plan
		return nil
	})
	c.db.search.Searched(&call, event.OpSearch, plan, hits, err)
	return res, err
}

// SearchRadius returns all items within radius bits of the query, exactly, in
// the order of a Result, as runs of items that share a code. Their rows and keys
// are put in order and read when they are looked at; for RerankAsymmetric all codes
// are put in order first. Close the runs.
func (c *Collection) SearchRadius(ctx context.Context, q Query, radius int) (*Runs, error) {
	if radius < 0 {
		return nil, fault.Invalid("radius %d: 0 or more bits are possible", radius)
	}
	ctx, call := c.db.state.Signals.Call(ctx, event.OpSearchRadius, c.name)
	var r *Runs
	total, plan := 0, PlanAuto
	err := c.read(func(v *state.View, cv *state.CollectionView) error {
		s, err := c.searcher(ctx, v, cv, &q)
		if err != nil {
			return err
		}
		err = s.Within(ctx, radius)
		total, plan = s.Total, s.How().Plan
		s.Close()
		if err != nil {
			return err
		}
		v.Acquire()
		r = &Runs{s: s, wanted: q.wanted(), pin: c.db.state.Pin(v)}
		return nil
	})
	c.db.search.Searched(&call, event.OpSearchRadius, plan, total, err)
	return r, err
}

// CountRadius returns the number of items within radius bits of the query, also of those
// before its cursor.
func (c *Collection) CountRadius(ctx context.Context, q Query, radius int) (int, error) {
	if radius < 0 {
		return 0, fault.Invalid("radius %d: 0 or more bits are possible", radius)
	}
	ctx, call := c.db.state.Signals.Call(ctx, event.OpCountRadius, c.name)
	n, plan := 0, PlanAuto
	err := c.read(func(v *state.View, cv *state.CollectionView) error {
		s, err := c.searcher(ctx, v, cv, &q)
		if err != nil {
			return err
		}
		defer s.Close()
		n, err = s.Count(ctx, radius)
		plan = s.How().Plan
		return err
	})
	c.db.search.Searched(&call, event.OpCountRadius, plan, n, err)
	return n, err
}

// check checks what does not depend on the collection.
func (q *Query) check() error {
	if !q.Rerank.known() {
		return fault.Invalid("unknown rerank %d: %s are possible, as RerankAuto and so on", int(q.Rerank), possibleReranks)
	}
	if q.Include&^includeAll != 0 {
		return fault.Invalid("unknown parts of items %#x: a sum of IncludeLabels, IncludeFields, IncludePayload and IncludeVectors is possible", int(q.Include))
	}
	return nil
}

// inside returns the query in the terms of the package that searches.
func (q *Query) inside() search.Query {
	s := search.Query{
		From: q.From, To: q.To, Vector: q.Vector, Key: q.Key, Code: q.Code, ExcludeSelf: q.ExcludeSelf,
		Space: uint32(q.Space), Revision: q.Revision, Where: q.Where, Args: q.Args, K: cmp.Or(q.K, defaultK), Order: search.Order(q.Rerank),
		After: q.After, Plan: q.Plan, MinSimilarity: q.MinSimilarity, Recall: q.Recall,
	}
	if q.Sparse != nil {
		s.Sparse, s.Index, s.Value = true, q.Sparse.Index, q.Sparse.Value
	}
	return s
}

// searcher checks and encodes a query.
func (c *Collection) searcher(ctx context.Context, v *state.View, cv *state.CollectionView, q *Query) (*search.Searcher, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	return search.New(ctx, c.db.search, v, cv, q.inside())
}

// hitOf returns a hit as callers get it, with those parts of its item that are to be included.
func hitOf(s *search.Searcher, w wanted, h *search.Hit) (Hit, error) {
	include, hit := w.include, Hit{Key: h.Key, Row: h.Row, Distance: h.Distance, Score: h.Score, Similarity: h.Similarity}
	if w.cursors {
		hit.Cursor = s.Cursor()
	}
	if include == 0 {
		return hit, nil
	}
	it, err := s.Item(h, include&^IncludeVectors != 0, include&IncludeVectors != 0)
	if err != nil {
		return hit, err
	}
	if include&IncludeLabels == 0 {
		it.Labels = nil
	}
	if include&IncludeFields == 0 {
		it.Fields = nil
	}
	if include&IncludePayload == 0 {
		it.Payload = nil
	}
	hit.Item = itemOf(s.Cv, it)
	if include&IncludeVectors == 0 {
		hit.Item.Modalities = nil
	}
	return hit, nil
}

// resultOf returns the first k hits with what is wanted besides, and the answer as the searcher tells it.
func resultOf(ctx context.Context, s *search.Searcher, k int, w wanted) (*Result, search.Answer, error) {
	hits, a, err := search.First(ctx, s, k, func(h *search.Hit) (Hit, error) { return hitOf(s, w, h) })
	if err != nil {
		return nil, a, err
	}
	facets, err := w.count(ctx, s, hits)
	if err != nil {
		return nil, a, err
	}
	return &Result{Hits: hits, Facets: facets, Next: a.Next, Total: a.Total, Space: Space(a.Space), Revision: a.Revision,
		Rerank: Rerank(s.Order()), Approximate: s.Approximate()}, a, nil
}
