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
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/where"
	"github.com/fddhdb/fddhdb/internal/quant"
	"github.com/fddhdb/fddhdb/mih"
	"github.com/fddhdb/fddhdb/model"
)

// A Query is db.Query with its defaults filled in; the comments there say more about each field. Its slices
// belong to the caller of New. A Searcher reads them while it lives and does not change them. Only an answer
// by vectors copies the vector.
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
	Where       string // filter expression; "": no filter
	Args        []any  // values of the placeholders in Where

	K     int      // items wanted; Nearest and First have parameters of their own
	Order Order    // of the answer
	After string   // cursor of an answer to the same query; "": from the start
	Plan  mih.Plan // PlanAuto unless a plan is forced

	MinSimilarity float32 // least Similarity of a hit; 0: no limit

	Recall float64  // least recall of an answer by vectors; 0: the default, 1: exact
	Forced *ByCells // forces the use of an index, for measurements; nil: the recall decides
}

// A ByCells forces the use of an index of vectors, complete or not.
type ByCells struct {
	Index uint32  // its number
	Reach float64 // see cells.Probes
	But   uint32  // a row that is never a hit

	// Known has similarities of rows. Searches add the similarities that they read. With KnownAll they read
	// no others: all rows that are not in Known are less similar than the rows that count.
	Known    map[uint32]float32
	KnownAll bool
}

// An Order is the order of an answer. The constants have the values of db.Rerank, which converts to an Order.
type Order int

// Orders. All end with the row, so no two items are equal. New keeps byAuto if vectors decide, alone or among
// the items of one code, and otherwise makes it byProjection (see vectors.go).
const (
	byAuto       Order = iota // by vectors: similarity; by codes: as byProjection, with similarity of vectors
	byProjection              // distance, score of the code, age of the code, similarity of projections
	byCode                    // the same without the similarity
	byScore                   // score of the code at any distance, age of the code, similarity of projections
)

// OrderNames are the names of the orders, by number.
var OrderNames = [...]string{"auto", "projection", "none", "asymmetric"}

// Tools are shared by all searches of a database, and are safe for concurrent use.
type Tools struct {
	Keys *keyCache // keys of items, by row
	// Wanted tells the indexer that a search wants vectors in memory (CollectionView.WantVectors).
	Wanted func()
	// RerankBytes is the memory for projections and vectors that order hits, see db.Options.RerankCacheBytes.
	RerankBytes int64
	Costs       *mih.StoredCosts // times of reading codes from the store; searches learn and use them
	figures
}

// NewTools returns the tools of a database. keyBytes bounds the memory for keys, rerankBytes the memory for
// projections and vectors. The caller sets Wanted before the first search.
func NewTools(keyBytes, rerankBytes int64) *Tools {
	return &Tools{Keys: newKeyCache(keyBytes), RerankBytes: rerankBytes, Costs: new(mih.StoredCosts)}
}

// A Searcher answers one query from one view of a collection. It is for one goroutine, which calls Nearest or
// Within once, then reads the answer, and then calls Close. All calls Nearest itself, as often as it needs
// more codes. Package learn also uses a Searcher with only V and Cv, for Project.
type Searcher struct {
	// New sets these from the query. They do not change afterwards, except that All moves after forward.
	tools *Tools
	V     *state.View           // the caller holds a reference to it
	Cv    *state.CollectionView // of V, seen in the space that the query names
	Set   *state.CodeSetView    // code set to search; belongs to Cv
	q     Query                 // its slices belong to the caller
	args  string                // q.Args as text, for the fingerprint of cursors
	p     *Point                // the query, encoded
	self  uint32                // row of the item that the query starts from, or noRow

	// filter is the set of rows that may be hits; nil admits all rows that have a code. The view and other
	// searches may share it: do not write to it.
	filter *roaring.Bitmap

	plan mih.Plan // q.Plan, or an equivalent for this query

	// stored reads codes from the store for this searcher alone, and has open iterators. It is nil until the
	// store is needed, and again after Close.
	stored *StoredCodes

	mark   uint64    // the fingerprint, once it has been computed; else 0
	after  *position // the answer begins behind it; nil: at its start
	radius int       // of Within, in bits; negative: Nearest was called, or nothing yet

	// The codes found, in one of two forms. scored is used if byScore is set, or once Within has sorted its
	// codes by score; then matches is empty.
	matches []codec.Near // by distance; in no order within one distance
	scored  []mih.Scored // in the order of mih.Scored.Compare
	byScore bool         // the order is byScore, and the query has a projection to score with

	Total   int          // items of the codes within the radius; 0 after Nearest
	found   *mih.Explain // from the pool explains; nil before How and after Close
	Explain *Timings     // to be filled in by calls; nil: do not measure

	// ahead has the first rows of a run, if rankTogether has ranked them.
	ahead *rankedRun

	last place    // of the last hit yielded; a cursor is made of it
	rows []uint32 // scratch memory of rankBySimilarity

	// allHave is set if every item has the modality of p.features.
	allHave bool

	// byVectors is set if the answer is by vectors and not by codes, see vectors.go.
	byVectors  bool
	metric     record.Metric      // of the space of the query's modality
	shares     []int              // modalities whose vectors are compared, ascending
	compared   []comparison       // the part of shares that some row of the filter has; a single one always
	comparer   *Comparer          // compares with the query's vector
	bounds     *quant.VectorQuery // the query's vector, for bounds; nil if no vectors can be in memory
	compares   int                // vectors that have been read
	cells      *cellSearch        // the search in indexes of vectors; nil: no index is used
	damaged    []string           // modalities whose index cannot be read
	outgrown   []string           // modalities whose index has changed too much since it was measured
	unfiltered bool               // every item with a compared vector may be a hit
	predicted  prediction         // predicted times without and with an index

	// vectors reads vectors from the store into vector, see storedVector. It is nil before the first read,
	// and again after Close.
	vectors *pebble.Iterator
	vector  model.Vector

	with, without []uint32 // scratch memory of vectorSimilarities
}

// noRow stands for no row. Rows are numbered from 0; 2^32-1 are possible.
const noRow = math.MaxUint32

// New returns a searcher for a query to the collection cv of the view v. The caller holds a reference to v
// until it has closed the searcher. New evaluates the filter, which reads the store; it does not search for
// codes.
//
// Vectors answer if the collection has no model, or the query has a Recall and the collection vectors, see
// vectors.go. Mistakes in the
// query are fault.ErrInvalid, in its expression a fault.WhereError. ErrNoModel: the query needs codes and
// there are none, or the model does not know the modality. ErrBusy: the space is being built. ErrNotFound: an
// unknown key or space. If ctx has ended, its error comes back unchanged.
func New(ctx context.Context, tools *Tools, v *state.View, cv *state.CollectionView,
	q Query) (*Searcher, error) {
	switch {
	case q.K < 0:
		return nil, fault.Invalid("k = %d: 1 or more are possible", q.K)
	case !(q.Recall >= 0 && q.Recall <= 1):
		return nil, fault.Invalid(
			"recall %v: above 0, up to 1, which is exact, are possible; 0 is the default of the collection",
			q.Recall)
	case q.ExcludeSelf && q.Key == "":
		return nil, fault.Invalid("exclude self: the query starts from no item, as Key is empty")
	case q.Plan > mih.PlanBlockScan:
		return nil, fault.Invalid(
			"unknown plan %d: auto, memory, scan, filter, disk and blockscan are possible, as PlanAuto and so on", q.Plan)
	}
	if err := ctx.Err(); err != nil { // a search of few codes does not check it again
		return nil, err
	}
	// The order of these steps matters: point sets the code set and the row that exclude removes; a cursor is
	// compared with a fingerprint of the point.
	var err error
	s := &Searcher{tools: tools, V: v, Cv: cv, q: q, self: noRow, plan: q.Plan, radius: -1}
	if s.filter, err = filterOf(ctx, cv, v.Snap, q.To, q.Where, q.Args); err != nil {
		return nil, err
	}
	if s.args, err = where.Spell(q.Args); err != nil {
		return nil, err // an error that the expression has not met before
	}
	if cv.Space == nil || q.Recall > 0 && !cv.CodesOnly() || q.Forced != nil {
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
	case byScore: // without a projection the distance decides the score: the order is the same
		if s.byScore = s.p.Z != nil; s.byScore {
			s.p.Code = s.p.scorer.Code() // also of an item that has a code of its own
		}
	}
	if err = s.checkSimilarity(q.Order); err == nil && q.After != "" {
		s.after, err = s.position(q.After, q.Order)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	if s.plan == mih.PlanFilter && s.filter == nil {
		s.plan = mih.PlanScan // it reads the same codes
	}
	return s, nil
}

// explains holds used Explains. Every search fills one in, because its plan is counted, and few callers read
// more of it.
var explains = sync.Pool{New: func() any { return new(mih.Explain) }}

// How returns the Explain that Nearest, Within and Count fill in. It belongs to the searcher, and after Close
// another search may use it: copy the parts that you keep.
func (s *Searcher) How() *mih.Explain {
	if s.found == nil {
		s.found = explains.Get().(*mih.Explain)
	}
	return s.found
}

// Close frees the iterators in the store, and the Explain. The codes found stay: Again reads a closed
// searcher. Closing twice is harmless.
func (s *Searcher) Close() {
	if s.found != nil && s.Explain == nil { // else Report reads it, also that of Again
		explains.Put(s.found)
		s.found = nil
	}
	if s.stored != nil {
		_ = s.stored.Close() // all that it read was checked
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

// exclude removes a row from the filter. Without a filter it makes one of all live rows, at the cost of a
// copy of their bitmap.
func (s *Searcher) exclude(row uint32) {
	rows := s.filter
	if rows == nil {
		rows = s.Cv.Live
	}
	if rows.Contains(row) { // else the answer is the same without exclude
		s.filter = rows.Clone() // it is shared
		s.filter.Remove(row)
	}
}

// inStore returns the reader of stored codes, which Close closes. It opens nothing in the store before its
// first use.
func (s *Searcher) inStore() *StoredCodes {
	if s.stored == nil {
		s.stored = NewStoredCodes(s.V.Snap, s.Set, s.filter)
	}
	return s.stored
}

// usesStore reports whether to search the codes in the store instead of memory:
//   - if the plan asks for it;
//   - if the codes are not in memory yet, under every plan;
//   - within a radius, if some segments have no tables in memory and postings are predicted to be faster than
//     a scan of these segments.
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
	postings, _ := s.storedIndex().PredictRadius(radius)
	return postings < t.PredictRadius(q, radius)
}

// storedIndex returns the index over the postings and codes in the store.
func (s *Searcher) storedIndex() *mih.Stored {
	set := s.Set
	return &mih.Stored{
		Split: record.Split(set.Bits), Codes: set.Codes, Bits: set.Bits,
		Store: s.inStore(), Costs: s.tools.Costs,
		Posted: uint32(set.Posted), Tail: int(set.NextCode - set.Posted),
	}
}

// storedPlan returns the plan for a search in the store. Plans for memory, which arrive here while codes are
// being loaded, become PlanAuto.
func (s *Searcher) storedPlan() mih.Plan {
	if s.plan == mih.PlanDisk || s.plan == mih.PlanBlockScan {
		return s.plan
	}
	return mih.PlanAuto
}

// query returns the query for the table in memory, to find the codes of k items. Behind a cursor, or with a
// least similarity, a code weighs only the items that may be hits, so the table goes on until it has k of
// them.
func (s *Searcher) query(ctx context.Context, k int) *mih.Query {
	q := &mih.Query{Code: s.p.Code, Filter: s.filter, Plan: s.plan, Recall: s.q.Recall}
	if s.weighs() {
		q.Weight = func(n uint32, distance int) int {
			return s.weigh(ctx, s.Set.Table.Rows(n), n, distance,
				k)
		}
	}
	return q
}

// weighs reports whether some rows of a code that pass the filter may be no hits.
func (s *Searcher) weighs() bool { return s.after != nil || s.limited() }

// limited reports whether the query has a least similarity.
func (s *Searcher) limited() bool { return s.q.MinSimilarity != 0 }

// within returns the query for a radius. Items before a cursor count.
func (s *Searcher) within(ctx context.Context) *mih.Query {
	q := &mih.Query{Code: s.p.Code, Filter: s.filter, Plan: s.plan}
	if s.limited() {
		q.Weight = func(n uint32, _ int) int {
			w, err := s.countSimilar(ctx, s.Set.Table.Rows(n))
			if err != nil {
				return s.Set.Table.Rows(n).LenIn(s.filter) // reading the run returns the error
			}
			return w
		}
	}
	return q
}

// Within finds the codes within r bits and sets Total. It finds codes before a cursor too, because the total
// counts them; reading the answer leaves them out.
func (s *Searcher) Within(ctx context.Context, r int) (err error) {
	if s.byVectors {
		return s.noRadius()
	}
	if s.q.Recall > 0 {
		return fault.Invalid("recall %v is of the nearest items, and a radius finds all: leave it out", s.q.Recall)
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

// Nearest finds the codes of the k nearest items behind the cursor, or of the k best scores. It finds all
// codes of the last distance, or of the last score, so there may be many more than k items. If fewer than k
// items follow, it finds the codes of all. It replaces the result of an earlier call.
func (s *Searcher) Nearest(ctx context.Context, k int) (err error) {
	if s.byVectors { // reading the answer searches
		s.How().Plan = mih.PlanScan
		return nil
	}
	start := s.Explain.now()
	q := s.query(ctx, k)
	if q.Recall > 0 && q.Recall < 1 && s.Set.Table != nil && s.Set.WantCells() {
		s.tools.Wanted()
	}
	inStore := s.usesStore(q, -1)
	var d *mih.Stored
	if inStore {
		d = s.storedIndex()
		if s.weighs() {
			s.stored.weigh = func(rows mih.Rows, n uint32,
				distance int) int {
				return s.weigh(ctx, rows, n, distance, k)
			}
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

// rowsOf returns the rows of code number n, which was found. It applies neither filter nor cursor.
func (s *Searcher) rowsOf(n uint32) (mih.Rows, error) {
	if t := s.Set.Table; t != nil {
		return t.Rows(n), nil
	}
	return s.inStore().Rows(n)
}

// codeOf returns code number n, from the table in memory or else from the store. Do not write to it.
func (s *Searcher) codeOf(n uint32) (codec.Code, error) {
	if t := s.Set.Table; t != nil {
		if code := t.Code(n); code != nil {
			return code, nil
		}
	}
	return s.inStore().codeOf(n)
}

// A Point is the place of a query in a space: its code, and its projection if it starts from a vector. A
// query by the features of a stored item has a projection; a query by a code has none. Several goroutines may
// read a Point.
type Point struct {
	Code codec.Code // signs of Z, or the given code, or that of a stored item; do not write to it
	Z    []float64  // projection, one number a bit; nil for a query by code

	// direction is the direction of Z, for similarities; nil: the order needs none.
	direction *quant.Query

	// features is the direction of vector if vectors decide among the items of one code, else nil.
	features *quant.Query

	scorer   *mih.Scorer  // of Z; nil without Z
	modality int          // number of the modality of vector, in the collection
	vector   model.Vector // the vector that Z projects, in the form of the modality; it may alias the query
}

// point sets the code set that the query searches, and encodes the query.
func (s *Searcher) point() (*Point, error) {
	q := &s.q
	if err := q.checkStart(); err != nil {
		return nil, err
	}
	var err error
	if s.Set, err = s.Cv.CodesFor(q.To); err != nil {
		return nil, err
	}
	return s.encode()
}

// checkStart checks that exactly one of a vector, a key and a code is given. An empty slice that is not nil
// counts as given.
func (q *Query) checkStart() error {
	given := 0
	for _, is := range []bool{q.Vector != nil, q.Sparse, q.Key != "", q.Code != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		return fault.Invalid("a query starts from one of a vector, a key and a code; %d are given", given)
	}
	return nil
}

// encode makes the Point of a query. A query by key sets self, and takes the first of these that exists: the
// projection of the stored vector of modality From, if From is given; the code of the item. Where there is
// one modality, its vector orders the items that have this code.
func (s *Searcher) encode() (*Point, error) {
	cv, q := s.Cv, &s.q
	switch {
	case q.Vector != nil || q.Sparse:
		if q.From == "" {
			return nil, fault.Invalid("a query by vector names the modality that the vector is of")
		}
		t, err := cv.ModalityOf(q.From)
		if err != nil {
			return nil, err
		}
		x, err := q.vector(&cv.Modalities[t])
		if err != nil {
			return nil, err
		}
		return s.Project(t, x)
	case q.Code != nil:
		if len(q.Code) != codec.Bytes(cv.Space.Bits) {
			return nil, fault.Invalid("code of %d bits, collection %q has codes of %d",
				8*len(q.Code), cv.Name, cv.Space.Bits)
		}
		p := &Point{Code: codec.NewCode(cv.Space.Bits)}
		p.Code.SetBytes(q.Code)
		return p, nil
	}
	row, err := cv.Row(s.V.Snap, q.Key)
	if err != nil {
		return nil, err
	}
	s.self = row
	var own *Point // of the item's vector
	if q.From != "" || len(cv.Modalities) == 1 {
		t := 0
		if q.From != "" {
			if t, err = cv.ModalityOf(q.From); err != nil {
				return nil, err
			}
		}
		if !cv.IndexOnly {
			x, found, err := record.ReadVector(s.V.Snap, cv.ID, row, t, cv.Modalities[t])
			if err != nil {
				return nil, err
			}
			if found {
				if own, err = s.Project(t, x); q.From != "" {
					return own, err
				}
			}
		}
	}
	code, found, err := cv.ItemCode(s.V.Snap, row)
	if err == nil && !found {
		err = fault.Invalid("item %q has no code: it has neither features nor a label that the model knows",
			q.Key)
	}
	if err != nil {
		return nil, err
	}
	if own != nil {
		own.Code = code
		return own, nil
	}
	return &Point{Code: code}, nil
}

// Project encodes a vector of modality number t of the collection as a query. x is in the form of the
// modality, and the Point keeps it. Project needs only Cv, with a space, and takes its scratch memory from
// that space, so several goroutines may call it at once. A modality that the model does not know is
// fault.ErrNoModel, a vector with a projection of zero is ErrFarAway.
func (s *Searcher) Project(t int, x model.Vector) (*Point, error) {
	sp := s.Cv.Space
	e := sp.Encoders.Get().(*spaces.Encoder)
	defer sp.Encoders.Put(e)
	i, known := e.Position(t)
	if !known {
		return nil, s.Cv.Unlearned(t)
	}
	p := &Point{Z: make([]float64, sp.Bits), modality: t, vector: x}
	if err := e.ProjectVectors(p.Z, i, []model.Vector{x}); err != nil {
		return nil, fault.Invalid("encode: %w", err)
	}
	if spaces.IsZero(p.Z) {
		return nil, ErrFarAway
	}
	p.scorer = mih.NewScorer(p.Z)
	p.Code = p.scorer.Code()
	p.direction = quant.NewQuery(p.Z)
	return p, nil
}

// vector returns the vector that the query starts from, in the form of its modality.
func (q *Query) vector(m *record.Modality) (model.Vector, error) {
	if q.Sparse {
		return m.OfSparse(q.Index, q.Value)
	}
	return m.OfDense(q.Vector)
}

// Encode returns the code that New would search for, bits/8 bytes, and its projection, nil for a query by
// code. The caller may read both. Encode does not search.
func Encode(v *state.View, cv *state.CollectionView, q Query) (code []byte, z []float64, err error) {
	if err := q.checkStart(); err != nil {
		return nil, nil, err
	}
	s := &Searcher{V: v, Cv: cv, q: q}
	if q.To != "" || q.Key != "" || cv.Space == nil {
		if s.Set, err = cv.CodesFor(q.To); err != nil {
			return nil, nil, err
		}
	}
	p, err := s.encode()
	if err != nil {
		return nil, nil, err
	}
	return p.Code.AppendBytes(nil, cv.Space.Bits), p.Z, nil
}

// ErrFarAway is a fault.ErrInvalid: the projection of a vector is zero, so it has no signs. This happens to
// vectors for which all kernels vanish.
var ErrFarAway = fault.Invalid(
	"the vector is far from everything that the model has learned from: is it scaled as the training vectors were?")
