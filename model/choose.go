package model

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
)

// Sizes of a choice. They bound its time to seconds. For each modality they bound its
// memory to the sample, twice, and about five matrices of as many numbers as a map has
// features, squared.
const (
	choiceItems    = 4000    // in a sample
	choiceNumbers  = 1 << 26 // numbers of all sampled vectors, with indices: 256 MiB
	choiceAnchors  = 400     // while features and maps are compared
	refineFeatures = 2200    // width and gamma are chosen with all anchors up to so many features, else with refineAnchors
	refineAnchors  = 600
	compareWork    = 1 << 34 // multiplications of holding out queries of a setting, roughly
	searchQueries  = 1000    // queries while gamma is searched for many features
	leastQueries   = 300     // if there are so many
	choiceFeatures = 3072    // maps with more features are not tried
	minChoiceItems = 50      // fewer items tell too little
)

// widths are the widths to choose from.
var widths = []float64{DefaultWidth, .25}

// open says which settings of a modality are to be chosen.
type open struct{ features, kind, width, gamma bool }

// openSettings returns the settings that the options leave open, by modality.
func openSettings(opt Options, modalities []Modality) []open {
	var settings []open
	for _, m := range modalities {
		_, features := opt.Features[m.Name]
		kind, given := opt.Map[m.Name]
		_, width := opt.Width[m.Name]
		_, gamma := opt.Gamma[m.Name]
		settings = append(settings, open{!features, !given, !width && !(given && kind == MapLinear), !gamma})
	}
	return settings
}

// any reports whether anything is to be chosen.
func (o open) any() bool { return o.features || o.kind || o.width || o.gamma }

// A choiceSample is a random sample of the items that have a modality.
type choiceSample struct {
	sample
	bottom *bottomSample // decides which items are kept
	next   int           // number of the next item
}

// newChoiceSample returns an empty sample of items with modality m, drawn by a seed of
// rng.
func newChoiceSample(rng *rand.Rand, m Modality) *choiceSample {
	size := choiceItems
	if !m.Sparse {
		size = max(minChoiceItems, min(choiceItems, choiceNumbers/m.Dim))
	}
	s := &choiceSample{bottom: &bottomSample{k: uint64(size), seed: rng.Uint64()}}
	s.place = func(int) int { return s.bottom.add(s.next) }
	return s
}

// add offers the items of a block that have modality t to the sample.
func (s *choiceSample) add(b *block, t int) {
	for r, i := range b.at[t] {
		s.next = b.first + i
		s.sample.add(b.x[t][r : r+1])
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
// centre, the prior and the start, then the fusion (fuser).
func (tr *trainer) choose(ctx context.Context) error {
	if tr.opt.Prior == nil && tr.aim() != AimLabels { // AimCodes has none
		tr.opt.Prior = new(float64)
		if tr.aim() == AimWeighted {
			*tr.opt.Prior = embeddedPrior
		}
	}
	if !tr.measures() {
		tr.fusion = tr.opt.Fusion.given(tr.reader.modalities)
		tr.report.Fusion = tr.fusionReport("")
	}
	tr.takeStarts()
	choosers, err := tr.choosers(ctx)
	if err != nil {
		return err
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
		fusionSteps = f.steps()
		total += fusionSteps
	}
	if err := tr.chooseSettings(ctx, choosers); err != nil {
		return err
	}
	changed, err := tr.chooseCentre(ctx, choosers)
	if err != nil {
		return err
	}
	if changed {
		if err := tr.chooseSettings(ctx, choosers); err != nil {
			return err
		}
	}
	for rest := total - fusionSteps; done < rest; {
		step() // of a second round that was not needed
	}
	for _, c := range choosers {
		if choice := tr.report.Choices[c.modality.Name]; choice != nil {
			c.given, c.gamma = setting{choice.FeatureMap, choice.Map, choice.Width}, choice.Gamma
		}
		if f != nil {
			f.prepare(c)
		}
		c.xs, c.prepared.xs = nil, nil // they are large
	}
	tr.choosePrior(choosers)
	start := tr.chooseStart(choosers)
	tr.starts = nil
	if err := tr.judgeSweeps(ctx, choosers); err != nil {
		return err
	}
	if f != nil {
		f.learn(tr, tr.solvers[start])
		for t, c := range choosers {
			f.take(t, c, start, *tr.opt.Prior)
			*c = chooser{} // drops its large matrices
		}
		if err := f.run(ctx, tr); err != nil {
			return err
		}
	}
	tr.solvers = nil
	return nil
}

// chooseSettings chooses the open settings of each modality.
func (tr *trainer) chooseSettings(ctx context.Context, choosers []*chooser) error {
	for _, c := range choosers {
		if !c.open.any() {
			continue
		}
		choice, err := c.run(ctx)
		if err != nil {
			return err
		}
		c.prepared.xs, c.prepared.moments = nil, nil // they are large
		name := c.modality.Name
		tr.opt.Features[name], tr.opt.Map[name] = choice.FeatureMap, choice.Map
		tr.opt.Width[name], tr.opt.Gamma[name] = choice.Width, choice.Gamma
		if tr.report.Choices == nil {
			tr.report.Choices = map[string]*Choice{}
		}
		tr.report.Choices[name] = choice
	}
	return nil
}

// choosers returns a chooser for each modality that has been sampled: for those with an
// open setting, and for all if the fusion is measured.
func (tr *trainer) choosers(ctx context.Context) (choosers []*chooser, err error) {
	if !slices.ContainsFunc(tr.from.open, open.any) && !tr.measures() {
		return nil, nil
	}
	if tr.solvers, err = tr.solveStarts(ctx, tr.sets, len(tr.starts)); err != nil {
		return nil, err
	}
	room := new(heldRoom)
	for t, m := range tr.reader.modalities {
		if tr.choices[t] == nil {
			continue
		}
		c := &chooser{
			modality: m, open: tr.from.open[t], moments: tr.moments[t], q: tr.opt.Bits, need: tr.need(),
			anchors: cmp.Or(tr.opt.Anchors, DefaultAnchorsOf(tr.moments[t].n)),
			given:   setting{tr.opt.Features[m.Name], tr.opt.Map[m.Name], tr.opt.Width[m.Name]}, gamma: tr.opt.Gamma[m.Name],
			prior: DefaultPrior, room: room,
		}
		if tr.opt.Prior != nil {
			c.prior = *tr.opt.Prior
		}
		c.sample(tr.choices[t], rand.New(rand.NewPCG(tr.opt.Seed, streamFolds)), tr.aim(), tr.sets, tr.solvers)
		tr.choices[t] = nil
		choosers = append(choosers, c)
	}
	return choosers, nil
}
