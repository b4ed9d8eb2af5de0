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

// A tuned has the settings of a modality, as given or chosen.
type tuned struct {
	setting
	gamma     float64
	byDefault bool // gamma is neither given nor chosen
}

// given returns the settings that the options give, with defaults for the open ones, by modality.
func (tr *trainer) given() (settings []tuned) {
	for t, m := range tr.reader.Modalities {
		settings = append(settings, tuned{
			setting: setting{tr.opt.Features[m.Name], tr.opt.Map[m.Name], tr.opt.Width[m.Name]},
			gamma:   tr.opt.Gamma[m.Name], byDefault: tr.from.open != nil && tr.from.open[t].gamma,
		})
	}
	return settings
}

// A decision has what the options leave open.
type decision struct {
	settings []tuned            // by modality
	choices  map[string]*Choice // how they were chosen; see Report
	sets     *labelSets         // with the centre
	prior    float64
	start    int       // see Report
	hy       []float64 // H0 Y0' of that start
	fusion   rank.Fusion
	report   *FusionChoice // how the fusion was chosen
}

// choose settles what the options leave open, from samples of the training items. It chooses the settings of
// one modality after the other (chooser), then the centre, the prior and the start. Then it learns the fusion
// (fuser).
func (tr *trainer) choose(ctx context.Context, seen scanned,
	samples []*choiceSample) (taken decision, err error) {
	sets, starts := seen.sets, tr.takeStarts(seen.sets, seen.hy)
	var choosers []*chooser // of modalities that have been sampled
	var solved []*solution  // of the starts
	if slices.ContainsFunc(tr.from.open, open.any) || tr.measures() {
		if solved, err = tr.solveStarts(ctx, sets, starts); err != nil {
			return taken, err
		}
		choosers = tr.choosers(seen, samples, solved)
	}
	steps := tr.stepsOf(sets, choosers)
	tunings, err := tune(ctx, choosers, steps)
	if err != nil {
		return taken, err
	}
	if tr.opensCentre(sets) {
		if err := steps.begin(ctx, "centre"); err != nil {
			return taken, err
		}
	}
	other, resolved, err := tr.chooseCentre(ctx, sets, tunings, starts, solved)
	if err != nil {
		return taken, err
	}
	if other != nil {
		sets, solved = other, resolved
		for i, c := range choosers {
			choosers[i] = c.under(solved)
		}
		if tunings, err = tune(ctx, choosers, steps); err != nil {
			return taken, err
		}
	}
	steps.skipRounds()
	settings, choices := tr.given(), map[string]*Choice(nil)
	for _, t := range tunings {
		if t.choice == nil {
			continue
		}
		if choices == nil {
			choices = map[string]*Choice{}
		}
		settings[t.at], choices[t.modality.Name] = t.tuned, t.choice
	}
	unfit := "" // reason why no fusion can be learned
	if tr.measures() {
		tunings, unfit = holdAll(choosers, tunings)
	}
	if err := steps.begin(ctx, "prior and start"); err != nil {
		return taken, err
	}
	prior := tr.choosePrior(sets, tunings)
	start := tr.chooseStart(sets, tunings, prior, len(starts))
	taken = decision{
		settings: settings, choices: choices, sets: sets, prior: prior,
		start: cmp.Or(tr.opt.Start, start+1), hy: starts[start],
	}
	if tr.measures() {
		if err := steps.begin(ctx, "fusion"); err != nil {
			return taken, err
		}
		f := tr.newFuser(taken, tunings, start, solved[start], unfit, steps)
		taken.fusion, taken.report, err = f.run(ctx)
		return taken, err
	}
	taken.fusion = tr.opt.Fusion.given(tr.reader.Modalities)
	taken.report = &FusionChoice{Weights: byName(taken.fusion.Weights, tr.reader.Modalities)}
	return taken, nil
}

// tune chooses the open settings of each modality.
func tune(ctx context.Context, choosers []*chooser, steps *steps) (tunings []*tuning, err error) {
	for _, c := range choosers {
		t := &tuning{bench: c.bench, tuned: c.given}
		if c.open.any() {
			if t, err = c.run(ctx, steps); err != nil {
				return nil, err
			}
		}
		tunings = append(tunings, t)
	}
	return tunings, nil
}

// holdAll holds out the samples of choosers with the settings of tunings, unless choosing them has. unfit is
// not empty if that is not possible, and gives the reason.
func holdAll(choosers []*chooser, tunings []*tuning) (all []*tuning, unfit string) {
	for i, t := range tunings {
		if unfit == "" && t.held.Rows == 0 {
			t, unfit = choosers[i].hold(t)
		}
		all = append(all, t)
	}
	return all, unfit
}

// steps counts the steps of a choice of settings, and reports the settings that are being tried.
type steps struct {
	total, done int
	fusion      int // of total: the last ones, which learn the fusion
	report      func(stage string, done, total int64)
}

// stepsOf returns the steps that choosers take.
func (tr *trainer) stepsOf(sets *labelSets, choosers []*chooser) *steps {
	s := &steps{report: tr.opt.Progress}
	rounds := 1
	if tr.opensCentre(sets) {
		rounds = 2 // as another centre asks for other settings
	}
	for _, c := range choosers {
		if c.open.any() {
			s.total += rounds * c.steps()
		}
	}
	if tr.measures() {
		s.fusion = len(choosers)
		s.total += s.fusion
	}
	return s
}

// begin reports what is tried next, unless the context is cancelled.
func (s *steps) begin(ctx context.Context, what string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.report != nil && s.total > 0 {
		s.report("choose "+what, int64(s.done), int64(s.total))
	}
	return nil
}

// skipRounds ends the choice of settings. A second round may not have been needed.
func (s *steps) skipRounds() {
	s.done = max(s.done, s.total-s.fusion)
}

// choosers returns a chooser for each modality that has been sampled: for those with an open setting, and for
// all if the fusion is measured. solved has the solutions of the starts.
func (tr *trainer) choosers(seen scanned, samples []*choiceSample, solved []*solution) (cs []*chooser) {
	room, prior, settings := new(heldRoom), DefaultPrior, tr.given()
	if given := tr.givenPrior(seen.sets); given != nil {
		prior = *given
	}
	for t, m := range tr.reader.Modalities {
		if samples[t] == nil {
			continue
		}
		c := &chooser{
			open: tr.from.open[t], given: settings[t], moments: seen.moments[t],
			need:    tr.need(len(seen.sets.labels)),
			anchors: cmp.Or(tr.opt.Anchors, DefaultAnchorsOf(seen.moments[t].N)),
			room:    room,
		}
		c.bench, c.xs = newBench(t, m, samples[t], rand.New(rand.NewPCG(tr.opt.Seed, random.Folds)),
			tr.aim(seen.sets), prior, solved)
		c.queries = c.comparedQueries()
		cs = append(cs, c)
	}
	return cs
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

// solveStarts solves for the codes of label sets from each of the starts. Codes come from
// labels alone: it uses MethodLabels for all methods, because the codes hardly differ.
func (tr *trainer) solveStarts(ctx context.Context, sets *labelSets,
	starts [][]float64) (solved []*solution, err error) {
	opt := tr.opt
	opt.Method = model.MethodLabels
	for _, hy := range starts {
		s, err := newSolver(opt, nil, sets, hy, nil).run(ctx, nil, opt.Sweeps, nil, nil)
		if err != nil {
			return nil, err
		}
		if tr.aim(sets) != model.AimLabels {
			s.cm = nil // large if labels are embedded; only the codes are needed
		}
		solved = append(solved, s)
	}
	return solved, nil
}

// takeStarts draws the starts: hy, the one of the scan, and others. A given one goes first and is taken for
// the solver; the others help to choose settings.
func (tr *trainer) takeStarts(sets *labelSets, hy []float64) [][]float64 {
	given, n := tr.opt.Start, 1
	if slices.ContainsFunc(tr.from.open, open.any) {
		n = tr.affordableStarts(sets)
	}
	if given == 0 {
		return tr.drawStarts(sets, hy, n)
	}
	n = min(n, searchStarts)
	drawn := tr.drawStarts(sets, hy, max(n, given))
	first := drawn[given-1]
	return slices.Insert(slices.Delete(drawn, given-1, given), 0, first)[:n]
}

// affordableStarts returns the number of starts to choose from. If labels are embedded it is the number by
// which settings are compared. Their embedding follows from the maps, so they get other codes in the end, and
// the present codes do not tell which start is best.
func (tr *trainer) affordableStarts(sets *labelSets) int {
	c, q, most := len(sets.labels), tr.opt.Bits, MostStarts
	if sets.embedding != nil {
		most = searchStarts
	}
	members := 0
	for _, set := range sets.sets {
		members += len(set)
	}
	// A sweep is a decomposition, about 20 c^2 q, and a product of sets and labels.
	work := tr.opt.Sweeps * (20*c*c*q + 2*members*q)
	return max(1, min(most, startWork/work))
}

// drawStarts returns the first n starts: H0 Y0' of the scan, and for other H0 a random
// matrix with rows of the same length.
func (tr *trainer) drawStarts(sets *labelSets, hy []float64, n int) [][]float64 {
	items := make([]float64, len(sets.labels)) // by label
	for i, set := range sets.sets {
		for _, l := range set {
			items[l] += float64(sets.counts[i])
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

// givenPrior returns the prior, nil if it has to be chosen: only AimLabels has a choice, and AimCodes has no
// prior.
func (tr *trainer) givenPrior(sets *labelSets) *float64 {
	aim, prior := tr.aim(sets), 0.0
	if tr.opt.Prior != nil || aim == model.AimLabels {
		return tr.opt.Prior
	}
	if aim == model.AimWeighted {
		prior = embeddedPrior
	}
	return &prior
}

// choosePrior returns the prior, and chooses it if it is open: by the mean over the modalities and over some
// starts. Larger ones must be better, but not by a standard error: they are steps of one quantity, and a
// wrong neighbour costs little.
func (tr *trainer) choosePrior(sets *labelSets, tunings []*tuning) float64 {
	if given := tr.givenPrior(sets); given != nil {
		return *given
	}
	prior, best := DefaultPrior, -1.0
	for _, a := range priors {
		mean, n := 0.0, 0.0
		for _, t := range tunings {
			if t.judges() {
				merit, _ := rank.MeanError(t.meanPrecisions(t.held, t.judge.queries, t.starts, a))
				mean += merit
				n++
			}
		}
		if n == 0 {
			return prior
		}
		if mean/n > best {
			prior, best = a, mean/n
		}
	}
	return prior
}

// chooseStart returns the position of the start from which the solver begins: the one with the best held-out
// retrieval, in the mean over the modalities; the first of equals. A given one is the first.
func (tr *trainer) chooseStart(sets *labelSets, tunings []*tuning, prior float64, starts int) int {
	var judging []*tuning
	judged := starts // as many as all modalities have
	for _, t := range tunings {
		judged = min(judged, len(t.starts))
		if t.judges() {
			judging = append(judging, t)
		}
	}
	if tr.opt.Start > 0 || len(judging) == 0 || judged < 2 || sets.embedding != nil { // see affordableStarts
		return 0
	}
	merits := make([]float64, judged)
	for _, t := range judging {
		floats.AddScaled(merits, 1/float64(len(judging)), t.merits(t.starts[:judged], prior))
	}
	return floats.MaxIdx(merits)
}

const (
	// leastCentreGain is the mAP that another centre must gain, in the mean over items with
	// labels and without. It makes settings be chosen twice.
	leastCentreGain = .005

	centreStarts = 3 // starts whose mean is the criterion among items without labels, which takes longer
)

// opensCentre reports whether the centre has to be chosen.
func (tr *trainer) opensCentre(sets *labelSets) bool {
	return tr.opt.Centre == nil && tr.aim(sets) == model.AimLabels && sets.several()
}

// chooseCentre chooses the centre where items have several labels, if it is open: by the mean over the
// modalities and over some starts, and over items with labels and without. Leaving items out helps the latter
// more. Another centre than the default must be better by leastCentreGain, and by half a standard error of
// the difference, as for settings. If one is it returns the sets with it and their solutions, and settings
// have to be chosen again.
func (tr *trainer) chooseCentre(ctx context.Context, sets *labelSets, tunings []*tuning, starts [][]float64,
	solved []*solution) (other *labelSets, resolved []*solution, err error) {
	judging := slices.DeleteFunc(slices.Clone(tunings), func(t *tuning) bool { return !t.judges() })
	if !tr.opensCentre(sets) || len(judging) == 0 {
		return nil, nil, nil
	}
	queries := 0
	for _, t := range judging {
		queries += len(t.judge.queries)
	}
	var outcomes []*outcome
	for i, share := range centres {
		tried := solved
		if i > 0 {
			if tried, err = tr.solveStarts(ctx, sets.withCentre(share),
				starts[:min(searchStarts, len(starts))]); err != nil {
				return nil, nil, err
			}
		}
		o := &outcome{}
		for _, t := range judging {
			codes := startCodesOf(t.judge, &t.basis, tried)
			labelled, unlabelled := t.meanPrecisions(t.held, t.judge.queries, codes, t.prior),
				t.unlabelledPrecisions(codes)
			for _, p := range [][]float64{labelled, unlabelled} {
				floats.Scale(float64(queries)/float64(len(judging)*len(p)), p) // modalities count alike
			}
			floats.Add(labelled, unlabelled)
			floats.Scale(.5, labelled)
			o.precisions = append(o.precisions, labelled...)
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
		}
		outcomes = append(outcomes, o)
	}
	if gain, stderr := outcomes[1].over(outcomes[0]); !(gain > max(leastCentreGain, stderr/2)) {
		return nil, nil, nil
	}
	other = sets.withCentre(centres[1])
	resolved, err = tr.solveStarts(ctx, other, starts)
	return other, resolved, err
}

// unlabelledPrecisions returns the average precision of each query of the judge among items without labels,
// in the mean over some starts: all other rows under the codes of their own projections, which have not
// learned from them.
func (t *tuning) unlabelledPrecisions(starts []*startCodes) []float64 {
	starts = starts[:min(centreStarts, len(starts))]
	rows := make([]int, len(t.judge.set))
	for i := range rows {
		rows[i] = i
	}
	var queries []int
	for _, row := range t.judge.queries {
		queries = append(queries, int(row))
	}
	a := &rank.Among{Bits: t.q, Words: codec.Words(t.q), Set: t.judge.set, Relevant: t.judge.relevant,
		Harmonic: t.judge.harmonic}
	scratch := a.NewScratch(parallel.Workers())
	alone, has := rank.Fusion{Weights: []float64{1}}, [][]bool{slices.Repeat([]bool{true}, len(rows))}
	codes, mean := make([]uint64, len(rows)*a.Words), make([]float64, len(t.judge.queries))
	for _, s := range starts {
		a.Encode(codes, alone, [][]float32{t.project(s, t.prior)}, has, scratch)
		floats.AddScaled(mean, 1/float64(len(starts)), a.Precisions(scratch, queries, codes, codes, rows))
	}
	return mean
}
