package fit

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/dense"
	"github.com/fddhdb/fddhdb/model/internal/rank"
)

// A setting is a kind of features, and a kind of map with its width.
type setting struct {
	features model.FeatureKind
	kind     model.MapKind
	width    float64
}

// A chooser chooses features, map, width and gamma of one modality by leaving one item
// out at a time.
//
// The sampled items are queries. The projections of an item are learned from all others, without the feature
// whose anchor it is, because that would know it. Leaving out takes no refit (held). The projections are a
// linear function of the lessons, so they are solved for the basis once, and each start of C and each prior
// makes codes of them.
//
// The criterion is retrieval, because squared error asks for too large a gamma: the mean
// average precision among the codes of the labels of the other items, in the mean over
// some starts, since a choice by one of them follows its chance. Features are compared
// under the rbf map, then maps with the best features. Then width and gamma are chosen
// with more anchors. Then centre, prior and start are chosen, for all modalities together.
// The lists begin with the defaults. A later entry must be better by half a standard error
// of the difference: of ten settings, the best by a hair is the best by chance.
type chooser struct {
	*bench
	open    open
	given   tuned          // the given settings, and defaults for the open ones
	anchors int            // that the model will have
	need    int            // features that the method needs
	moments *model.Moments // of all training vectors before features are applied
	xs      []model.Vector // of the sample, before features are applied
	queries int            // number of queries by which settings are compared
	room    *heldRoom
}

// A bench judges settings of a modality by the codes that its sampled items get.
type bench struct {
	modality model.Modality
	at       int           // its number among the modalities
	q        int           // bits of a code
	prior    float64       // given prior, or the default, under which settings are compared
	items    []int         // numbers of the sampled items
	bottom   *bottomSample // which items are kept; the same ones in each modality as far as possible
	judge    *judge
	basis    basis
	starts   []*startCodes // the codes of each start
}

// newBench puts the sampled items in random order, and takes their codes from the solutions of the starts. It
// also returns the vectors of the items.
func newBench(at int, m model.Modality, s *choiceSample, rng *rand.Rand, aim model.Aim, prior float64,
	solved []*solution) (*bench, []model.Vector) {
	kept, sets, q := s.bottom.items(), solved[0].sets, solved[0].q
	var xs []model.Vector
	var items []int
	var setOf []uint32
	for _, p := range rng.Perm(len(s.kept)) {
		xs, items = append(xs, s.kept[p].x), append(items, kept[p])
		setOf = append(setOf, sets.setOf(kept[p]))
	}
	judge := newJudge(setOf, sets, q)
	basis := newBasis(aim, prior, sets, judge, solved[0])
	return &bench{
		modality: m, at: at, q: q, prior: prior, items: items, bottom: s.bottom, judge: judge, basis: basis,
		starts: startCodesOf(judge, &basis, solved),
	}, xs
}

// under returns the chooser under the codes of other solutions.
func (c *chooser) under(solved []*solution) *chooser {
	bench, other := *c.bench, *c
	bench.starts = startCodesOf(c.judge, &c.basis, solved)
	other.bench = &bench
	return &other
}

// A tuning has the settings of a modality, and the projections that they give the items of its sample.
type tuning struct {
	*bench
	tuned
	choice *Choice               // how the settings were chosen; nil if all are given
	held   dense.Matrix[float64] // held-out projections of all rows, see trial.hold; none if there are none
}

// judges reports whether codes can be compared: whether items have been held out with chosen settings.
func (t *tuning) judges() bool { return t.choice != nil && t.choice.Unfit == "" && t.held.Rows > 0 }

// unfit returns the reason why nothing can be chosen, or "".
func (c *chooser) unfit() string {
	if _, constant := c.moments.Sigma(); constant {
		return "all vectors are equal"
	}
	if n := len(c.xs); n < minChoiceItems {
		return fmt.Sprintf("%d training items have it, fewer than %d", n, minChoiceItems)
	}
	if k := c.given.kind.Size(choiceAnchors, c.modality.Dim); k > choiceFeatures {
		return fmt.Sprintf("the map that is given has %d features, more than %d", k, choiceFeatures)
	}
	if n := len(c.judge.queries); n < minChoiceItems/2 {
		return fmt.Sprintf("%d sampled items have a label in common with others, fewer than %d", n,
			minChoiceItems/2)
	}
	return ""
}

// featureKinds returns the features to compare, the default first.
func (c *chooser) featureKinds() (kinds []model.FeatureKind) {
	if !c.open.features {
		return []model.FeatureKind{c.given.features}
	}
	for k := model.FeaturesRaw; k <= model.FeaturesHellingerL2; k++ {
		if k.Fits(c.moments) && !c.redundant(k) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// redundant reports whether the vectors all have the length already that the features
// would give them.
func (c *chooser) redundant(k model.FeatureKind) bool {
	length := func(x model.Vector) float64 { return dense.SquaredNorm(x.Value) }
	switch k {
	case model.FeaturesHellingerL2:
		length = func(x model.Vector) (sum float64) {
			for _, v := range x.Value {
				sum += float64(v)
			}
			return sum
		}
	case model.FeaturesL2:
	default:
		return false
	}
	first := length(c.xs[0])
	return !slices.ContainsFunc(c.xs,
		func(x model.Vector) bool { return !(math.Abs(length(x)-first) <= 1e-4*first) })
}

// otherMaps returns the maps to compare with the first one.
func (c *chooser) otherMaps() (kinds []model.MapKind) {
	if !c.open.kind {
		return nil
	}
	for _, k := range []model.MapKind{model.MapLinear, model.MapRBFLinear} {
		if k.Size(choiceAnchors, c.modality.Dim) <= choiceFeatures &&
			k.Size(c.anchors, c.modality.Dim) >= c.need {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// otherWidths returns the widths to compare with the first one: none if labels are embedded, because codes
// are then learned with the maps, and the codes of the choice do not tell which width is good. 1,000 labels
// in 128 bits lost up to .05 mAP by choosing one.
func (c *chooser) otherWidths(kind model.MapKind) []float64 {
	if !c.open.width || kind == model.MapLinear || c.basis.sets.embedding != nil {
		return nil
	}
	return widths[1:]
}

// steps returns the number of steps of progress of run.
func (c *chooser) steps() int { return len(c.featureKinds()) + len(c.otherMaps()) + 1 }

// run chooses features, map, width and gamma. It takes what is given, and defaults, where nothing can be
// chosen. It fails only if the context is cancelled.
func (c *chooser) run(ctx context.Context, steps *steps) (*tuning, error) {
	unfit := func(why string, left int) *tuning {
		steps.done += left
		return &tuning{bench: c.bench, tuned: c.given, choice: &Choice{Items: len(c.xs), Unfit: why}}
	}
	if why := c.unfit(); why != "" {
		return unfit(why, c.steps()), nil
	}
	s := &search{chooser: c}
	var outcomes []*outcome // the best of each setting
	try := func(at setting) error {
		what := fmt.Sprintf("%s: %v, %v", c.modality.Name, at.features, at.kind)
		if err := steps.begin(ctx, what); err != nil {
			return err
		}
		// The default, 0.01, comes first, then places around it. Later settings start
		// at the best place of the first one. Features of one map are compared with the
		// same gamma: its best place hardly depends on the features, as all sum up
		// numbers up to 1.
		places, width := []int{defaultPlace, defaultPlace - 3, defaultPlace + 3}, 3
		if len(outcomes) > 0 {
			p := outcomes[0].place
			if places = []int{p, p - 3, p + 3}; at.kind == outcomes[0].Map {
				places, width = places[:1], 0
			}
		}
		// More anchors will give other projections than these.
		o, _, err := s.best(ctx, s.trial(at, choiceAnchors), c.queries, places, width)
		if err != nil {
			return err
		}
		if o != nil {
			outcomes = append(outcomes, o)
		}
		steps.done++
		return nil
	}
	for _, k := range c.featureKinds() {
		if err := try(setting{k, c.given.kind, c.given.width}); err != nil {
			return nil, err
		}
	}
	if len(outcomes) == 0 {
		t := unfit("no ridge that was tried gives a stable solution", c.steps()-len(c.featureKinds()))
		t.choice.Queries = c.queries
		return t, nil
	}
	best := simplest(outcomes)
	compared := len(outcomes)
	for _, k := range c.otherMaps() {
		if err := try(setting{best.FeatureMap, k, c.given.width}); err != nil {
			return nil, err
		}
	}
	maps := append([]*outcome{best}, outcomes[compared:]...)
	if len(maps) > 1 && best.Map.Size(c.anchors, c.modality.Dim) < c.need {
		maps = maps[1:] // the method needs more features than there are anchors
	}
	if err := steps.begin(ctx, c.modality.Name+": width and gamma"); err != nil {
		return nil, err
	}
	chosen, held, err := s.refine(ctx, simplest(maps))
	if err != nil {
		return nil, err
	}
	steps.done++
	return &tuning{bench: c.bench, tuned: tuned{setting: chosen.setting(), gamma: chosen.Gamma}, held: held,
		choice: &Choice{Items: len(c.xs), Queries: c.queries, MAP: chosen.MAP, StdErr: chosen.StdErr,
			Tried: s.tried}}, nil
}

// hold returns a tuning with the projections that its settings give the sample. unfit is not empty if that is
// not possible, and gives the reason.
func (c *chooser) hold(t *tuning) (held *tuning, unfit string) {
	name, features := c.modality.Name, t.kind.Size(choiceAnchors, c.modality.Dim)
	if len(c.xs) < minChoiceItems {
		return t, fmt.Sprintf("%d training items have modality %q, fewer than %d", len(c.xs), name,
			minChoiceItems)
	}
	if features > choiceFeatures {
		return t, fmt.Sprintf("the map of modality %q has %d features, more than %d", name, features,
			choiceFeatures)
	}
	try := c.newTrial(t.setting, c.prepare(t.features), c.refinedAnchors(t.kind))
	gamma := t.gamma
	if c.open.gamma { // nothing could be chosen
		gamma = try.ridge(defaultPlace)
	}
	rows, ok := try.hold(c.basis.y, gamma, len(c.xs))
	if !ok {
		return t, fmt.Sprintf("gamma %g of modality %q gives no stable solution on the sample", gamma, name)
	}
	return &tuning{bench: t.bench, tuned: t.tuned, choice: t.choice, held: rows}, ""
}

// A search looks for the settings of a modality.
type search struct {
	*chooser
	tried []Tried
	last  featured // features that were used last: the next map may have the same
}

// featured has the vectors of a sample with features.
type featured struct {
	kind    model.FeatureKind
	xs      []model.Vector
	moments *model.Moments
}

// trial is newTrial with features of the search.
func (s *search) trial(at setting, anchors int) *trial {
	if s.last.xs == nil || s.last.kind != at.features {
		s.last = s.prepare(at.features)
	}
	return s.newTrial(at, s.last, anchors)
}

// refine chooses width and gamma with more anchors. It also returns the projections held out with them. If no
// gamma has a solution there it returns best.
func (s *search) refine(ctx context.Context, best *outcome) (*outcome, dense.Matrix[float64], error) {
	kept := best.setting()
	chosen, held, t, err := s.refined(ctx, kept, best.place)
	if err != nil {
		return nil, held, err
	}
	if chosen == nil {
		held, _ = t.hold(s.basis.y, best.Gamma, len(s.xs))
		return best, held, nil
	}
	all := []*outcome{chosen}
	for _, w := range s.otherWidths(kept.kind) {
		at := kept
		at.width = w
		// Narrow features have smaller sums, but much the same ridge.
		o, rows, other, err := s.refined(ctx, at, chosen.place)
		if err != nil {
			return nil, held, err
		}
		if o == nil {
			continue
		}
		if all = append(all, o); simplest(all) == o {
			held, t = rows, other
		}
	}
	chosen = simplest(all)
	if held.Rows < len(s.xs) {
		held, _ = t.hold(s.basis.y, chosen.Gamma, len(s.xs))
	}
	return chosen, held, nil
}

// refined searches the best gamma of a setting for all anchors, from a place on. If
// these are many it first searches with fewer, which leaves few steps, and then with fewer
// queries: gammas of a setting differ by less than settings do, query by query. It returns what best
// returns, and the trial.
func (s *search) refined(ctx context.Context, at setting,
	place int) (best *outcome, held dense.Matrix[float64], t *trial, err error) {
	step, queries := 1, s.queries
	if !s.open.gamma {
		step = 0
	}
	t = s.trial(at, s.refinedAnchors(at.kind))
	if step > 0 && t.phi.Cols >= 2*refineAnchors {
		o, _, err := s.best(ctx, s.trial(at, refineAnchors), queries, []int{place}, step)
		if err != nil {
			return nil, held, nil, err
		}
		if o != nil {
			place = o.place
		}
		queries = min(searchQueries, queries)
	}
	best, held, err = s.best(ctx, t, queries, []int{place}, step)
	if err != nil || best == nil || queries == s.queries {
		return best, held, t, err
	}
	best, held = s.evaluate(t, s.queries, best.place, best.Gamma) // to compare it with other settings
	s.tried = append(s.tried, best.Tried)
	return best, held, t, nil
}

// refinedAnchors returns the number of anchors that width and gamma are chosen with.
func (c *chooser) refinedAnchors(kind model.MapKind) int {
	anchors := min(c.anchors, len(c.xs))
	if kind.Size(anchors, c.modality.Dim) > refineFeatures {
		anchors = min(anchors, refineAnchors)
	}
	return anchors
}

// comparedQueries returns the number of queries by which settings are compared: all, unless
// the largest map would take long, or the codes of many labels.
func (c *chooser) comparedQueries() int {
	widest := 1
	for _, k := range append(c.otherMaps(), c.given.kind) {
		widest = max(widest, k.Size(choiceAnchors, c.modality.Dim),
			k.Size(c.refinedAnchors(k), c.modality.Dim))
	}
	most := max(searchQueries, compareWork/(widest*widest))
	return min(len(c.judge.queries), most, max(leastQueries, compareWork/(8*searchStarts*c.basis.y.Cols*c.q)))
}

// simplest returns the first outcome that is at most half a standard error of the
// difference worse than the best one.
func simplest(outcomes []*outcome) *outcome {
	best := slices.MaxFunc(outcomes, func(a, b *outcome) int { return cmp.Compare(a.MAP, b.MAP) })
	for _, o := range outcomes {
		if gain, stderr := best.over(o); gain <= stderr/2 {
			return o
		}
	}
	return best
}

// An outcome is the result of a setting with one gamma.
type outcome struct {
	Tried
	place      int       // place of gamma on the grid
	precisions []float64 // of each query; none if gamma has no solution
}

// setting returns the setting of the outcome.
func (o *outcome) setting() setting { return setting{o.FeatureMap, o.Map, o.Width} }

// over returns how much better o is than another outcome of the same queries, query by query.
func (o *outcome) over(other *outcome) (gain, stderr float64) {
	differences := make([]float64, len(o.precisions))
	for i, v := range o.precisions {
		differences[i] = v - other.precisions[i]
	}
	return rank.MeanError(differences)
}

// defaultPlace is the place of DefaultGamma on the grid; see search.best.
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

// improves reports whether the gamma of o is better than the gamma of best. A small gamma must be better by
// half a standard error: gammas that no longer regularise differ by chance, and do badly on other data.
func (o *outcome) improves(best *outcome) bool {
	gain, stderr := o.over(best)
	if o.place < min(best.place, smallPlace) {
		return gain > stderr/2
	}
	return gain > 0
}

// best looks for the best gamma on a grid. Place 0 is gamma 1, and two steps are a
// factor of 10. It tries the given places. Then it goes up and down from the best one
// until both neighbours are no better, so the best is never at the end of the grid,
// unless that is the least sensible ridge. It returns the best outcome, or nil if no
// gamma has a solution. If gamma is given it tries that one alone. With a step of 0 it
// tries the given places alone. It also returns the held-out projections of the best, of all rows up to the
// last of the queries.
func (s *search) best(ctx context.Context, t *trial, queries int, places []int,
	step int) (best *outcome, held dense.Matrix[float64], err error) {
	sensible := func(p int) bool { return leastPlace <= p && p <= mostPlace }
	places = slices.DeleteFunc(slices.Clone(places), func(p int) bool { return !sensible(p) })
	tried := map[int]bool{}
	if !s.open.gamma {
		places = places[:1]
	}
	for len(places) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, held, err
		}
		for _, p := range places {
			gamma := s.given.gamma
			if s.open.gamma {
				gamma = t.ridge(p)
			}
			o, rows := s.evaluate(t, queries, p, gamma)
			tried[p] = true
			if o.precisions == nil {
				continue
			}
			s.tried = append(s.tried, o.Tried)
			if best == nil || o.improves(best) {
				best, held = o, rows
			}
		}
		places = nil
		if best == nil || !s.open.gamma || step == 0 {
			break
		}
		for _, p := range []int{best.place - step, best.place + step} {
			if !tried[p] && sensible(p) {
				places = append(places, p)
			}
		}
	}
	return best, held, nil
}
