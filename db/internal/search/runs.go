package search

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/mih"
)

// A Hit is one item of an answer; db.Hit says what its fields mean.
type Hit struct {
	Key      string
	Row      uint32
	Distance int
	Score    float64
}

// A run is all hits that share one code.
type run struct {
	Distance int
	Score    float64  // of the code; NaN for a query by code
	Rows     []uint32 // of the items, ascending; only as eachRun yields it

	number uint32
}

// An Answer says what there is to tell of hits besides these.
type Answer struct {
	Next     string // cursor; empty at the end
	Total    int    // of a search by radius
	Hits     int
	Nearest  int // the least distance of a hit
	Space    uint32
	Revision uint32
}

// rowsIn returns the rows of a run, behind the cursor, ascending.
func (s *Searcher) rowsIn(ctx context.Context, r run) ([]uint32, error) {
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

// behind returns the place behind all codes that were found, nil if there are none:
// the codes of the last distance, or of the last score, were complete.
func (s *Searcher) behind() *position {
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
func (s *Searcher) score(ctx context.Context) error {
	if s.Set.Table == nil { // codes of one block after the other
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
func (s *Searcher) runs(ctx context.Context) iter.Seq2[run, error] {
	return func(yield func(run, error) bool) {
		for i, x := range s.scored {
			if i%BetweenLooks == 0 {
				if err := ctx.Err(); err != nil {
					yield(run{}, err)
					return
				}
			}
			r := run{number: x.Number, Distance: x.Distance, Score: x.Score}
			if s.after != nil && s.after.beyond(r) {
				continue
			}
			if !yield(r, nil) {
				return
			}
		}
		var shell []run
		for i := 0; i < len(s.matches); {
			if err := ctx.Err(); err != nil {
				yield(run{}, err)
				return
			}
			distance := s.matches[i].Distance()
			shell = shell[:0]
			for ; i < len(s.matches) && s.matches[i].Distance() == distance; i++ {
				r := run{number: s.matches[i].Position(), Distance: distance, Score: math.NaN()}
				if s.p.Z != nil {
					code, err := s.codeOf(r.number)
					if err != nil {
						yield(run{}, err)
						return
					}
					r.Score = s.p.scorer.Score(code)
				}
				shell = append(shell, r)
			}
			slices.SortFunc(shell, func(a, b run) int {
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

// Hits yields up to k items in order.
func (s *Searcher) Hits(ctx context.Context, k int) iter.Seq2[Hit, error] {
	if s.window() > 0 && s.after == nil {
		return s.featuresFirst(ctx, k)
	}
	return s.byCode(ctx, k)
}

// BetweenLooks is how many items, or codes, are looked at between two looks at the context.
const BetweenLooks = 256

// byCode yields up to k items in the order of their codes.
func (s *Searcher) byCode(ctx context.Context, k int) iter.Seq2[Hit, error] {
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
				if i%BetweenLooks == BetweenLooks-1 { // as a run may be all items
					if err := ctx.Err(); err != nil {
						fail(err)
						return
					}
				}
				s.lastRun, s.lastRow = r, row
				start := s.Explain.now()
				key, err := s.tools.Keys.Get(s.V.Snap, s.Cv.ID, row.row)
				s.Explain.read(start)
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

// First calls add with the first k hits and returns what there is to tell of them, with a
// cursor behind them.
func (s *Searcher) First(ctx context.Context, k int, add func(Hit)) (Answer, error) {
	start := s.Explain.now()
	a := Answer{Space: s.Cv.Space.ID, Revision: s.Cv.Space.Revision, Total: s.Total}
	find := s.ToFind(k)
	more := find == k && s.size() > k
	var last run
	var row rankedRow
	for h, err := range s.Hits(ctx, find) {
		if err != nil {
			return Answer{}, err
		}
		if a.Hits == k {
			more = true
			break
		}
		if a.Hits == 0 || h.Distance < a.Nearest { // some orders do not put the nearest first
			a.Nearest = h.Distance
		}
		a.Hits++
		add(h)
		last, row = s.lastRun, s.lastRow
	}
	if more && s.window() == 0 {
		var err error
		if a.Next, err = s.cursor(ctx, last, row); err != nil {
			return Answer{}, err
		}
	}
	s.Explain.resolved(start)
	return a, nil
}

// Room returns for how many hits to set memory aside, where k are asked for.
func (s *Searcher) Room(k int) int {
	if s.radius >= 0 {
		k = min(k, s.Total)
	}
	return min(k, s.Set.Coded, 1<<16)
}

// EachRun yields the runs with their rows, behind the cursor.
func (s *Searcher) EachRun(ctx context.Context) iter.Seq2[run, error] {
	return func(yield func(run, error) bool) {
		for r, err := range s.runs(ctx) {
			if err == nil {
				r.Rows, err = s.rowsIn(ctx, r)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// All yields all hits, nearest first, looking for codes as far as it is asked to.
func (s *Searcher) All(ctx context.Context) iter.Seq2[Hit, error] {
	return func(yield func(Hit, error) bool) {
		for k := max(32, s.window()); ; k *= 4 {
			if err := s.Nearest(ctx, k); err != nil {
				yield(Hit{}, err)
				return
			}
			last := s.behind()
			if last == nil {
				return
			}
			for h, err := range s.Hits(ctx, math.MaxInt) {
				if !yield(h, err) || err != nil {
					return
				}
			}
			s.after = last
		}
	}
}

// Again returns a searcher with the same answer, for another goroutine; close it.
func (s *Searcher) Again() *Searcher {
	own := *s
	own.stored, own.rows = nil, nil
	return &own
}

// ToFind returns how many items to look for, for the first k and to know whether
// more follow: one more, where size does not tell; or all that are put in order by
// their features.
func (s *Searcher) ToFind(k int) int {
	if w := s.window(); w > 0 {
		return max(k, w)
	}
	if k < math.MaxInt && (s.after != nil || s.radius < 0 && s.filter != nil && s.Set.Coded < s.Cv.Items) {
		return k + 1
	}
	return k
}

// size returns how many items the answer could have, without an end, if all items
// have a code.
func (s *Searcher) size() int {
	switch {
	case s.radius >= 0:
		return s.Total
	case s.filter != nil:
		return int(s.filter.GetCardinality())
	}
	return s.Set.Coded
}

// Distances returns how many items are at each distance, see Runs.Distances.
func (s *Searcher) Distances(ctx context.Context) ([]int, error) {
	counts := make([]int, min(s.radius, s.Set.Bits)+1)
	looked := 0
	count := func(number uint32, distance int) error {
		if looked++; looked%BetweenLooks == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		rows, err := s.rowsOf(number)
		if err != nil {
			return err
		}
		counts[distance] += rows.LenIn(s.filter)
		return nil
	}
	for _, x := range s.matches {
		if err := count(x.Position(), x.Distance()); err != nil {
			return nil, err
		}
	}
	for _, x := range s.scored { // in place of matches, by score
		if err := count(x.Number, x.Distance); err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// Observe counts an answer among the figures of its space, unless it goes on behind a cursor
// or starts from an item, which finds itself.
func (s *Searcher) Observe(a Answer) {
	if a.Hits == 0 || s.q.After != "" || s.q.Key != "" {
		return
	}
	s.Cv.Distances[a.Nearest].Add(1)
}
