package search

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/mih"
	"github.com/fddhdb/fddhdb/model"
)

// A Hit is one item of an answer, with the first fields of db.Hit.
type Hit struct {
	Key      string  // of the item; it may share memory with the key cache
	Row      uint32  // of the item
	Distance int     // Hamming distance from the query, in bits
	Score    float64 // z . h for a projection z of the query and a code h as +-1; else NaN

	Similarity float32 // decided among the items of one code; NaN: no similarity did
}

// A run is all hits with one code. An answer is a sequence of runs. The keys of a run are read only when the
// caller reaches it.
type run struct {
	mih.Scored          // the code; its score is NaN for a query by code
	rows       mih.Rows // with the code; filter, cursor and least similarity may leave some out
}

// A Run is a run for callers of EachRun.
type Run struct {
	Distance int      // Hamming distance of the code from the query, in bits
	Score    float64  // of the code; NaN for a query by code
	Rows     []uint32 // ascending, in a new slice
}

// An Answer is the result of First besides the hits.
type Answer struct {
	Next     string // cursor behind the last hit; "": nothing follows
	Total    int    // of a search by radius; else 0
	Hits     int    // hits returned
	Nearest  int    // least distance of a hit, in bits; meaningless without hits
	Space    uint32 // space of the codes
	Revision uint32 // of that space
}

// rowsIn returns the rows of a run that pass the filter and follow the cursor, ascending, in a new slice.
func (s *Searcher) rowsIn(ctx context.Context, r run) ([]uint32, error) {
	if !s.limited() && (s.after == nil || s.after.compare(r.Scored) != 0) {
		return r.rows.AppendTo(nil, s.filter), nil
	}
	ranked, err := s.rank(ctx, nil, r, math.MaxInt)
	rows := make([]uint32, 0, len(ranked))
	for _, x := range ranked {
		rows = append(rows, x.row)
	}
	slices.Sort(rows)
	return rows, err
}

// score turns matches into scored: the codes within a radius, by score. It reads every code found.
func (s *Searcher) score(ctx context.Context) error {
	if s.Set.Table == nil { // by number, so that each block of codes is read once
		slices.SortFunc(s.matches,
			func(a, b codec.Near) int { return cmp.Compare(a.Position(), b.Position()) })
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

// runs yields the codes found as runs, in order: by (distance, -score, number), or by (-score, number) if
// scored has them. It leaves out runs before the cursor. By distance it computes scores and sorts one
// distance at a time, because the caller may stop early. An error is yielded last.
func (s *Searcher) runs(ctx context.Context) iter.Seq2[run, error] {
	return func(yield func(run, error) bool) {
		if s.byVectors {
			yield(onlyRun, nil)
			return
		}
		var rows []mih.Rows
		size := firstPart
		more, err := true, error(nil)
		give := func(codes []mih.Scored) bool { // codes are in order
			for len(codes) > 0 && more && err == nil {
				part := codes[:min(size, len(codes))]
				codes, size = codes[len(part):], min(4*size, BetweenLooks)
				if err = ctx.Err(); err != nil {
					break
				}
				if s.Set.Table != nil {
					rows = s.Set.Table.AppendRows(rows[:0], part)
				}
				for i, c := range part {
					if s.after != nil && s.after.beyond(c) {
						continue
					}
					r := run{Scored: c}
					if s.Set.Table != nil {
						r.rows = rows[i]
					} else if r.rows, err = s.inStore().Rows(c.Number); err != nil {
						break
					}
					if more = yield(r, nil); !more {
						break
					}
				}
			}
			return more && err == nil
		}
		if give(s.scored) {
			var shell []mih.Scored // the codes of one distance
			for i := 0; i < len(s.matches); {
				from := i
				for distance := s.matches[i].Distance(); i < len(s.matches) &&
					s.matches[i].Distance() == distance; {
					i++
				}
				if shell, err = s.appendShell(ctx, shell[:0], s.matches[from:i]); err != nil || !give(shell) {
					break
				}
			}
		}
		if err != nil {
			yield(run{}, err)
		}
	}
}

// appendShell appends the codes of one distance to dst, in order.
func (s *Searcher) appendShell(ctx context.Context, dst []mih.Scored,
	shell []codec.Near) ([]mih.Scored, error) {
	sorted := true
	dst = slices.Grow(dst, len(shell))
	for i, x := range shell {
		c := mih.Scored{Number: x.Position(), Distance: x.Distance(), Score: math.NaN()}
		if s.p.Z != nil {
			if i%BetweenLooks == 0 {
				if err := ctx.Err(); err != nil {
					return dst, err
				}
			}
			code, err := s.codeOf(c.Number)
			if err != nil {
				return dst, err
			}
			c.Score = s.p.scorer.Score(code)
		}
		if i > 0 && sorted {
			last := &dst[len(dst)-1]
			sorted = last.Score > c.Score || !(last.Score < c.Score) && last.Number < c.Number
		}
		dst = append(dst, c)
	}
	if !sorted {
		slices.SortFunc(dst, mih.Scored.Compare)
	}
	return dst, nil
}

// BetweenLooks is the number of items, or codes, between two checks of the context. Package learn uses it
// too.
const BetweenLooks = 256

// firstPart is the size of the first part of an answer that the caller may stop reading at any hit. Each part
// is four times as long as the one before, up to BetweenLooks. A part reads its codes or items together,
// which hides the latency of memory; a caller that stops at the first hit pays for few others.
const firstPart = 16

// A place is the position of an item in an answer: its code, and its row with the deciding similarity.
type place struct {
	code mih.Scored
	row  rankedRow
}

// places yields the first k items of the answer in parts: runs in order, and the rows of each by rank. It
// reuses the slice. An error is yielded last, without items.
func (s *Searcher) places(ctx context.Context, k int) iter.Seq2[[]place, error] {
	return func(yield func([]place, error) bool) {
		size := firstPart
		if k <= BetweenLooks { // the caller wants them all
			size = k
		}
		part := make([]place, 0, size)
		var rows []rankedRow
		for r, err := range s.runs(ctx) {
			if err == nil {
				rows, err = s.rank(ctx, rows[:0], r, k)
			}
			if err != nil {
				if len(part) == 0 || yield(part, nil) {
					yield(nil, err)
				}
				return
			}
			for _, row := range rows {
				part = append(part, place{r.Scored, row})
				if k--; k > 0 && len(part) < size {
					continue
				}
				if !yield(part, nil) || k == 0 {
					return
				}
				if err := ctx.Err(); err != nil { // a run may be all items
					yield(nil, err)
					return
				}
				size = min(4*size, BetweenLooks)
				part = part[:0]
			}
		}
		if len(part) > 0 {
			yield(part, nil)
		}
	}
}

// Hits yields the first k items of the answer, in order, or fewer if fewer were found. k is 1 or more. An
// error is yielded last, with an empty Hit. Each hit costs one read of its key. The first hit of a run costs
// the comparison of all its rows, in memory or not. Hits remembers the place of the last hit for a cursor.
func (s *Searcher) Hits(ctx context.Context, k int) iter.Seq2[Hit, error] {
	return func(yield func(Hit, error) bool) {
		var keys []string
		for part, err := range s.places(ctx, k) {
			keys = keys[:0]
			if err == nil {
				keys, err = s.keys(keys, part)
			}
			for i := range keys {
				p := &part[i]
				similarity, failed := s.similarityOf(p.row)
				if failed != nil {
					yield(Hit{}, failed)
					return
				}
				s.last = *p
				if !yield(Hit{Key: keys[i], Row: p.row.row, Distance: s.bitsApart(p), Score: p.code.Score,
					Similarity: similarity}, nil) {
					return
				}
			}
			if err != nil {
				yield(Hit{}, err)
				return
			}
		}
	}
}

// keys appends the keys of places to dst, up to the first one that cannot be read.
func (s *Searcher) keys(dst []string, places []place) ([]string, error) {
	start := s.Explain.now()
	defer s.Explain.read(start)
	return s.tools.Keys.appendKeys(dst, s.V.Snap, s.Cv.ID, places)
}

// bitsApart returns the distance between the codes of the query and of a place, -1 for an answer by vectors.
func (s *Searcher) bitsApart(p *place) int {
	if s.byVectors {
		return -1
	}
	return p.code.Distance
}

// Cursor returns the cursor behind the last hit that Hits has yielded.
func (s *Searcher) Cursor() string { return s.cursor(s.last) }

// Order returns the order of the answer: byAuto if vectors decide.
func (s *Searcher) Order() Order { return s.q.Order }

// First returns the first k hits, in order and converted by convert, and the Answer, with a cursor if more
// hits follow. The caller has called Within, or Nearest with ToFind(k). The first error of convert ends
// First.
//
// First knows in one of two ways that more hits follow: it has asked for one more and seen it, or the number
// of hits is known beforehand (see ToFind and size).
func First[H any](ctx context.Context, s *Searcher, k int,
	convert func(*Hit) (H, error)) ([]H, Answer, error) {
	start := s.Explain.now()
	find := s.ToFind(k)
	var got struct { // in one struct: the body of the loop is a closure that escapes
		hits    []H
		hit     Hit // to convert
		nearest int
		last    place // of the last hit
		more    bool
		err     error
	}
	got.hits = make([]H, 0, s.room(k))
	got.more = find == k && s.size() > k
	for h, err := range s.Hits(ctx, find) {
		if err != nil {
			got.err = err
			break
		}
		if len(got.hits) == k {
			got.more = true
			break
		}
		if len(got.hits) == 0 || h.Distance < got.nearest { // some orders do not put the nearest first
			got.nearest = h.Distance
		}
		got.hit = h
		own, err := convert(&got.hit)
		if err != nil {
			got.err = err
			break
		}
		got.hits = append(got.hits, own)
		got.last = s.last
	}
	a := Answer{Total: s.Total, Hits: len(got.hits), Nearest: got.nearest}
	a.Space, a.Revision = s.space()
	if got.err == nil && got.more {
		a.Next = s.cursor(got.last)
	}
	if got.err != nil {
		return nil, Answer{}, got.err
	}
	s.Explain.resolved(start)
	return got.hits, a, nil
}

// room returns a capacity for the slice of the first k hits. It is at most the possible number of hits, and
// at most 65,536, because k may be any number and filters may leave few.
func (s *Searcher) room(k int) int {
	if s.radius >= 0 {
		k = min(k, s.Total)
	}
	if s.byVectors {
		return min(k, s.size(), 1<<16)
	}
	return min(k, s.Set.Coded, 1<<16)
}

// EachRun yields the runs behind the cursor, in order, with their rows. Of the run with the cursor it yields
// the later rows. It reads no keys. An error is yielded last.
func (s *Searcher) EachRun(ctx context.Context) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		for r, err := range s.runs(ctx) {
			out := Run{Distance: r.Distance, Score: r.Score}
			if err == nil {
				out.Rows, err = s.rowsIn(ctx, r)
			}
			if !yield(out, err) || err != nil {
				return
			}
		}
	}
}

// Again returns a searcher with the same answer for another goroutine, which closes it. Both share the query
// and the codes found, which neither changes, and the view, to which the caller holds a reference. Do not
// call Nearest or Within on either. s may be closed before. It must be closed before if How was called.
func (s *Searcher) Again() *Searcher {
	own := *s
	own.stored, own.vectors, own.rows, own.vector, own.with, own.without = nil, nil, nil, model.Vector{}, nil,
		nil
	if s.Explain != nil {
		own.Explain = &Timings{Encode: s.Explain.Encode, Search: s.Explain.Search}
	}
	return &own
}

// ToFind returns the number of items for which Nearest has to find codes, so that First can return k hits and
// tell whether more follow. It is k if size is exact, because size then tells; else k+1.
//
// size is exact within a radius, and without a filter. With a filter it is exact if every item has a code. It
// is not exact behind a cursor, or with a least similarity.
func (s *Searcher) ToFind(k int) int {
	if k < math.MaxInt && (s.after != nil ||
		s.radius < 0 && (s.limited() || s.filter != nil && !s.byVectors && s.Set.Coded < s.Cv.Items)) {
		return k + 1
	}
	return k
}

// size returns the number of items in the whole answer, from its start and not from the cursor. With a filter
// it counts items without a code too.
func (s *Searcher) size() int {
	switch {
	case s.radius >= 0:
		return s.Total
	case s.filter != nil:
		return int(s.filter.GetCardinality())
	}
	return s.Set.Coded
}

// ByRadius reports whether the answer is that of Within.
func (s *Searcher) ByRadius() bool { return s.radius >= 0 }

// Distances returns the number of items at each distance within the radius of Within: element d counts the
// items at d bits. It reads the rows of every code found, and no item. Items before the cursor count. The
// slice is new.
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
		n, err := s.countSimilar(ctx, rows)
		counts[distance] += n
		return err
	}
	for _, x := range s.matches {
		if err := count(x.Position(), x.Distance()); err != nil {
			return nil, err
		}
	}
	for _, x := range s.scored { // they replace matches in an order by score
		if err := count(x.Number, x.Distance); err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// Observe counts the distance of the nearest hit in the histogram of the space, which is atomic and shared by
// all views. It leaves out answers behind a cursor, and queries by key, which mostly find the item itself at
// distance 0.
func (s *Searcher) Observe(a Answer) {
	if a.Hits == 0 || s.byVectors || s.q.After != "" || s.q.Key != "" {
		return
	}
	s.Cv.Distances[a.Nearest].Add(1)
}

// A rankedRow is a row of a run with the similarity that decides on its place.
type rankedRow struct {
	similarity float32 // of query and item, as in Hit; first for the item of the query
	row        uint32
}

// compare orders by (-similarity, row). It is total: no two rows of a run are equal, and no deciding
// similarity is NaN.
func (a rankedRow) compare(b rankedRow) int {
	switch {
	case a.similarity > b.similarity:
		return -1
	case a.similarity < b.similarity:
		return 1
	}
	return cmp.Compare(a.row, b.row)
}

// first is the similarity of the row that the query starts from. It exceeds every other similarity, so this
// row comes first in its run. In a cursor it means that the cursor is behind that row.
var first = float32(math.Inf(1))

// rank appends to dst the first k rows of a run that pass the filter and the least similarity, and follow the
// cursor. Their order is (-similarity, row), or row alone if the query has no projection or the order is
// byCode. The row that the query starts from comes first.
func (s *Searcher) rank(ctx context.Context, dst []rankedRow, r run, k int) ([]rankedRow, error) {
	if s.byVectors {
		var after *rankedRow
		if s.after != nil {
			after = s.afterItem()
		}
		return s.rankVectors(ctx, dst, after, k)
	}
	var after *rankedRow // the cursor, if it stands in this run
	if s.after != nil && s.after.compare(r.Scored) == 0 {
		if s.after.counted && k <= s.after.k { // weigh has ranked the run
			return append(dst, s.after.ranked[:min(k, len(s.after.ranked))]...), nil
		}
		after = s.afterItem()
	}
	if s.p.direction == nil {
		return s.rankByRow(dst, r.rows, after, k), nil
	}
	if a := s.ahead; a != nil && a.number == r.Number && k <= a.k {
		return append(dst, a.rows[:min(k, len(a.rows))]...), nil
	}
	top := topRows{k: k}
	_, err := s.rankBySimilarity(ctx, &top, r.rows, after)
	return top.appendTo(dst), err
}

// none is the similarity of a row if the order needs none.
var none = float32(math.NaN())

// rankByRow is rank without similarities. Unless a filter or a cursor leaves rows out, it visits only the
// rows that it returns: a run may be all items of a collection.
func (s *Searcher) rankByRow(dst []rankedRow, set mih.Rows, after *rankedRow, k int) []rankedRow {
	n := len(dst)
	if after == nil && s.self != noRow && set.Contains(s.self) &&
		(s.filter == nil || s.filter.Contains(s.self)) {
		dst = append(dst, rankedRow{first, s.self})
	}
	for row := range set.From(after.next()) {
		if len(dst)-n >= k {
			break
		}
		if row != s.self && (s.filter == nil || s.filter.Contains(row)) {
			dst = append(dst, rankedRow{none, row})
		}
	}
	return dst
}

// next returns the first row that may follow a in the order of rows; 0 if a is nil, or is the row that the
// query starts from.
func (a *rankedRow) next() uint32 {
	if a == nil || a.similarity == first {
		return 0
	}
	return a.row + 1 // no row is MaxUint32
}

// rankBySimilarity adds to top all rows of a set that may be among the first. It returns the number of rows
// that pass the filter and the least similarity and follow the cursor.
func (s *Searcher) rankBySimilarity(ctx context.Context, top *topRows, set mih.Rows,
	after *rankedRow) (int, error) {
	floor := float32(math.Inf(-1))
	limited := s.limited()
	if limited {
		floor = math.Nextafter32(s.q.MinSimilarity, floor)
	}
	rows, above, before := 0, 0, 0 // that pass the filter, then are above the floor, then precede the cursor
	see := func(row uint32, similarity float32) float32 {
		above++
		x := rankedRow{similarity, row}
		if row == s.self {
			x.similarity = first
		}
		if after != nil && x.compare(*after) <= 0 {
			before++
			return floor
		}
		// With a least similarity the floor stays, so above counts every row that reaches it.
		if top.add(x) && !limited {
			floor = top.floor()
		}
		return floor
	}
	if n := min(set.Len(), 1024); len(s.rows) < n {
		s.rows = make([]uint32, n)
	}
	err := set.Parts(s.rows, s.filter, func(part []uint32) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		rows += len(part)
		// The row that the query starts from comes first, at any floor.
		if i, found := slices.BinarySearch(part, s.self); found && !limited {
			if err := s.similarities(part[i:i+1], float32(math.Inf(-1)), see); err != nil {
				return err
			}
			if err := s.similarities(part[:i], floor, see); err != nil {
				return err
			}
			part = part[i+1:]
		}
		return s.similarities(part, floor, see)
	})
	if limited {
		rows = above
	}
	return rows - before, err
}

// similarities calls f with each row whose similarity exceeds floor; f returns the new floor. The rows
// ascend. f gets them in this order, except by vectors. Rows that are not in memory are read from the store.
// A row without a projection has similarity 0, as if it were orthogonal to the query.
func (s *Searcher) similarities(rows []uint32, floor float32, f func(uint32, float32) float32) error {
	if len(rows) == 0 {
		return nil
	}
	if s.p.features != nil {
		return s.vectorSimilarities(rows, floor, f)
	}
	return s.directionSimilarities(rows, floor, f)
}

// directionSimilarities is similarities for projections.
func (s *Searcher) directionSimilarities(rows []uint32, floor float32,
	f func(uint32, float32) float32) error {
	t := s.Cv.Directions
	inMemory, _ := slices.BinarySearch(rows, t.Covered())
	t.Each(s.p.direction, rows[:inMemory], floor, func(row uint32, similarity float32) float32 {
		floor = f(row, similarity)
		return floor
	})
	if inMemory == len(rows) {
		return nil
	}
	return s.storedSimilarities(rows[inMemory:], floor, f)
}

// similarityOf returns the similarity of a hit, none if the order needs none.
func (s *Searcher) similarityOf(x rankedRow) (float32, error) {
	if s.byVectors {
		return s.shownOfVectors(x.similarity), nil
	}
	if x.similarity == first {
		return s.ownSimilarity(x.row)
	}
	return shown(x.similarity), nil
}

// ownSimilarity is similarityOf for the row that the query starts from.
func (s *Searcher) ownSimilarity(row uint32) (float32, error) {
	similarity := none
	if s.p.direction == nil {
		return similarity, nil
	}
	err := s.similarities([]uint32{row}, float32(math.Inf(-1)), func(_ uint32, got float32) float32 {
		similarity = got
		return got
	})
	return shown(similarity), err
}

// shown returns the similarity that a hit shows.
func shown(similarity float32) float32 {
	if similarity == lacking {
		return 0
	}
	return similarity
}

// countSimilar returns how many rows of a set pass the filter and the least similarity.
func (s *Searcher) countSimilar(ctx context.Context, set mih.Rows) (int, error) {
	if !s.limited() {
		return set.LenIn(s.filter), nil
	}
	return s.rankBySimilarity(ctx, &topRows{}, set, nil)
}

// checkSimilarity refuses a least similarity if hits have no similarity. It also refuses one with the order
// byAuto by codes, where the size of the collection would decide between projections and vectors.
func (s *Searcher) checkSimilarity(asked Order) error {
	least := s.q.MinSimilarity
	switch {
	case least == 0:
		return nil
	case s.byVectors && s.metric == record.Dot:
		if math.IsNaN(float64(least)) || math.IsInf(float64(least), 0) {
			return fault.Invalid("a least similarity of %v: finite numbers are possible", least)
		}
		return nil
	case !(least >= -1 && least <= 1):
		return fault.Invalid("a least similarity of %v: -1 to 1 are possible", least)
	case s.q.Order == byCode:
		return fault.Invalid("a least similarity has no meaning in the order none, which compares no vectors: choose another order")
	case s.byVectors:
		return nil
	case s.p.direction == nil:
		return fault.Invalid("a least similarity compares vectors, and the query is by code: give it a vector, or the key of an item that has one, and its modality")
	case asked == byAuto:
		return fault.Invalid("a least similarity needs to know what is compared: the orders projection and asymmetric compare projections, and a recall vectors")
	}
	return nil
}
