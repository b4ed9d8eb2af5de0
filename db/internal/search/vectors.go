package search

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/internal/quant"
	"github.com/fddhdb/fddhdb/mih"
	"github.com/fddhdb/fddhdb/model"
)

// A collection that is not trained has no codes. Its vectors answer, exactly, by a scan of all items that the
// filter admits. The answer is one run, with the items ordered by the metric between their vectors and the
// query's vector, then by row. So runs, pages and keys work as for codes. Hits have Distance -1 and no score.
//
// A query compares vectors of one space: the space of its modality. If its target is another modality of that
// space, it compares the vectors of the target. Without a target it compares all vectors of the space, and an
// item counts by its nearest one. A target of another space restricts the items; the query then compares
// vectors of its own modality.
//
// Vectors in memory at 8 bits give bounds for each comparison (quant.Table.EachBound). The bounds of an item
// are the greatest bounds of its vectors. A row cannot be among the first k if its upper bound is less than
// the lower bounds of k others. The search reads the remaining vectors, the highest upper bound first, until
// k rows are at least as near as the bounds of the rest allow. It mostly reads few more than k, and all that
// are as near as the k-th. So rounding loses no item, and the full vectors decide the order. From the first
// row whose vectors are not all in memory, the search reads every row.
//
// For the metric l2 the similarity in a rankedRow is the negative squared distance. The similarity that a hit
// shows, 1 / (1 + d), would round all small distances to 1.

// noCodes is the code set of a collection without codes.
var noCodes = new(state.CodeSetView)

// startByVectors prepares a query for an answer by vectors. The filter of the query is set before.
func (s *Searcher) startByVectors(ctx context.Context) error {
	cv, q := s.Cv, &s.q
	untrained := func(what, way string) error {
		return fmt.Errorf("%w: collection %q: %s: train it first%s", fault.ErrNoModel, cv.Name, what, way)
	}
	switch {
	case cv.IndexOnly && cv.Space != nil:
		return cv.LacksVectors("for a recall: leave that out")
	case cv.IndexOnly:
		return fmt.Errorf("%w: collection %q is a copy without vectors of one without codes: copy it again once that is trained", fault.ErrNoModel, cv.Name)
	case len(cv.Modalities) == 0:
		return untrained("it has no vectors to answer by", "")
	case q.Code != nil && cv.Space != nil:
		return fault.Invalid("recall %v is of answers by vectors, and a code has none: leave it out", q.Recall)
	case q.Order != byAuto && cv.Space != nil:
		return fault.Invalid("recall %v is of answers by vectors, in the order of their similarity, and the order %s is of codes: leave one out", q.Recall, OrderNames[q.Order])
	case q.Code != nil:
		return untrained("a query by code finds nothing where there are no codes", ", or query by a vector, or by the key of an item that has one")
	case q.Order != byAuto:
		return untrained(fmt.Sprintf("the order %s is of codes", OrderNames[q.Order]), ", or leave the order out: answers are by vectors then")
	}
	if err := q.checkStart(); err != nil {
		return err
	}
	t := 0
	switch {
	case q.From != "":
		var err error
		if t, err = cv.ModalityOf(q.From); err != nil {
			return err
		}
	case len(cv.Modalities) > 1 || q.Key == "":
		return fault.Invalid("a query that is answered by vectors names the modality that it starts from, of %s", record.Names(cv.Modalities))
	}
	x, err := s.vectorOf(t)
	if err != nil {
		return err
	}
	x = record.CloneVector(x) // the caller may change it while neighbours are read
	s.metric = cv.Modalities[t].Metric.OrCosine()
	s.comparer = NewComparer(s.metric, x)
	if s.metric == record.Cosine && s.comparer.square == 0 {
		return fault.Invalid("a vector of zeros has no direction, and so no cosine")
	}
	s.byVectors, s.Set = true, noCodes
	s.p = &Point{modality: t, vector: x}
	if err := s.against(t); err != nil {
		return err
	}
	s.self = noRow // the item of the key comes at the place of its vector, not first
	if cv.KeepsVectors(t) {
		s.bounds = quant.NewVectorQuery(s.p.vector.Value)
		for _, c := range s.compared {
			// A measurement reads few vectors. It does not load them, to have the processors for itself.
			if q.Forced == nil && uint64(cv.Vectors[c.modality].Rows()) < cv.NextRow && cv.WantVectors(c.modality) {
				s.tools.Wanted()
			}
		}
	}
	return s.startCells(ctx)
}

// A comparison compares the vectors of one modality with the query.
type comparison struct {
	modality int
	rows     *roaring.Bitmap // rows of the filter that have the modality; nil: all
}

// against chooses the modalities to compare with the query, which has modality t, and restricts the filter to
// items that have one of them.
func (s *Searcher) against(t int) error {
	cv := s.Cv
	s.shares = cv.Sharing(t)
	if s.q.To != "" {
		to, err := cv.ModalityOf(s.q.To)
		if err != nil {
			return err
		}
		if slices.Contains(s.shares, to) {
			t = to
		}
		s.shares = []int{t}
	}
	s.unfiltered = s.filter == nil && !s.q.ExcludeSelf
	if s.filter == nil {
		s.filter = cv.Live
	}
	having := cv.Presence[s.shares[0]]
	for _, t := range s.shares[1:] {
		having = roaring.Or(having, cv.Presence[t])
	}
	if having.GetCardinality() < cv.Live.GetCardinality() {
		s.filter = roaring.And(s.filter, having)
	}
	if s.q.ExcludeSelf {
		s.exclude(s.self)
	}
	if len(s.shares) == 1 {
		s.compared = []comparison{{modality: t}}
		return nil
	}
	for _, t := range s.shares {
		if rows := roaring.And(s.filter, cv.Presence[t]); !rows.IsEmpty() {
			s.compared = append(s.compared, comparison{t, rows})
		}
	}
	if len(s.compared) == 1 { // then every row of the filter has it
		s.compared[0].rows = nil
	}
	return nil
}

// vectorOf returns the query's vector, of modality t. For a query by key it sets self.
func (s *Searcher) vectorOf(t int) (model.Vector, error) {
	cv, q := s.Cv, &s.q
	if q.Key == "" {
		return q.vector(&cv.Modalities[t])
	}
	row, err := cv.Row(s.V.Snap, q.Key)
	if err != nil {
		return model.Vector{}, err
	}
	s.self = row
	x, found, err := record.ReadVector(s.V.Snap, cv.ID, row, t, cv.Modalities[t])
	if err == nil && !found {
		err = fault.Invalid("item %q has no vector of modality %q, and the query is answered by vectors: name another modality", q.Key, cv.Modalities[t].Name)
	}
	return x, err
}

// noRadius returns the error for a radius in bits without codes.
func (s *Searcher) noRadius() error {
	if s.Cv.Space != nil {
		return fault.Invalid("recall %v is of answers by vectors, and a radius of codes: leave one out", s.q.Recall)
	}
	return fmt.Errorf("%w: collection %q: a radius counts bits of codes: train it first, or search without one, by a least similarity", fault.ErrNoModel, s.Cv.Name)
}

// onlyRun is the run of an answer by vectors.
var onlyRun = run{Scored: mih.Scored{Score: math.NaN()}}

// A boundedRow is a row with an upper bound of its similarity.
type boundedRow struct {
	most  float32
	row   uint32
	exact bool // most is the exact similarity
}

// rankVectors is rank for an answer by vectors. The first k of an index may include rows before the cursor,
// or below the least similarity. It then asks the index for more, until k rows pass or no more exist.
func (s *Searcher) rankVectors(ctx context.Context, dst []rankedRow, after *rankedRow, k int) ([]rankedRow, error) {
	for of := k; ; of *= 4 {
		ranked, err := s.rankOf(ctx, dst, after, k, of)
		if err != nil || s.cells == nil || !s.cells.cut || len(ranked)-len(dst) >= k {
			return ranked, err
		}
	}
}

// rankOf is rankVectors with the candidates that indexes find for the first of rows.
func (s *Searcher) rankOf(ctx context.Context, dst []rankedRow, after *rankedRow, k, of int) ([]rankedRow, error) {
	left, err := s.mayBeFirst(ctx, after, k, of)
	if err != nil {
		return dst, err
	}
	slices.SortFunc(left, func(a, b boundedRow) int {
		return rankedRow{a.most, a.row}.compare(rankedRow{b.most, b.row})
	})
	top := topRows{k: k, slack: max(k/16, 1)} // each row beyond k may cost a read
	for i, c := range left {
		if top.full && c.most < top.floor() {
			break // so are all later ones
		}
		if i%BetweenLooks == 0 {
			if err := ctx.Err(); err != nil {
				return dst, err
			}
		}
		x := rankedRow{c.most, c.row}
		if !c.exact {
			var err error
			if x.similarity, err = s.readRow(c.row); err != nil {
				return dst, err
			}
		}
		if s.passes(x, after) {
			top.add(x)
		}
	}
	return top.appendTo(dst), nil
}

// readRow reads the compared vectors of a row, and returns the similarity of the nearest.
func (s *Searcher) readRow(row uint32) (float32, error) {
	if s.q.Forced != nil {
		if known, ok := s.q.Forced.Known[row]; ok {
			return known, nil
		}
		if s.q.Forced.KnownAll {
			return float32(math.Inf(-1)), nil
		}
	}
	nearest := float32(math.Inf(-1))
	for _, c := range s.compared {
		if c.rows != nil && !c.rows.Contains(row) {
			continue
		}
		x, err := s.storedVector(row, c.modality)
		if err != nil {
			return 0, err
		}
		s.compares++
		nearest = max(nearest, s.comparer.Compare(x))
	}
	if s.q.Forced != nil {
		s.q.Forced.Known[row] = nearest
	}
	return nearest, nil
}

// passes reports whether a row reaches the least similarity and follows the cursor.
func (s *Searcher) passes(x rankedRow, after *rankedRow) bool {
	return s.reaches(x.similarity) && (after == nil || x.compare(*after) > 0)
}

// reaches reports whether a similarity reaches the least similarity.
func (s *Searcher) reaches(similarity float32) bool {
	return !s.limited() || s.shownOfVectors(similarity) >= s.q.MinSimilarity
}

// leastRanked returns a lower bound of the similarities, as in a rankedRow, that reach the least similarity.
func (s *Searcher) leastRanked() float32 {
	switch {
	case !s.limited() || s.metric == record.L2 && s.q.MinSimilarity < 0:
		return float32(math.Inf(-1))
	case s.metric == record.L2:
		return float32(1 - 1/float64(s.q.MinSimilarity)*(1+1e-6)) // allows for the rounding of 1 / (1 + d)
	}
	return s.q.MinSimilarity
}

// shownOfVectors returns the similarity that a hit shows for one in a rankedRow.
func (s *Searcher) shownOfVectors(similarity float32) float32 {
	if s.metric == record.L2 {
		return float32(1 / (1 - float64(similarity)))
	}
	return similarity
}

// mayBeFirst returns the rows that may be among the first k that pass. With indexes, it looks at their
// candidates for the first of rows.
func (s *Searcher) mayBeFirst(ctx context.Context, after *rankedRow, k, of int) (left []boundedRow, err error) {
	crowded := 4096          // length of left at which rows below the floor are removed
	certain := topRows{k: k} // rows that surely pass, by their lower bounds
	floor := s.leastRanked()
	see := func(row uint32, least, most float32, exact bool) float32 {
		if after != nil && least > after.similarity || most < floor {
			return floor
		}
		left = append(left, boundedRow{most, row, exact})
		if (after == nil || most < after.similarity) && s.reaches(least) && certain.add(rankedRow{least, row}) {
			floor = max(floor, certain.floor())
		}
		if len(left) >= crowded && len(left)/4 > k {
			left = slices.DeleteFunc(left, func(c boundedRow) bool { return c.most < floor })
			crowded = max(crowded, 2*len(left)) // if many rows are equally near, few are removed
		}
		return floor
	}
	seeBounds := func(row uint32, least, most float32) float32 { return see(row, least, most, false) }
	all := s.filter
	if s.cells != nil {
		if all, err = s.candidates(ctx, after, of); err != nil {
			return nil, err
		}
	}
	known := s.boundedTo()
	var several *manyBounds // bounds of the current rows, if several vectors of an item are compared
	if len(s.compared) > 1 && known > 0 {
		several = s.newManyBounds(all)
	}
	buf := make([]uint32, 1024)
	for it := all.ManyIterator(); ; {
		rows := buf[:it.NextMany(buf)]
		if len(rows) == 0 {
			break
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		inMemory, _ := slices.BinarySearch(rows, known)
		switch {
		case inMemory == 0:
		case several != nil:
			several.each(rows[:inMemory], floor, seeBounds)
		default:
			s.Cv.Vectors[s.compared[0].modality].EachBound(s.bounds, quantMetric[s.metric], rows[:inMemory], floor, seeBounds)
		}
		for _, row := range rows[inMemory:] {
			c, err := s.readRow(row)
			if err != nil {
				return nil, err
			}
			see(row, c, c, true)
		}
	}
	return slices.DeleteFunc(left, func(c boundedRow) bool { return c.most < floor }), nil
}

// boundedTo returns the first row whose compared vectors are not all in memory.
func (s *Searcher) boundedTo() uint32 {
	if s.bounds == nil || len(s.compared) == 0 {
		return 0
	}
	to := uint32(noRow)
	for _, c := range s.compared {
		to = min(to, s.Cv.Vectors[c.modality].Rows())
	}
	return to
}

// quantMetric maps metrics to metrics of bounds.
var quantMetric = map[record.Metric]quant.Metric{record.Cosine: quant.Cosine, record.Dot: quant.Dot, record.L2: quant.SquaredL2Below}

// manyBounds finds the bounds of rows with several compared vectors.
type manyBounds struct {
	s     *Searcher
	rest  []roaring.IntPeekable // by comparison: the rows with the modality, from the current rows on
	rows  []uint32              // the current rows that have the modality
	least []float32             // by current row
	most  []float32             // likewise; -Inf if no vector may reach the floor
}

// newManyBounds returns a manyBounds for some of the rows that pass the filter.
func (s *Searcher) newManyBounds(all *roaring.Bitmap) *manyBounds {
	b := &manyBounds{s: s}
	for _, c := range s.compared {
		rows := all
		switch {
		case c.rows == nil:
		case all == s.filter:
			rows = c.rows
		default:
			rows = roaring.And(all, c.rows)
		}
		b.rest = append(b.rest, rows.Iterator())
	}
	return b
}

// each is EachBound for rows, which ascend from call to call. The bounds of a row are the greatest bounds of
// its vectors. EachBound may leave a vector out that is below the floor. That does not change the result:
// another vector of the row may reach the floor, or the row is left out as well.
func (b *manyBounds) each(rows []uint32, floor float32, f func(row uint32, least, most float32) float32) {
	b.least, b.most = b.least[:0], b.most[:0]
	for range rows {
		b.least, b.most = append(b.least, float32(math.Inf(-1))), append(b.most, float32(math.Inf(-1)))
	}
	for i, c := range b.s.compared {
		it := b.rest[i]
		b.rows = b.rows[:0]
		for it.HasNext() && it.PeekNext() <= rows[len(rows)-1] {
			b.rows = append(b.rows, it.Next())
		}
		at := 0
		b.s.Cv.Vectors[c.modality].EachBound(b.s.bounds, quantMetric[b.s.metric], b.rows, floor, func(row uint32, least, most float32) float32 {
			for rows[at] != row {
				at++
			}
			b.least[at], b.most[at] = max(b.least[at], least), max(b.most[at], most)
			return floor
		})
	}
	for i, row := range rows {
		if b.most[i] >= floor {
			floor = f(row, b.least[i], b.most[i])
		}
	}
}
