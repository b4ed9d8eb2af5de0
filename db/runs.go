package db

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/mih"
)

// Runs is the answer to a search by radius: all items within it, as a sequence of
// runs, each of the items that share a code. It shows the collection as it was
// when it was made, and keeps that until it is closed. Safe for concurrent use, if
// nobody closes it meanwhile.
type Runs struct {
	s   *searcher
	pin *pin
}

// A Run is all hits that share one code.
type Run struct {
	Distance int
	Score    float64  // of the code; NaN for a query by code
	Rows     []uint32 // of the items, ascending; only as Runs.All yields it

	number uint32
}

// Total returns the number of items, also of those before the cursor of the
// query.
func (r *Runs) Total() int { return r.orNone().s.total }

// Close frees what the runs hold. A second call returns ErrClosed.
func (r *Runs) Close() error {
	r = r.orNone()
	if !r.pin.release() {
		return fault.ErrClosed
	}
	return nil
}

// All yields the runs in order, without looking at their items; of the run in
// which the cursor of the query is, what follows it. An error ends it.
func (r *Runs) All(ctx context.Context) iter.Seq2[Run, error] {
	r = r.orNone()
	return func(yield func(Run, error) bool) {
		err := r.read(func(s *searcher) error {
			for run, err := range s.runs(ctx) {
				if err != nil {
					return err
				}
				if run.Rows, err = s.rowsIn(ctx, run); err != nil {
					return err
				}
				if !yield(run, nil) {
					return nil
				}
			}
			return nil
		})
		if err != nil {
			yield(Run{}, err)
		}
	}
}

// rowsIn returns the rows of a run, behind the cursor, ascending.
func (s *searcher) rowsIn(ctx context.Context, r Run) ([]uint32, error) {
	if s.after == nil || s.after.compare(r) != 0 {
		rows, err := s.rowsOf(r.number)
		return rows.AppendTo(nil, s.filter), err
	}
	ranked, err := s.rank(ctx, nil, r, math.MaxInt)
	rows := make([]uint32, 0, len(ranked))
	for _, x := range ranked {
		rows = append(rows, x.row)
	}
	slices.Sort(rows)
	return rows, err
}

// Hits yields the items in order, putting those of a run in order and reading
// their keys when it is reached. An error ends it.
func (r *Runs) Hits(ctx context.Context) iter.Seq2[Hit, error] {
	r = r.orNone()
	return func(yield func(Hit, error) bool) {
		err := r.read(func(s *searcher) error {
			for h, err := range s.hits(ctx, math.MaxInt) {
				if err != nil {
					return err
				}
				if !yield(h, nil) {
					return nil
				}
			}
			return nil
		})
		if err != nil {
			yield(Hit{}, err)
		}
	}
}

// First returns the first k items, behind the cursor of the query if it has one.
func (r *Runs) First(ctx context.Context, k int) (*Result, error) {
	r = r.orNone()
	if k < 1 {
		return nil, fault.Invalid("k = %d: 1 or more are possible", k)
	}
	var res *Result
	err := r.read(func(s *searcher) (err error) {
		res, err = s.first(ctx, k)
		return err
	})
	return res, err
}

// read gives f a searcher with the answer, to be used by one goroutine.
func (r *Runs) read(f func(s *searcher) error) error {
	return r.pin.read(func(*state.View) error {
		s := *r.s
		s.stored, s.rows = nil, nil
		defer s.close()
		return f(&s)
	})
}

// Neighbors yields all items in the order of a Result, nearest first, reading no
// further than they are asked for: whoever does not know how many neighbours are
// wanted stops the iteration. Query.K is ignored. An error ends it.
func (c *Collection) Neighbors(ctx context.Context, q Query) iter.Seq2[Hit, error] {
	c = c.orNone()
	return func(yield func(Hit, error) bool) {
		stopped, hits := false, 0
		ctx, call := c.db.call(ctx, event.OpNeighbors, c.name)
		var err error
		defer func() { c.db.counters.iterated(&call, hits, err) }() // if whoever reads panics, too
		err = c.read(func(v *state.View, cv *state.CollectionView) error {
			s, err := c.newSearcher(ctx, v, cv, &q)
			if err != nil {
				return err
			}
			defer s.close()
			for k := max(32, s.window()); ; k *= 4 {
				if err := s.nearest(ctx, k); err != nil {
					return err
				}
				last := s.behind()
				if last == nil {
					return nil
				}
				for h, err := range s.hits(ctx, math.MaxInt) {
					if err != nil {
						return err
					}
					hits++
					if stopped = !yield(h, nil); stopped {
						return nil
					}
				}
				s.after = last
			}
		})
		if err != nil && !stopped {
			yield(Hit{}, err)
		}
	}
}

// behind returns the place behind all codes that were found, nil if there are none:
// the codes of the last distance, or of the last score, were complete.
func (s *searcher) behind() *position {
	switch {
	case len(s.scored) > 0:
		last := s.scored[len(s.scored)-1]
		return &position{byScore: true, score: last.Score, number: math.MaxUint32}
	case len(s.matches) > 0:
		last := s.matches[len(s.matches)-1]
		return &position{distance: last.Distance(), score: math.Inf(-1), number: math.MaxUint32}
	}
	return nil
}

// score puts the codes that were found in the order of their scores.
func (s *searcher) score(ctx context.Context) error {
	if s.set.Table == nil { // codes of one block after the other
		slices.SortFunc(s.matches, func(a, b codec.Near) int { return cmp.Compare(a.Position(), b.Position()) })
	}
	s.scored = make([]mih.Scored, len(s.matches))
	for i, x := range s.matches {
		if i%4096 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		code, err := s.codeOf(x.Position())
		if err != nil {
			return err
		}
		s.scored[i] = mih.Scored{Number: x.Position(), Distance: x.Distance(), Score: s.p.scorer.Score(code)}
	}
	s.matches = nil
	slices.SortFunc(s.scored, mih.Scored.Compare)
	return nil
}

// runs yields the codes that were found, behind the cursor, by (distance, -score,
// number) or (-score, number). In the former case scores and order are computed a
// distance at a time, as nobody may look at the later ones.
func (s *searcher) runs(ctx context.Context) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		for i, x := range s.scored {
			if i%betweenLooks == 0 {
				if err := ctx.Err(); err != nil {
					yield(Run{}, err)
					return
				}
			}
			r := Run{number: x.Number, Distance: x.Distance, Score: x.Score}
			if s.after != nil && s.after.beyond(r) {
				continue
			}
			if !yield(r, nil) {
				return
			}
		}
		var shell []Run
		for i := 0; i < len(s.matches); {
			if err := ctx.Err(); err != nil {
				yield(Run{}, err)
				return
			}
			distance := s.matches[i].Distance()
			shell = shell[:0]
			for ; i < len(s.matches) && s.matches[i].Distance() == distance; i++ {
				r := Run{number: s.matches[i].Position(), Distance: distance, Score: math.NaN()}
				if s.p.z != nil {
					code, err := s.codeOf(r.number)
					if err != nil {
						yield(Run{}, err)
						return
					}
					r.Score = s.p.scorer.Score(code)
				}
				shell = append(shell, r)
			}
			slices.SortFunc(shell, func(a, b Run) int {
				return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.number, b.number))
			})
			for _, r := range shell {
				if s.after != nil && s.after.beyond(r) {
					continue
				}
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

// hits yields up to k items in order.
func (s *searcher) hits(ctx context.Context, k int) iter.Seq2[Hit, error] {
	if s.window() > 0 && s.after == nil {
		return s.byFeatures(ctx, k)
	}
	return s.byCode(ctx, k)
}

// betweenLooks is how many items, or codes, are looked at between two looks at the context.
const betweenLooks = 256

// byCode yields up to k items in the order of their codes.
func (s *searcher) byCode(ctx context.Context, k int) iter.Seq2[Hit, error] {
	return func(yield func(Hit, error) bool) {
		fail := func(err error) { yield(Hit{}, err) }
		var rows []rankedRow
		for r, err := range s.runs(ctx) {
			if err == nil {
				rows, err = s.rank(ctx, rows[:0], r, k)
			}
			if err != nil {
				fail(err)
				return
			}
			for i, row := range rows {
				if i%betweenLooks == betweenLooks-1 { // as a run may be all items
					if err := ctx.Err(); err != nil {
						fail(err)
						return
					}
				}
				s.lastRun, s.lastRow = r, row
				start := s.explain.now()
				key, err := s.c.db.keys.get(s.v.Snap, s.cv.ID, row.row)
				s.explain.read(start)
				if err != nil {
					fail(err)
					return
				}
				if !yield(Hit{Key: key, Row: row.row, Distance: r.Distance, Score: r.Score}, nil) {
					return
				}
				if k--; k == 0 {
					return
				}
			}
		}
	}
}

// first returns the first k hits and a cursor behind them.
func (s *searcher) first(ctx context.Context, k int) (*Result, error) {
	start := s.explain.now()
	res := &Result{Space: Space(s.cv.Space.ID), Revision: s.cv.Space.Revision, Total: s.total}
	room := k
	if s.radius >= 0 {
		room = min(k, s.total)
	}
	res.Hits = make([]Hit, 0, min(room, s.set.Coded, 1<<16))
	find := s.toFind(k)
	more := find == k && s.size() > k
	var run Run
	var row rankedRow
	for h, err := range s.hits(ctx, find) {
		if err != nil {
			return nil, err
		}
		if len(res.Hits) == k {
			more = true
			break
		}
		res.Hits = append(res.Hits, h)
		run, row = s.lastRun, s.lastRow
	}
	if more && s.window() == 0 {
		var err error
		if res.Next, err = s.cursor(ctx, run, row); err != nil {
			return nil, err
		}
	}
	s.explain.resolved(start, len(res.Hits))
	return res, nil
}

// toFind returns how many items to look for, for the first k and to know whether
// more follow: one more, where size does not tell; or all that are put in order by
// their features.
func (s *searcher) toFind(k int) int {
	if w := s.window(); w > 0 {
		return max(k, w)
	}
	if k < math.MaxInt && (s.after != nil || s.radius < 0 && s.filter != nil && s.set.Coded < s.cv.Items) {
		return k + 1
	}
	return k
}

// size returns how many items the answer could have, without an end, if all items
// have a code.
func (s *searcher) size() int {
	switch {
	case s.radius >= 0:
		return s.total
	case s.filter != nil:
		return int(s.filter.GetCardinality())
	}
	return s.set.Coded
}
