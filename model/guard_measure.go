package model

import (
	"context"
	"math"
)

// guardPairs bounds the pairs of a query and an item that a Guard compares, when it is
// made and for each verdict: about a second on one core.
const guardPairs = 1 << 28

// maxRankings is the number of modalities up to which all pairs of them are ranked.
const maxRankings = 16

// A heldRanking has the queries and the database of an ordered pair of modalities.
type heldRanking struct {
	from, to int   // modality of the query, modality searched
	queries  []int // rows
	database []int // rows
}

// rankings returns the rankings of the ordered pairs of modalities, or of some pairs if
// there are very many modalities.
func (g *Guard) rankings() (all []heldRanking) {
	T := len(g.has)
	var pairs [][2]int
	for from := range T {
		for to := range T {
			if T == 1 || from != to && (T <= maxRankings || to == (from+1)%T) {
				pairs = append(pairs, [2]int{from, to})
			}
		}
	}
	for _, pair := range pairs {
		// Each query is ranked five times.
		if r := g.ranking(pair[0], pair[1], guardPairs/5/len(pairs)); len(r.queries) > 1 {
			all = append(all, r)
		}
	}
	return all
}

// ranking returns the ranking of an ordered pair, with at most so many pairs of a query
// and an item.
func (g *Guard) ranking(from, to, most int) heldRanking {
	r := heldRanking{from: from, to: to}
	counts := make([]int32, len(g.rows.relevant))
	for i, has := range g.has[to] {
		if has {
			r.database = append(r.database, i)
			counts[g.rows.set[i]]++
		}
	}
	for i, has := range g.has[from] {
		if has && g.rows.relevantOthers(i, g.has[to][i], counts) {
			r.queries = append(r.queries, i)
		}
	}
	if limit := max(1, most/max(1, len(r.database))); len(r.queries) > limit {
		some := make([]int, limit)
		for i := range some { // spread evenly
			some[i] = r.queries[i*len(r.queries)/limit]
		}
		r.queries = some
	}
	return r
}

// precisions returns the average precision of each query of r, with these codes.
func (g *Guard) precisions(r *heldRanking, queries, codes []uint64) []float64 {
	precisions := make([]float64, len(r.queries))
	scratch := g.rows.scratch(g.online.workers())
	w := g.rows.words
	chunks(len(scratch), len(precisions), 16, func(worker, first, end int) {
		for k := first; k < end; k++ {
			i := r.queries[k]
			precisions[k] = g.rows.precision(&scratch[worker], i, queries[i*w:(i+1)*w], codes, r.database)
		}
	})
	return precisions
}

// stronger returns the modality that finds the codes of labels best.
func (g *Guard) stronger(ctx context.Context) (lead int, err error) {
	best, enough := -1.0, false
	for t := range g.has {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		r := g.ranking(t, t, guardPairs/len(g.has))
		if len(r.queries) == 0 {
			continue
		}
		many := len(r.queries) >= MinHeld
		mean, _ := meanError(g.precisions(&r, g.before.queries[t], g.labels))
		if many && !enough || many == enough && mean > best {
			lead, best, enough = t, mean, many
		}
	}
	return lead, nil
}

// judge compares the codes before the update with those after it.
func (g *Guard) judge(after heldCodes) Verdict {
	T := len(g.has)
	v := Verdict{Lead: g.lead, Before: make([]float64, T), After: make([]float64, T)}
	gains := make([]gain, T) // by querying modality
	var all gain
	for _, r := range g.rankings() {
		asked, asks := g.before.queries[r.from], after.queries[r.from]
		// The three databases of a Verdict: codes of labels, codes of projections before, and
		// after. Before the update the last two are the same.
		stored := g.precisions(&r, asked, g.before.stored)
		was := [][]float64{g.precisions(&r, asked, g.labels), stored, stored}
		is := [][]float64{g.precisions(&r, asks, g.labels), g.precisions(&r, asks, g.before.stored), g.precisions(&r, asks, after.stored)}
		differences := make([]float64, len(r.queries))
		for k := range was {
			before, _ := meanError(was[k])
			now, _ := meanError(is[k])
			v.Before[r.from] += before / 3
			v.After[r.from] += now / 3
			for i := range differences {
				differences[i] += (is[k][i] - was[k][i]) / 3
			}
		}
		all.add(len(g.held), r.queries, differences)
		gains[r.from].add(len(g.held), r.queries, differences)
	}
	worst, loss, lossErr := -1, 0.0, 0.0
	for t := range gains {
		if n := float64(gains[t].rankings); n > 0 {
			v.Before[t] /= n
			v.After[t] /= n
		}
		if mean, stderr := gains[t].mean(); mean < -stderr && mean < loss {
			worst, loss, lossErr = t, mean, stderr
		}
	}
	v.Held = all.items()
	v.Gain, v.StdErr = all.mean()
	v.explain(g.online.model.modalities, worst, loss, lossErr)
	return v
}

// A gain sums up differences of average precisions. One item is a query of several
// rankings, whose differences are alike. So the standard error counts items, not
// queries.
type gain struct {
	rankings int       // rankings added
	sum      float64   // of the mean differences of the rankings
	item     []float64 // by item: contribution to the mean, less the expected one if all were alike
	asked    []bool    // by item: whether it was a query
}

// add adds the differences of a ranking. item[i] collects the part of each item i: its
// difference from the mean, by the number of queries.
func (g *gain) add(items int, queries []int, differences []float64) {
	if g.item == nil {
		g.item, g.asked = make([]float64, items), make([]bool, items)
	}
	mean, _ := meanError(differences)
	g.rankings++
	g.sum += mean
	for k, i := range queries {
		g.item[i] += (differences[k] - mean) / float64(len(queries))
		g.asked[i] = true
	}
}

// items returns the number of items that were a query.
func (g *gain) items() (n int) {
	for _, asked := range g.asked {
		if asked {
			n++
		}
	}
	return n
}

// mean returns the mean over the rankings and its standard error.
func (g *gain) mean() (mean, stderr float64) {
	if g.rankings == 0 {
		return 0, 0
	}
	var square float64
	for _, v := range g.item {
		square += v * v
	}
	// The mean is a sum of independent parts, one an item, so its variance is the sum of
	// their squares, with the factor n/(n-1) of a sample.
	n, rankings := float64(g.items()), float64(g.rankings)
	return g.sum / rankings, math.Sqrt(square*n/(n-1)) / rankings
}
