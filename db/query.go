package db

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/where"
	"github.com/fddhdb/fddhdb/mih"
)

// A Query asks for the items whose codes are near. What it starts from is one of
// Vector and Sparse (with From), Key and Code.
type Query struct {
	// From is the modality of Vector or Sparse, which are the same in the two forms;
	// either goes where the modality is of the other. With Key, it is the modality whose stored
	// features of that item are encoded; where it is empty, or the item lacks
	// it, the stored code of the item is used: that for the target, or where it has
	// none the first that it has for another, as all codes of a space can be compared.
	// An index-only collection has no features, so it is the stored code there.
	From string

	// To, if not empty, restricts the answer to items that have this modality. Where
	// a training has made codes for each target modality (model.ViewsTarget), it names
	// the codes that are searched, and has to be given.
	To string

	Vector []float32
	Sparse *Sparse
	Key    string
	Code   []byte // bits/8 bytes, as in Item

	// ExcludeSelf leaves the item of Key out of the answer, and of its Total. Otherwise
	// it is a hit as every item that To and Where admit, at the place of its code: the
	// first of the items that share its code, in every order but that of features. A
	// query that is its stored code has it as the first hit of all. One by its features
	// may be nearer to other codes, as its code can come from its labels.
	ExcludeSelf bool

	// Space is the code space that is searched. One that is being built cannot be searched
	// yet (ErrBusy).
	Space Space

	// Where, if not empty, restricts the answer to items that match an expression
	// such as
	//
	//	label = 'cat' AND year IN (2020, 2021) AND NOT (price >= 10 OR has(image))
	//
	// of comparisons with indexed fields, of label, which is true of the items
	// whose labels contain the string, and of has, true of those that have the
	// modality. A comparison with a field that an item lacks is false, that with
	// != too; NOT is true of all items of which what follows is not. docs/SHELL.md
	// has the grammar. A mistake is a *WhereError. The time is that of reading
	// what is indexed of the labels and fields that it names: for a label a bit
	// an item at worst, for a number 64.
	Where string

	// Args are the values of the placeholders in Where, in order: each ? stands for the
	// next one, where a value may stand.
	//
	//	Where: "label = ? AND price < ? AND year IN (?)",
	//	Args:  []any{name, 9.5, []int{2020, 2021}},
	//
	// They are strings, numbers and bools, also of types that are made of these, and
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

	// Window is how many of the first items RerankFeatures puts in order; 0 means
	// 200, or 2 K if that is more. It is at least K. Each costs the reading of a
	// vector, some microseconds.
	Window int

	// After, if not empty, is the cursor of a Result of the same query: the
	// answer goes on behind it. It says where in the order that answer ended, so
	// that items that come or go in between do not shift what follows.
	After string

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

// Rerank is an order of answers. Each of them is the same by every Plan, and all but
// RerankFeatures can be read on with a cursor.
type Rerank int

const (
	// RerankProjection orders items by distance, then by the score of their code,
	// and those of one code by the cosine between the real-valued projection of the
	// query and theirs; then by row. Items that share a code share every score that
	// the code can give, so without it the oldest of them would always come first.
	RerankProjection Rerank = iota
	// RerankNone is the same, with the items of one code by row.
	RerankNone
	// RerankAsymmetric orders items by the score of their code, over all codes
	// whatever their distance, and those of one code by the cosine; then by row. It
	// is exact: no item outside an answer has a better score than one inside. It
	// finds what is relevant better than distances do, as it knows which bits of the
	// query are sure. Within a radius it is the order of what lies within. A query
	// by code has the scores that its distances give it, and so the order of
	// RerankNone. The postings of PlanDisk do not find scores: it reads all codes.
	RerankAsymmetric
	// RerankFeatures takes the first items in the order of RerankProjection, see
	// Query.Window, and orders them by the squared Euclidean distance between the
	// vector of the query and theirs of the same modality, the nearest first; those
	// that lack it come after the others, as they were. What lies behind the window
	// follows as it was. It is for queries by a vector, or by the key of an item
	// that has one, of a modality that some item that may be a hit has.
	//
	// The squared distance is what the kernels of a model see of features; of vectors
	// at length 1 it is the order of the cosine. As what comes or goes moves others
	// into the window or out of it, there are no cursors: ask for more with K.
	RerankFeatures
)

var rerankNames = [...]string{"projection", "none", "asymmetric", "features"}

func (r Rerank) String() string {
	if r.known() {
		return rerankNames[r]
	}
	return fmt.Sprintf("Rerank(%d)", int(r))
}

func (r Rerank) known() bool { return r >= 0 && int(r) < len(rerankNames) }

// ParseRerank returns the order of that name.
func ParseRerank(s string) (Rerank, error) {
	if i := slices.Index(rerankNames[:], strings.ToLower(s)); i >= 0 {
		return Rerank(i), nil
	}
	return 0, fault.Invalid("unknown rerank %q: projection, none, asymmetric and features are possible", s)
}

// A Hit is one item of an answer.
type Hit struct {
	Key      string
	Row      uint32
	Distance int // Hamming, in bits

	// Score is z . h, the inner product of the projection of the query with the
	// code of the item as +-1: the larger the nearer. NaN for queries by code.
	Score float64
}

// A Result is the answer to a query: items by (distance, -score of the code),
// and where that is equal, as for a query by code, by the age of the code; the
// items of one code together, by (-cosine, row), the item of Query.Key before the
// others. See Rerank for other orders.
type Result struct {
	Hits     []Hit
	Next     string // cursor, for Query.After; empty at the end
	Total    int    // of a search by radius: items within it, whether in Hits or not
	Space    Space  // that the codes are of
	Revision uint32
}

const defaultK = 10

// Search returns the K nearest items by Hamming distance between codes, or by
// another order (see Rerank), exactly: no item outside is nearer than one inside.
// Fewer come back only when there are
// no more. The time is that of encoding the query, of finding the codes (see
// Explain), and of the items of the codes that are reached.
func (c *Collection) Search(ctx context.Context, q Query) (*Result, error) {
	c = c.orNone()
	if q.K == 0 {
		q.K = defaultK
	}
	ctx, call := c.db.call(ctx, event.OpSearch, c.name)
	var res *Result
	hits, plan := 0, PlanAuto
	err := c.read(func(v *state.View, cv *state.CollectionView) error {
		s, err := c.newSearcher(ctx, v, cv, &q)
		if err != nil {
			return err
		}
		defer s.close()
		if err := s.nearest(ctx, s.toFind(q.K)); err != nil {
			return err
		}
		if res, err = s.first(ctx, q.K); err == nil {
			s.observe(res)
			hits, plan = len(res.Hits), s.how().Plan
		}
		return err
	})
	c.db.counters.searched(&call, event.OpSearch, plan, hits, err)
	return res, err
}

// SearchRadius returns all items within radius bits of the query, exactly, in
// the order of a Result, as runs of items that share a code. Their rows and keys
// are put in order and read when they are looked at; for RerankAsymmetric all codes
// are put in order first. Close the runs.
func (c *Collection) SearchRadius(ctx context.Context, q Query, radius int) (*Runs, error) {
	c = c.orNone()
	if radius < 0 {
		return nil, fault.Invalid("radius %d: 0 or more bits are possible", radius)
	}
	ctx, call := c.db.call(ctx, event.OpSearchRadius, c.name)
	var r *Runs
	total, plan := 0, PlanAuto
	err := c.read(func(v *state.View, cv *state.CollectionView) error {
		s, err := c.newSearcher(ctx, v, cv, &q)
		if err != nil {
			return err
		}
		err = s.within(ctx, radius)
		total, plan = s.total, s.how().Plan
		s.close()
		if err != nil {
			return err
		}
		v.Acquire()
		r = &Runs{s: s, pin: c.db.pin(v)}
		return nil
	})
	c.db.counters.searched(&call, event.OpSearchRadius, plan, total, err)
	return r, err
}

// CountRadius returns the number of items within radius bits of the query.
func (c *Collection) CountRadius(ctx context.Context, q Query, radius int) (int, error) {
	c = c.orNone()
	if radius < 0 {
		return 0, fault.Invalid("radius %d: 0 or more bits are possible", radius)
	}
	ctx, call := c.db.call(ctx, event.OpCountRadius, c.name)
	n, plan := 0, PlanAuto
	err := c.read(func(v *state.View, cv *state.CollectionView) error {
		s, err := c.newSearcher(ctx, v, cv, &q)
		if err != nil {
			return err
		}
		defer s.close()
		n, err = s.count(ctx, radius)
		plan = s.how().Plan
		return err
	})
	c.db.counters.searched(&call, event.OpCountRadius, plan, n, err)
	return n, err
}

// A searcher answers one query from one state of a collection.
type searcher struct {
	c      *Collection
	v      *state.View
	cv     *state.CollectionView
	set    *state.CodeSetView // that is searched
	q      *Query
	args   string // of q, spelt out
	p      *point
	self   uint32          // row of the item that the query starts from, or noRow
	filter *roaring.Bitmap // rows that may be hits; nil: all that have a code
	plan   Plan
	stored *storedCodes // nil until the store is needed
	after  *position    // where the answer begins; nil: at the start
	radius int          // negative: none

	matches []codec.Near // codes by distance
	scored  []mih.Scored // codes by score, in place of these where that is the order
	byScore bool         // it is
	total   int          // items that they have
	found   *mih.Explain // how they were, until close; nil until the first look
	explain *Explain     // to be filled in, if not nil

	lastRun Run // of the last hit that was yielded
	lastRow rankedRow
	rows    []uint32 // scratch
}

// noRow is the number of no row.
const noRow = math.MaxUint32

// newSearcher checks and encodes a query.
func (c *Collection) newSearcher(ctx context.Context, v *state.View, cv *state.CollectionView, q *Query) (*searcher, error) {
	switch {
	case q.K < 0:
		return nil, fault.Invalid("k = %d: 1 or more are possible", q.K)
	case !q.Rerank.known():
		return nil, fault.Invalid("unknown rerank %v", q.Rerank)
	case q.Window < 0:
		return nil, fault.Invalid("window of %d: 1 or more are possible, 0 is the default", q.Window)
	case q.ExcludeSelf && q.Key == "":
		return nil, fault.Invalid("exclude self: the query starts from no item, as Key is empty")
	case q.Plan > PlanBlockScan:
		return nil, fault.Invalid("unknown plan %d", q.Plan)
	}
	if err := ctx.Err(); err != nil { // where there is little to find nobody else looks
		return nil, err
	}
	cv, err := cv.InSpace(uint32(q.Space))
	if err != nil {
		return nil, err
	}
	s := &searcher{c: c, v: v, cv: cv, q: q, self: noRow, plan: q.Plan, radius: -1}
	if s.filter, err = filterOf(ctx, cv, v.Snap, q.To, q.Where, q.Args); err != nil {
		return nil, err
	}
	if s.args, err = where.Spell(q.Args); err != nil {
		return nil, err // one that the expression has not refused before
	}
	if s.p, err = s.point(*q); err != nil {
		s.close()
		return nil, err
	}
	if q.ExcludeSelf {
		s.exclude(s.self)
	}
	switch q.Rerank {
	case RerankNone:
		s.p.unit = nil
	case RerankAsymmetric:
		s.byScore = s.p.z != nil
	case RerankFeatures:
		if err := s.checkFeatures(); err != nil {
			s.close()
			return nil, err
		}
	}
	if _, is := s.set.Modality(); is && q.Where == "" && !q.ExcludeSelf {
		s.filter = nil // the items that have codes for the target are those
	}
	if q.After != "" {
		if s.after, err = s.position(q.After); err != nil {
			s.close()
			return nil, err
		}
	}
	if s.plan == PlanFilter && s.filter == nil {
		s.plan = PlanScan // which then reads the same codes
	}
	return s, nil
}

// explains are used again, so that a search need not make one for the sake of its plan.
var explains = sync.Pool{New: func() any { return new(mih.Explain) }}

// how returns how codes were found, to be filled in.
func (s *searcher) how() *mih.Explain {
	if s.found == nil {
		s.found = explains.Get().(*mih.Explain)
	}
	return s.found
}

// close frees what the searcher has opened in the store.
func (s *searcher) close() {
	if s.found != nil {
		explains.Put(s.found)
		s.found = nil
	}
	if s.stored != nil {
		_ = s.stored.close() // what it has read, it has checked
		s.stored = nil
	}
}

// filterOf returns the rows that may be hits: those that match where and have the
// modality to. Nil means all that have a code; a bitmap must not be written to.
func filterOf(ctx context.Context, cv *state.CollectionView, r pebble.Reader, to, where string, args []any) (*roaring.Bitmap, error) {
	var presence *roaring.Bitmap
	if to != "" {
		t, err := cv.ModalityOf(to)
		if err != nil {
			return nil, err
		}
		if cv.Presence[t].GetCardinality() < cv.Live.GetCardinality() {
			presence = cv.Presence[t]
		}
	}
	rows, err := matching(ctx, cv, r, where, args)
	switch {
	case err != nil:
		return nil, err
	case rows == nil:
		return presence, nil
	case presence != nil:
		rows.And(presence)
	}
	return rows, nil
}

// exclude takes a row out of those that may be hits.
func (s *searcher) exclude(row uint32) {
	rows := s.filter
	if rows == nil {
		rows = s.cv.Live
	}
	if rows.Contains(row) { // else the answer is the same without
		s.filter = rows.Clone() // others have it, too
		s.filter.Remove(row)
	}
}

// inStore returns the stored codes, opened for this search.
func (s *searcher) inStore() *storedCodes {
	if s.stored == nil {
		s.stored = newStoredCodes(s.v.Snap, s.set, s.filter)
	}
	return s.stored
}

// usesStore reports whether the codes are to be found in the store: where they
// are not in memory yet, where that is asked for, and, within a radius, where
// tables are in the store only and predicted to beat a scan.
func (s *searcher) usesStore(q *mih.Query, radius int) bool {
	t := s.set.Table
	switch {
	case s.plan == PlanDisk || s.plan == PlanBlockScan || t == nil:
		return true
	case s.plan != PlanAuto || radius < 0 || t.Indexed():
		return false
	}
	d := mih.Stored{Split: record.Split(t.Bits()), Codes: s.set.Codes, Bits: t.Bits(), Costs: &s.c.db.stored}
	postings, _ := d.PredictRadius(radius)
	return postings < t.PredictRadius(q, radius)
}

// storedIndex returns the index in the store.
func (s *searcher) storedIndex() *mih.Stored {
	set := s.set
	return &mih.Stored{
		Split: record.Split(set.Bits), Codes: set.Codes, Bits: set.Bits,
		Store: s.inStore(), Costs: &s.c.db.stored,
	}
}

// storedPlan is the plan among those of the store.
func (s *searcher) storedPlan() Plan {
	if s.plan == PlanDisk || s.plan == PlanBlockScan {
		return s.plan
	}
	return PlanAuto
}

// query returns the query for the table in memory.
func (s *searcher) query() *mih.Query {
	q := &mih.Query{Code: s.p.code, Filter: s.filter, Plan: s.plan}
	if s.after != nil {
		q.Weight = func(n uint32, distance int) int { return s.after.weight(s, s.set.Table.Rows(n), n, distance) }
	}
	return q
}

// within finds the codes within r bits. What lies before a cursor is among them,
// as it counts in the total.
func (s *searcher) within(ctx context.Context, r int) (err error) {
	start := s.explain.now()
	s.radius = r
	q := s.query()
	q.Weight = nil
	if s.usesStore(q, r) {
		s.matches, s.total, err = s.storedIndex().Radius(ctx, s.p.code, r, s.storedPlan(), nil, s.how())
	} else {
		s.matches, s.total, err = s.set.Table.Radius(ctx, q, r, nil, s.how())
	}
	if err == nil && s.byScore {
		err = s.score(ctx)
	}
	s.explain.searched(start)
	return err
}

// count returns how many items are within r bits.
func (s *searcher) count(ctx context.Context, r int) (int, error) {
	if q := s.query(); !s.usesStore(q, r) {
		return s.set.Table.Count(ctx, q, r, s.how())
	}
	s.byScore = false // nobody looks at the order
	err := s.within(ctx, r)
	return s.total, err
}

// nearest finds the codes that the k nearest items have, or those with the best
// scores.
func (s *searcher) nearest(ctx context.Context, k int) (err error) {
	start := s.explain.now()
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
		s.scored, err = d.Best(ctx, s.p.scorer, k, nil, s.how())
	case inStore:
		s.matches, err = d.Nearest(ctx, s.p.code, k, s.storedPlan(), nil, s.how())
	case s.byScore:
		s.scored, err = s.set.Table.Best(ctx, q, s.p.scorer, k, nil, s.how())
	default:
		s.matches, err = s.set.Table.Nearest(ctx, q, k, nil, s.how())
	}
	s.explain.searched(start)
	return err
}

// rowsOf returns the rows that carry a code that was found.
func (s *searcher) rowsOf(n uint32) (mih.Rows, error) {
	if t := s.set.Table; t != nil {
		return t.Rows(n), nil
	}
	return s.inStore().rows(n)
}

// codeOf returns the code with a number; it must not be written to.
func (s *searcher) codeOf(n uint32) (codec.Code, error) {
	if t := s.set.Table; t != nil {
		if code := t.Code(n); code != nil {
			return code, nil
		}
	}
	return s.inStore().codeOf(n)
}
