package eval

// A RadiusPoint tells what all lookups within one Hamming radius find. The pairs of
// query and item are pooled over the queries (micro average), as in the hashing
// literature. So precision needs no convention for queries that find nothing within a
// small radius, and recall never falls as the radius grows.
type RadiusPoint struct {
	Radius int `json:"radius"`
	// relevant pairs within the radius, over all pairs within it; 0 if there are none
	Precision float64 `json:"precision"`
	// relevant pairs within the radius, over all relevant pairs; 0 if there are none
	Recall    float64 `json:"recall"`
	Retrieved float64 `json:"retrieved"` // items within the radius, mean over the queries
}

// A TopPoint is the mean precision of the first K of a ranking over the queries. Ties
// are in random order: a tie that is partly among the first K counts with its expected
// share of relevant items. So the value does not depend on the order in which items
// were stored, unlike Metrics.PrecisionAt. Every query counts K items, so the mean over
// queries is also the mean over pairs.
type TopPoint struct {
	K         int     `json:"k"`
	Precision float64 `json:"precision"`
}

// topKs are the K of the top points, as used in the literature.
var topKs = [...]int{1, 10, 20, 50, 100, 200, 500, 1000}

// pairs counts pairs of query and item. A billion queries over the largest database
// that can be evaluated stay below 2^63.
type pairs struct{ all, relevant int64 }

// addRadii adds the pairs that one query finds within each radius. Tie d holds the rows
// at distance d, 0 to q.
func (w *walker) addRadii() {
	var within pairs
	for r := range w.radii {
		within.all += int64(w.ties[r].Rows)
		within.relevant += int64(w.ties[r].Relevant)
		w.radii[r].all += within.all
		w.radii[r].relevant += within.relevant
	}
}

// radiusPoints adds up the counts of the workers. They are whole numbers, so the sum
// does not depend on how queries were shared out.
func radiusPoints(workers []*walker, radii, queries int) []RadiusPoint {
	sums := make([]pairs, radii)
	for _, w := range workers {
		if w == nil {
			continue // this worker came too late for any query
		}
		for r, p := range w.radii {
			sums[r].all += p.all
			sums[r].relevant += p.relevant
		}
	}
	points := make([]RadiusPoint, radii)
	for r, p := range sums {
		points[r] = RadiusPoint{
			Radius:    r,
			Precision: ratio(p.relevant, p.all),
			Recall:    ratio(p.relevant, sums[radii-1].relevant),
			Retrieved: float64(p.all) / float64(queries),
		}
	}
	return points
}

// ratio returns a/b, and 0 of nothing.
func ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// expectedTop writes the expected precision of the first K of a ranking, for each K up
// to the number of rows. The ties must have their places.
func (w *walker) expectedTop(precision *[len(topKs)]float64) {
	next := 0
	for i := range w.ties {
		t := &w.ties[i]
		for ; next < len(topKs) && topKs[next] <= int(t.Before)+int(t.Rows); next++ {
			k := topKs[next]
			part := float64(k-int(t.Before)) / float64(t.Rows) // share of the tie among the first k
			precision[next] = (float64(t.RelevantBefore) + part*float64(t.Relevant)) / float64(k)
		}
		if next == len(topKs) {
			return
		}
	}
}

// topPoints returns the means over queries, summed in query order, for each K up to the
// number of rows.
func topPoints(results []figures, rows int) []TopPoint {
	var points []TopPoint
	for i, k := range topKs {
		if k > rows {
			break
		}
		sum := 0.0
		for _, f := range results {
			sum += f.topPrecision[i]
		}
		points = append(points, TopPoint{K: k, Precision: sum / float64(len(results))})
	}
	return points
}
