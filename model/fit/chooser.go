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
	modality model.Modality
	open     open
	given    setting        // the given settings, and defaults for the open ones
	gamma    float64        // given gamma, or the default
	prior    float64        // given prior, or the default, under which settings are compared
	anchors  int            // that the model will have
	need     int            // features that the method needs
	q        int            // bits of a code
	moments  *model.Moments // of all training vectors before features are applied
	step     func()         // reports progress; called after each map

	xs     []model.Vector // of the sample, before features are applied
	items  []int          // numbers of the sampled items
	bottom *bottomSample  // which items are kept; the same ones in each modality as far as possible
	judge  *judge
	basis  basis
	starts []*startCodes // the codes of each start

	queries int // number of queries by which settings are compared

	prepared struct { // the features used last, kept for the next map
		kind    model.FeatureKind
		xs      []model.Vector
		moments *model.Moments
	}
	tried   []Tried
	room    *heldRoom
	refined bool                  // settings have been chosen
	held    dense.Matrix[float64] // of all rows, with the chosen settings; see trial.held
}

// sample puts the sampled items in random order, and takes their codes from the solvers
// of the starts.
func (c *chooser) sample(s *choiceSample, rng *rand.Rand, aim model.Aim, sets *labelSets, starts []*solution) {
	items := s.bottom.items()
	c.bottom = s.bottom
	var setOf []uint32
	for _, p := range rng.Perm(len(s.kept)) {
		c.xs, c.items = append(c.xs, s.kept[p].x), append(c.items, items[p])
		setOf = append(setOf, sets.setOf(items[p]))
	}
	c.judge = newJudge(setOf, sets, c.q)
	c.basis = newBasis(aim, c.prior, sets, c.judge, starts[0])
	c.starts = c.startCodes(starts)
	c.queries = c.comparedQueries()
}

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

// run chooses features, map, width and gamma, and returns what it has taken: what is given and defaults where
// nothing can be chosen. It fails only if the context is cancelled.
func (c *chooser) run(ctx context.Context) (choice *Choice, taken Tried, err error) {
	c.tried, c.refined, c.held = nil, false, dense.Matrix[float64]{}
	choice = &Choice{Items: len(c.xs)}
	taken = Tried{FeatureMap: c.given.features, Map: c.given.kind, Width: c.given.width, Gamma: c.gamma}
	if choice.Unfit = c.unfit(); choice.Unfit != "" {
		for range c.steps() {
			c.step()
		}
		return choice, taken, nil
	}
	choice.Queries = c.queries
	var outcomes []*outcome // the best of each setting
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
		o, err := c.search(ctx, c.newTrial(s, choiceAnchors), places, step)
		if err != nil {
			return err
		}
		if o != nil {
			o.held = dense.Matrix[float64]{} // more anchors will give another
			outcomes = append(outcomes, o)
		}
		c.step()
		return nil
	}
	for _, k := range c.featureKinds() {
		if err := try(setting{k, c.given.kind, c.given.width}); err != nil {
			return nil, taken, err
		}
	}
	if len(outcomes) == 0 {
		choice.Unfit = "no ridge that was tried gives a stable solution"
		for range c.steps() - len(c.featureKinds()) {
			c.step()
		}
		return choice, taken, nil
	}
	best := simplest(outcomes)
	compared := len(outcomes)
	for _, k := range c.otherMaps() {
		if err := try(setting{best.FeatureMap, k, c.given.width}); err != nil {
			return nil, taken, err
		}
	}
	maps := append([]*outcome{best}, outcomes[compared:]...)
	if len(maps) > 1 && best.Map.Size(c.anchors, c.modality.Dim) < c.need {
		maps = maps[1:] // the method needs more features than there are anchors
	}
	chosen, err := c.refine(ctx, simplest(maps))
	if err != nil {
		return nil, taken, err
	}
	c.refined = true
	c.step()
	choice.MAP, choice.StdErr, choice.Tried = chosen.MAP, chosen.StdErr, c.tried
	return choice, chosen.Tried, nil
}

// refine chooses width and gamma with more anchors, and keeps the projections held out with them. If no gamma
// has a solution there it returns best.
func (c *chooser) refine(ctx context.Context, best *outcome) (*outcome, error) {
	kept := best.setting()
	chosen, t, err := c.searchRefined(ctx, kept, best.place)
	if err != nil {
		return nil, err
	}
	if chosen == nil {
		c.hold(t, best.Gamma)
		return best, nil
	}
	all := []*outcome{chosen}
	for _, w := range c.otherWidths(kept.kind) {
		s := kept
		s.width = w
		// Narrow features have smaller sums, but much the same ridge.
		o, other, err := c.searchRefined(ctx, s, chosen.place)
		if err != nil {
			return nil, err
		}
		if o == nil {
			continue
		}
		if all = append(all, o); simplest(all) == o {
			t = other
		}
	}
	chosen = simplest(all)
	if c.held = chosen.held; c.held.Rows < len(c.xs) {
		c.hold(t, chosen.Gamma)
	}
	return chosen, nil
}

// searchRefined searches the best gamma of a setting for all anchors, from a place on. If
// these are many it first searches with fewer, which leaves few steps, and then with fewer
// queries: gammas of a setting differ by less than settings do, query by query.
func (c *chooser) searchRefined(ctx context.Context, s setting,
	place int) (best *outcome, t *trial, err error) {
	step := 1
	if !c.open.gamma {
		step = 0
	}
	t = c.refinedTrial(s)
	many := step > 0 && t.phi.Cols >= 2*refineAnchors
	if many {
		o, err := c.search(ctx, c.newTrial(s, refineAnchors), []int{place}, step)
		if err != nil {
			return nil, nil, err
		}
		if o != nil {
			place = o.place
		}
	}
	if many {
		t.queries = min(searchQueries, c.queries)
	}
	best, err = c.search(ctx, t, []int{place}, step)
	if err != nil || best == nil || t.queries == c.queries {
		return best, t, err
	}
	t.queries = c.queries // to compare it with other settings
	o := c.evaluate(t, best.Gamma)
	o.place = best.place
	c.tried = append(c.tried, o.Tried)
	return o, t, nil
}

// refinedTrial is newTrial with the anchors that width and gamma are chosen with.
func (c *chooser) refinedTrial(s setting) *trial { return c.newTrial(s, c.refinedAnchors(s.kind)) }

// refinedAnchors returns the number of these anchors.
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

// hold keeps the held-out projections for the settings of a trial, and reports whether gamma has a solution.
func (c *chooser) hold(t *trial, gamma float64) bool {
	held, ok := t.hold(c.basis.y, gamma, len(c.xs))
	if ok {
		c.held = held
	}
	return ok
}

// judges reports whether the chooser can compare codes: whether it has held items out with its chosen
// settings.
func (c *chooser) judges() bool { return c.refined && c.held.Rows > 0 }

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
	place      int                   // place of gamma on the grid
	precisions []float64             // of each query
	held       dense.Matrix[float64] // held-out projections of all rows up to the last query
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

// improves reports whether the gamma of o is better than the gamma of best. A small gamma must be better by
// half a standard error: gammas that no longer regularise differ by chance, and do badly on other data.
func (o *outcome) improves(best *outcome) bool {
	gain, stderr := o.over(best)
	if o.place < min(best.place, smallPlace) {
		return gain > stderr/2
	}
	return gain > 0
}

// search looks for the best gamma on a grid. Place 0 is gamma 1, and two steps are a
// factor of 10. It tries the given places. Then it goes up and down from the best one
// until both neighbours are no better, so the best is never at the end of the grid,
// unless that is the least sensible ridge. It returns the best outcome, or nil if no
// gamma has a solution. If gamma is given it tries that one alone. With a step of 0 it
// tries the given places alone.
func (c *chooser) search(ctx context.Context, t *trial, places []int, step int) (best *outcome, err error) {
	sensible := func(p int) bool { return leastPlace <= p && p <= mostPlace }
	places = slices.DeleteFunc(slices.Clone(places), func(p int) bool { return !sensible(p) })
	results := map[int]*outcome{}
	if !c.open.gamma {
		places = places[:1]
	}
	for len(places) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for _, p := range places {
			gamma := c.gamma
			if c.open.gamma {
				gamma = t.ridge(p)
			}
			o := c.evaluate(t, gamma)
			o.place = p
			results[p] = o
			if o.precisions == nil {
				continue
			}
			c.tried = append(c.tried, o.Tried)
			worse := o
			if best == nil || o.improves(best) {
				best, worse = o, best
			}
			if worse != nil {
				worse.held = dense.Matrix[float64]{} // it is large
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
	return best, nil
}
