package model

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model/internal/aims"
	"github.com/fddhdb/fddhdb/model/internal/parallel"
	"github.com/fddhdb/fddhdb/model/internal/rank"
)

// MinHeld is the least number of held items with which a Guard adopts anything. It
// counts the items that share a label with another held item.
const MinHeld = 50

// A Guard decides whether items without labels should teach an Online. It lets them
// teach a copy, and measures the retrieval of labelled items that it holds back.
// Without a Guard such an update may well lose, as a projection also teaches its own
// errors. If the Verdict says Adopt, let the Online itself Learn the same items.
//
// A Guard may refuse an update that would gain. That happens if the gain is about as
// small as the error of so few held items. It also happens if held items have taught
// before, there are about as many features as labelled items, and gamma is small:
// projections without the held items then differ from those with them. So hold back
// items that have not taught yet, if there are any. Many items tell more than few: let refused items wait,
// and try them again with later ones.
//
// One goroutine at a time may use a Guard. Once made it is independent of the Online.
// It takes the memory of another Online and, for each held item, 4 q bytes and 5 codes
// a modality.
type Guard struct {
	online *Online   // the copy that learns
	held   []Example // the held items that are measured
	rows   rank.Among
	has    [][]bool  // by modality and held item: whether it has the modality
	labels []uint64  // codes of their labels
	before heldCodes // codes before the copy has learned anything
	lead   int       // see Lead
}

// heldCodes are the codes that projections give the held items.
type heldCodes struct {
	queries [][]uint64 // by modality: as queries
	stored  []uint64   // as they would be stored without labels
}

// A Verdict says whether an update from items without labels is worth adopting. It
// compares the mean average precision, expected over ties, of held items as queries
// among the other held items.
//
// There is a ranking for each ordered pair of modalities and each of three databases,
// all with equal weight. In the first database held items have the codes of their
// labels. In the second they have the codes that projections from before the update
// give them without labels, as stored items have. In the third they have such codes
// from the projections under test, as later items will have.
type Verdict struct {
	Adopt bool
	Lead  int // position of the modality that taught
	Held  int // number of held items that were measured
	// By querying modality: the mean over databases and searched modalities, without
	// and with the update. Both are 0 if nothing could be measured.
	Before, After []float64
	Gain, StdErr  float64 // mean gain over the ordered pairs, and its standard error over items
	Reason        string  // why it is adopted or not, in words
}

// Guard returns a Guard for updates of o from items without labels.
//
// held are labelled items to judge by: tens, better hundreds, that represent future items. lessons are
// parallel to held: the lesson that each item has taught o, which the Guard forgets; empty if it has taught
// nothing. Held items whose labels are unknown to the model are forgotten but not measured. The Guard keeps
// the slices of the items, so the caller must not change them.
//
// It costs k^3/3 + q k^2 multiplications a modality, the cost of Forget, the
// projections of the held items, and n^2 distances a modality for n held items, bounded
// as in Verdict. The error is one of Forget or a *SingularError. o learns and forgets
// nothing.
func (o *Online) Guard(ctx context.Context, held []Example, lessons []Lesson) (g *Guard, err error) {
	defer parallel.Guard(&err, "making a guard")
	g = &Guard{online: o.clone()}
	for _, item := range held {
		if err := o.model.checkVectors(item); err != nil {
			return nil, err
		}
		for t, x := range item.Vectors {
			if !x.Present() {
				continue
			}
			if err := o.model.checkInput(t, x); err != nil {
				return nil, err
			}
		}
	}
	if err := g.online.Forget(ctx, held, lessons); err != nil {
		return nil, err
	}
	m, err := g.online.Revision()
	if err != nil {
		return nil, err
	}
	g.hold(held)
	if g.before, err = g.encode(m); err != nil {
		return nil, err
	}
	if g.lead, err = g.stronger(ctx); err != nil {
		return nil, err
	}
	return g, nil
}

// clone returns a copy that shares only what never changes.
func (o *Online) clone() *Online {
	c := *o
	c.stats = o.Statistics().Clone()
	c.parts = slices.Clone(o.parts)
	for t := range c.parts {
		p := &c.parts[t]
		p.factor.Data, p.w = slices.Clone(p.factor.Data), slices.Clone(p.w)
		p.phi, p.waiting = nil, teaching{}
	}
	return &c
}

// Lead returns the modality that teaches: the one whose projections find the codes of
// the held items' labels best, without having learned from the held items.
func (g *Guard) Lead() int { return g.lead }

// Learn lets items be taught by Lead, as Online.Learn does with TeacherModality, at its
// cost and with its errors. Labelled items teach by their labels. It may be called
// often.
func (g *Guard) Learn(ctx context.Context, items []Example) error {
	_, err := g.online.Learn(ctx, items, TeacherModality, g.lead)
	return err
}

// Verdict judges the update that the Guard has learned. It adopts an update with MinHeld items or more if the
// gain is larger than its standard error and no querying modality loses more than its own standard error. It
// costs a Revision, the projections of the held items, and 5 n^2 distances for each ordered pair of
// modalities, but at most 2^28 in all, about a second of one core; beyond that not all items are queries. The
// error is a *SingularError.
func (g *Guard) Verdict() (v Verdict, err error) {
	defer parallel.Guard(&err, "judging an update")
	m, err := g.online.Revision()
	if err != nil {
		return v, err
	}
	after, err := g.encode(m)
	if err != nil {
		return v, err
	}
	return g.judge(after), nil
}

// hold keeps the held items that have known labels.
func (g *Guard) hold(held []Example) {
	m := g.online.model
	var sets [][]int32
	numbers := map[string]uint32{}
	var setOf []uint32
	code := codec.NewCode(m.bits)
	for _, item := range held {
		if !m.LabelCode(code, item.Labels) {
			continue
		}
		columns := aims.Known(nil, m.labels, item.Labels)
		key := fmt.Sprint(columns)
		set, ok := numbers[key]
		if !ok {
			set = uint32(len(sets))
			numbers[key] = set
			sets = append(sets, columns)
		}
		setOf = append(setOf, set)
		g.held, g.labels = append(g.held, item), append(g.labels, code...)
	}
	g.rows = rank.Among{Bits: m.bits, Words: codec.Words(m.bits),
		Harmonic: rank.HarmonicNumbers(len(g.held))}
	g.rows.Set, _, g.rows.Relevant = rank.RelevantSets(setOf, sets, len(m.labels))
	for t := range m.maps {
		has := make([]bool, len(g.held))
		for i, item := range g.held {
			has[i] = item.Vectors[t].Present()
		}
		g.has = append(g.has, has)
	}
}

// encode returns the codes that a model gives the held items.
func (g *Guard) encode(m *Model) (codes heldCodes, err error) {
	scratch := g.rows.NewScratch(g.online.workers())
	T, n, q := len(m.maps), len(g.held), m.bits
	z := make([][]float32, T)
	for t := range z {
		if z[t], err = g.project(m, t); err != nil {
			return codes, err
		}
	}
	made := func(how rank.Fusion) []uint64 {
		c := make([]uint64, n*codec.Words(q))
		g.rows.Encode(c, how, z, g.has, scratch)
		return c
	}
	for t := range T {
		alone := rank.Fusion{Weights: make([]float64, T)}
		alone.Weights[t] = 1
		codes.queries = append(codes.queries, made(alone))
	}
	codes.stored = made(m.fusion)
	return codes, nil
}

// project returns the projections of the held items with modality t, q numbers a row.
func (g *Guard) project(m *Model, t int) ([]float32, error) {
	q, workers := m.bits, g.online.workers()
	var at []int
	var xs []Vector
	for i, has := range g.has[t] {
		if has {
			at, xs = append(at, i), append(xs, g.held[i].Vectors[t])
		}
	}
	z := make([]float32, len(g.held)*q)
	encoders, errs := make([]*Encoder, workers), make([]error, workers)
	parallel.Chunks(workers, len(xs), parallel.Rows, func(worker, from, to int) {
		if encoders[worker] == nil {
			encoders[worker] = m.NewEncoder()
		}
		rows := make([]float64, (to-from)*q)
		if err := encoders[worker].ProjectVectors(rows, t, xs[from:to]); err != nil {
			errs[worker] = err
			return
		}
		for r, i := range at[from:to] {
			for j, v := range rows[r*q : (r+1)*q] {
				z[i*q+j] = float32(v)
			}
		}
	})
	return z, errors.Join(errs...)
}

// explain decides and gives the reason. worst is the modality with the largest loss, if that is larger than
// its standard error, or -1.
func (v *Verdict) explain(modalities []Modality, worst int, loss, stderr float64) {
	switch name := modalities[v.Lead].Name; {
	case v.Held < MinHeld:
		v.Reason = fmt.Sprintf("%d labelled items could be measured, and it takes %d: it needs more of them",
			v.Held, MinHeld)
	case !(v.Gain > v.StdErr):
		v.Reason = fmt.Sprintf("in a test, codes by %s changed the mAP of labelled items by %+.3f, standard error %.3f: no clear gain", name, v.Gain, v.StdErr)
	case worst >= 0:
		v.Reason = fmt.Sprintf("in a test, codes by %s changed the mAP of labelled items by %+.3f for %s, standard error %.3f: a loss", name, loss, modalities[worst].Name, stderr)
	default:
		v.Adopt = true
		v.Reason = fmt.Sprintf("in a test, codes by %s changed the mAP of labelled items by %+.3f, standard error %.3f", name, v.Gain, v.StdErr)
	}
}

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

// ranking returns the ranking of an ordered pair, with at most this many pairs of a query and an item.
func (g *Guard) ranking(from, to, most int) heldRanking {
	r := heldRanking{from: from, to: to}
	r.queries, r.database = g.rows.Ranking(g.has[from], g.has[to])
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
	return g.rows.Precisions(g.rows.NewScratch(g.online.workers()), r.queries, queries, codes, r.database)
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
		mean, _ := rank.MeanError(g.precisions(&r, g.before.queries[t], g.labels))
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
		is := [][]float64{g.precisions(&r, asks, g.labels), g.precisions(&r, asks, g.before.stored),
			g.precisions(&r, asks, after.stored)}
		differences := make([]float64, len(r.queries))
		for k := range was {
			before, _ := rank.MeanError(was[k])
			now, _ := rank.MeanError(is[k])
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
	mean, _ := rank.MeanError(differences)
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
