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
		return fault.Invalid("recall %v is of answers by vectors, and a code has none: leave it out",
			q.Recall)
	case q.Order != byAuto && cv.Space != nil:
		return fault.Invalid("recall %v is of answers by vectors, in the order of their similarity, and the order %s is of codes: leave one out", q.Recall, OrderNames[q.Order])
	case q.Code != nil:
		return untrained("a query by code finds nothing where there are no codes",
			", or query by a vector, or by the key of an item that has one")
	case q.Order != byAuto:
		return untrained(fmt.Sprintf("the order %s is of codes", OrderNames[q.Order]),
			", or leave the order out: answers are by vectors then")
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
		return errNoDirection
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
			if q.Forced == nil && uint64(cv.Vectors[c.modality].Rows()) < cv.NextRow &&
				cv.WantVectors(c.modality) {
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
		return fault.Invalid("recall %v is of answers by vectors, and a radius of codes: leave one out",
			s.q.Recall)
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
func (s *Searcher) rankVectors(ctx context.Context, dst []rankedRow, after *rankedRow,
	k int) ([]rankedRow, error) {
	for of := k; ; of *= 4 {
		ranked, err := s.rankOf(ctx, dst, after, k, of)
		if err != nil || s.cells == nil || !s.cells.cut || len(ranked)-len(dst) >= k {
			return ranked, err
		}
	}
}

// rankOf is rankVectors with the candidates that indexes find for the first of rows.
func (s *Searcher) rankOf(ctx context.Context, dst []rankedRow, after *rankedRow, k,
	of int) ([]rankedRow, error) {
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
func (s *Searcher) mayBeFirst(ctx context.Context, after *rankedRow, k,
	of int) (left []boundedRow, err error) {
	crowded := 4096          // length of left at which rows below the floor are removed
	certain := topRows{k: k} // rows that surely pass, by their lower bounds
	floor := s.leastRanked()
	see := func(row uint32, least, most float32, exact bool) float32 {
		if after != nil && least > after.similarity || most < floor {
			return floor
		}
		left = append(left, boundedRow{most, row, exact})
		if (after == nil || most < after.similarity) && s.reaches(least) &&
			certain.add(rankedRow{least, row}) {
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
			s.Cv.Vectors[s.compared[0].modality].EachBound(s.bounds, quantMetric[s.metric], rows[:inMemory],
				floor, seeBounds)
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
var quantMetric = map[record.Metric]quant.Metric{record.Cosine: quant.Cosine, record.Dot: quant.Dot,
	record.L2: quant.SquaredL2Below}

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
		b.s.Cv.Vectors[c.modality].EachBound(b.s.bounds, quantMetric[b.s.metric], b.rows, floor,
			func(row uint32, least, most float32) float32 {
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

// In the order byAuto, vectors may decide among the items of one code: the items are ordered by the cosine
// between the query's vector and their vectors of the same modality. Codes still find items by their labels,
// and the items most like the query come first. Vectors count at 8 bits a dimension, in memory or read from
// the store, so both give the same order.

// Vectors decide if the collection has at most autoItems items, and if their vectors of one modality at 8
// bits take at most autoBytes. The first query after opening reads the vectors of a code one by one: some
// milliseconds for 2,000 items. The limits are no options and do not depend on memory: a query has one order,
// however the database is opened.
const (
	autoItems = 40_000
	autoBytes = 16 << 20
)

// vectorsDecide reports whether vectors decide among the items of one code, by the order byAuto. All items
// need the query's modality: items without it would come last of their code.
func (s *Searcher) vectorsDecide() bool {
	t := s.p.modality
	if !s.hasComparable() {
		return false
	}
	n := s.Cv.Presence[t].GetCardinality()
	return n == s.Cv.Live.GetCardinality() &&
		n <= uint64(min(autoItems, autoBytes/quant.VectorBytes(s.Cv.Modalities[t].Dim)))
}

// hasComparable reports whether the query is a vector of a modality that can be in memory at 8 bits.
func (s *Searcher) hasComparable() bool {
	return s.p.direction != nil && s.Cv.KeepsVectors(s.p.modality)
}

// compareVectors lets vectors decide among the items of one code, and reports whether they can.
func (s *Searcher) compareVectors() bool {
	if !s.hasComparable() {
		return false
	}
	t := s.p.modality
	z := make([]float64, len(s.p.vector.Value))
	for i, v := range s.p.vector.Value {
		z[i] = float64(v)
	}
	if s.p.features = quant.NewQuery(z); s.p.features == nil { // it is zero
		return false
	}
	s.allHave = s.Cv.Presence[t].GetCardinality() == s.Cv.Live.GetCardinality()
	if uint64(s.Cv.Vectors[t].Rows()) < s.Cv.NextRow && s.Cv.WantVectors(t) {
		s.tools.Wanted()
	}
	return true
}

// lacking is the similarity of items without the query's modality: they come last of their code. Such items
// exist only if they were stored after the first page of an answer.
const lacking = -2

// vectorSimilarities is similarities for vectors. f gets the rows that have the modality first.
func (s *Searcher) vectorSimilarities(rows []uint32, floor float32, f func(uint32, float32) float32) error {
	t := s.p.modality
	with, without := rows, s.without[:0]
	if having := s.Cv.Presence[t]; !s.allHave {
		with = s.with[:0]
		for _, row := range rows {
			if having.Contains(row) {
				with = append(with, row)
			} else {
				without = append(without, row)
			}
		}
		s.with, s.without = with, without
	}
	keep := func(row uint32, similarity float32) float32 {
		floor = f(row, similarity)
		return floor
	}
	table := s.Cv.Vectors[t]
	inMemory, _ := slices.BinarySearch(with, table.Rows())
	if inMemory > 0 {
		table.Each(s.p.features, with[:inMemory], floor, keep)
	}
	var b []byte
	for _, row := range with[inMemory:] {
		v, err := s.storedVector(row, t)
		if err != nil {
			return err
		}
		b = quant.AppendVector(b[:0], v.Value)
		if x := s.p.features.Similarity(b[:len(v.Value)]); x > floor {
			keep(row, x)
		}
	}
	for _, row := range without {
		if lacking > floor {
			keep(row, lacking)
		}
	}
	return nil
}

var errNoDirection = fault.Invalid("a vector of zeros has no direction, and so no cosine")

// A Comparer compares vectors with one vector, by a metric. It is immutable, and safe for concurrent use.
type Comparer struct {
	Metric record.Metric
	Vector model.Vector
	square float64 // square of the length of Vector
}

// NewComparer returns a Comparer for x, which it keeps.
func NewComparer(metric record.Metric, x model.Vector) *Comparer {
	c := &Comparer{Metric: metric.OrCosine(), Vector: x}
	for _, v := range x.Value {
		c.square += float64(v) * float64(v)
	}
	return c
}

// Compare returns the similarity of a vector by the metric; for L2 the negative squared distance. It adds up
// in float64, by ascending dimension.
func (c *Comparer) Compare(x model.Vector) float32 {
	switch c.Metric {
	case record.Dot:
		return quant.Rounded(product(x, c.Vector))
	case record.L2:
		return quant.Rounded(-squaredDistance(x, c.Vector))
	}
	return c.cosine(x)
}

// Length returns the length of the vector.
func (c *Comparer) Length() float64 { return math.Sqrt(c.square) }

// product returns the inner product of two vectors, both dense or both sparse.
func product(x, y model.Vector) (xy float64) {
	if x.IsSparse() {
		eachEntry(x, y, func(a, b float64) { xy += a * b })
		return xy
	}
	for j, v := range y.Value {
		xy += float64(x.Value[j]) * float64(v)
	}
	return xy
}

// cosine returns the cosine between a vector and the query's vector, both dense or both sparse; 0 for a zero
// vector.
func (c *Comparer) cosine(x model.Vector) float32 {
	y := c.Vector
	var xx, xy float64
	if x.IsSparse() {
		for _, v := range x.Value {
			xx += float64(v) * float64(v)
		}
		xy = product(x, y)
	} else { // one loop for both sums, so neither waits for the other
		for j, w := range y.Value {
			v := float64(x.Value[j])
			xx += v * v
			xy += v * float64(w)
		}
	}
	if xx == 0 {
		return 0
	}
	return float32(max(-1, min(xy/(math.Sqrt(xx)*math.Sqrt(c.square)), 1)))
}

// squaredDistance returns the squared Euclidean distance of two vectors, both dense and of the same length,
// or both sparse. It adds up in float64, by ascending dimension, and leaves out dimensions that are zero in
// both: so the dense and the sparse form of the same vectors have the same distance.
func squaredDistance(x, y model.Vector) (sum float64) {
	add := func(a, b float64) { sum += (a - b) * (a - b) }
	if x.IsSparse() { // so is y
		eachEntry(x, y, add)
		return sum
	}
	for j, v := range y.Value {
		add(float64(x.Value[j]), float64(v))
	}
	return sum
}

// eachEntry calls f with the entries of two sparse vectors, by ascending dimension. A missing entry is 0.
func eachEntry(x, y model.Vector, f func(a, b float64)) {
	i, j := 0, 0
	for i < len(x.Index) && j < len(y.Index) {
		switch a, b := x.Index[i], y.Index[j]; {
		case a < b:
			f(float64(x.Value[i]), 0)
			i++
		case a > b:
			f(0, float64(y.Value[j]))
			j++
		default:
			f(float64(x.Value[i]), float64(y.Value[j]))
			i, j = i+1, j+1
		}
	}
	for _, v := range x.Value[i:] {
		f(float64(v), 0)
	}
	for _, v := range y.Value[j:] {
		f(0, float64(v))
	}
}

// A topRows collects the first k of the rows added, in the order of rankedRow.compare. It keeps rows as
// numbers, see rankKey, which are faster to compare and move.
type topRows struct {
	k     int
	slack int      // rows kept beyond k before a cut to k; 0: k. Only for k above fewRows
	keys  []uint64 // candidates, with the first k so far; in order if k is at most fewRows
	full  bool     // last is set
	last  uint64   // the k-th row; with k above fewRows, at the last cut
}

// fewRows is the largest k for which rows are kept in order. For larger k occasional cuts are cheaper.
const fewRows = 64

// rankKey maps a row to a number. Earlier rows have smaller numbers. The similarity is not NaN.
func rankKey(x rankedRow) uint64 {
	// The bits of positive floats have the order of the floats, the bits of negative ones the reverse order.
	// Adding 0 turns -0 into 0, so zero has one key.
	b := math.Float32bits(x.similarity + 0)
	if b>>31 == 0 {
		b = ^b &^ (1 << 31)
	}
	return uint64(b)<<32 | uint64(x.row)
}

// rankedRowOf is the inverse of rankKey.
func rankedRowOf(key uint64) rankedRow {
	b := uint32(key >> 32)
	if b>>31 == 0 {
		b = ^b &^ (1 << 31)
	}
	return rankedRow{math.Float32frombits(b), uint32(key)}
}

// add adds a row, and reports whether the floor may have risen.
func (t *topRows) add(x rankedRow) bool {
	key := rankKey(x)
	if t.k == 0 || t.full && key > t.last {
		return false
	}
	if t.k <= fewRows {
		return t.insert(key)
	}
	t.keys = append(t.keys, key)
	slack := t.slack
	if slack == 0 {
		slack = t.k
	}
	if len(t.keys)-t.k < slack {
		return false
	}
	selectFirst(t.keys, t.k)
	t.keys = t.keys[:t.k]
	t.full, t.last = true, slices.Max(t.keys)
	return true
}

// insert is add for small k.
func (t *topRows) insert(key uint64) bool {
	at := len(t.keys)
	for at > 0 && key < t.keys[at-1] {
		at--
	}
	if len(t.keys) < t.k {
		t.keys = append(t.keys, key)
	}
	copy(t.keys[at+1:], t.keys[at:])
	t.keys[at] = key
	if len(t.keys) == t.k {
		t.full, t.last = true, t.keys[t.k-1]
	}
	return t.full
}

// floor returns the similarity of the k-th row so far, once add has reported true.
func (t *topRows) floor() float32 { return rankedRowOf(t.last).similarity }

// appendTo appends the first k rows to dst, in order.
func (t *topRows) appendTo(dst []rankedRow) []rankedRow {
	if t.k < len(t.keys) {
		selectFirst(t.keys, t.k)
		t.keys = t.keys[:t.k]
	}
	if t.k > fewRows {
		slices.Sort(t.keys)
	}
	dst = slices.Grow(dst, len(t.keys))
	for _, key := range t.keys {
		dst = append(dst, rankedRowOf(key))
	}
	return dst
}

// selectFirst moves the k smallest keys to the front, in no order. It is Hoare's selection; k is at least 1
// and less than len(keys), and no two keys are equal.
func selectFirst(keys []uint64, k int) {
	for len(keys) > 1 {
		a, b, c := keys[0], keys[len(keys)/2], keys[len(keys)-1]
		pivot := max(min(a, b), min(max(a, b), c)) // the median
		i, j := 0, len(keys)-1
		for i <= j {
			for keys[i] < pivot {
				i++
			}
			for keys[j] > pivot {
				j--
			}
			if i <= j {
				keys[i], keys[j] = keys[j], keys[i]
				i, j = i+1, j-1
			}
		}
		switch { // keys up to j are the smaller ones, keys from i on the greater ones
		case k <= j+1:
			keys = keys[:j+1]
		case k > i:
			keys, k = keys[i:], k-i
		default:
			return
		}
	}
}
