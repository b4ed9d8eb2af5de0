package fit

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/aims"
	"github.com/fddhdb/fddhdb/model/internal/parallel"
	"github.com/fddhdb/fddhdb/model/internal/rank"
	"gonum.org/v1/gonum/mat"
)

// Limits of the measurement of a fusion.
const (
	fusionPairs      = 1 << 26            // pairs of a query and an item to compare: a fraction of a second
	minFusionQueries = minChoiceItems / 2 // fewer tell too little
)

// A FusionChoice reports how codes of unlabelled items are made. Weights that are not given follow from
// sampled training items, whose projections were learned without the item: they are the square roots of the
// weights by which a regression of the aims of the labels on the projections minimises squared error. The
// roots lie halfway to the plain sum, and did as well as the best of all that were tried on every set of
// docs/EVALUATION.md. Then the mean aim is subtracted too: ridge regressions shrink towards it, so an item
// that says little would get its signs.
type FusionChoice struct {
	// Unfit is not empty if there was too little to learn from, and gives the reason. The fusion is the plain
	// sum then.
	Unfit   string             `json:"unfit,omitempty"`
	Weights map[string]float64 `json:"weights"` // see model.Model.Fuse
	// Directions has the mean average precision, expected over ties, of sampled items as queries by one
	// modality among the others, which have the codes that they would have without labels: FROM->TO.
	Directions map[string]float64 `json:"directions,omitempty"`
}

// measures reports whether to learn the fusion, if possible.
func (tr *trainer) measures() bool {
	return tr.opt.Fusion.Rule == FusionAuto && tr.from.open != nil && len(tr.reader.Modalities) > 1
}

func byName(weights []float64, modalities []model.Modality) map[string]float64 {
	m := map[string]float64{}
	for t, w := range weights {
		m[modalities[t].Name] = w
	}
	return m
}

// A fuser learns the fusion from the projections of sampled items.
type fuser struct {
	rank.Among
	modalities []model.Modality
	items      []int       // by row: number of the item
	z          [][]float32 // by modality: projections, q numbers a row; nil if there are none
	has        [][]bool    // by modality and row: whether the item has a projection
	g          []float32   // by row: the aim of the item's labels
	unfit      string      // reason why nothing can be learned
}

// newFuser returns a fuser of items that are in the sample of each modality that they
// have (ofAll). Their projections, and what their labels aim at, are under the codes of a start.
func (tr *trainer) newFuser(taken decision, tunings []*tuning, start int, solved *solution, unfit string,
	steps *steps) *fuser {
	T, q := len(tunings), tr.opt.Bits
	var samples []*bottomSample
	for _, t := range tunings {
		samples = append(samples, t.bottom)
	}
	items := ofAll(samples, max(minChoiceItems, min(choiceItems, choiceNumbers/q/T)))
	row := map[int]int{} // item -> row
	var setOf []uint32
	for i, item := range items {
		row[item] = i
		setOf = append(setOf, taken.sets.setOf(item))
	}
	f := &fuser{
		Among:      rank.Among{Bits: q, Words: codec.Words(q), Harmonic: rank.HarmonicNumbers(len(items))},
		modalities: tr.reader.Modalities, items: items, z: make([][]float32, T), has: make([][]bool, T),
		g: tr.aims(taken, solved, setOf), unfit: unfit,
	}
	f.Set, _, f.Relevant = rank.RelevantSets(setOf, taken.sets.sets, len(taken.sets.labels))
	for t, tuning := range tunings {
		f.has[t] = make([]bool, len(items))
		if unfit == "" {
			f.z[t] = make([]float32, len(items)*q)
			z := tuning.project(tuning.starts[start], taken.prior)
			for r, item := range tuning.items {
				if i, ok := row[item]; ok {
					f.has[t][i] = true
					copy(f.z[t][i*q:(i+1)*q], z[r*q:])
				}
			}
		}
		steps.done++
	}
	return f
}

// aims returns what label sets aim at under the codes of a start.
func (tr *trainer) aims(taken decision, solved *solution, setOf []uint32) []float32 {
	sets, aim, q := taken.sets, tr.aim(taken.sets), tr.opt.Bits
	var weights []float64
	if aim != model.AimCodes {
		weights = sets.weights(aim, taken.prior)
	}
	g, all := make([]float64, q), make([]float32, len(setOf)*q)
	for i, set := range setOf {
		columns := sets.sets[set]
		clear(g)
		switch aim {
		case model.AimLabels:
			aims.AddDirections(g, solved.cm, columns, weights)
		case model.AimWeighted:
			aims.AddSigns(g, solved.setCode(set), aims.MeanWeight(columns, weights))
		default:
			aims.AddSigns(g, solved.setCode(set), 1)
		}
		for j, v := range g {
			all[i*q+j] = float32(v)
		}
	}
	return all
}

// several returns the number of items with several modalities.
func (f *fuser) several() (n int) {
	for i := range f.items {
		have := 0
		for t := range f.has {
			if f.has[t][i] {
				have++
			}
		}
		if have > 1 {
			n++
		}
	}
	return n
}

// run learns the fusion. The mean aim of the sample stands for the mean of all training items.
func (f *fuser) run(ctx context.Context) (how rank.Fusion, choice *FusionChoice, err error) {
	how, choice = Fusion{}.given(f.modalities), &FusionChoice{Unfit: f.unfit}
	if n := f.several(); f.unfit == "" && n < minChoiceItems {
		choice.Unfit = fmt.Sprintf("%d sampled items have several modalities, fewer than %d", n,
			minChoiceItems)
	}
	if choice.Unfit == "" {
		if w := f.regression(); w != nil {
			how.Weights = tempered(w)
		}
		how.Mean = make([]float64, f.Bits)
		for i := range f.items {
			for j := range how.Mean {
				how.Mean[j] += float64(f.g[i*f.Bits+j]) / float64(len(f.items))
			}
		}
		choice.Directions, err = f.measure(ctx, how)
	}
	choice.Weights = byName(how.Weights, f.modalities)
	return how, choice, err
}

// tempered returns the square roots of weights, at most 1, with digits that can be typed.
func tempered(w []float64) (roots []float64) {
	most := slices.Max(w)
	for _, v := range w {
		roots = append(roots, digits(math.Sqrt(v/most)))
	}
	return roots
}

// regression returns the weights, none of them negative, that bring the projections nearest to the aims of
// the labels, g. They minimise the mean of |g - sum of w_t z_t|^2, computed from the means of z_t z_u and z_t
// g over the items that have both. It returns nil if there are no weights.
func (f *fuser) regression() []float64 {
	T := len(f.modalities)
	a, b := mat.NewSymDense(T, nil), make([]float64, T)
	for t := range T {
		for u := t; u < T; u++ {
			var zz, zg, n float64
			for i := range f.items {
				if !f.has[t][i] || !f.has[u][i] {
					continue
				}
				n++
				x, y, g := f.z[t][i*f.Bits:(i+1)*f.Bits], f.z[u][i*f.Bits:(i+1)*f.Bits],
					f.g[i*f.Bits:(i+1)*f.Bits]
				for j, v := range x {
					zz += float64(v) * float64(y[j])
					zg += float64(v) * float64(g[j])
				}
			}
			if n > 0 {
				a.SetSym(t, u, zz/n)
			}
			if t == u && n > 0 {
				b[t] = zg / n
			}
		}
	}
	w := make([]float64, T)
	left := make([]int, T) // the modalities whose weight may still be positive
	for t := range left {
		left[t] = t
	}
	for len(left) > 0 {
		sub, rhs := mat.NewSymDense(len(left), nil), mat.NewVecDense(len(left), nil)
		for i, t := range left {
			rhs.SetVec(i, b[t])
			for j, u := range left[i:] {
				sub.SetSym(i, i+j, a.At(t, u))
			}
		}
		var c mat.Cholesky
		var x mat.VecDense
		if !c.Factorize(sub) || c.SolveVecTo(&x, rhs) != nil {
			return nil
		}
		// Least squares under w >= 0, by leaving out the modality with the most negative
		// weight and solving again. With the few modalities that there are that is cheap.
		least := 0
		for i := range left {
			if x.AtVec(i) < x.AtVec(least) {
				least = i
			}
		}
		if x.AtVec(least) >= 0 {
			for i, t := range left {
				w[t] = x.AtVec(i)
			}
			break
		}
		left = slices.Delete(left, least, least+1)
	}
	if !(slices.Max(w) > 0) || math.IsInf(slices.Max(w), 0) {
		return nil
	}
	return w
}

// measure returns the mean average precision of each direction with a fusion, except those with hardly any
// queries.
func (f *fuser) measure(ctx context.Context, how rank.Fusion) (map[string]float64, error) {
	codes := make([]uint64, len(f.items)*f.Words)
	scratch := f.NewScratch(parallel.Workers())
	f.Encode(codes, how, f.z, f.has, scratch)
	T, found := len(f.modalities), map[string]float64{}
	limit := fusionPairs / max(1, len(f.items)) / (T * T)
	for from := range T {
		// A query has one modality, so a fusion does not change its code.
		alone := rank.Fusion{Weights: make([]float64, T)}
		alone.Weights[from] = 1
		asked := make([]uint64, len(codes))
		f.Encode(asked, alone, f.z, f.has, scratch)
		for to := range T {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if to == from {
				continue
			}
			queries, database := f.Ranking(f.has[from], f.has[to])
			if queries = queries[:min(len(queries), max(1, limit))]; len(queries) < minFusionQueries {
				continue
			}
			mean, _ := rank.MeanError(f.Precisions(scratch, queries, asked, codes, database))
			found[f.modalities[from].Name+"->"+f.modalities[to].Name] = mean
		}
	}
	return found, nil
}
