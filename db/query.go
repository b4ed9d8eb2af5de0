package db

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/jsonform"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/signal"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/mih"
)

// A Query asks for the items nearest to a vector (Vector or Sparse, with From), to a stored item (Key),
// or to a code (Code): exactly one of the four. Or it asks for items that have Words, alone or beside one
// of the four.
//
// In a trained collection a search compares codes. Without codes, or where Recall is set, it compares
// vectors, by the Metric of the modality From: the most similar items come first, then by row. Distance is
// then -1, and Score is NaN. An answer by vectors is exact unless an index of vectors gives it (see
// Recall). The compared vectors depend on To:
//
//   - no To: all vectors in the space of From (Modality.SpaceOf); an item counts by its most similar one;
//   - a To in the same space as From: the vectors of To;
//   - a To in another space: the vectors of From, of items that have To as well.
//
// A query by vectors starts from a vector of From, or from the Key of an item that has one. Its Rerank is
// RerankAuto. It compares all items with 8 bits a dimension where the vectors are in memory
// (Options.RerankCacheBytes), reads the few vectors that may be among the first K, and compares these
// exactly. Code, other orders and a radius need codes: without them they are ErrNoModel.
type Query struct {
	// From is the modality of Vector or Sparse; dense and sparse modalities take either. With Key it is
	// the modality whose stored vector is encoded. Without From, in an index-only collection, or where
	// the item lacks that vector, the stored code of the item is the query. If the collection has one
	// modality, the item's vector then orders the items with equally near codes.
	From string

	// To, if not empty, restricts the answer to items that have this modality.
	To string

	Vector []float32
	Sparse *Sparse
	Key    string
	Code   []byte // bits/8 bytes, as in Item

	// Words are words to find in the texts of items: of the fields with an index of words (Field.Words).
	// Letters, digits and marks in a row are a word, in any case. Items that have any of the words come by
	// the sum of log(N/df) of those that they have, where df of the N items of the collection have the word,
	// then by row. Words may stand alone, or beside a vector, Key or Code. Then both lists, each of its first
	// 100 or 4*K items, are merged by reciprocal rank fusion: an item scores 1/(60+rank) for each list that
	// has it. Hit.Score is what the answer is ordered by.
	//
	// More than 16 different words, After, MinSimilarity, a radius, or a collection without such an index are
	// an ErrInvalid. Hits have no cursors, and the answer has no Next. The sets of rows of the words are
	// read: at worst a bit an item for each word.
	Words string

	// ExcludeSelf leaves the item of Key out of the answer, and out of Total. Otherwise that item is a
	// hit, the first of the items with its code. A query by vector may be nearer to other codes, as
	// the item may have the code of its labels.
	ExcludeSelf bool

	// Where, if not empty, restricts the answer to items that match an expression such as
	//
	//	label = 'cat' AND year IN (2020, 2021) AND NOT (price >= 10 OR has(image))
	//
	// label = 'x' holds for items with that label, has(NAME) for items with that modality or field, and
	// has(label) for items with any label. A comparison with a field that the item lacks is false, !=
	// included; NOT inverts that. docs/SHELL.md has the grammar. A mistake is a *WhereError. Labels and
	// indexed fields cost the reading of their sets of rows: at worst a bit an item for a label, 64 for a
	// number. Other fields (Field.Indexed) are read from the items, a fraction of a microsecond each;
	// Explain.ScannedFields names them.
	Where string

	// Args are the values of the placeholders in Where, in order: each ? stands for the next one.
	//
	//	Where: "label = ? AND price < ? AND year IN (?)",
	//	Args:  []any{name, 9.5, []int{2020, 2021}},
	//
	// Possible are strings, numbers, bools, time.Time for fields of times, types made of these, and behind
	// IN slices of these that are not empty. Search never parses a string as part of the expression, so
	// its text may come from anybody. Too many or too few values, and a value of the wrong type, are a
	// *WhereError that names the value. All values together have at most 1 MiB. Search reads them
	// during the call and keeps none.
	Args []any

	// K is the number of items that Search returns; 0 means 10.
	K int

	// Rerank is the order of the answer.
	Rerank Rerank

	// After, if not empty, is the cursor (Result.Next) of the same query: the answer goes on behind it.
	// The cursor holds a place in the order, so items that come or go in between shift nothing.
	After string

	// MinSimilarity, if not 0, leaves out hits with less Similarity, from -1 to 1, as if the items were not
	// there. By vectors alone (see RerankAuto) it is the similarity by the Metric of From; by Dot any
	// number is possible. By codes it compares projections: it needs RerankProjection or
	// RerankAsymmetric, and a query by vector or by the Key of an item that has one. Every item of every
	// code that may be in the answer is then compared, some nanoseconds each.
	MinSimilarity float32

	// Recall is the share of the K nearest items that an answer has, on average over queries: above 0, up to
	// 1 (exact). Where codes are learned it asks for an answer by vectors; 0 then means an answer by codes,
	// which is exact. For answers by vectors, 0 means the recall of the index of vectors
	// (Collection.IndexVectors), and without an index they are exact.
	//
	// In a collection whose items bring codes, a Recall below 1 lets Search read the cells of codes that are
	// likely to have the nearest ones, where that is predicted to be faster; 0 finds all. The first such
	// Search since the opening has the cells made in the background, some seconds for a million codes, and
	// finds all. How many cells a recall takes is measured then, with codes of the collection. With a filter
	// that fewer than half of the items pass, Search finds all.
	//
	// Result.Approximate says that items may be missing. The hits are in order, with exact distances and
	// similarities, and match Where. A cursor goes on behind a page: later pages have nothing that the page
	// has missed.
	Recall float64

	// Include names what each hit brings besides its key: its cursor, and in Hit.Item parts of the item, of
	// the state that was searched, so you need no Get for each hit. Labels, fields and payload cost one
	// read of the item, and each vector one more.
	Include Include

	// Facets are labels or fields (as FacetQuery.By) to count the items of the answer by, into
	// Result.Facets. Within a radius all items of Result.Total count, otherwise the hits.
	Facets []string

	// Plan is the way to find the codes. PlanAuto chooses the fastest. The answer does not depend on it.
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
	// RerankAuto orders items by code as RerankProjection does. Items that share a code come by the cosine
	// between their vectors and the query instead, at 8 bits a dimension, if the query is a vector of a
	// dense modality that all items have, and there are at most 40,000 items and 16 MiB of vectors.
	// Without codes, or with Query.Recall, it compares vectors alone.
	//
	// Result.Rerank and Explain name the order that was used. The choice depends neither on Options nor on
	// the data in memory. A cursor continues in the order of its answer.
	RerankAuto Rerank = iota
	// RerankProjection orders items by distance, then by the score of their code. Items with the same code
	// have the same score; they come by Hit.Similarity, the cosine between the projections of item and query,
	// then by row.
	RerankProjection
	// RerankNone is RerankProjection with the items of one code by row.
	RerankNone
	// RerankAsymmetric orders items by the score of their code, not by distance, then by Similarity, then by
	// row. It is exact: no item outside an answer has a better score than one inside. It finds relevant items
	// somewhat better than distances do, as the score weighs each bit by how sure the query is of it. Within
	// a radius it orders the items of that radius. For a query by code it is RerankNone. It reads all codes:
	// the postings of PlanDisk cannot find scores.
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
	Key string
	Row uint32
	// Distance is the Hamming distance in bits; -1 in an answer by vectors (see RerankAuto), and of an item
	// that only Query.Words has found.
	Distance int

	// Score is z . h, the inner product of the projection of the query with the
	// code of the item as +-1: the larger the nearer. NaN for queries by code. With Query.Words it is
	// what the answer is ordered by.
	Score float64

	// Similarity is the number that the order has compared last. In an answer by vectors alone (see
	// RerankAuto) it is the similarity of the vectors by their Metric. Otherwise it is the cosine between
	// the projections of query and item, or between their vectors at 8 bits a dimension where
	// RerankAuto compares these; 0 for an item without vectors. For queries by code and RerankNone it
	// is NaN.
	Similarity float32

	Cursor string // goes on behind this hit; with IncludeCursor

	// Item has the key and the parts that Query.Include names; nil if it names none. The caller owns it.
	Item *Item
}

// Include names what hits bring, as a sum of the constants. The zero value names nothing.
type Include int

// What hits bring.
const (
	IncludeLabels  Include = 1 << iota // Item.Labels
	IncludeFields                      // Item.Fields
	IncludePayload                     // Item.Payload
	IncludeVectors                     // Item.Vectors and Sparse; of an index-only collection Modalities

	// IncludeCursor gives each hit a cursor of its own, at 90 bytes a hit. A program that merges the answers
	// of several databases needs them to go on behind any hit.
	IncludeCursor

	// IncludeDistances counts the items of an answer within a radius by distance, into Result.Distances.
	IncludeDistances

	// IncludeExplain tells how the answer was found, in Result.Explain.
	IncludeExplain

	includeItem = IncludeLabels | IncludeFields | IncludePayload | IncludeVectors
)

// A Result is the answer to a query, in the order that Rerank describes. Codes at one distance with one
// score, as for a query by code, come by age. Among items that share a code the item of Query.Key is
// the first.
type Result struct {
	Hits  []Hit
	Next  string // cursor, for Query.After; empty at the end
	Total int    // number of items within the radius; 0 for a search without one

	// Distances has the number of items at each distance, from 0 to the radius or the length of a code, if
	// that is less; with IncludeDistances. The sum is Total.
	Distances []int

	Space    Space // space of the codes; 0 for an answer by vectors
	Revision uint32

	// Rerank is the order of the answer. RerankAuto says that vectors were compared: alone if Space is 0,
	// otherwise among the items of each code.
	Rerank Rerank

	// Explain tells how the answer was found; with IncludeExplain.
	Explain *report.Explain

	// Facets are the counts for Query.Facets, in that order.
	Facets []Facets

	// Approximate says that items may be missing, see Query.Recall.
	Approximate bool
}

const defaultK = 10

// Search returns the K nearest items by Hamming distance between codes, or by
// another order (see Rerank), exactly: no item outside is nearer than one inside.
// It returns fewer only if there are no more. It costs the encoding of the query, the
// search for codes (see Explain), and the reading of the items of these codes.
func (c *Collection) Search(ctx context.Context, q Query) (*Result, error) {
	if q.K == 0 {
		q.K = defaultK
	}
	call := signal.NewCall()
	var res *Result
	hits, plan := 0, PlanAuto
	err := c.read(func(v *state.View, cv *state.CollectionView) (err error) {
		if q.Words != "" {
			if res, plan, err = c.byWords(ctx, v, cv, q); err == nil {
				hits = len(res.Hits)
			}
			return err
		}
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
	c.db.search.Searched(call, event.OpSearch, plan, hits, err)
	return res, err
}

// SearchRadius returns all items within radius bits of the query, exactly, in
// the order of a Result, as runs of items that share a code. Runs orders and reads rows
// and keys as you iterate; for RerankAsymmetric it orders all codes first. Close the runs.
func (c *Collection) SearchRadius(ctx context.Context, q Query, radius int) (*Runs, error) {
	switch {
	case radius < 0:
		return nil, fault.Invalid("radius %d: 0 or more bits are possible", radius)
	case q.Words != "":
		return nil, fault.Invalid("words: an answer within a radius has no words: call Search")
	}
	call := signal.NewCall()
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
	c.db.search.Searched(call, event.OpSearchRadius, plan, total, err)
	return r, err
}

// check checks what does not depend on the collection.
func (q *Query) check() error {
	if !q.Rerank.known() {
		return fault.Invalid("unknown rerank %d: %s are possible, as RerankAuto and so on", int(q.Rerank),
			possibleReranks)
	}
	if q.Include&^(includeItem|IncludeCursor|IncludeDistances|IncludeExplain) != 0 {
		return fault.Invalid("unknown parts of hits %#x: a sum of the constants of Include is possible",
			int(q.Include))
	}
	return nil
}

// inside returns the query in the terms of the package that searches.
func (q *Query) inside() search.Query {
	s := search.Query{
		From: q.From, To: q.To, Vector: q.Vector, Key: q.Key, Code: q.Code, ExcludeSelf: q.ExcludeSelf,
		Where: q.Where, Args: q.Args, K: cmp.Or(q.K, defaultK),
		Order: search.Order(q.Rerank),
		After: q.After, Plan: q.Plan, MinSimilarity: q.MinSimilarity, Recall: q.Recall,
	}
	if q.Sparse != nil {
		s.Sparse, s.Index, s.Value = true, q.Sparse.Index, q.Sparse.Value
	}
	return s
}

// searcher checks and encodes a query.
func (c *Collection) searcher(ctx context.Context, v *state.View, cv *state.CollectionView,
	q *Query) (*search.Searcher, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	start := time.Now()
	s, err := search.New(ctx, c.db.search, v, cv, q.inside())
	if err == nil && q.Include&IncludeExplain != 0 {
		s.Explain = &search.Timings{Encode: time.Since(start)}
	}
	return s, err
}

// hitOf returns a hit as callers get it, with those parts of its item that are to be included.
func hitOf(s *search.Searcher, w wanted, h *search.Hit) (Hit, error) {
	include, hit := w.include&includeItem, Hit{Key: h.Key, Row: h.Row, Distance: h.Distance, Score: h.Score,
		Similarity: h.Similarity}
	if w.include&IncludeCursor != 0 {
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

// resultOf returns the first k hits with the wanted parts, and the searcher's report on the answer.
func resultOf(ctx context.Context, s *search.Searcher, k int, w wanted) (*Result, search.Answer, error) {
	hits, a, err := search.First(ctx, s, k, func(h *search.Hit) (Hit, error) { return hitOf(s, w, h) })
	if err != nil {
		return nil, a, err
	}
	facets, err := w.count(ctx, s, hits)
	if err != nil {
		return nil, a, err
	}
	r := &Result{Hits: hits, Facets: facets, Next: a.Next, Total: a.Total, Space: Space(a.Space),
		Revision: a.Revision, Rerank: Rerank(s.Order()), Approximate: s.Approximate()}
	if w.include&IncludeDistances != 0 && s.ByRadius() {
		if r.Distances, err = s.Distances(ctx); err != nil {
			return nil, a, err
		}
	}
	if w.include&IncludeExplain != 0 && s.Explain != nil {
		r.Explain = s.Report(len(r.Hits))
	}
	return r, a, nil
}

// Runs is the answer to a search by radius: all items within it, as a sequence of runs of items that share a
// code. It shows the state that was searched, and keeps that state until it is closed. It is safe for
// concurrent use, except for Close.
type Runs struct {
	s      *search.Searcher
	wanted wanted // of the query
	pin    *state.Pin
}

// A Run is all hits that share one code.
type Run struct {
	Distance int
	Score    float64  // of the code; NaN for a query by code
	Rows     []uint32 // of the items, ascending; only as Runs.All yields it
}

// Total returns the number of items, items before the cursor of the query included.
func (r *Runs) Total() int { return r.s.Total }

// Close frees the state that the runs hold. A second call returns ErrClosed.
func (r *Runs) Close() error {
	if !r.pin.Release() {
		return state.ErrReleased
	}
	return nil
}

// All yields the runs in order, without reading items, from the cursor of the query on. An error ends it.
func (r *Runs) All(ctx context.Context) iter.Seq2[Run, error] {
	return yielding(func(yield func(Run) error) error {
		return r.read(func(s *search.Searcher) error {
			for r, err := range s.EachRun(ctx) {
				if err == nil {
					err = yield(Run{Distance: r.Distance, Score: r.Score, Rows: r.Rows})
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// Hits yields the items in order. It orders the items of a run, and reads their keys, when it reaches the
// run. An error ends it.
func (r *Runs) Hits(ctx context.Context) iter.Seq2[Hit, error] {
	return yielding(func(yield func(Hit) error) error {
		return r.read(func(s *search.Searcher) error {
			for h, err := range s.Hits(ctx, math.MaxInt) {
				var hit Hit
				if err == nil {
					hit, err = hitOf(s, r.wanted, &h)
				}
				if err == nil {
					err = yield(hit)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// Distances returns the number of items at each distance: element d counts the items at d bits, up to the
// radius or the length of a code, if that is less. The sum is Total. It looks at each found code, and at no
// item. The caller owns the slice.
func (r *Runs) Distances(ctx context.Context) (counts []int, err error) {
	err = r.read(func(s *search.Searcher) (err error) {
		counts, err = s.Distances(ctx)
		return err
	})
	return counts, err
}

// First returns the first k items, behind the cursor of the query if it has one.
func (r *Runs) First(ctx context.Context, k int) (*Result, error) {
	if k < 1 {
		return nil, fault.Invalid("k = %d: 1 or more are possible", k)
	}
	var res *Result
	err := r.read(func(s *search.Searcher) (err error) {
		res, _, err = resultOf(ctx, s, k, r.wanted)
		return err
	})
	return res, err
}

// read gives f a searcher with the answer, to be used by one goroutine.
func (r *Runs) read(f func(s *search.Searcher) error) error {
	return r.pin.Read(func(*state.View) error {
		s := r.s.Again()
		defer s.Close()
		return f(s)
	})
}

// SearchAll answers queries as Search does, all from the same state of the
// collection, on all cores. Queries that need a scan by distance share it. The first error
// ends it and says which query it is about. As queries share their work, IncludeExplain is not possible.
func (c *Collection) SearchAll(ctx context.Context, queries []Query) ([]*Result, error) {
	call := signal.NewCall()
	results := make([]*Result, len(queries))
	err := c.read(func(v *state.View, cv *state.CollectionView) error {
		// A group of queries is one piece of work: enough of them to share
		// scans, and enough groups for all cores.
		group := min(max(len(queries)/(2*runtime.GOMAXPROCS(0)), 1), search.MaxShared)
		groups := (len(queries) + group - 1) / group
		return work.ParallelBy(ctx, work.All(), 1, groups, func(i int) error {
			from, to := i*group, min((i+1)*group, len(queries))
			asked, of := make([]search.Query, 0, to-from), make([]int, 0, to-from)
			for j := from; j < to; j++ {
				q := queries[j]
				q.K = cmp.Or(q.K, defaultK)
				err := q.check()
				if err == nil && q.Include&IncludeExplain != 0 {
					err = fault.Invalid("IncludeExplain: SearchAll explains no answer: use Search")
				}
				if err == nil && q.Words != "" { // it shares nothing
					results[j], _, err = c.byWords(ctx, v, cv, q)
				}
				if err != nil {
					return &QueryError{Query: j, Err: err}
				}
				if q.Words == "" {
					asked, of = append(asked, q.inside()), append(of, j)
				}
			}
			if len(asked) == 0 {
				return nil
			}
			at, err := search.Group(ctx, c.db.search, v, cv, asked, func(j int, s *search.Searcher) error {
				found, a, err := resultOf(ctx, s, asked[j].K, queries[of[j]].wanted())
				if err != nil {
					return err
				}
				s.Observe(a)
				results[of[j]] = found
				return nil
			})
			if err != nil && at >= 0 {
				err = &QueryError{Query: of[at], Err: err}
			}
			return err
		})
	})
	hits := 0
	for _, r := range results {
		if err == nil {
			hits += len(r.Hits)
		}
	}
	c.db.search.SearchedAll(call, hits, err)
	if err != nil {
		return nil, err
	}
	return results, nil
}

// A QueryError names the query of SearchAll that an error is about.
type QueryError struct {
	Query int // from 0
	Err   error
}

func (e *QueryError) Error() string { return e.Err.Error() + " (query " + strconv.Itoa(e.Query) + ")" }

// Unwrap returns the error itself.
func (e *QueryError) Unwrap() error { return e.Err }

// A FacetQuery asks how many items have each label, or each value of a field.
type FacetQuery struct {
	// By is label, or the name of a field, indexed or not. A field of the name label stands in
	// double quotes, as in Where.
	By string `json:"by,omitempty"`

	// Where, if not empty, counts only the items that match, see Query.Where; Args are the values
	// of its placeholders, see Query.Args.
	Where string `json:"where,omitempty"`
	Args  []any  `json:"args,omitempty"`

	// Limit is the number of counts to return, the largest first; 0 means all. All values are counted.
	Limit int `json:"limit,omitempty"`
}

// Facets are the counts of items by label, or by the values of a field. An item counts for each of
// its labels.
type Facets struct {
	By       string       `json:"by"`       // label, or a field, as it was asked for
	Counts   []FacetCount `json:"counts"`   // the most items first; of as many, the least value
	Distinct int          `json:"distinct"` // values that items have, also those that a limit has cut off
	Missing  int          `json:"missing"`  // items without a label, or without a value of the field
	Items    int          `json:"items"`    // of which the counts are
}

// A FacetCount says how many items have a value.
type FacetCount struct {
	Value any // a string, int64, float64, bool or time.Time, by the type of the field; a label is a string
	Items int // that have it
}

// facetForm is the JSON of a FacetCount.
type facetForm struct {
	Value any `json:"value"`
	Items int `json:"items"`
}

// MarshalJSON implements json.Marshaler: {"value", "items"}. A float has a point or an exponent,
// as in fields of an Item.
func (c FacetCount) MarshalJSON() ([]byte, error) {
	value := jsonform.Fields(map[string]any{"value": c.Value})["value"]
	return jsonform.Marshal(facetForm{value, c.Items})
}

// UnmarshalJSON implements json.Unmarshaler. A time becomes its text, as JSON does not tell them apart.
func (c *FacetCount) UnmarshalJSON(b []byte) error {
	var f facetForm
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&f); err != nil {
		return err
	}
	values, err := jsonform.Values(map[string]any{"value": f.Value})
	*c = FacetCount{values["value"], f.Items}
	return err
}

// Facets counts the items that match q.Where by label, or by the values of a field, exactly.
// Query.Facets counts within an answer.
//
// Labels and indexed fields are counted by the sets of rows that filters read; Facets reads all sets of the
// labels, or of the field. For a field without an index it reads each matching item, and for any field if few
// items match. It takes the memory of all distinct values. An unknown field is an ErrInvalid, a mistake in
// Where a *WhereError.
func (c *Collection) Facets(ctx context.Context, q FacetQuery) (*Facets, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return look(c, func(v *state.View, cv *state.CollectionView) (*Facets, error) {
		rows, err := search.Matching(ctx, cv, v.Snap, q.Where, q.Args)
		if err != nil {
			return nil, err
		}
		return facetsOf(ctx, v, cv, q.By, rows, q.Limit)
	})
}

// facetsOf counts rows of a view; nil are all items.
func facetsOf(ctx context.Context, v *state.View, cv *state.CollectionView, by string, rows *roaring.Bitmap,
	limit int) (*Facets, error) {
	found, err := search.CountFacets(ctx, cv, v.Snap, by, rows, limit)
	if err != nil {
		return nil, err
	}
	out := &Facets{By: found.By, Distinct: found.Distinct, Missing: found.Missing, Items: found.Items}
	out.Counts = make([]FacetCount, len(found.Counts))
	for i, n := range found.Counts {
		out.Counts[i] = FacetCount(n)
	}
	return out, nil
}

// wanted is what a Query wants to know besides the order of hits.
type wanted struct {
	include Include
	facets  []string
}

func (q *Query) wanted() wanted { return wanted{q.Include, q.Facets} }

// count counts the items of an answer: all within a radius, else the hits.
func (w wanted) count(ctx context.Context, s *search.Searcher, hits []Hit) ([]Facets, error) {
	if len(w.facets) == 0 {
		return nil, nil
	}
	rows := roaring.New()
	if s.IsWithin() {
		var err error
		if rows, err = s.AnswerRows(ctx); err != nil {
			return nil, err
		}
	} else {
		for i := range hits {
			rows.Add(hits[i].Row)
		}
	}
	all := make([]Facets, len(w.facets))
	for i, by := range w.facets {
		f, err := facetsOf(ctx, s.V, s.Cv, by, rows, 0)
		if err != nil {
			return nil, err
		}
		all[i] = *f
	}
	return all, nil
}
