package model

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Sizes of a choice. They bound its time to seconds. For each modality they bound its
// memory to the sample, twice, and about ten matrices of choiceFeatures^2 numbers.
const (
	choiceItems    = 4000    // in a sample
	choiceNumbers  = 1 << 26 // numbers of all sampled vectors, with indices: 256 MiB
	choiceFolds    = 3
	choiceAnchors  = 400  // while maps are compared
	refineAnchors  = 600  // while gamma is refined
	refineFeatures = 1536 // with more features gamma stays as found while maps were compared
	choiceFeatures = 3072 // maps with more features are not tried
	minChoiceItems = 50   // fewer items tell too little
)

// open says which settings of a modality are to be chosen.
type open struct{ features, kind, gamma bool }

// openSettings returns the settings that the options leave open, by modality.
func openSettings(opt Options, modalities []Modality) []open {
	var settings []open
	for _, m := range modalities {
		_, features := opt.Features[m.Name]
		_, kind := opt.Map[m.Name]
		_, gamma := opt.Gamma[m.Name]
		settings = append(settings, open{!features, !kind, !gamma})
	}
	return settings
}

// any reports whether anything is to be chosen.
func (o open) any() bool { return o.features || o.kind || o.gamma }

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
// start, then the fusion (fuser).
func (tr *trainer) choose(ctx context.Context) error {
	if !tr.measures() {
		tr.fusions = tr.givenFusions()
		tr.report.Fusion = tr.fusionReport("")
	}
	if n := tr.opt.Start; n > 0 {
		tr.hy = tr.drawStarts(n)[n-1]
	}
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
	for _, c := range choosers {
		c.step = step
		if c.open.any() {
			total += c.steps()
		}
	}
	var f *fuser
	if tr.measures() {
		f = tr.newFuser(choosers)
		f.step = step
		total += f.steps()
	}
	for _, c := range choosers {
		if c.open.any() {
			choice, err := c.run(ctx)
			if err != nil {
				return err
			}
			name := c.modality.Name
			tr.opt.Features[name], tr.opt.Map[name], tr.opt.Gamma[name] = choice.FeatureMap, choice.Map, choice.Gamma
			if tr.report.Choices == nil {
				tr.report.Choices = map[string]*Choice{}
			}
			tr.report.Choices[name] = choice
			c.given, c.gamma = setting{choice.FeatureMap, choice.Map}, choice.Gamma
		}
		if f != nil {
			f.prepare(c)
		}
		c.xs, c.prepared.xs = nil, nil // they are large
		if (f == nil || f.unfit != "") && len(choosers) > 1 {
			c.refined = nil // it is large, too
		}
	}
	start, solvers := tr.chooseStart(choosers), tr.solvers
	tr.starts, tr.solvers = nil, nil
	if err := tr.judgeSweeps(ctx, choosers); err != nil {
		return err
	}
	if f == nil {
		return nil
	}
	for t, c := range choosers {
		if err := f.take(ctx, t, c, solvers[start]); err != nil {
			return err
		}
		*c = chooser{} // drops its large matrices
	}
	return f.run(ctx, tr)
}

// choosers returns a chooser for each modality with an open setting.
func (tr *trainer) choosers(ctx context.Context) (choosers []*chooser, err error) {
	if !slices.ContainsFunc(tr.from.open, open.any) && !tr.measures() {
		return nil, nil
	}
	if err := tr.solveStarts(ctx); err != nil {
		return nil, err
	}
	for t, m := range tr.reader.modalities {
		if tr.choices[t] == nil {
			continue
		}
		c := &chooser{
			modality: m, open: tr.from.open[t], moments: tr.moments[t], q: tr.opt.Bits, need: tr.need(),
			anchors: cmp.Or(tr.opt.Anchors, DefaultAnchorsOf(tr.moments[t].n)),
			given:   setting{tr.opt.Features[m.Name], tr.opt.Map[m.Name]}, gamma: tr.opt.Gamma[m.Name],
		}
		c.sample(tr.choices[t], rand.New(rand.NewPCG(tr.opt.Seed, streamFolds)), tr.sets, tr.solvers)
		tr.choices[t] = nil
		choosers = append(choosers, c)
	}
	return choosers, nil
}

// A setting is a kind of features and a kind of map.
type setting struct {
	features FeatureKind
	kind     MapKind
}

// A chooser chooses features, map and gamma of one modality by cross-validation.
//
// The sampled items are in random order, and a fold is a run of them. The codes H of
// all items are known. A fold f is held out by subtracting its sums from those of all
// items:
//
//	P = (B - B_f) (A - A_f + gamma I)^-1
//
// The features of anchors that lie in the fold are left out, as they would know its
// items. P turns the items of the fold into queries, which a judge measures. So a map
// costs one pass over the sample for all gammas, and a gamma costs a Cholesky factor
// for each fold.
//
// The criterion is retrieval, because squared error asks for too large a gamma.
// Features are compared under the rbf map, then maps with the best features. Then gamma
// is refined with more anchors. Then the starts of C are compared (startCodes). The
// lists begin with the defaults. A later entry must be better by a standard error of
// the difference: of ten settings, the best by a hair is the best by chance.
type chooser struct {
	modality Modality
	open     open
	given    setting  // the settings that are not open, and defaults for those that are
	gamma    float64  // given gamma, or the default
	anchors  int      // that the model will have
	need     int      // features that the method needs
	q        int      // bits of a code
	moments  *moments // of all training vectors before features are applied
	step     func()   // reports progress; called after each map

	xs     []Vector      // of the sample, before features are applied
	items  []int         // numbers of the sampled items
	bottom *bottomSample // which items are kept; the same ones in each modality as far as possible
	setOf  []uint32      // label sets of the sampled items
	bounds []int         // fold f is the rows from bounds[f] to bounds[f+1]
	h      []float32     // codes of the sample as +-1: of the first start; of the chosen start in the end
	judge  *judge        // of the first start
	starts []startCodes  // the codes and the judge of each start
	merits []float64     // mean average precision of each start; nil if there is only one

	scratch []foldScratch // by worker

	prepared struct { // the features used last, kept for the next map
		kind    FeatureKind
		xs      []Vector
		moments *moments
	}
	tried   []Tried
	refined *trial // the chosen setting with more anchors
}

// sample puts the sampled items in random order, and takes their codes from the solvers
// of the starts.
func (c *chooser) sample(s *choiceSample, rng *rand.Rand, sets *labelSets, starts []*solver) {
	n := len(s.kept)
	order := rng.Perm(n)
	items := s.bottom.items()
	c.bottom = s.bottom
	setOf := make([]uint32, n)
	c.h = make([]float32, n*c.q)
	for row, p := range order {
		c.xs, c.items = append(c.xs, s.kept[p].x), append(c.items, items[p])
		setOf[row] = sets.of[items[p]]
	}
	c.setOf = setOf
	c.takeCodes(starts[0])
	for f := range choiceFolds + 1 {
		c.bounds = append(c.bounds, f*n/choiceFolds)
	}
	c.judge = newJudge(setOf, sets, starts[0].setCode, c.q, c.bounds)
	c.scratch = make([]foldScratch, len(c.judge.scratch))
	c.addStarts(setOf, starts)
}

// takeCodes takes the codes of the sample from a solver.
func (c *chooser) takeCodes(s *solver) {
	for row, set := range c.setOf {
		signs(c.h[row*c.q:(row+1)*c.q], s.setCode(set))
	}
}

// unfit returns the reason why nothing can be chosen, or "".
func (c *chooser) unfit() string {
	if _, constant := c.moments.sigma(); constant {
		return "all vectors are equal"
	}
	if n := len(c.xs); n < minChoiceItems {
		return fmt.Sprintf("%d training items have it, fewer than %d", n, minChoiceItems)
	}
	if k := c.given.kind.size(choiceAnchors, c.modality.Dim); k > choiceFeatures {
		return fmt.Sprintf("the map that is given has %d features, more than %d", k, choiceFeatures)
	}
	if n := c.judge.queryCount(); n < minChoiceItems/2 {
		return fmt.Sprintf("%d sampled items have a label in common with others, fewer than %d", n, minChoiceItems/2)
	}
	return ""
}

// featureKinds returns the features to compare, the default first.
func (c *chooser) featureKinds() (kinds []FeatureKind) {
	if !c.open.features {
		return []FeatureKind{c.given.features}
	}
	for k := range FeatureKind(len(featureNames)) {
		if k.fits(c.moments) && !c.redundant(k) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// redundant reports whether the vectors all have the length already that the features
// would give them.
func (c *chooser) redundant(k FeatureKind) bool {
	length := func(x Vector) float64 { return squaredNorm(x.Value) }
	switch k {
	case FeaturesHellingerL2:
		length = func(x Vector) (sum float64) {
			for _, v := range x.Value {
				sum += float64(v)
			}
			return sum
		}
	case FeaturesL2:
	default:
		return false
	}
	first := length(c.xs[0])
	return !slices.ContainsFunc(c.xs, func(x Vector) bool { return !(math.Abs(length(x)-first) <= 1e-4*first) })
}

// otherMaps returns the maps to compare with the first one.
func (c *chooser) otherMaps() (kinds []MapKind) {
	if !c.open.kind {
		return nil
	}
	for _, k := range []MapKind{MapLinear, MapRBFLinear} {
		if k.size(choiceAnchors, c.modality.Dim) <= choiceFeatures && k.size(c.anchors, c.modality.Dim) >= c.need {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// steps returns the number of steps of progress of run.
func (c *chooser) steps() int { return len(c.featureKinds()) + len(c.otherMaps()) + 1 }

// run chooses features, map and gamma. The only error is that of a cancelled context.
func (c *chooser) run(ctx context.Context) (*Choice, error) {
	choice := &Choice{Items: len(c.xs)}
	choice.FeatureMap, choice.Map, choice.Gamma = c.given.features, c.given.kind, c.gamma
	if choice.Unfit = c.unfit(); choice.Unfit != "" {
		for range c.steps() {
			c.step()
		}
		return choice, nil
	}
	choice.Folds, choice.Queries = choiceFolds, c.judge.queryCount()
	var outcomes []*outcome // the best of each setting
	var fallback *outcome
	try := func(s setting) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		// The default, 0.01, comes first, then places around it. Later settings start
		// at the best place of the first one. Features of one map are compared with the
		// same gamma: its best place hardly depends on the features, as all sum up
		// numbers up to 1.
		places, step := []int{defaultPlace, defaultPlace - 3, defaultPlace + 3}, 3
		if len(outcomes) > 0 {
			p := outcomes[0].place
			if places = []int{p, p - 3, p + 3}; s.kind == outcomes[0].Map {
				places, step = places[:1], 0
			}
		}
		o, first, err := c.search(ctx, c.newTrial(s, choiceAnchors), places, step)
		if err != nil {
			return err
		}
		if o != nil {
			outcomes = append(outcomes, o)
		}
		if s == (setting{}) {
			fallback = first
		}
		c.step()
		return nil
	}
	for _, k := range c.featureKinds() {
		if err := try(setting{k, c.given.kind}); err != nil {
			return nil, err
		}
	}
	if len(outcomes) == 0 {
		choice.Unfit = "no ridge that was tried gives a stable solution"
		for range c.steps() - len(c.featureKinds()) {
			c.step()
		}
		return choice, nil
	}
	best := simplest(outcomes)
	compared := len(outcomes)
	for _, k := range c.otherMaps() {
		if err := try(setting{best.FeatureMap, k}); err != nil {
			return nil, err
		}
	}
	best = simplest(append([]*outcome{best}, outcomes[compared:]...))
	var second *outcome
	for _, o := range outcomes {
		if o != best && (second == nil || o.MAP > second.MAP) {
			second = o
		}
	}
	choice.FeatureMap, choice.Map, choice.Gamma = best.FeatureMap, best.Map, best.Gamma
	choice.MAP, choice.StdErr = best.MAP, best.StdErr
	choice.OverRunnerUp, choice.OverDefault = best.over(second), best.over(fallback)
	c.refined = c.newTrial(setting{best.FeatureMap, best.Map}, refineAnchors)
	if c.open.gamma && c.refined.phi.Cols <= refineFeatures {
		before := len(c.tried)
		o, _, err := c.search(ctx, c.refined, []int{best.place}, 1)
		if err != nil {
			return nil, err
		}
		if o != nil {
			choice.Gamma = o.Gamma
		}
		for i := range c.tried[before:] {
			c.tried[before+i].Refined = true
		}
	}
	c.judgeStarts(c.refined, choice.Gamma)
	c.step()
	choice.Tried = c.tried
	return choice, nil
}

// simplest returns the first outcome that is at most a standard error of the difference
// worse than the best one.
func simplest(outcomes []*outcome) *outcome {
	best := slices.MaxFunc(outcomes, func(a, b *outcome) int { return cmp.Compare(a.MAP, b.MAP) })
	for _, o := range outcomes {
		if m := best.over(o); m.MAP <= m.StdErr {
			return o
		}
	}
	return best
}

// An outcome is the result of a setting with one gamma.
type outcome struct {
	Tried
	place      int       // place of gamma on the grid
	precisions []float64 // of each query
}

// over returns the margin of o over another outcome of the same queries.
func (o *outcome) over(other *outcome) *Margin {
	if other == nil {
		return nil
	}
	differences := make([]float64, len(o.precisions))
	for i, v := range o.precisions {
		differences[i] = v - other.precisions[i]
	}
	m := &Margin{FeatureMap: other.FeatureMap, Map: other.Map, Gamma: other.Gamma}
	m.MAP, m.StdErr = meanError(differences)
	return m
}

// defaultPlace is the place of DefaultGamma on the grid; see search.
const defaultPlace = -4

// At smallPlace a ridge gets small against the rounding of float32 features: 1e-4 is
// about the rounding of sums of 2,000 squares.
const smallPlace = -8

// The ends of the grid. Below 1e-5, projections of some thousand items come from
// matrices with a condition beyond ConditionLimit, and fit the rounding. At 1e12 the
// ridge hides everything.
const (
	leastPlace = -10
	mostPlace  = 24
)

// improves reports whether the gamma of o is better than that of best. A small gamma
// must be better by half a standard error: gammas that no longer regularise differ by
// chance, and do badly on other data.
func (o *outcome) improves(best *outcome) bool {
	m := o.over(best)
	if o.place < min(best.place, smallPlace) {
		return m.MAP > m.StdErr/2
	}
	return m.MAP > 0
}

// search looks for the best gamma on a grid. Place 0 is gamma 1, and two steps are a
// factor of 10. It tries the given places. Then it goes up and down from the best one
// until both neighbours are no better, so the best is never at the end of the grid,
// unless that is the least sensible ridge. It returns the best outcome, or nil if no
// gamma has a solution, and the outcome at the first place. If gamma is given it tries
// that one alone. With a step of 0 it tries the given places alone.
func (c *chooser) search(ctx context.Context, t *trial, places []int, step int) (best, first *outcome, err error) {
	sensible := func(p int) bool { return leastPlace <= p && p <= mostPlace }
	places = slices.DeleteFunc(slices.Clone(places), func(p int) bool { return !sensible(p) })
	results := map[int]*outcome{}
	before := len(c.tried)
	if !c.open.gamma {
		places = places[:1]
	}
	for len(places) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		var gammas []float64
		for _, p := range places {
			if c.open.gamma {
				gammas = append(gammas, t.ridge(p))
			} else {
				gammas = append(gammas, c.gamma)
			}
		}
		for i, o := range c.evaluate(t, gammas) {
			o.place = places[i]
			results[o.place] = o
			if o.precisions == nil {
				continue
			}
			if first == nil && places[i] == places[0] {
				first = o
			}
			c.tried = append(c.tried, o.Tried)
			if best == nil || o.improves(best) {
				best = o
			}
		}
		places = nil
		if best == nil || !c.open.gamma || step == 0 {
			break
		}
		for _, p := range []int{best.place - step, best.place + step} {
			if results[p] == nil && sensible(p) {
				places = append(places, p)
			}
		}
	}
	for i := range c.tried[before:] {
		tried := &c.tried[before+i]
		tried.Best = tried.Gamma == best.Gamma
	}
	return best, first, nil
}
