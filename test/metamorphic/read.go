package metamorphic

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/oracle"
	"github.com/fddhdb/fddhdb/test/metamorphic/program"
)

func (h *history) get(op *program.Op) error {
	c, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	if err := h.checkItem(c, handle, op.Key); err != nil {
		return err
	}
	if c.items[op.Key] == nil {
		return errPassed
	}
	return nil
}

// where compares what a filter finds.
func (h *history) where(op *program.Op) error {
	c, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	n, err := handle.Count(h.ctx, op.Where.String())
	if !op.Where.Valid(&c.schema) {
		return expect(err, db.ErrInvalid)
	}
	if err == nil && c.fresh {
		err = h.checkCollection(c, handle)
	}
	if err != nil {
		return err
	}
	want, err := c.matching(op.Where)
	if err != nil || n != len(want) {
		return wrong(err, "%d counted, want %d", n, len(want))
	}
	at := 0
	where, args := op.Where.Bound()
	for it, err := range handle.Items(h.ctx, where, args...) {
		if err != nil {
			return err
		}
		if at == len(want) || it.Key != want[at] {
			return fmt.Errorf("%d that match is %q, of %q", at, it.Key, want)
		}
		if err := c.same(c.space(0), it.Key, it); err != nil {
			return err
		}
		at++
	}
	if at != len(want) {
		return fmt.Errorf("%d match, want %d", at, len(want))
	}
	return nil
}

// A place is where the reading of an answer stopped.
type place struct {
	in    string
	c     *collection // as it was then
	query *program.Query
	next  string
	code  string
	last  oracle.Candidate
}

// first reads the first page of an answer. more continues with it later.
func (h *history) first(op *program.Op) error {
	s, err := h.ask(op, op.Query)
	if err != nil {
		return err
	}
	return errors.Join(s.first(op), s.done())
}

func (s *question) first(op *program.Op) error {
	res, err := s.nearest(s.k(), s.q.Plan)
	if err != nil {
		return err
	}
	if res.Next == "" || op.At != "" {
		return errPassed
	}
	last := res.Hits[len(res.Hits)-1]
	i := slices.IndexFunc(s.a.Candidates, func(h oracle.Candidate) bool { return h.Key == last.Key })
	s.h.cursors[op.Name] = &place{op.In, s.c, op.Query, res.Next, s.a.code, s.a.Candidates[i]}
	return nil
}

// more reads on, whatever was written since. It finds what lies behind the place now.
func (h *history) more(op *program.Op) error {
	p := h.cursors[op.Name]
	if p == nil {
		return errPassed
	}
	s, err := h.ask(&program.Op{In: p.in}, p.query)
	if err != nil {
		return err
	}
	return errors.Join(s.more(p, op.N), s.done())
}

func (s *question) more(p *place, n int) error {
	q := s.q
	q.After, q.K, q.Plan = p.next, max(n, 1), db.PlanAuto
	res, err := s.handle.Search(s.h.ctx, q)
	if s.c.born != p.c.born || s.a.Exact && s.a.code != p.code { // it is another query now
		return expect(err, db.ErrInvalid)
	}
	if !s.a.Exact { // the revision may be another one, or the key may have other codes
		if errors.Is(err, db.ErrInvalid) {
			return errPassed
		}
		return err
	}
	if err != nil {
		return err
	}
	var want []oracle.Candidate
	for _, h := range s.a.Candidates {
		inCode := h.Key != s.a.Self && (p.last.Key == s.a.Self || h.Row > p.last.Row)
		if h.Distance > p.last.Distance ||
			h.Distance == p.last.Distance && (h.Age > p.last.Age || h.Age == p.last.Age && inCode) {
			want = append(want, h)
		}
	}
	behind := oracle.Answer{Candidates: want, Projection: s.a.Projection, Exact: s.a.Exact, Self: s.a.Self}
	if (res.Next != "") != (q.K < len(want)) {
		return fmt.Errorf("after %d of %d behind the place, next is %q", q.K, len(want), res.Next)
	}
	return behind.Check(res.Hits, q.K, -1, db.RerankProjection)
}

func (h *history) search(op *program.Op) error {
	s, err := h.ask(op, op.Query)
	if err != nil {
		return err
	}
	return errors.Join(s.search(op.Seed), s.done())
}

func (s *question) search(seed uint64) error {
	res, err := s.nearest(s.k(), s.q.Plan)
	if err != nil {
		return err
	}
	other := plans[planNames[seed%6]]
	again, err := s.nearest(s.k(), other)
	if err != nil {
		return err
	}
	if !oracle.SameHits(res.Hits, again.Hits) {
		return fmt.Errorf("plan %v: %v; plan %v: %v", s.q.Plan, res.Hits, other, again.Hits)
	}
	q := s.q
	q.Plan = s.affordable(q.Plan, s.k(), -1)
	q.Include |= db.IncludeExplain
	explained, err := s.handle.Search(s.h.ctx, q)
	if err != nil {
		return err
	}
	if !oracle.SameHits(res.Hits, explained.Hits) {
		return fmt.Errorf("%v; explained: %v", res.Hits, explained.Hits)
	}
	return nil
}

// radius compares every kind of question about what lies within a radius.
func (h *history) radius(op *program.Op) error {
	s, err := h.ask(op, op.Query)
	if err != nil {
		return err
	}
	return errors.Join(s.within(op.Radius), s.done())
}

func (s *question) within(radius int) error {
	q := s.q
	q.Plan = s.affordable(q.Plan, 0, radius)
	want := s.a.Within(radius)
	runs, err := s.handle.SearchRadius(s.h.ctx, q, radius)
	if err != nil {
		return err
	}
	if err := s.runs(runs, radius, want); err != nil {
		return errors.Join(err, runs.Close())
	}
	return runs.Close()
}

func (s *question) runs(runs *db.Runs, radius, want int) error {
	if runs.Total() != want {
		return fmt.Errorf("%d in all within %d, want %d", runs.Total(), radius, want)
	}
	distances, err := runs.Distances(s.h.ctx)
	if err != nil {
		return err
	}
	within := 0
	for d, n := range distances {
		if within += n; within != s.a.Within(d) {
			return fmt.Errorf("distances %v: %d within %d, want %d", distances, within, d, s.a.Within(d))
		}
	}
	hits, err := collect(runs.Hits(s.h.ctx), -1)
	if err != nil {
		return err
	}
	first, err := runs.First(s.h.ctx, s.k())
	if err != nil {
		return err
	}
	if !oracle.SameHits(first.Hits, hits[:min(s.k(), len(hits))]) || first.Total != want {
		return fmt.Errorf("the first %d within %d are %v, the hits %v", s.k(), radius, first.Hits, hits)
	}
	if err := s.a.Check(hits, len(s.a.Candidates)+1, radius, s.q.Rerank); err != nil {
		return fmt.Errorf("plan %v, within %d: %w", s.q.Plan, radius, err)
	}
	at := 0
	for run, err := range runs.All(s.h.ctx) {
		if err != nil {
			return err
		}
		var rows []uint32
		for range run.Rows {
			if at == len(hits) || hits[at].Distance != run.Distance {
				return fmt.Errorf("run %+v is not the hits from %d on: %v", run, at, hits)
			}
			rows = append(rows, hits[at].Row)
			at++
		}
		if slices.Sort(rows); !slices.Equal(rows, run.Rows) {
			return fmt.Errorf("a run of rows %d, the hits have %d", run.Rows, rows)
		}
	}
	if at != len(hits) {
		return fmt.Errorf("runs of %d rows, %d hits", at, len(hits))
	}
	return nil
}

// collect returns the first n hits of seq; all of them if n is negative.
func collect(seq iter.Seq2[db.Hit, error], n int) ([]db.Hit, error) {
	var hits []db.Hit
	for h, err := range seq {
		if err != nil {
			return nil, err
		}
		if hits = append(hits, h); len(hits) == n {
			break
		}
	}
	return hits, nil
}

// pages reads an answer page by page, each with another plan.
func (h *history) pages(op *program.Op) error {
	s, err := h.ask(op, op.Query)
	if err != nil {
		return err
	}
	return errors.Join(s.pages(op.Radius, op.N, op.Seed), s.done())
}

func (s *question) pages(radius, size int, seed uint64) error {
	r := program.NewRand(seed)
	q := s.q
	var all []db.Hit
	for {
		q.K = 1 + r.IntN(max(1, size))
		q.Plan = s.affordable(plans[planNames[r.IntN(6)]], len(all)+q.K, radius)
		var res *db.Result
		var err error
		if radius < 0 {
			res, err = s.handle.Search(s.h.ctx, q)
		} else {
			var runs *db.Runs
			if runs, err = s.handle.SearchRadius(s.h.ctx, q, radius); err == nil {
				res, err = runs.First(s.h.ctx, q.K)
				err = errors.Join(err, runs.Close())
			}
		}
		if err != nil {
			return err
		}
		if len(res.Hits) != q.K && res.Next != "" || len(all) > len(s.a.Candidates) {
			return fmt.Errorf("a page of %d hits for k = %d after %d of %d", len(res.Hits), q.K, len(all),
				len(s.a.Candidates))
		}
		all = append(all, res.Hits...)
		if res.Next == "" {
			return s.a.Check(all, len(s.a.Candidates)+1, radius, q.Rerank)
		}
		q.After = res.Next
	}
}

// searchAll compares the answers to many queries in one call with the answer to each.
func (h *history) searchAll(op *program.Op) error {
	c, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	if h.learns() && op.At == "" {
		return errPassed
	}
	var queries []db.Query
	var want []*db.Result
	for i := range op.Queries {
		q := op.Queries[i]
		q.Space = op.Queries[0].Space // one call searches one space
		s, err := h.ask(op, &q)
		if errors.Is(err, errPassed) {
			continue
		}
		if err != nil {
			return err
		}
		defer func() { _ = s.done() }()
		s.q.Plan = s.affordable(s.q.Plan, s.k(), -1)
		res, err := s.nearest(s.k(), s.q.Plan)
		if err != nil {
			return err
		}
		queries, want, handle = append(queries, s.q), append(want, res), s.handle
	}
	got, err := handle.SearchAll(h.ctx, queries)
	if err != nil || len(got) != len(want) {
		return wrong(err, "%d answers to %d queries", len(got), len(want))
	}
	for i, res := range got {
		if !oracle.SameHits(res.Hits, want[i].Hits) || res.Next != want[i].Next {
			return fmt.Errorf("query %d among others: %v; alone: %v", i, res.Hits, want[i].Hits)
		}
	}
	if len(c.items) == 0 || len(queries) == 0 {
		return errPassed
	}
	return nil
}

var plans = map[string]db.Plan{
	"": db.PlanAuto, "memory": db.PlanMemory, "scan": db.PlanScan, "filter": db.PlanFilter,
	"disk": db.PlanDisk, "blockscan": db.PlanBlockScan,
}

var planNames = []string{"", "memory", "scan", "filter", "disk", "blockscan"}

// A question is a query with its right answer. done must be called at the end.
type question struct {
	h      *history
	c      *collection
	handle *db.Collection
	q      db.Query
	a      *answer
	done   func() error
}

// ask prepares a query. The error is a failure, or errPassed if the query got its
// predicted error.
func (h *history) ask(op *program.Op, query *program.Query) (*question, error) {
	c, handle, err := h.collection(op)
	if err != nil {
		return nil, err
	}
	s := &question{h: h, c: c, handle: handle, done: func() error { return nil }}
	// projections and indexes must not change meanwhile
	if (h.learns() || len(c.indexes) > 0) && op.At == "" {
		snap, err := h.d.Snapshot()
		if err != nil {
			return nil, err
		}
		s.done = snap.Close
		if s.handle, err = snap.Collection(op.In); err != nil {
			return nil, errors.Join(err, snap.Close())
		}
	}
	if err = s.prepare(query); err != nil {
		return nil, errors.Join(err, s.done())
	}
	return s, nil
}

func (s *question) prepare(query *program.Query) error {
	c, number := s.c, s.c.numberOf(query.Space)
	if err := s.known(number); err != nil {
		return err
	}
	in, err := s.handle.InSpace(number, 0)
	switch exists := number == 0 || c.space(number) != nil; {
	case !exists && errors.Is(err, db.ErrNotFound):
		return errPassed
	case !exists || err != nil:
		return fmt.Errorf("in space %d: %w", number, err)
	}
	s.handle = in
	s.q = db.Query{
		From: query.From, To: query.To, Key: query.Key, ExcludeSelf: query.Exclude,
		Where: query.Where.String(), K: query.K,
		Plan: plans[query.Plan], Recall: query.Recall,
	}
	if s.q.Rerank, err = db.ParseRerank(cmp.Or(query.Rerank, "projection")); err != nil {
		return err
	}
	if query.Vector != nil {
		x := program.VectorOf(c.modality(query.From), *query.Vector)
		if query.Sparse {
			v := program.SparseOf(x)
			s.q.Sparse = &v
		} else {
			s.q.Vector = x
		}
	}
	if query.Code != nil {
		bits := 8
		if sp := c.space(number); sp != nil {
			bits = sp.bits
		}
		s.q.Code = program.CodeOf(bits, *query.Code)
	}
	sp := c.space(number)
	if number == 0 && sp == nil && s.q.Rerank == db.RerankAuto || sp != nil && query.Recall > 0 {
		return s.untrained(query)
	}
	var want error
	s.a, want = c.find(query, func(from string, x []float32) ([]byte, []float64, error) {
		return s.handle.EncodeQuery(s.h.ctx, db.Query{From: from, Vector: x})
	})
	if want != nil && !errors.Is(want, db.ErrInvalid) && !errors.Is(want, db.ErrNoModel) &&
		!errors.Is(want, db.ErrNotFound) {
		return want
	}
	if want == nil {
		if query.Key != "" && query.From == "" {
			return nil // the code is the item's own
		}
		return oracle.Signs(s.a.code, s.a.Projection)
	}
	_, serr := s.handle.Search(s.h.ctx, s.q)
	_, rerr := s.handle.SearchRadius(s.h.ctx, s.q, 3)
	for _, err := range []error{serr, rerr} {
		for _, of := range []error{db.ErrInvalid, db.ErrNoModel, db.ErrNotFound} {
			if errors.Is(want, of) && !errors.Is(err, of) {
				return fmt.Errorf("the error is %v, not %v", err, of)
			}
		}
	}
	return errPassed
}

// known asks the database for the codes that only it can know.
func (s *question) known(number db.Space) error {
	sp := s.c.space(number)
	if sp == nil {
		return nil
	}
	unsettled := s.c.fresh
	for _, c := range sp.codes {
		unsettled = unsettled || !c.settled
	}
	if !unsettled {
		return nil
	}
	if s.c.fresh {
		return s.h.checkCollection(s.c, s.handle)
	}
	in, err := s.handle.InSpace(sp.number, 0)
	if err != nil {
		return err
	}
	return s.h.checkItems(s.c, sp, in)
}

// affordable returns another plan instead of lookups in the store, if a sure answer of
// k items, or within a radius, would take too many of them.
func (s *question) affordable(plan db.Plan, k, radius int) db.Plan {
	if plan != db.PlanDisk {
		return plan
	}
	if radius < 0 {
		if k >= len(s.a.Candidates) {
			if s.a.sp.bits <= 8 {
				return plan
			}
			return db.PlanAuto
		}
		for _, h := range s.a.Candidates[:k+1] {
			radius = max(radius, h.Distance)
		}
	}
	tables := (s.a.sp.bits + 15) / 16
	width, each := s.a.sp.bits/tables, 1
	lookups := 1
	for r := 1; r <= radius/tables && r <= width; r++ {
		each = each * (width - r + 1) / r
		lookups += each
	}
	if lookups*tables > 3000 {
		return db.PlanAuto
	}
	return plan
}

func (s *question) k() int {
	if s.q.K == 0 {
		return 10
	}
	return s.q.K
}

// nearest calls Search and compares its result with the right answer.
func (s *question) nearest(k int, plan db.Plan) (*db.Result, error) {
	q := s.q
	q.K, q.Plan = k, s.affordable(plan, k, -1)
	res, err := s.handle.Search(s.h.ctx, q)
	if err != nil {
		return nil, err
	}
	if res.Space != s.a.sp.number || res.Revision != s.a.sp.revision && !s.h.learns() && !s.c.codesOnly() {
		return nil, fmt.Errorf("an answer of space %d, revision %d, want %d, %d", res.Space, res.Revision,
			s.a.sp.number, s.a.sp.revision)
	}
	if (res.Next != "") != (k < len(s.a.Candidates)) {
		return nil, fmt.Errorf("after %d of %d, next is %q", k, len(s.a.Candidates), res.Next)
	}
	if err := s.a.Check(res.Hits, k, -1, q.Rerank); err != nil {
		return nil, fmt.Errorf("plan %v: %w", q.Plan, err)
	}
	return res, nil
}

// untrained checks the answers to a query of a collection that is not trained, or that asks for a recall:
// they are by vectors. It returns errPassed if they are right.
func (s *question) untrained(query *program.Query) error {
	s.q.MinSimilarity = query.Least
	want, wrongQuery := s.c.byVectors(query, s.q.Rerank)
	q := s.q
	if q.K == 0 {
		q.K = 10
	}
	res, err := s.handle.Search(s.h.ctx, q)
	if wrongQuery != nil {
		if !errors.Is(err, wrongQuery) {
			return fmt.Errorf("the error is %v, not %v", err, wrongQuery)
		}
		return errPassed
	}
	if err != nil {
		return err
	}
	if res.Approximate && len(want) > q.K && len(res.Hits) == q.K {
		s.h.recalled.add(res.Hits, want, s.c.recallOf(query))
	}
	may := s.c.mayLack(query)
	for page, at := res, 0; ; {
		if page.Approximate && !may {
			return errors.New("an approximate answer, and no index that may find it")
		}
		left := len(want) - at
		if at, err = follow(page.Hits, want, at, page.Approximate, s.c.loose); err != nil {
			return err
		}
		// A least similarity spares an index cells that promise less.
		if n := min(q.K, left); len(page.Hits) != n && !(page.Approximate && q.MinSimilarity != 0) {
			return fmt.Errorf("a page of %d hits, approximate: %v, want %d", len(page.Hits), page.Approximate,
				n)
		}
		if page.Next == "" {
			if at < len(want) && !(page.Approximate && q.MinSimilarity != 0) {
				return fmt.Errorf("the last page ends at %d of %d", at, len(want))
			}
			break
		}
		if len(page.Hits) == 0 {
			return fmt.Errorf("an empty page after %d of %d, and one that follows", at, len(want))
		}
		q.After = page.Next
		if page, err = s.handle.Search(s.h.ctx, q); err != nil {
			return err
		}
	}
	together, err := s.handle.SearchAll(s.h.ctx, []db.Query{s.q})
	if err != nil {
		return err
	}
	if !oracle.SameHits(together[0].Hits, res.Hits) || together[0].Approximate != res.Approximate {
		return fmt.Errorf("among others: %v, alone: %v", together[0].Hits, res.Hits)
	}
	noRadius := db.ErrNoModel
	if s.c.space(s.c.numberOf(query.Space)) != nil {
		noRadius = db.ErrInvalid
	}
	if _, err := s.handle.SearchRadius(s.h.ctx, s.q, 3); !errors.Is(err, noRadius) {
		return fmt.Errorf("within a radius: %v", err)
	}
	return errPassed
}

// byVectors returns the right answer to such a query, or the error that must come instead.
func (c *collection) byVectors(q *program.Query, order db.Rerank) ([]db.Hit, error) {
	switch {
	case !q.Where.Valid(&c.schema), q.To != "" && !c.schema.Has(q.To):
		return nil, db.ErrInvalid
	case c.codesOnly():
		return nil, db.ErrNoModel
	case c.active != 0 && (c.indexOnly || q.Code != nil || order != db.RerankAuto):
		return nil, db.ErrInvalid // it is the recall that asks for vectors
	case c.indexOnly, q.Code != nil:
		return nil, db.ErrNoModel
	case q.From != "" && !c.schema.Has(q.From),
		q.From == "" && (len(c.schema.Modalities) != 1 || q.Key == ""):
		return nil, db.ErrInvalid
	case q.Key != "" && c.items[q.Key] == nil:
		return nil, db.ErrNotFound
	}
	from := q.From
	if from == "" {
		from = c.schema.Modalities[0].Name
	}
	x := []float32(nil)
	if q.Vector != nil {
		x = program.VectorOf(c.modality(from), *q.Vector)
	} else {
		x = c.items[q.Key].vectors[from]
	}
	metric := c.modality(from).Metric
	if x == nil || metric == "" && !slices.ContainsFunc(x, func(v float32) bool { return v != 0 }) {
		return nil, db.ErrInvalid
	}
	compared := comparedWith(&c.schema, from, q.To)
	is, err := matcher(q.Where)
	if err != nil {
		return nil, err
	}
	type placed struct {
		db.Hit
		place float32
	}
	var hits []placed
	for i, key := range c.order {
		it := c.items[key]
		if !is(it) || q.To != "" && it.vectors[q.To] == nil || q.Exclude && key == q.Key {
			continue
		}
		row := it.row
		if c.loose {
			row = uint32(i) // rows are compared by their order alone
		}
		best, found := placed{Hit: db.Hit{Key: key, Row: row, Distance: -1}}, false
		for _, name := range compared {
			if y := it.vectors[name]; y != nil {
				if place, similarity := similar(metric, x, y); !found || place > best.place {
					best.place, best.Similarity, found = place, similarity, true
				}
			}
		}
		if found && (q.Least == 0 || best.Similarity >= q.Least) {
			hits = append(hits, best)
		}
	}
	slices.SortFunc(hits, func(a, b placed) int {
		return cmp.Or(cmp.Compare(b.place, a.place), cmp.Compare(a.Row, b.Row))
	})
	out := make([]db.Hit, len(hits))
	for i, h := range hits {
		out[i] = h.Hit
	}
	return out, nil
}

// cosine returns the cosine between two vectors, 0 if the second is zero.
func cosine(x, y []float32) float32 {
	var xy, xx, yy float64
	for j := range x {
		a, b := float64(x[j]), float64(y[j])
		xy, xx, yy = xy+a*b, xx+a*a, yy+b*b
	}
	if yy == 0 {
		return 0
	}
	return float32(max(-1, min(xy/(math.Sqrt(xx)*math.Sqrt(yy)), 1)))
}
