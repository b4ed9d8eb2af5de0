package search

import (
	"context"
	"math"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/where"
	"github.com/fddhdb/fddhdb/internal/quant"
	"github.com/fddhdb/fddhdb/mih"
	"github.com/fddhdb/fddhdb/model"
)

// A Query is db.Query with its defaults filled in, whose comments say more about each
// field. Its slices belong to the caller of New. A Searcher reads them as long as it
// lives, and does not change them; only the vector of a query that is answered by vectors is copied.
type Query struct {
	From, To string // names of modalities, of the vector and of the items to find; "": any

	// A query starts from exactly one of Vector, Index and Value, Key, and Code.
	Vector []float32 // dense; nil: none is given
	Sparse bool      // a sparse vector is given: Index and Value
	Index  []uint32  // dimensions, ascending
	Value  []float32 // Value[i] stands at Index[i]
	Key    string    // of a stored item; "": none is given
	Code   []byte    // bits/8 bytes; nil: none is given

	ExcludeSelf bool   // leave the item of Key out; an error without Key
	Space       uint32 // number of the space; 0: the one that the view is seen in
	Revision    uint32 // of the space, whose projections encode the query; 0: the present one
	Where       string // filter expression; "": no filter
	Args        []any  // values of the placeholders in Where

	K     int      // items wanted; Nearest and First have parameters of their own
	Order Order    // of the answer
	After string   // cursor of an answer to the same query; "": from the start
	Plan  mih.Plan // PlanAuto unless a plan is forced

	MinSimilarity float32 // least Similarity of a hit; 0: there is none

	Recall float64  // part of the first items that an answer by vectors has to have; 0: the default, 1: all
	Forced *ByCells // how an index of vectors is used, to measure that; nil: as the recall says

	ByVectors bool // answer by vectors of From even if there are codes
}

// ByCells says how to use an index of vectors, complete or not.
type ByCells struct {
	Index uint32  // its number
	Reach float64 // see cells.Probes
	But   uint32  // a row that is no hit

	// Known has similarities of rows. Searches add those that they read. With KnownAll there is no need to
	// read others: all are less similar than those that count.
	Known    map[uint32]float32
	KnownAll bool
}

// An Order is the order of an answer. The constants have the values of db.Rerank, which
// is converted to an Order.
type Order int

// Orders. All end with the row, so that no two items are equal. New keeps byAuto where vectors decide,
// alone or among the items of one code, and makes it byProjection elsewhere (see vectors_in_code.go).
const (
	byAuto       Order = iota // similarity of vectors; or as byProjection, with that in place of its own
	byProjection              // distance, score of the code, age of the code, similarity of projections
	byCode                    // the same without the similarity
	byScore                   // score of the code whatever its distance, age of the code, similarity of projections
)

// OrderNames are the names of the orders, by number.
var OrderNames = [...]string{"auto", "projection", "none", "asymmetric"}

// Tools are shared by all searches of a database, and are safe for concurrent use.
type Tools struct {
	Keys *keyCache // keys of items, by row
	// Wanted tells that a search has noted what it wants in memory (CollectionView.WantVectors).
	Wanted func()
	// RerankBytes is the memory for what puts hits in order, see db.Options.RerankCacheBytes.
	RerankBytes int64
	Costs       *mih.StoredCosts // times of reading codes from the store; searches learn and use them
	figures
}

// NewTools returns what the searches of a database share. keyBytes bounds the memory for keys, and
// rerankBytes that for what puts hits in order.
// The caller sets Wanted before the first search.
func NewTools(keyBytes, rerankBytes int64) *Tools {
	return &Tools{Keys: newKeyCache(keyBytes), RerankBytes: rerankBytes, Costs: new(mih.StoredCosts)}
}

// A Searcher answers one query from one view of a collection. It is for one goroutine,
// which calls Nearest or Within once, then reads the answer, and then calls Close. All
// calls Nearest itself, as often as it needs more codes.
//
// Package learn also uses a Searcher with nothing but V and Cv, for Project.
type Searcher struct {
	// What New has made of the query. It does not change afterwards, except that All
	// moves after forward.
	tools *Tools
	V     *state.View           // the caller holds a reference to it
	Cv    *state.CollectionView // of V, seen in the space that the query names
	Set   *state.CodeSetView    // code set that is searched; belongs to Cv
	q     Query                 // its slices belong to the caller
	args  string                // q.Args spelt out, for the fingerprint of cursors
	p     *Point                // the query, encoded
	self  uint32                // row of the item that the query starts from, or noRow

	// filter is the set of rows that may be hits; nil admits all rows that have a code.
	// It may be shared with the view and with other searches: nobody writes to it.
	filter *roaring.Bitmap

	plan mih.Plan // q.Plan, or what does the same for this query

	// stored reads codes from the store for this searcher alone, and has iterators open.
	// It is nil until the store is needed, and again after Close.
	stored *StoredCodes

	mark   uint64    // the fingerprint, once it has been computed; else 0
	after  *position // the answer begins behind it; nil: at the start
	radius int       // of Within, in bits; negative: Nearest was called, or nothing yet

	// The codes that were found, in one of two forms. scored is used if byScore is set,
	// or once Within has sorted its codes by score; then matches is empty.
	matches []codec.Near // by distance; in no order within one distance
	scored  []mih.Scored // in the order of mih.Scored.Compare
	byScore bool         // the order is byScore, and the query has a projection to score with

	Total   int          // items of the codes within the radius; 0 after Nearest
	found   *mih.Explain // from the pool explains; nil before How and after Close
	Explain *Timings     // to be filled in by calls; nil: do not measure

	// ahead has the first rows of a run, if they have been ranked beforehand; see rankTogether.
	ahead *rankedRun

	last place    // of the hit that was yielded last; a cursor is made of it
	rows []uint32 // scratch memory of rankBySimilarity

	// allHave says that every item has the modality of p.features.
	allHave bool

	// byVectors says that the answer is by vectors, and not by codes: see vectors.go.
	byVectors  bool
	metric     record.Metric      // of the space of the query's modality
	shares     []int              // modalities whose vectors are compared, ascending
	compared   []comparison       // of shares, those that a row of the filter has; if shares is one, that
	comparer   *Comparer          // compares with the query's vector
	bounds     *quant.VectorQuery // that vector, for bounds; nil where no vectors can be in memory
	compares   int                // vectors that have been read
	cells      *cellSearch        // what an index has to do with it; nil: nothing
	damaged    []string           // modalities whose index cannot be read
	outgrown   []string           // modalities whose index says nothing of what has come since
	unfiltered bool               // whether all that have a vector which is compared may be hits
	predicted  prediction         // what it would take by vectors alone, and what with an index

	// vectors reads vectors from the store into vector, see storedVector. It is nil until then, and
	// again after Close.
	vectors *pebble.Iterator
	vector  model.Vector

	with, without []uint32 // scratch memory of vectorSimilarities
}

// noRow is the number of no row. 2^32-1 rows are possible, numbered from 0.
const noRow = math.MaxUint32

// New returns a searcher for a query to the collection cv of the view v. The caller
// holds a reference to v until it has closed the searcher. The filter is evaluated
// here, which reads the store; codes are not looked for yet.
//
// Mistakes in the query are fault.ErrInvalid, those in its expression a fault.WhereError.
// A collection without a model is answered by vectors, and so is a query with a Recall, see vectors.go; what
// needs codes, and a modality that the model does not know, is fault.ErrNoModel; a space that is being
// built fault.ErrBusy; an unknown key or space fault.ErrNotFound. If ctx has ended, its
// error comes back as it is.
func New(ctx context.Context, tools *Tools, v *state.View, cv *state.CollectionView, q Query) (*Searcher, error) {
	switch {
	case q.K < 0:
		return nil, fault.Invalid("k = %d: 1 or more are possible", q.K)
	case !(q.Recall >= 0 && q.Recall <= 1):
		return nil, fault.Invalid("recall %v: above 0, up to 1, which is exact, are possible; 0 is the default of the collection", q.Recall)
	case q.ExcludeSelf && q.Key == "":
		return nil, fault.Invalid("exclude self: the query starts from no item, as Key is empty")
	case q.Plan > mih.PlanBlockScan:
		return nil, fault.Invalid("unknown plan %d: auto, memory, scan, filter, disk and blockscan are possible, as PlanAuto and so on", q.Plan)
	}
	if err := ctx.Err(); err != nil { // a search of few codes does not check it again
		return nil, err
	}
	// The order of what follows matters: point sets the row that exclude takes out, and the
	// code set; a cursor is compared with a fingerprint of the point.
	cv, err := q.in(v, cv)
	if err != nil {
		return nil, err
	}
	s := &Searcher{tools: tools, V: v, Cv: cv, q: q, self: noRow, plan: q.Plan, radius: -1}
	if s.filter, err = filterOf(ctx, cv, v.Snap, q.To, q.Where, q.Args); err != nil {
		return nil, err
	}
	if s.args, err = where.Spell(q.Args); err != nil {
		return nil, err // one that the expression has not refused before
	}
	if cv.Space == nil || q.ByVectors || q.Recall > 0 || q.Forced != nil {
		if err = s.startByVectors(ctx); err == nil {
			err = s.checkSimilarity(q.Order)
		}
		if err == nil && q.After != "" {
			s.after, err = s.position(q.After, q.Order)
		}
		if err != nil {
			s.Close()
			return nil, err
		}
		return s, nil
	}
	if s.p, err = s.point(); err != nil {
		s.Close()
		return nil, err
	}
	if q.ExcludeSelf {
		s.exclude(s.self)
	}
	switch q.Order {
	case byAuto:
		if !s.vectorsDecide() || !s.compareVectors() {
			s.q.Order = byProjection
		}
	case byCode:
		s.p.direction = nil
	case byScore: // without a projection distances give the scores, and so the same order
		s.byScore = s.p.Z != nil
	}
	if err = s.checkSimilarity(q.Order); err == nil && q.After != "" {
		s.after, err = s.position(q.After, q.Order)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	if s.plan == mih.PlanFilter && s.filter == nil {
		s.plan = mih.PlanScan // which then reads the same codes
	}
	return s, nil
}

// explains has used Explains. Every search fills one in, as its plan is counted, and few
// callers look at the rest.
var explains = sync.Pool{New: func() any { return new(mih.Explain) }}

// How returns the Explain that Nearest, Within and Count fill in. It belongs to the
// searcher: after Close it may be that of another search, so copy what is to be kept.
func (s *Searcher) How() *mih.Explain {
	if s.found == nil {
		s.found = explains.Get().(*mih.Explain)
	}
	return s.found
}

// Close frees what the searcher has opened in the store, and the Explain. The codes that
// were found stay: a closed searcher can be read through Again. Closing it twice is
// harmless.
func (s *Searcher) Close() {
	if s.found != nil {
		explains.Put(s.found)
		s.found = nil
	}
	if s.stored != nil {
		_ = s.stored.Close() // what it has read, it has checked
		s.stored = nil
	}
	if s.vectors != nil {
		_ = s.vectors.Close() // likewise
		s.vectors = nil
	}
	if s.cells != nil {
		s.cells.close()
	}
}

// exclude takes a row out of the filter. Without a filter it makes one of all live rows,
// which costs a copy of their bitmap.
func (s *Searcher) exclude(row uint32) {
	rows := s.filter
	if rows == nil {
		rows = s.Cv.Live
	}
	if rows.Contains(row) { // else the answer is the same without
		s.filter = rows.Clone() // others have it, too
		s.filter.Remove(row)
	}
}

// inStore returns the reader of stored codes, which Close closes. It opens nothing in
// the store before it is used.
func (s *Searcher) inStore() *StoredCodes {
	if s.stored == nil {
		s.stored = NewStoredCodes(s.V.Snap, s.Set, s.filter)
	}
	return s.stored
}

// usesStore reports whether to look for codes in the store and not in memory. That is so
//   - if the plan asks for it;
//   - if the codes are not in memory yet, whatever the plan is;
//   - within a radius, if some segments have no tables in memory and postings are
//     predicted to be faster than scanning them.
//
// A negative radius means a k-NN search, which scans segments without tables.
func (s *Searcher) usesStore(q *mih.Query, radius int) bool {
	t := s.Set.Table
	switch {
	case s.plan == mih.PlanDisk || s.plan == mih.PlanBlockScan || t == nil:
		return true
	case s.plan != mih.PlanAuto || radius < 0 || t.Indexed():
		return false
	}
	d := mih.Stored{Split: record.Split(t.Bits()), Codes: s.Set.Codes, Bits: t.Bits(), Costs: s.tools.Costs}
	postings, _ := d.PredictRadius(radius)
	return postings < t.PredictRadius(q, radius)
}

// storedIndex returns the index over the postings and codes in the store.
func (s *Searcher) storedIndex() *mih.Stored {
	set := s.Set
	return &mih.Stored{
		Split: record.Split(set.Bits), Codes: set.Codes, Bits: set.Bits,
		Store: s.inStore(), Costs: s.tools.Costs,
	}
}

// storedPlan returns the plan for a search in the store. Plans for memory, which come
// here while codes are being loaded, become PlanAuto.
func (s *Searcher) storedPlan() mih.Plan {
	if s.plan == mih.PlanDisk || s.plan == mih.PlanBlockScan {
		return s.plan
	}
	return mih.PlanAuto
}

// query returns the query for the table in memory, to find the codes of k items. Behind a
// cursor, and with a least similarity, a code weighs as many items as may be hits, so that the
// table goes on until it has k of those.
func (s *Searcher) query(ctx context.Context, k int) *mih.Query {
	q := &mih.Query{Code: s.p.Code, Filter: s.filter, Plan: s.plan}
	if s.weighs() {
		q.Weight = func(n uint32, distance int) int { return s.weigh(ctx, s.Set.Table.Rows(n), n, distance, k) }
	}
	return q
}

// weighs reports whether not all rows of a code that pass the filter may be hits.
func (s *Searcher) weighs() bool { return s.after != nil || s.limited() }

// limited reports whether a least similarity leaves rows of a code out.
func (s *Searcher) limited() bool { return s.q.MinSimilarity != 0 }

// within returns the query for a radius. Items before a cursor count, too.
func (s *Searcher) within(ctx context.Context) *mih.Query {
	q := &mih.Query{Code: s.p.Code, Filter: s.filter, Plan: s.plan}
	if s.limited() {
		q.Weight = func(n uint32, _ int) int {
			w, err := s.countSimilar(ctx, s.Set.Table.Rows(n))
			if err != nil {
				return s.Set.Table.Rows(n).LenIn(s.filter) // reading the run meets the error
			}
			return w
		}
	}
	return q
}

// Within finds the codes within r bits, and sets Total. Codes before a cursor are found
// too, as they count in the total; reading the answer leaves them out.
func (s *Searcher) Within(ctx context.Context, r int) (err error) {
	if s.byVectors {
		return s.noRadius()
	}
	start := s.Explain.now()
	s.radius = r
	q := s.within(ctx)
	if s.usesStore(q, r) {
		d := s.storedIndex()
		if q.Weight != nil {
			s.stored.weigh = func(rows mih.Rows, _ uint32, _ int) int {
				w, err := s.countSimilar(ctx, rows)
				if err != nil {
					return rows.LenIn(s.filter)
				}
				return w
			}
		}
		s.matches, s.Total, err = d.Radius(ctx, s.p.Code, r, s.storedPlan(), nil, s.How())
	} else {
		s.matches, s.Total, err = s.Set.Table.Radius(ctx, q, r, nil, s.How())
	}
	if err == nil && s.byScore {
		err = s.score(ctx)
	}
	s.Explain.searched(start)
	return err
}

// Nearest finds the codes of the k nearest items behind the cursor, or of those with the
// best scores. All codes of the last distance, or of the last score, are among them, so
// there may be many more than k items. Where fewer than k items follow it finds the codes
// of all. It replaces what the call before has found.
func (s *Searcher) Nearest(ctx context.Context, k int) (err error) {
	if s.byVectors { // reading the answer does it
		s.How().Plan = mih.PlanScan
		return nil
	}
	start := s.Explain.now()
	q := s.query(ctx, k)
	inStore := s.usesStore(q, -1)
	var d *mih.Stored
	if inStore {
		d = s.storedIndex()
		if s.weighs() {
			s.stored.weigh = func(rows mih.Rows, n uint32, distance int) int { return s.weigh(ctx, rows, n, distance, k) }
		}
	}
	switch {
	case inStore && s.byScore:
		s.scored, err = d.Best(ctx, s.p.scorer, k, nil, s.How())
	case inStore:
		s.matches, err = d.Nearest(ctx, s.p.Code, k, s.storedPlan(), nil, s.How())
	case s.byScore:
		s.scored, err = s.Set.Table.Best(ctx, q, s.p.scorer, k, nil, s.How())
	default:
		s.matches, err = s.Set.Table.Nearest(ctx, q, k, nil, s.How())
	}
	s.Explain.searched(start)
	return err
}

// rowsOf returns the rows that carry code number n, which was found. Filter and cursor
// are not applied.
func (s *Searcher) rowsOf(n uint32) (mih.Rows, error) {
	if t := s.Set.Table; t != nil {
		return t.Rows(n), nil
	}
	return s.inStore().Rows(n)
}

// codeOf returns code number n, from the table in memory if that has it, else from the
// store. It must not be written to.
func (s *Searcher) codeOf(n uint32) (codec.Code, error) {
	if t := s.Set.Table; t != nil {
		if code := t.Code(n); code != nil {
			return code, nil
		}
	}
	return s.inStore().codeOf(n)
}
