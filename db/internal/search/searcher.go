package search

import (
	"context"
	"math"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/where"
	"github.com/fddhdb/fddhdb/mih"
)

// A Query is a query in the terms of this package; db.Query says what its fields mean.
type Query struct {
	From, To    string
	Vector      []float32 // dense; nil: none is given
	Sparse      bool      // a sparse vector is given: Index and Value
	Index       []uint32
	Value       []float32
	Key         string
	Code        []byte
	ExcludeSelf bool
	Space       uint32
	Where       string
	Args        []any
	K           int
	Order       Order
	Window      int
	After       string
	Plan        mih.Plan
}

// An Order is the order of an answer; db.Rerank says what each is.
type Order int

const (
	byProjection Order = iota
	ByCode
	ByScore
	ByFeatures
)

// Tools are what searches of a database share.
type Tools struct {
	Keys  *keyCache
	Costs *mih.StoredCosts // of reading codes from the store, as they are learned
}

// A Searcher answers one query from one state of a collection.
type Searcher struct {
	tools  *Tools
	V      *state.View
	Cv     *state.CollectionView
	Set    *state.CodeSetView // that is searched
	q      *Query
	args   string // of q, spelt out
	p      *Point
	self   uint32          // row of the item that the query starts from, or noRow
	filter *roaring.Bitmap // rows that may be hits; nil: all that have a code
	plan   mih.Plan
	stored *StoredCodes // nil until the store is needed
	after  *position    // where the answer begins; nil: at the start
	radius int          // negative: none

	matches []codec.Near // codes by distance
	scored  []mih.Scored // codes by score, in place of these where that is the order
	byScore bool         // it is
	Total   int          // items that they have
	found   *mih.Explain // how they were, until close; nil until the first look
	Explain *Timings     // to be filled in, if not nil

	lastRun run // of the last hit that was yielded
	lastRow rankedRow
	rows    []uint32 // scratch
}

// noRow is the number of no row.
const noRow = math.MaxUint32

// New checks and encodes a query.
func New(ctx context.Context, tools *Tools, v *state.View, cv *state.CollectionView, q *Query) (*Searcher, error) {
	switch {
	case q.K < 0:
		return nil, fault.Invalid("k = %d: 1 or more are possible", q.K)
	case q.Window < 0:
		return nil, fault.Invalid("window of %d: 1 or more are possible, 0 is the default", q.Window)
	case q.ExcludeSelf && q.Key == "":
		return nil, fault.Invalid("exclude self: the query starts from no item, as Key is empty")
	case q.Plan > mih.PlanBlockScan:
		return nil, fault.Invalid("unknown plan %d", q.Plan)
	}
	if err := ctx.Err(); err != nil { // where there is little to find nobody else looks
		return nil, err
	}
	cv, err := cv.InSpace(q.Space)
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
	if s.p, err = s.point(); err != nil {
		s.Close()
		return nil, err
	}
	if q.ExcludeSelf {
		s.exclude(s.self)
	}
	switch q.Order {
	case ByCode:
		s.p.unit = nil
	case ByScore:
		s.byScore = s.p.Z != nil
	case ByFeatures:
		if err := s.checkFeatures(); err != nil {
			s.Close()
			return nil, err
		}
	}
	if _, is := s.Set.Modality(); is && q.Where == "" && !q.ExcludeSelf {
		s.filter = nil // the items that have codes for the target are those
	}
	if q.After != "" {
		if s.after, err = s.position(q.After); err != nil {
			s.Close()
			return nil, err
		}
	}
	if s.plan == mih.PlanFilter && s.filter == nil {
		s.plan = mih.PlanScan // which then reads the same codes
	}
	return s, nil
}

// explains are used again, so that a search need not make one for the sake of its plan.
var explains = sync.Pool{New: func() any { return new(mih.Explain) }}

// How returns how codes were found, to be filled in.
func (s *Searcher) How() *mih.Explain {
	if s.found == nil {
		s.found = explains.Get().(*mih.Explain)
	}
	return s.found
}

// Close frees what the searcher has opened in the store.
func (s *Searcher) Close() {
	if s.found != nil {
		explains.Put(s.found)
		s.found = nil
	}
	if s.stored != nil {
		_ = s.stored.Close() // what it has read, it has checked
		s.stored = nil
	}
}

// exclude takes a row out of those that may be hits.
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

// inStore returns the stored codes, opened for this search.
func (s *Searcher) inStore() *StoredCodes {
	if s.stored == nil {
		s.stored = NewStoredCodes(s.V.Snap, s.Set, s.filter)
	}
	return s.stored
}

// usesStore reports whether the codes are to be found in the store: where they
// are not in memory yet, where that is asked for, and, within a radius, where
// tables are in the store only and predicted to beat a scan.
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

// storedIndex returns the index in the store.
func (s *Searcher) storedIndex() *mih.Stored {
	set := s.Set
	return &mih.Stored{
		Split: record.Split(set.Bits), Codes: set.Codes, Bits: set.Bits,
		Store: s.inStore(), Costs: s.tools.Costs,
	}
}

// storedPlan is the plan among those of the store.
func (s *Searcher) storedPlan() mih.Plan {
	if s.plan == mih.PlanDisk || s.plan == mih.PlanBlockScan {
		return s.plan
	}
	return mih.PlanAuto
}

// query returns the query for the table in memory.
func (s *Searcher) query() *mih.Query {
	q := &mih.Query{Code: s.p.Code, Filter: s.filter, Plan: s.plan}
	if s.after != nil {
		q.Weight = func(n uint32, distance int) int { return s.after.weight(s, s.Set.Table.Rows(n), n, distance) }
	}
	return q
}

// Within finds the codes within r bits. What lies before a cursor is among them,
// as it counts in the total.
func (s *Searcher) Within(ctx context.Context, r int) (err error) {
	start := s.Explain.now()
	s.radius = r
	q := s.query()
	q.Weight = nil
	if s.usesStore(q, r) {
		s.matches, s.Total, err = s.storedIndex().Radius(ctx, s.p.Code, r, s.storedPlan(), nil, s.How())
	} else {
		s.matches, s.Total, err = s.Set.Table.Radius(ctx, q, r, nil, s.How())
	}
	if err == nil && s.byScore {
		err = s.score(ctx)
	}
	s.Explain.searched(start)
	return err
}

// Count returns how many items are within r bits.
func (s *Searcher) Count(ctx context.Context, r int) (int, error) {
	if q := s.query(); !s.usesStore(q, r) {
		return s.Set.Table.Count(ctx, q, r, s.How())
	}
	s.byScore = false // nobody looks at the order
	err := s.Within(ctx, r)
	return s.Total, err
}

// Nearest finds the codes that the k nearest items have, or those with the best
// scores.
func (s *Searcher) Nearest(ctx context.Context, k int) (err error) {
	start := s.Explain.now()
	q := s.query()
	inStore := s.usesStore(q, -1)
	var d *mih.Stored
	if inStore {
		d = s.storedIndex()
		if s.after != nil {
			s.stored.weigh = func(rows mih.Rows, n uint32, distance int) int { return s.after.weight(s, rows, n, distance) }
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

// rowsOf returns the rows that carry a code that was found.
func (s *Searcher) rowsOf(n uint32) (mih.Rows, error) {
	if t := s.Set.Table; t != nil {
		return t.Rows(n), nil
	}
	return s.inStore().Rows(n)
}

// codeOf returns the code with a number; it must not be written to.
func (s *Searcher) codeOf(n uint32) (codec.Code, error) {
	if t := s.Set.Table; t != nil {
		if code := t.Code(n); code != nil {
			return code, nil
		}
	}
	return s.inStore().codeOf(n)
}
