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

// A fuser learns the fusion from the projections that the choosers make of their samples.
type fuser struct {
	rank.Among
	modalities []model.Modality
	items      []int       // by row: number of the item
	row        map[int]int // item -> row
	z          [][]float32 // by modality: projections, q numbers a row; nil if there are none
	has        [][]bool    // by modality and row: whether the item has a projection
	unfit      string      // reason why nothing can be learned
	step       func()      // reports progress

	g []float32 // by row: the aim of the item's labels
}

// newFuser returns a fuser of items that are in the sample of each modality that they
// have (ofAll).
func (tr *trainer) newFuser(choosers []*chooser) *fuser {
	f := &fuser{Among: rank.Among{Bits: tr.opt.Bits, Words: codec.Words(tr.opt.Bits)},
		modalities: tr.reader.Modalities, row: map[int]int{}}
	var samples []*bottomSample
	for _, c := range choosers {
		samples = append(samples, c.bottom)
	}
	T := len(f.modalities)
	f.items = ofAll(samples, max(minChoiceItems, min(choiceItems, choiceNumbers/f.Bits/T)))
	f.g = make([]float32, len(f.items)*f.Bits)
	for i, item := range f.items {
		f.row[item] = i
	}
	var setOf []uint32
	for _, item := range f.items {
		setOf = append(setOf, tr.sets.setOf(item))
	}
	f.Set, _, f.Relevant = rank.RelevantSets(setOf, tr.sets.sets, len(tr.sets.labels))
	f.Harmonic = rank.HarmonicNumbers(len(f.items))
	return f
}

// prepare holds out the sample of a chooser with its settings, unless choosing them has.
func (f *fuser) prepare(c *chooser) {
	name := c.modality.Name
	switch k := c.given.kind.Size(choiceAnchors, c.modality.Dim); {
	case f.unfit != "":
	case len(c.xs) < minChoiceItems:
		f.unfit = fmt.Sprintf("%d training items have modality %q, fewer than %d", len(c.xs), name,
			minChoiceItems)
	case k > choiceFeatures:
		f.unfit = fmt.Sprintf("the map of modality %q has %d features, more than %d", name, k, choiceFeatures)
	case c.held.Rows == 0:
		t := c.refinedTrial(c.given)
		if c.open.gamma { // nothing could be chosen
			c.gamma = t.ridge(defaultPlace)
		}
		if !c.hold(t, c.gamma) {
			f.unfit = fmt.Sprintf("gamma %g of modality %q gives no stable solution on the sample", c.gamma,
				name)
		}
	}
}

// take takes the projections of the sample of modality t, under the codes of a start.
func (f *fuser) take(t int, c *chooser, start int, prior float64) {
	defer f.step()
	f.z, f.has = append(f.z, nil), append(f.has, make([]bool, len(f.items)))
	if f.unfit != "" {
		return
	}
	z := c.project(c.starts[start], prior)
	f.z[t] = make([]float32, len(f.items)*f.Bits)
	for r, item := range c.items {
		if i, ok := f.row[item]; ok {
			f.has[t][i] = true
			copy(f.z[t][i*f.Bits:(i+1)*f.Bits], z[r*f.Bits:])
		}
	}
}

// learn computes the aims of the labels of the items, under the codes of a start.
func (f *fuser) learn(tr *trainer, s *solution) {
	var weights []float64
	if aim := tr.aim(); aim != model.AimCodes {
		weights = tr.sets.weights(aim, *tr.opt.Prior)
	}
	g := make([]float64, f.Bits)
	for i, item := range f.items {
		set := tr.sets.setOf(item)
		columns := tr.sets.sets[set]
		clear(g)
		switch tr.aim() {
		case model.AimLabels:
			aims.AddDirections(g, s.cm, columns, weights)
		case model.AimWeighted:
			aims.AddSigns(g, s.setCode(set), aims.MeanWeight(columns, weights))
		default:
			aims.AddSigns(g, s.setCode(set), 1)
		}
		for j, v := range g {
			f.g[i*f.Bits+j] = float32(v)
		}
	}
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
	if n := f.several(); f.unfit == "" && n < minChoiceItems {
		f.unfit = fmt.Sprintf("%d sampled items have several modalities, fewer than %d", n, minChoiceItems)
	}
	how = Fusion{}.given(f.modalities)
	choice = &FusionChoice{Unfit: f.unfit}
	if f.unfit == "" {
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
