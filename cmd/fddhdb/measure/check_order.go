package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/db"
)

// A checkOrder is the oracle of the orders of answers. It computes the score of every code and
// the similarity of every item in float64, from projections of the items' vectors, and shares no
// code with the searches that it checks.
//
// Items are compared with 8 bits a dimension, so it rounds them, too. A query has 16 bits: a
// similarity may differ by similarityError from the computed one, and it is the similarity of the
// hit itself that has to order hits.
type checkOrder struct {
	*checkScan
	target Target

	groups  [][]int     // positions of the items of each code, ascending
	groupOf []int       // by position
	z       [][]float32 // by position: projections at length 1; nil for an item without

	// What follows is of the query.
	query    *Query
	scores   []float64 // by group
	slack    float64   // by which sums of a score may differ in rounding
	unit     []float64 // projection at length 1
	features map[uint32]float64
	cosines  map[int]fusedSimilarity // by position
}

// similarityError is more than what rounding of the query does to a cosine.
const similarityError = 1e-4

// defaultWindow is the default of db.Query.Window.
const defaultWindow = 200

// newCheckOrder reads the projections of all items. The oracle has their codes.
func newCheckOrder(ctx context.Context, target Target, oracle *checkScan) (*checkOrder, error) {
	o := &checkOrder{checkScan: oracle, target: target, z: make([][]float32, len(oracle.rows))}
	byCode := map[string]int{}
	byKey := make(map[string]int, len(oracle.keys))
	for i, key := range oracle.keys {
		byKey[key] = i
		code := string(oracle.codes[i*oracle.width : (i+1)*oracle.width])
		g, seen := byCode[code]
		if !seen {
			g = len(o.groups)
			byCode[code] = g
			o.groups = append(o.groups, nil)
		}
		o.groups[g] = append(o.groups[g], i)
		o.groupOf = append(o.groupOf, g)
	}
	o.scores = make([]float64, len(o.groups))
	return o, target.Projections(ctx, func(key string, z []float64) error {
		if i, searched := byKey[key]; searched {
			o.z[i] = rounded(z)
		}
		return nil
	})
}

// unit returns a vector at length 1, nil if it is zero.
func unit(z []float64) []float64 {
	sum := 0.0
	for _, x := range z {
		sum += x * x
	}
	if sum == 0 {
		return nil
	}
	out := make([]float64, len(z))
	for j, x := range z {
		out[j] = x / math.Sqrt(sum)
	}
	return out
}

// rounded does to a vector what storing it does: it scales the vector so that the largest component
// is 127 or -127, and rounds all components. It returns the result at length 1.
func rounded(z []float64) (out []float32) {
	largest := 0.0
	for _, x := range z {
		largest = max(largest, math.Abs(x))
	}
	whole := make([]float64, len(z))
	for j, x := range z {
		if largest > 0 {
			whole[j] = math.RoundToEven(x / largest * 127)
		}
	}
	for _, x := range unit(whole) {
		out = append(out, float32(x))
	}
	return out
}

// scan computes the scores of a query, whose distances the checkScan has.
func (o *checkOrder) scan(q *Query) {
	o.query, o.unit, o.features = q, unit(q.Projection), map[uint32]float64{}
	o.cosines = map[int]fusedSimilarity{}
	o.slack = 0
	for _, x := range q.Projection {
		o.slack += math.Abs(x) * 1e-9
	}
	for g, members := range o.groups {
		code := o.codes[members[0]*o.width:]
		o.scores[g] = 0
		for j, x := range q.Projection {
			if code[j/8]>>(j%8)&1 == 0 {
				x = -x
			}
			o.scores[g] += x
		}
	}
}

// similarity returns the cosine between the projections of the query and of an item.
func (o *checkOrder) similarity(at int) float64 {
	sum := 0.0
	for j, x := range o.z[at] {
		sum += float64(x) * o.unit[j]
	}
	return sum
}

// A fusedSimilarity is what the fused order puts items of one code in order by.
type fusedSimilarity struct {
	cosine float64 // of vectors, if the item has one, else of projections
	lacks  bool    // the item has none, so that it comes behind those that have one
}

// less reports whether items with s come behind those with t.
func (s fusedSimilarity) less(t fusedSimilarity) bool {
	if s.lacks != t.lacks {
		return s.lacks
	}
	return s.cosine < t.cosine
}

// of returns the similarity of an item in an order.
func (o *checkOrder) of(ctx context.Context, i int, by db.Rerank) (fusedSimilarity, error) {
	plain := fusedSimilarity{cosine: o.similarity(i)}
	if by != db.RerankFused {
		return plain, nil
	}
	if s, known := o.cosines[i]; known {
		return s, nil
	}
	it, err := o.target.Item(ctx, o.keys[i])
	if err != nil {
		return plain, err
	}
	s := plain
	if x, has := it.Vectors[o.query.From]; has {
		wide := make([]float64, len(x))
		for j, v := range x {
			wide[j] = float64(v)
		}
		y := dense(o.query.Vector, o.query.Sparse)
		var xy, yy float64
		for j := range x {
			b := at(y, j)
			yy += b * b
		}
		for j, a := range rounded(wide) {
			xy += float64(a) * at(y, j)
		}
		if s.cosine = 0; yy > 0 {
			s.cosine = xy / math.Sqrt(yy)
		}
	} else {
		s.lacks = true
	}
	o.cosines[i] = s
	return s, nil
}

// better reports whether a group comes before another one for certain.
func (o *checkOrder) better(a, b int, by db.Rerank) bool {
	if by != db.RerankAsymmetric {
		if d := o.distance(a) - o.distance(b); d != 0 {
			return d < 0
		}
	}
	return o.scores[a] > o.scores[b]+o.slack
}

func (o *checkOrder) distance(group int) int { return o.distances[o.groups[group][0]] }

// within returns how many items are within a radius, all if it is negative.
func (o *checkOrder) within(radius int) int {
	if radius < 0 {
		return len(o.rows)
	}
	return o.count(radius)
}

// wrong checks hits in every order but features. They should be the first n items within the radius.
// It describes the first mistake; "" means that there is none.
func (o *checkOrder) wrong(ctx context.Context, hits []db.Hit, n, radius int, by db.Rerank) (string, error) {
	if len(hits) != n {
		return fmt.Sprintf("there are %d hits, want %d", len(hits), n), nil
	}
	positions, what := o.positions(hits)
	if what != "" {
		return what, nil
	}
	inAnswer := map[int]bool{}
	last := -1 // group of the last run
	for from := 0; from < n; {
		g := o.groupOf[positions[from]]
		to := from
		for to < n && o.groupOf[positions[to]] == g {
			to++
		}
		switch {
		case inAnswer[g]:
			return fmt.Sprintf("row %d comes apart from others of its code", hits[from].Row), nil
		case last >= 0 && o.better(g, last, by):
			return fmt.Sprintf("row %d comes after row %d, whose code is worse", hits[from].Row, hits[from-1].Row), nil
		case to < n && to-from < len(o.groups[g]):
			return fmt.Sprintf("%d of the %d items of the code of row %d are there, and then others", to-from, len(o.groups[g]), hits[from].Row), nil
		}
		if what, err := o.wrongRun(ctx, hits[from:to], positions[from:to], o.groups[g], by); err != nil || what != "" {
			return what, err
		}
		inAnswer[g], last, from = true, g, to
	}
	for g := range o.groups {
		if n > 0 && !inAnswer[g] && (radius < 0 || o.distance(g) <= radius) && o.better(g, last, by) {
			return fmt.Sprintf("row %d is not there, whose code is better than that of row %d", o.rows[o.groups[g][0]], hits[n-1].Row), nil
		}
	}
	return "", nil
}

// positions returns the positions of hits, and checks what does not depend on the order.
func (o *checkOrder) positions(hits []db.Hit) (positions []int, what string) {
	seen := map[int]bool{}
	for _, h := range hits {
		at, found := slices.BinarySearch(o.rows, h.Row)
		switch {
		case !found:
			return nil, fmt.Sprintf("row %d is no item", h.Row)
		case seen[at]:
			return nil, fmt.Sprintf("row %d comes twice", h.Row)
		case h.Key != o.keys[at]:
			return nil, fmt.Sprintf("row %d has key %q, not %q", h.Row, o.keys[at], h.Key)
		case h.Distance != o.distances[at]:
			return nil, fmt.Sprintf("row %d is %d bits away, not %d", h.Row, o.distances[at], h.Distance)
		}
		if want := o.scores[o.groupOf[at]]; !(math.Abs(h.Score-want) <= o.slack) {
			return nil, fmt.Sprintf("row %d has score %v, not %v", h.Row, want, h.Score)
		}
		seen[at] = true
		positions = append(positions, at)
	}
	return positions, ""
}

// wrongRun checks hits that share a code. They should be the first of the members, which are all items
// with that code. It describes the first mistake; "" means that there is none.
func (o *checkOrder) wrongRun(ctx context.Context, hits []db.Hit, positions, members []int, by db.Rerank) (string, error) {
	if by == db.RerankNone {
		for i, h := range hits {
			if positions[i] != members[i] {
				return fmt.Sprintf("row %d comes before row %d, which is older", h.Row, o.rows[members[i]]), nil
			}
			if !math.IsNaN(float64(h.Similarity)) {
				return fmt.Sprintf("row %d has similarity %v, and nothing was compared", h.Row, h.Similarity), nil
			}
		}
		return "", nil
	}
	var last fusedSimilarity // as the answer has it
	for i, h := range hits {
		want, err := o.of(ctx, positions[i], by)
		if err != nil {
			return "", err
		}
		if !(math.Abs(float64(h.Similarity)-want.cosine) <= similarityError) {
			return fmt.Sprintf("row %d has similarity %.4f, not %.4f", h.Row, want.cosine, h.Similarity), nil
		}
		before := last
		last = fusedSimilarity{float64(h.Similarity), want.lacks}
		if i > 0 && (before.less(last) || before == last && hits[i-1].Row > h.Row) {
			return fmt.Sprintf("row %d of similarity %v comes before row %d of similarity %v", hits[i-1].Row, hits[i-1].Similarity, h.Row, h.Similarity), nil
		}
	}
	if len(hits) == len(members) {
		return "", nil
	}
	last.cosine += similarityError
	for _, at := range members {
		s, err := o.of(ctx, at, by)
		if err != nil {
			return "", err
		}
		if last.less(s) && !slices.Contains(positions, at) {
			return fmt.Sprintf("row %d of similarity %.4f is not there, and row %d is", o.rows[at], s.cosine, hits[len(hits)-1].Row), nil
		}
	}
	return "", nil
}

// wrongFeatures checks hits in the order features. base are the first items in the order projection,
// which wrong has checked; the order features sorts the first window of them. It describes the first
// mistake; "" means that there is none.
func (o *checkOrder) wrongFeatures(ctx context.Context, hits, base []db.Hit, window int) (string, error) {
	if _, what := o.positions(hits); what != "" {
		return what, nil
	}
	window = min(window, len(base))
	type place struct {
		squared float64
		at      int // in base
	}
	places := map[uint32]place{}
	var sorted []place
	for i, h := range base[:window] {
		squared, err := o.squared(ctx, h)
		if err != nil {
			return "", err
		}
		places[h.Row] = place{squared, i}
		sorted = append(sorted, places[h.Row])
	}
	slices.SortFunc(sorted, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.squared, b.squared), cmp.Compare(a.at, b.at))
	})
	for i, h := range hits {
		if i >= window {
			if h.Row != base[i].Row || !math.IsNaN(float64(h.Similarity)) {
				return fmt.Sprintf("row %d of similarity %v is behind the window, where row %d follows", h.Row, h.Similarity, base[i].Row), nil
			}
			continue
		}
		p, inWindow := places[h.Row]
		want := sorted[i]
		switch s := 1 / (1 + p.squared); {
		case !inWindow:
			return fmt.Sprintf("row %d is not among the first %d", h.Row, window), nil
		case math.Abs(float64(h.Similarity)-s) > 1e-6*s:
			return fmt.Sprintf("row %d has similarity %v, not %v", h.Row, s, h.Similarity), nil
		case p != want && !(math.Abs(p.squared-want.squared) <= 1e-9*want.squared && p.squared != want.squared):
			// Distances that differ in rounding alone may come in any order.
			return fmt.Sprintf("row %d comes where row %d should, which is nearer", h.Row, base[want.at].Row), nil
		}
	}
	return "", nil
}

// squared returns the squared Euclidean distance between the vectors of the query and of a hit,
// +Inf if the item has none of that modality.
func (o *checkOrder) squared(ctx context.Context, h db.Hit) (float64, error) {
	if d, known := o.features[h.Row]; known {
		return d, nil
	}
	it, err := o.target.Item(ctx, h.Key)
	if err != nil {
		return 0, err
	}
	theirs, has := it.Vectors[o.query.From]
	sparse, hasSparse := it.Sparse[o.query.From]
	sum := math.Inf(1)
	if has || hasSparse {
		x, y := dense(theirs, &sparse), dense(o.query.Vector, o.query.Sparse)
		sum = 0
		for i := range max(len(x), len(y)) {
			d := at(x, i) - at(y, i)
			sum += d * d
		}
	}
	o.features[h.Row] = sum
	return sum, nil
}

// dense returns a vector of one of two forms, without zeros at its end.
func dense(x []float32, sparse *db.Sparse) []float32 {
	if x != nil || sparse == nil {
		return x
	}
	for i, j := range sparse.Index {
		if n := int(j) + 1 - len(x); n > 0 {
			x = append(x, make([]float32, n)...)
		}
		x[j] = sparse.Value[i]
	}
	return x
}

func at(x []float32, i int) float64 {
	if i < len(x) {
		return float64(x[i])
	}
	return 0
}

// checkOrder runs the operation of a line again and returns the error of its answer; "" if there
// is none. A second page is checked together with the first.
func (l *line) checkOrder(ctx context.Context, q *Query, o *checkOrder) (what string, err error) {
	radius := -1
	if l.Kind == "hits" {
		radius = l.N
	}
	all := o.within(radius)
	ask := l.ask(q)
	ask.After = ""
	one := ask
	one.K = 1
	x, _, err := o.target.Explain(ctx, one)
	if err != nil {
		return "", err
	}
	order, err := db.ParseRerank(x.Rerank) // never db.RerankAuto
	if err != nil {
		return "", err
	}
	n := min(l.N, all)
	switch l.Kind {
	case "hits":
		n = min(firstHits, all)
	case "next":
		n = min(2*l.N, all)
	}
	if order != db.RerankFeatures {
		hits, err := l.answer(ctx, ask, n)
		if err != nil {
			return "", err
		}
		return o.wrong(ctx, hits, n, radius, order)
	}
	window := max(defaultWindow, 2*ask.K)
	first := ask
	first.Rerank, first.K = db.RerankProjection, max(window, n)
	base, err := l.answer(ctx, first, min(first.K, all))
	if err != nil {
		return "", err
	}
	if what, err := o.wrong(ctx, base, min(first.K, all), radius, db.RerankProjection); err != nil || what != "" {
		return "in the order projection " + what, err
	}
	hits, err := l.answer(ctx, ask, n)
	if err != nil || len(hits) != n {
		return fmt.Sprintf("there are %d hits, want %d", len(hits), n), err
	}
	return o.wrongFeatures(ctx, hits, base, window)
}

// answer answers a query with n hits, or with fewer if there are no more.
func (l *line) answer(ctx context.Context, q db.Query, n int) (hits []db.Hit, err error) {
	if l.Kind == "hits" {
		runs, err := l.searches.Radius(ctx, q, l.N)
		if err != nil || n == 0 {
			if err == nil {
				err = runs.Close()
			}
			return nil, err
		}
		for h, err := range firstOf(runs.Hits(ctx), n) {
			if err != nil {
				return nil, errors.Join(err, runs.Close())
			}
			hits = append(hits, h)
		}
		return hits, runs.Close()
	}
	for page := range 2 {
		r, err := l.searches.Search(ctx, q)
		if err != nil {
			return nil, err
		}
		hits = append(hits, r.Hits...)
		if l.Kind != "next" || page == 1 || r.Next == "" {
			break
		}
		q.After = r.Next
	}
	return hits, nil
}
