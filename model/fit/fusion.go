package fit

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/aims"
	"github.com/fddhdb/fddhdb/model/internal/parallel"
	"github.com/fddhdb/fddhdb/model/internal/rank"
	"gonum.org/v1/gonum/mat"
)

// Limits of the choice of a fusion.
const (
	fusionPairs = 1 << 28 // pairs of a query and an item to compare: about a second
	// with more modalities fusions are not measured: directions grow with the square
	maxFusionModalities = 16
	minFusionQueries    = minChoiceItems / 2 // fewer tell too little
)

// fusionCentres are the shares of the mean aim to try.
var fusionCentres = []float64{0, .5, 1}

// A FusionChoice reports how codes of unlabelled items are made, and how that was
// chosen. The criterion is mean average precision, expected over ties. Sampled training
// items are queries by one modality among the other items, which have the codes that
// they would have without labels. All codes come from projections that were learned
// without the item.
type FusionChoice struct {
	// Unfit is not empty if nothing could be compared, and gives the reason. The fusion
	// is the sum then.
	Unfit   string `json:"unfit,omitempty"`
	Items   int    `json:"items,omitempty"`   // number of sampled items
	Several int    `json:"several,omitempty"` // sampled items with several modalities
	Queries int    `json:"queries,omitempty"` // queries measured, over all directions

	FusionTried // that was taken
	// The margin over the plain sum, and over the best of the others. It is negative
	// for the simpler one of two fusions that are about as good. nil: nothing was
	// compared.
	OverSum      *FusionMargin `json:"over_sum,omitempty"`
	OverRunnerUp *FusionMargin `json:"over_runner_up,omitempty"`
	Tried        []FusionTried `json:"tried,omitempty"` // simplest first
}

// FusionTried is a fusion of projections that was measured. See Model.Fuse.
type FusionTried struct {
	// Name is sum, regression, tempered, or the name of a modality that is taken alone. The weights of
	// regression come from a regression of the aims of the labels on the projections. The weights of tempered
	// are their square roots.
	Name    string             `json:"name"`
	Centre  float64            `json:"centre"`
	Weights map[string]float64 `json:"weights"`
	MAP     float64            `json:"map_tie,omitempty"` // mean over the directions
	StdErr  float64            `json:"stderr,omitempty"`  // of MAP
	// Directions has the MAP of each direction, FROM->TO.
	Directions map[string]float64 `json:"directions,omitempty"`
}

// A FusionMargin is the difference to another fusion, query by query.
type FusionMargin struct {
	Name   string  `json:"name"`
	Centre float64 `json:"centre"`
	MAP    float64 `json:"map_tie"` // the difference
	StdErr float64 `json:"stderr"`  // of the difference
}

// measures reports whether to measure the fusion, if possible.
func (tr *trainer) measures() bool {
	return tr.opt.Fusion.Rule == FusionAuto && tr.from.open != nil && tr.unmeasured() == ""
}

// unmeasured returns the reason why the modalities leave nothing to measure, or "".
func (tr *trainer) unmeasured() string {
	switch n := len(tr.reader.Modalities); {
	case n == 1:
		return "there is one modality only"
	case n > maxFusionModalities:
		return fmt.Sprintf("there are %d modalities, more than %d", n, maxFusionModalities)
	}
	return ""
}

// fusionReport is the report of a fusion that was not measured.
func (tr *trainer) fusionReport(how rank.Fusion, unfit string) *FusionChoice {
	choice := &FusionChoice{Unfit: unfit, FusionTried: FusionTried{Name: tr.opt.Fusion.String(),
		Weights: byName(how.Weights, tr.reader.Modalities)}}
	if tr.opt.Fusion.Rule == FusionAuto {
		choice.Unfit, choice.Name = cmp.Or(unfit, tr.unmeasured()), fusionNames[FusionSum]
	}
	return choice
}

func byName(weights []float64, modalities []model.Modality) map[string]float64 {
	m := map[string]float64{}
	for t, w := range weights {
		m[modalities[t].Name] = w
	}
	return m
}

// A fuser chooses the fusion, from the projections that the choosers make of their
// samples.
//
// The projections of an item are learned without it, both as a query and as an item of the database. It tries
// these weights: 1 for each modality; the weights of a regression of the aims of the labels on the
// projections, which minimise squared error; the square roots of these, halfway; and each modality alone. It
// tries each of them with none, half and all of the mean aim subtracted. Ridge regressions shrink towards the
// mean, so an item that says little would get the signs of the mean.
//
// A later fusion must be better by a standard error of the difference.
type fuser struct {
	rank.Among
	modalities []model.Modality
	items      []int       // by row: number of the item
	row        map[int]int // item -> row
	z          [][]float32 // by modality: projections, q numbers a row; nil if there are none
	has        [][]bool    // by modality and row: whether the item has a projection
	unfit      string      // reason why nothing can be measured
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

// directions returns the ordered pairs of modalities.
func (f *fuser) directions() (pairs [][2]int) {
	for from := range f.modalities {
		for to := range f.modalities {
			if from != to {
				pairs = append(pairs, [2]int{from, to})
			}
		}
	}
	return pairs
}

func (f *fuser) steps() int { return len(f.modalities) + 1 }

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
func (f *fuser) learn(tr *trainer, s *solver) {
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

// run chooses the fusion, and reports it to tr. It fails only if the context is cancelled.
func (f *fuser) run(ctx context.Context, tr *trainer) (how rank.Fusion, err error) {
	several := f.several()
	if f.unfit == "" && several < minChoiceItems {
		f.unfit = fmt.Sprintf("%d sampled items have several modalities, fewer than %d", several,
			minChoiceItems)
	}
	if f.unfit != "" {
		how = tr.opt.Fusion.given(f.modalities)
		tr.report.Fusion = tr.fusionReport(how, f.unfit)
		f.step()
		return how, nil
	}
	// The mean aim of the sample stands for the mean of all training items.
	f.Mean = make([]float64, f.Bits)
	for i := range f.items {
		for j := range f.Mean {
			f.Mean[j] += float64(f.g[i*f.Bits+j]) / float64(len(f.items))
		}
	}
	candidates := f.candidates()
	outcomes, err := f.measure(ctx, candidates)
	if err != nil {
		return how, err
	}
	defer f.step()
	if len(outcomes) == 0 {
		how = candidates[0].fusion // the sum
		tr.report.Fusion = tr.fusionReport(how,
			fmt.Sprintf("fewer than %d sampled items have a label in common with others of another modality",
				minFusionQueries))
		return how, nil
	}
	best := simplestFusion(outcomes)
	choice := &FusionChoice{Items: len(f.items), Several: several, FusionTried: best.FusionTried}
	var second *fusionOutcome
	for _, o := range outcomes {
		if o != best && (second == nil || o.MAP > second.MAP) {
			second = o
		}
		choice.Tried = append(choice.Tried, o.FusionTried)
	}
	choice.OverSum, choice.OverRunnerUp = best.over(outcomes[0]), best.over(second)
	for _, p := range best.precisions {
		choice.Queries += len(p)
	}
	tr.report.Fusion = choice
	return best.fusion, nil
}

// A fusionOutcome is the result of a fusion.
type fusionOutcome struct {
	FusionTried
	fusion     rank.Fusion
	precisions [][]float64 // of each query, by direction
}

// candidates returns the fusions to try, simplest first.
func (f *fuser) candidates() (all []fusionOutcome) {
	add := func(name string, weights []float64) {
		for _, c := range fusionCentres {
			all = append(all, fusionOutcome{
				FusionTried: FusionTried{Name: name, Centre: c, Weights: byName(weights, f.modalities)},
				fusion:      rank.Fusion{Weights: weights, Centre: c},
			})
		}
	}
	T := len(f.modalities)
	add(fusionNames[FusionSum], slices.Repeat([]float64{1}, T))
	if w := f.regression(); w != nil {
		roots := make([]float64, T)
		for t, v := range w {
			roots[t] = math.Sqrt(v)
		}
		add("tempered", tidy(roots))
		add("regression", tidy(w))
	}
	for t := range T {
		w := make([]float64, T)
		w[t] = 1
		add(f.modalities[t].Name, w)
	}
	return all
}

// tidy scales weights to at most 1, with digits that can be typed.
func tidy(w []float64) []float64 {
	w = slices.Clone(w)
	most := slices.Max(w)
	for t, v := range w {
		w[t], _ = strconv.ParseFloat(strconv.FormatFloat(v/most, 'g', 3, 64), 64)
	}
	return w
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

// measure returns the outcomes of the candidates. It returns none if there are too few queries.
func (f *fuser) measure(ctx context.Context, candidates []fusionOutcome) ([]*fusionOutcome, error) {
	directions := f.directions()
	// Queries of each direction: as many as keep all pairs of a query and an item within
	// fusionPairs.
	limit := max(1, fusionPairs/max(1, len(f.items))/len(candidates)/len(directions))
	queries := make([][]int, len(directions)) // by direction: rows
	database := make([][]int, len(directions))
	for d, pair := range directions {
		counts := make([]int32, len(f.Relevant))
		for i := range f.items {
			if f.has[pair[1]][i] {
				database[d] = append(database[d], i)
				counts[f.Set[i]]++
			}
		}
		for i := 0; i < len(f.items) && len(queries[d]) < limit; i++ {
			// A query without a relevant item has no average precision.
			if f.has[pair[0]][i] && f.RelevantOthers(i, f.has[pair[1]][i], counts) {
				queries[d] = append(queries[d], i)
			}
		}
		if len(queries[d]) == 1 { // one query would count half, and has no standard error
			queries[d] = nil
		}
	}
	if len(slices.Concat(queries...)) < minFusionQueries {
		return nil, nil
	}
	codes := make([]uint64, len(f.items)*f.Words)
	scratch := f.NewScratch(parallel.Workers())
	queryCodes := make([][]uint64, len(f.modalities))
	for _, pair := range directions {
		if from := pair[0]; queryCodes[from] == nil {
			// A query has one modality, so a fusion does not change its code.
			alone := make([]float64, len(f.modalities))
			alone[from] = 1
			queryCodes[from] = make([]uint64, len(codes))
			f.Encode(queryCodes[from], rank.Fusion{Weights: alone}, f.z, f.has, scratch)
		}
	}
	var outcomes []*fusionOutcome
	for _, candidate := range candidates {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		o := candidate
		o.Directions = map[string]float64{}
		f.Encode(codes, o.fusion, f.z, f.has, scratch)
		var variance float64
		for d, pair := range directions {
			from, to := pair[0], pair[1]
			precisions := make([]float64, len(queries[d]))
			parallel.Chunks(len(scratch), len(precisions), 16, func(worker, first, end int) {
				s := &scratch[worker]
				for k := first; k < end; k++ {
					i := queries[d][k]
					precisions[k] = f.Precision(s, i, queryCodes[from][i*f.Words:(i+1)*f.Words], codes,
						database[d])
				}
			})
			o.precisions = append(o.precisions, precisions)
			if len(precisions) == 0 {
				continue
			}
			mean, stderr := rank.MeanError(precisions)
			// Directions count alike, however many queries each has.
			o.MAP += mean
			variance += stderr * stderr
			o.Directions[f.modalities[from].Name+"->"+f.modalities[to].Name] = mean
		}
		if n := float64(len(o.Directions)); n > 0 {
			o.MAP, o.StdErr = o.MAP/n, math.Sqrt(variance)/n
		}
		outcomes = append(outcomes, &o)
	}
	return outcomes, nil
}

// over returns the margin of o over another outcome of the same queries.
func (o *fusionOutcome) over(other *fusionOutcome) *FusionMargin {
	if other == nil {
		return nil
	}
	m := &FusionMargin{Name: other.Name, Centre: other.Centre}
	n, variance := 0.0, 0.0
	for d, p := range o.precisions {
		if len(p) == 0 {
			continue
		}
		differences := make([]float64, len(p))
		for i, v := range p {
			differences[i] = v - other.precisions[d][i]
		}
		mean, stderr := rank.MeanError(differences)
		m.MAP += mean
		variance += stderr * stderr
		n++
	}
	if n > 0 {
		m.MAP, m.StdErr = m.MAP/n, math.Sqrt(variance)/n
	}
	return m
}

// simplestFusion is simplest for fusions.
func simplestFusion(outcomes []*fusionOutcome) *fusionOutcome {
	best := slices.MaxFunc(outcomes, func(a, b *fusionOutcome) int { return cmp.Compare(a.MAP, b.MAP) })
	for _, o := range outcomes {
		if m := best.over(o); m.MAP <= m.StdErr {
			return o
		}
	}
	return best
}
