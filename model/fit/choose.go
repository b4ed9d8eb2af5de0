package fit

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/parallel"
	"github.com/fddhdb/fddhdb/model/internal/random"
	"github.com/fddhdb/fddhdb/model/internal/rank"
	"github.com/fddhdb/fddhdb/model/sum"
	"gonum.org/v1/gonum/floats"
)

// Sizes of a choice. They bound its time to seconds. For each modality they bound its
// memory to the sample, twice, and about five matrices of as many numbers as a map has
// features, squared.
const (
	choiceItems   = 4000    // in a sample
	choiceNumbers = 1 << 26 // numbers of all sampled vectors, with indices: 256 MiB
	choiceAnchors = 400     // while features and maps are compared
	// width and gamma are chosen with all anchors up to so many features, else with refineAnchors
	refineFeatures = 2200
	refineAnchors  = 600
	compareWork    = 1 << 34 // multiplications of holding out queries of a setting, roughly
	searchQueries  = 1000    // queries while gamma is searched for many features
	leastQueries   = 300     // if there are so many
	choiceFeatures = 3072    // maps with more features are not tried
	minChoiceItems = 50      // fewer items tell too little
)

// widths are the widths to choose from.
var widths = []float64{DefaultWidth, .25}

// open says which settings of a modality have to be chosen.
type open struct{ features, kind, width, gamma bool }

// openSettings returns the settings that the options leave open, by modality.
func openSettings(opt Options, modalities []model.Modality) []open {
	var settings []open
	for _, m := range modalities {
		_, features := opt.Features[m.Name]
		kind, given := opt.Map[m.Name]
		_, width := opt.Width[m.Name]
		_, gamma := opt.Gamma[m.Name]
		settings = append(settings, open{!features, !given, !width && !(given && kind == model.MapLinear),
			!gamma})
	}
	return settings
}

// any reports whether any setting has to be chosen.
func (o open) any() bool { return o.features || o.kind || o.width || o.gamma }

// A choiceSample is a random sample of the items that have a modality.
type choiceSample struct {
	sample
	bottom *bottomSample // decides which items are kept
	next   int           // number of the next item
}

// newChoiceSample returns an empty sample of items with modality m, drawn by a seed of
// rng.
func newChoiceSample(rng *rand.Rand, m model.Modality) *choiceSample {
	size := choiceItems
	if !m.Sparse {
		size = max(minChoiceItems, min(choiceItems, choiceNumbers/m.Dim))
	}
	s := &choiceSample{bottom: &bottomSample{k: uint64(size), seed: rng.Uint64()}}
	s.place = func(int) int { return s.bottom.add(s.next) }
	return s
}

// add offers the items of a block that have modality t to the sample.
func (s *choiceSample) add(b *sum.Block, t int) {
	for r, i := range b.At[t] {
		s.next = b.First + i
		s.sample.add(b.X[t][r : r+1])
	}
	s.bound()
}

// bound halves the sample while it holds more than choiceNumbers. The lengths of sparse
// vectors are known only when they come.
func (s *choiceSample) bound() {
	for len(s.kept) > minChoiceItems {
		numbers := 0
		for _, k := range s.kept {
			numbers += len(k.x.Index) + len(k.x.Value)
		}
		if numbers <= choiceNumbers {
			return
		}
		var kept []sampled
		for _, p := range s.bottom.shrink(max(minChoiceItems, len(s.kept)/2)) {
			kept = append(kept, s.kept[p])
		}
		s.kept = kept
	}
}

// choose settles the settings that the options leave open, from samples of the training
// items. It chooses the settings of one modality after the other (chooser), then the
// centre, the prior and the start. Then it learns the fusion (fuser).
//
// It returns H0 Y0' of the start that was chosen, hy or another one, and the fusion. Large matrices are
// dropped as soon as nothing needs them: choices are, too.
func (tr *trainer) choose(ctx context.Context, hy []float64,
	choices []*choiceSample) (_ []float64, how rank.Fusion, err error) {
	if tr.opt.Prior == nil && tr.aim() != model.AimLabels { // AimCodes has none
		tr.opt.Prior = new(float64)
		if tr.aim() == model.AimWeighted {
			*tr.opt.Prior = embeddedPrior
		}
	}
	if !tr.measures() {
		how = tr.opt.Fusion.given(tr.reader.Modalities)
		tr.report.Fusion = &FusionChoice{Weights: byName(how.Weights, tr.reader.Modalities)}
	}
	starts := tr.takeStarts(hy)
	choosers, solvers, err := tr.choosers(ctx, starts, choices)
	if err != nil {
		return nil, how, err
	}
	total, done := 0, 0
	step := func() {
		done++
		if p := tr.opt.Progress; p != nil {
			p("choose", int64(done), int64(total))
		}
	}
	rounds := 1
	if tr.opensCentre() {
		rounds = 2 // as another centre asks for other settings
	}
	for _, c := range choosers {
		c.step = step
		if c.open.any() {
			total += rounds * c.steps()
		}
	}
	var f *fuser
	fusionSteps := 0
	if tr.measures() {
		f = tr.newFuser(choosers)
		f.step = step
		fusionSteps = len(choosers)
		total += fusionSteps
	}
	if err := tr.chooseSettings(ctx, choosers); err != nil {
		return nil, how, err
	}
	if other, err := tr.chooseCentre(ctx, choosers, starts, solvers); err != nil {
		return nil, how, err
	} else if other != nil {
		solvers = other
		if err := tr.chooseSettings(ctx, choosers); err != nil {
			return nil, how, err
		}
	}
	for rest := total - fusionSteps; done < rest; {
		step() // for a second round that was not needed
	}
	for _, c := range choosers {
		name := c.modality.Name
		c.given = setting{tr.opt.Features[name], tr.opt.Map[name], tr.opt.Width[name]}
		c.gamma = tr.opt.Gamma[name]
		if f != nil {
			f.prepare(c)
		}
		c.xs, c.prepared.xs = nil, nil // they are large
	}
	tr.choosePrior(choosers)
	start := tr.chooseStart(choosers, len(starts))
	hy, starts = starts[start], nil
	if f != nil {
		f.learn(tr, solvers[start])
		for t, c := range choosers {
			f.take(t, c, start, *tr.opt.Prior)
			*c = chooser{} // drops its large matrices
		}
		if how, tr.report.Fusion, err = f.run(ctx); err != nil {
			return nil, how, err
		}
	}
	return hy, how, nil
}

// chooseSettings chooses the open settings of each modality.
func (tr *trainer) chooseSettings(ctx context.Context, choosers []*chooser) error {
	for _, c := range choosers {
		if !c.open.any() {
			continue
		}
		choice, taken, err := c.run(ctx)
		if err != nil {
			return err
		}
		c.prepared.xs, c.prepared.moments = nil, nil // they are large
		name := c.modality.Name
		tr.opt.Features[name], tr.opt.Map[name] = taken.FeatureMap, taken.Map
		tr.opt.Width[name], tr.opt.Gamma[name] = taken.Width, taken.Gamma
		if tr.report.Choices == nil {
			tr.report.Choices = map[string]*Choice{}
		}
		tr.report.Choices[name] = choice
	}
	return nil
}

// choosers returns a chooser for each modality that has been sampled: for those with an
// open setting, and for all if the fusion is measured. It also returns the solvers of the starts.
func (tr *trainer) choosers(ctx context.Context, starts [][]float64,
	choices []*choiceSample) (choosers []*chooser, solvers []*solution, err error) {
	if !slices.ContainsFunc(tr.from.open, open.any) && !tr.measures() {
		return nil, nil, nil
	}
	if solvers, err = tr.solveStarts(ctx, tr.sets, starts); err != nil {
		return nil, nil, err
	}
	room := new(heldRoom)
	for t, m := range tr.reader.Modalities {
		if choices[t] == nil {
			continue
		}
		c := &chooser{
			modality: m, open: tr.from.open[t], moments: tr.moments[t], q: tr.opt.Bits, need: tr.need(),
			anchors: cmp.Or(tr.opt.Anchors, DefaultAnchorsOf(tr.moments[t].N)),
			given:   setting{tr.opt.Features[m.Name], tr.opt.Map[m.Name], tr.opt.Width[m.Name]},
			gamma:   tr.opt.Gamma[m.Name],
			prior:   DefaultPrior, room: room,
		}
		if tr.opt.Prior != nil {
			c.prior = *tr.opt.Prior
		}
		c.sample(choices[t], rand.New(rand.NewPCG(tr.opt.Seed, random.Folds)), tr.aim(), tr.sets, solvers)
		choices[t] = nil // it may be large
		choosers = append(choosers, c)
	}
	return choosers, solvers, nil
}

// The random start H0 decides at which orthonormal basis C the solver ends, and so how
// well the bits can be told from the features. mAP varies between starts about as much
// as between good settings. Neither the objective nor the distances of the codes say
// which start is good, but held-out retrieval does. Measuring that is cheap: once the
// projections are solved for a basis, a start costs a product of queries x basis x bits.
const (
	searchStarts = 6       // starts whose mean is the criterion for settings, centre and prior
	startWork    = 1 << 30 // multiplications of all starts, roughly
	mostTargets  = 512     // label sets to solve for, at most
)

// solveStarts makes a solver of label sets for each of the starts, and lets it do its sweeps. Codes come from
// labels alone: it uses MethodLabels for all methods, because the codes hardly differ.
func (tr *trainer) solveStarts(ctx context.Context, sets *labelSets,
	starts [][]float64) (solvers []*solution, err error) {
	opt := tr.opt
	opt.Method = model.MethodLabels
	for _, hy := range starts {
		s, err := newSolver(opt, nil, sets, hy, nil).run(ctx, nil, opt.Sweeps, nil, nil)
		if err != nil {
			return nil, err
		}
		if tr.aim() != model.AimLabels {
			s.cm = nil // large if labels are embedded; only the codes are needed
		}
		solvers = append(solvers, s)
	}
	return solvers, nil
}

// takeStarts draws the starts: hy, the one of the scan, and others. A given one goes first and is taken for
// the solver; the others help to choose settings.
func (tr *trainer) takeStarts(hy []float64) [][]float64 {
	given, n := tr.opt.Start, 1
	if slices.ContainsFunc(tr.from.open, open.any) {
		n = tr.affordableStarts()
	}
	if given == 0 {
		return tr.drawStarts(hy, n)
	}
	n = min(n, searchStarts)
	drawn := tr.drawStarts(hy, max(n, given))
	first := drawn[given-1]
	return slices.Insert(slices.Delete(drawn, given-1, given), 0, first)[:n]
}

// affordableStarts returns the number of starts to choose from. If labels are embedded it is the number by
// which settings are compared. Their embedding follows from the maps, so they get other codes in the end, and
// the present codes do not tell which start is best.
func (tr *trainer) affordableStarts() int {
	c, q, most := len(tr.sets.labels), tr.opt.Bits, MostStarts
	if tr.sets.embedding != nil {
		most = searchStarts
	}
	members := 0
	for _, set := range tr.sets.sets {
		members += len(set)
	}
	// A sweep is a decomposition, about 20 c^2 q, and a product of sets and labels.
	work := tr.opt.Sweeps * (20*c*c*q + 2*members*q)
	return max(1, min(most, startWork/work))
}

// drawStarts returns the first n starts: H0 Y0' of the scan, and for other H0 a random
// matrix with rows of the same length.
func (tr *trainer) drawStarts(hy []float64, n int) [][]float64 {
	items := make([]float64, len(tr.sets.labels)) // by label
	for i, set := range tr.sets.sets {
		for _, l := range set {
			items[l] += float64(tr.sets.counts[i])
		}
	}
	starts := [][]float64{hy}
	rng := rand.New(rand.NewPCG(tr.opt.Seed, random.Starts))
	for len(starts) < n {
		var hy []float64
		for _, n := range items {
			for range tr.opt.Bits {
				hy = append(hy, math.Sqrt(n)*rng.NormFloat64())
			}
		}
		starts = append(starts, hy)
	}
	return starts
}

// choosePrior chooses the prior, if it is open: by the mean over the modalities and over some starts. Larger
// ones must be better, but not by a standard error: they are steps of one quantity, and a wrong neighbour
// costs little.
func (tr *trainer) choosePrior(choosers []*chooser) {
	if tr.opt.Prior != nil {
		return
	}
	prior := DefaultPrior
	tr.opt.Prior = &prior
	best := -1.0
	for _, a := range priors {
		mean, n := 0.0, 0.0
		for _, c := range choosers {
			if c.judges() {
				merit, _ := rank.MeanError(c.meanPrecisions(c.held, c.judge.queries, c.starts, a))
				mean += merit
				n++
			}
		}
		if n == 0 {
			return
		}
		if mean/n > best {
			prior, best = a, mean/n
		}
	}
}

// chooseStart lets the solver begin at the start with the best held-out retrieval, in
// the mean over the modalities; the first of equals. It returns the position of that
// start.
func (tr *trainer) chooseStart(choosers []*chooser, starts int) int {
	tr.report.Start = max(1, tr.opt.Start)
	if tr.opt.Start > 0 {
		return 0
	}
	var judging []*chooser
	judged := starts // as many as all choosers have
	for _, c := range choosers {
		judged = min(judged, len(c.starts))
		if c.judges() {
			judging = append(judging, c)
		}
	}
	if len(judging) == 0 || judged < 2 || tr.sets.embedding != nil { // see affordableStarts
		return 0
	}
	merits := make([]float64, judged)
	for _, c := range judging {
		floats.AddScaled(merits, 1/float64(len(judging)), c.merits(c.starts[:judged], *tr.opt.Prior))
	}
	best := floats.MaxIdx(merits)
	tr.report.Start = best + 1
	return best
}

const (
	// leastCentreGain is the mAP that another centre must gain, in the mean over items with
	// labels and without. It makes settings be chosen twice.
	leastCentreGain = .005

	centreStarts = 3 // starts whose mean is the criterion among items without labels, which takes longer
)

// opensCentre reports whether the centre has to be chosen.
func (tr *trainer) opensCentre() bool {
	return tr.opt.Centre == nil && tr.aim() == model.AimLabels && tr.sets.several()
}

// chooseCentre chooses the centre where items have several labels, if it is open: by the mean over the
// modalities and over some starts, and over items with labels and without. Leaving items out helps the latter
// more. Another centre than the default must be better by leastCentreGain, and by half a standard error of
// the difference, as for settings. It reports whether another was taken; starts then have other codes, and
// settings have to be chosen again.
func (tr *trainer) chooseCentre(ctx context.Context, choosers []*chooser, starts [][]float64,
	solvers []*solution) (other []*solution, err error) {
	judging := slices.DeleteFunc(slices.Clone(choosers), func(c *chooser) bool { return !c.judges() })
	if !tr.opensCentre() || len(judging) == 0 {
		return nil, nil
	}
	queries := 0
	for _, c := range judging {
		queries += len(c.judge.queries)
	}
	var outcomes []*outcome
	for i, share := range centres {
		tried := solvers
		if i > 0 {
			if tried, err = tr.solveStarts(ctx, tr.sets.withCentre(share),
				starts[:min(searchStarts, len(starts))]); err != nil {
				return nil, err
			}
		}
		o := &outcome{}
		for _, c := range judging {
			codes := c.startCodes(tried)
			labelled, unlabelled := c.meanPrecisions(c.held, c.judge.queries, codes, c.prior),
				c.unlabelledPrecisions(codes)
			for _, p := range [][]float64{labelled, unlabelled} {
				floats.Scale(float64(queries)/float64(len(judging)*len(p)), p) // modalities count alike
			}
			floats.Add(labelled, unlabelled)
			floats.Scale(.5, labelled)
			o.precisions = append(o.precisions, labelled...)
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		outcomes = append(outcomes, o)
	}
	if gain, stderr := outcomes[1].over(outcomes[0]); !(gain > max(leastCentreGain, stderr/2)) {
		return nil, nil
	}
	tr.setCentre(centres[1])
	if other, err = tr.solveStarts(ctx, tr.sets, starts); err != nil {
		return nil, err
	}
	for _, c := range choosers {
		c.starts = c.startCodes(other)
	}
	return other, nil
}

// unlabelledPrecisions returns the average precision of each query of the judge among items without labels,
// in the mean over some starts: all other rows under the codes of their own projections, which have not
// learned from them.
func (c *chooser) unlabelledPrecisions(starts []*startCodes) []float64 {
	starts = starts[:min(centreStarts, len(starts))]
	rows := make([]int, len(c.judge.set))
	for i := range rows {
		rows[i] = i
	}
	var queries []int
	for _, row := range c.judge.queries {
		queries = append(queries, int(row))
	}
	a := &rank.Among{Bits: c.q, Words: codec.Words(c.q), Set: c.judge.set, Relevant: c.judge.relevant,
		Harmonic: c.judge.harmonic}
	scratch := a.NewScratch(parallel.Workers())
	alone, has := rank.Fusion{Weights: []float64{1}}, [][]bool{slices.Repeat([]bool{true}, len(rows))}
	codes, mean := make([]uint64, len(rows)*a.Words), make([]float64, len(c.judge.queries))
	for _, s := range starts {
		a.Encode(codes, alone, [][]float32{c.project(s, c.prior)}, has, scratch)
		floats.AddScaled(mean, 1/float64(len(starts)), a.Precisions(scratch, queries, codes, codes, rows))
	}
	return mean
}
