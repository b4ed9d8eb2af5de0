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

// A collection that is not trained has no codes, and is answered by its vectors: exactly, by a scan
// of all that the query may find. Such an answer is one run, with the items in the order of the
// cosine between their vectors and that of the query, of one modality; then by row. So all that is
// about runs, pages and keys is as for codes. Distances are 0, and there is no score.
//
// Vectors in memory at 8 bits give bounds for each cosine (quant.Table.EachCosine). A row whose
// upper bound is less than the lower bounds of k others cannot be among the first k. What is left is
// read, the highest upper bound first, until k cosines are at least as high as all bounds that
// follow: mostly few more than k, but all that are as near as the k-th. So no item is lost to
// rounding, and the order is that of the vectors themselves. Vectors that are not in memory are all
// read.

// Codes that were learned without labels are shorter than vectors and tell less, so a query that both
// could answer is answered by vectors: a training does not make answers worse. prefersVectors has the
// rule.

// noCodes is the code set of a collection without codes.
var noCodes = new(state.CodeSetView)

// sharesSpace reports whether the vectors of two modalities lie in one space and can be compared.
// Collections know of none that share one yet.
func sharesSpace(t, u int) bool { return t == u }

// prefersVectors reports whether a query is answered by vectors though the space has codes. They were
// learned without labels; the query leaves the order open and has no radius; it starts from a vector,
// and looks for items by vectors of the same space.
func (s *Searcher) prefersVectors() bool {
	cv, q := s.Cv, &s.q
	if cv.Space.Learned == nil || !cv.Space.Learned.LabelFree() || cv.IndexOnly || q.Order != byAuto || q.Code != nil || q.Within {
		return false
	}
	t := 0
	if q.From != "" {
		var err error
		if t, err = cv.ModalityOf(q.From); err != nil {
			return false // whatever answers finds that
		}
	} else if len(cv.Modalities) > 1 {
		return false
	}
	if q.To != "" {
		if u, err := cv.ModalityOf(q.To); err != nil || !sharesSpace(t, u) {
			return false
		}
	}
	if q.Key == "" {
		return true
	}
	row, err := cv.Row(s.V.Snap, q.Key)
	return err == nil && cv.Presence[t].Contains(row)
}

// startByVectors prepares a query that is answered by vectors. The filter of the query is
// set before.
func (s *Searcher) startByVectors() error {
	cv, q := s.Cv, &s.q
	untrained := func(what string) error {
		return fmt.Errorf("%w: collection %q: %s: train it first", fault.ErrNoModel, cv.Name, what)
	}
	switch {
	case cv.IndexOnly:
		return fmt.Errorf("%w: collection %q is a copy without vectors of one without codes: copy it again once that is trained", fault.ErrNoModel, cv.Name)
	case len(cv.Modalities) == 0:
		return untrained("it has no vectors to answer by")
	case q.Code != nil:
		return untrained("a query by code finds nothing where there are no codes")
	case q.Order != byAuto:
		return untrained(fmt.Sprintf("the order %s is of codes, and without them answers are by the cosine of vectors", OrderNames[q.Order]))
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
		return fault.Invalid("a query of a collection that is not trained compares vectors: name the modality that they are of")
	}
	x, err := s.vectorOf(t)
	if err != nil {
		return err
	}
	for _, v := range x.Value {
		s.square += float64(v) * float64(v)
	}
	if s.square == 0 {
		return fault.Invalid("a vector of zeros has no direction, and so no cosine")
	}
	s.byVectors, s.Set = true, noCodes
	s.p = &Point{modality: t, vector: record.CloneVector(x)} // as the caller may change it while neighbours are read
	if s.filter == nil {
		s.filter = cv.Live
	}
	if having := cv.Presence[t]; having.GetCardinality() < cv.Live.GetCardinality() {
		s.filter = roaring.And(s.filter, having)
	}
	if q.ExcludeSelf {
		s.exclude(s.self)
	}
	s.self = noRow // it comes where its vector is, as all others
	if cv.KeepsVectors(t) {
		s.bounds = quant.NewVectorQuery(s.p.vector.Value)
		if uint64(cv.Vectors[t].Rows()) < cv.NextRow && cv.WantVectors(t) {
			s.tools.Wanted()
		}
	}
	return nil
}

// vectorOf returns the vector of modality t that the query starts from. For a query by key it sets
// self.
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
		err = fault.Invalid("item %q has no vector of modality %q, and collection %q is not trained: name another modality", q.Key, cv.Modalities[t].Name, cv.Name)
	}
	return x, err
}

// noRadius returns the error about a radius in bits where there are no codes.
func (s *Searcher) noRadius() error {
	return fmt.Errorf("%w: collection %q: a radius counts bits of codes: train it first, or set a least similarity", fault.ErrNoModel, s.Cv.Name)
}

// onlyRun is the run of an answer by vectors.
var onlyRun = run{Scored: mih.Scored{Score: math.NaN()}}

// allByVectors is All for an answer by vectors: each part goes on behind the one before.
func (s *Searcher) allByVectors(ctx context.Context, yield func(Hit, error) bool) {
	k := 32
	if s.bounds == nil { // each part reads all vectors
		k = 1024
	}
	for ; ; k *= 4 {
		n := 0
		for h, err := range s.Hits(ctx, k) {
			if !yield(h, err) || err != nil {
				return
			}
			n++
		}
		if n < k {
			return
		}
		s.after = &position{score: math.NaN(), similarity: s.last.row.similarity, row: s.last.row.row}
	}
}

// A boundedRow is a row whose cosine with the query is not greater than most.
type boundedRow struct {
	most  float32
	row   uint32
	exact bool // most is the cosine
}

// rankVectors is rank for an answer by vectors.
func (s *Searcher) rankVectors(ctx context.Context, dst []rankedRow, after *rankedRow, k int) ([]rankedRow, error) {
	left, err := s.mayBeFirst(ctx, after, k)
	if err != nil {
		return dst, err
	}
	slices.SortFunc(left, func(a, b boundedRow) int {
		return rankedRow{a.most, a.row}.compare(rankedRow{b.most, b.row})
	})
	top := topRows{k: k, slack: max(k/16, 1)} // what is beyond them costs a read
	for i, c := range left {
		if top.full && c.most < top.floor() {
			break // so are all that follow
		}
		if i%BetweenLooks == 0 {
			if err := ctx.Err(); err != nil {
				return dst, err
			}
		}
		x := rankedRow{c.most, c.row}
		if !c.exact {
			v, err := s.storedVector(c.row)
			if err != nil {
				return dst, err
			}
			x.similarity = s.cosine(v)
			s.compares++
		}
		if s.passes(x, after) {
			top.add(x)
		}
	}
	return top.appendTo(dst), nil
}

// passes reports whether a row reaches the least similarity and follows the cursor.
func (s *Searcher) passes(x rankedRow, after *rankedRow) bool {
	return (!s.limited() || x.similarity >= s.q.MinSimilarity) && (after == nil || x.compare(*after) > 0)
}

// mayBeFirst returns the rows that may be among the first k that pass.
func (s *Searcher) mayBeFirst(ctx context.Context, after *rankedRow, k int) (left []boundedRow, err error) {
	crowded := 4096          // length of left from which on it is looked through for rows below the floor
	certain := topRows{k: k} // rows that pass for certain, by their lower bounds
	floor := float32(math.Inf(-1))
	if s.limited() {
		floor = s.q.MinSimilarity
	}
	see := func(row uint32, least, most float32, exact bool) float32 {
		if after != nil && least > after.similarity || most < floor {
			return floor
		}
		left = append(left, boundedRow{most, row, exact})
		if (after == nil || most < after.similarity) && (!s.limited() || least >= s.q.MinSimilarity) && certain.add(rankedRow{least, row}) {
			floor = max(floor, certain.floor())
		}
		if len(left) >= crowded && len(left)/4 > k {
			left = slices.DeleteFunc(left, func(c boundedRow) bool { return c.most < floor })
			crowded = max(crowded, 2*len(left)) // where many are as near as each other, few go
		}
		return floor
	}
	table := s.Cv.Vectors[s.p.modality]
	buf := make([]uint32, 1024)
	for it := s.filter.ManyIterator(); ; {
		rows := buf[:it.NextMany(buf)]
		if len(rows) == 0 {
			break
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		inMemory := 0
		if s.bounds != nil {
			inMemory, _ = slices.BinarySearch(rows, table.Rows())
		}
		if inMemory > 0 {
			table.EachCosine(s.bounds, rows[:inMemory], floor, func(row uint32, least, most float32) float32 {
				return see(row, least, most, false)
			})
		}
		for _, row := range rows[inMemory:] {
			x, err := s.storedVector(row)
			if err != nil {
				return nil, err
			}
			c := s.cosine(x)
			s.compares++
			see(row, c, c, true)
		}
	}
	return slices.DeleteFunc(left, func(c boundedRow) bool { return c.most < floor }), nil
}

// cosine returns the cosine between a vector and that of the query, both dense or both sparse; 0 for
// a vector of zeros. It adds up in float64, by ascending dimension.
func (s *Searcher) cosine(x model.Vector) float32 {
	var xy, xx float64
	for _, v := range x.Value {
		xx += float64(v) * float64(v)
	}
	if xx == 0 {
		return 0
	}
	y := s.p.vector
	if x.IsSparse() {
		eachEntry(x, y, func(a, b float64) { xy += a * b })
	} else {
		for j, v := range y.Value {
			xy += float64(x.Value[j]) * float64(v)
		}
	}
	return float32(max(-1, min(xy/(math.Sqrt(xx)*math.Sqrt(s.square)), 1)))
}
