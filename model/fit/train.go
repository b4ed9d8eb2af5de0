package fit

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/parallel"
	"github.com/fddhdb/fddhdb/model/internal/random"
	"github.com/fddhdb/fddhdb/model/internal/wire"
	"github.com/fddhdb/fddhdb/model/sum"
)

// Result is the result of a training.
type Result struct {
	Model      *model.Model
	Statistics *model.Statistics // nil for methods without labels
	Report     Report

	// The codes of items in Statistics that are not LabelCode of their labels, by position in the source.
	// With MethodLabels codes follow from labels, and it is nil. The other methods move Y of each item by its
	// features: with a small Delta there can be many.
	exceptions map[int]codec.Code
}

// start is where a training starts: everything that it would draw at random. Tests
// start it from a recorded run instead; nothing else differs.
type start struct {
	signs    func(dst codec.Code)                   // writes H0 of the next item; bits beyond q are 0
	anchors  func(t, k int) func(i int) (place int) // see newSample
	rotation func(t, k int) []float64               // the first R_t of MethodPaper, k x q
	seen     func(*solver)                          // called after each sweep; may be nil
	open     []open                                 // by modality: settings to choose; nil: none

	ties            *rand.Rand // for breakTies; may be nil
	randomEmbedding bool       // keep the random embedding of the labels, for comparison
}

// seeded draws the start from the seed. The anchors of all modalities come from the
// same stream. So they are the same items if all items have all modalities.
func seeded(seed uint64, bits int) start {
	rotations := rand.New(rand.NewPCG(seed, random.Rotations))
	return start{
		ties:  rand.New(rand.NewPCG(seed, random.Ties)),
		signs: random.SignsFrom(seed, bits, 0),
		anchors: func(_, k int) func(int) int {
			return random.Reservoir(rand.New(rand.NewPCG(seed, random.Anchors)), k)
		},
		rotation: func(_, k int) []float64 {
			r := make([]float64, k*bits)
			for i := range r {
				r[i] = rotations.Float64()
			}
			return r
		},
	}
}

// begin fills in the defaults of options, and returns the start of their seed.
func begin(opt Options, modalities []model.Modality) (Options, start, error) {
	undecided := openSettings(opt, modalities)
	opt, err := opt.withDefaults(modalities)
	from := seeded(opt.Seed, opt.Bits)
	from.open = undecided
	return opt, from, err
}

// Train learns a model from items. See the package comment for the methods and Options for the
// settings. What follows is about methods that learn from labels. The others read the source once, hold a
// sample of it, up to some 400 MB, and take seconds, up to a few minutes with 512 bits or more.
//
// It reads the source twice: for the labels, the moments, the anchors and a sample to
// choose with; then for the statistics. It reads it once more if features are not raw;
// once more and once a sweep with MethodJoint or MethodPaper; and once more if labels
// are embedded.
//
// It holds two blocks of 512 items and, for each item, 4 bytes (MethodLabels) or 4 + 8c
// + q/8 (the others), besides the statistics: once up to 65,536 items, twice up to a million, and once
// more for each further factor of 16 (LeafItems). While it chooses it also holds up to
// 4,000 vectors of each modality and some hundred MB, 1 GB for a modality of 3,000
// dimensions.
//
// It takes n k (k/2 + d + q) multiplications a modality, and n k (d + 2c) more for
// every sweep of joint and paper, all on GOMAXPROCS cores. The next block is read
// meanwhile. Choosing takes a few seconds, however many items there are; up to half a
// minute for modalities of 2,000 to 3,000 dimensions.
//
// If the training needs more memory than there is, or than Options.MemoryBytes, the
// error is a *MemoryError: a map of k features takes about 36 k^2 bytes.
//
// Equal options and data give a model with equal bytes, on one architecture, for any GOMAXPROCS, and also
// where TrainOver lets other processes read the items. Cancelling the context stops it within a block.
func Train(ctx context.Context, modalities []model.Modality, src sum.Source, opt Options) (*Result, error) {
	if opt.Method.LabelFree() && opt.Method <= model.MethodCCAITQ {
		result, err := trainLabelFree(ctx, slices.Clone(modalities), src, nil, opt)
		if err != nil {
			return nil, fmt.Errorf("training: %w", err)
		}
		return result, nil
	}
	opt, from, err := begin(opt, modalities)
	if err != nil {
		return nil, fmt.Errorf("training: %w", err)
	}
	result, err := train(ctx, slices.Clone(modalities), src, nil, opt, from)
	if err != nil {
		return nil, fmt.Errorf("training: %w", err)
	}
	return result, nil
}

// A trainer is a training: what was asked for, and what reads the items. It belongs to the goroutine of
// Train. A phase takes what the phases before have returned; the trainer itself does not change.
type trainer struct {
	opt    Options // with defaults filled in
	from   start
	reader *sum.Reader
}

// A scanned has what the first pass finds.
type scanned struct {
	sets    *labelSets       // with the centre and the embedding to begin with
	hy      []float64        // H0 Y0', c x q
	moments []*model.Moments // by modality: of the vectors before features are applied
	anchors []*sample        // by modality: candidates for anchors; nil for a linear map
}

// train is Train from a given start, or TrainOver if there is an engine and no source.
func train(ctx context.Context, modalities []model.Modality, src sum.Source, engine sum.Engine, opt Options,
	from start) (_ *Result, err error) {
	defer parallel.Guard(&err, "in the numerics")
	tr := &trainer{
		opt: opt, from: from,
		reader: &sum.Reader{Modalities: modalities, Source: src, Engine: engine, Progress: opt.Progress},
	}
	if _, err := tr.checkMemory(make([]int, len(modalities)), nil); err != nil {
		return nil, err
	}
	clock := newStopwatch()
	seen, samples, err := tr.scan(ctx)
	if err != nil {
		return nil, err
	}
	clock.phase("scan")
	memory, err := tr.checkMemory(seen.items(), seen.sets)
	if err != nil {
		return nil, err
	}
	taken, err := tr.choose(ctx, seen, samples)
	if err != nil {
		return nil, err
	}
	clock.phase("choose")
	maps, chosen, err := tr.makeMaps(ctx, seen, taken.settings)
	if err != nil {
		return nil, err
	}
	clock.phase("maps")
	sets, parts := taken.sets, tr.parts(taken.sets, maps, chosen)
	if random := sets.embedding; random != nil && !tr.from.randomEmbedding {
		learned, err := tr.embed(ctx, random, parts)
		if err != nil {
			return nil, err
		}
		sets = sets.withEmbedding(learned)
		clock.phase("embedding")
	}
	solved, err := tr.solve(ctx, sets, taken.hy, maps)
	if err != nil {
		return nil, err
	}
	clock.phase("sweeps")
	parts.C, parts.Aim, parts.Fusion = solved.cm, tr.aim(sets), taken.fusion.Weights
	if parts.Aim != model.AimCodes {
		parts.Prior, parts.Weights = taken.prior, sets.weights(parts.Aim, taken.prior)
	}
	m, err := model.New(parts) // before the statistics, which carry its fingerprint
	if err != nil {
		return nil, err
	}
	stats, exceptions, err := tr.statistics(ctx, m, solved)
	if err != nil {
		return nil, err
	}
	clock.phase("statistics")
	if opt.Progress != nil {
		opt.Progress("solve", 0, 0)
	}
	m, conditions, err := m.Refit(stats, nil)
	if err != nil {
		return nil, err
	}
	if taken.fusion.Mean != nil {
		parts = m.Parts()
		parts.Mean = meanAim(m, solved)
		if m, err = model.New(parts); err != nil {
			return nil, err
		}
	}
	report := Report{
		TrainItems: sets.items, Labels: len(sets.labels), LabelSets: len(sets.sets),
		Bits: opt.Bits, Method: opt.Method, Seed: opt.Seed, Sweeps: opt.Sweeps,
		Aim: parts.Aim, Prior: parts.Prior, Centre: sets.share, Start: taken.start,
		Chosen: map[string]Chosen{}, Choices: taken.choices, Fusion: taken.report,
		MemoryBytes: memory, Objective: solved.objective,
	}
	for t, mod := range modalities {
		chosen[t].Condition = conditions[t]
		report.Chosen[mod.Name] = chosen[t]
	}
	report.judge(solved)
	clock.phase("solve")
	report.Seconds = clock.seconds
	return &Result{Model: m, Statistics: stats, Report: report, exceptions: exceptions}, nil
}

// scan is the first pass. It counts the items, checks every vector, and collects label sets, moments and
// anchors. It sums the random codes H0 into H0 Y0', because H0 itself is not needed. It also returns samples
// of the modalities that something is chosen for, nil for others.
func (tr *trainer) scan(ctx context.Context) (seen scanned, samples []*choiceSample, err error) {
	for t, m := range tr.reader.Modalities {
		undecided := tr.undecided(t)
		var s *sample
		if undecided || tr.opt.Map[m.Name] != model.MapLinear {
			// makeMaps refuses more anchors, and takes fewer if there are not so many
			// items.
			k := min(cmp.Or(tr.opt.Anchors, MaxDefaultAnchors), wire.MaxFeatures+1)
			s = newSample(tr.from.anchors(t, k))
		}
		var c *choiceSample
		if undecided || tr.measures() {
			c = newChoiceSample(rand.New(rand.NewPCG(tr.opt.Seed, random.Choice)), m)
		}
		seen.anchors, samples = append(seen.anchors, s), append(samples, c)
	}
	scan := tr.scanHere
	if tr.reader.Engine != nil {
		scan = tr.scanElsewhere
	}
	if seen.sets, seen.hy, seen.moments, err = scan(ctx, seen.anchors, samples); err != nil {
		return seen, nil, err
	}
	for _, m := range seen.moments {
		m.Settle()
	}
	if tr.from.ties != nil {
		breakTies(seen.hy, tr.from.ties)
	}
	if seen.sets, err = tr.embedded(seen.sets); err != nil {
		return seen, nil, err
	}
	if seen.sets, err = tr.centred(seen.sets); err != nil {
		return seen, nil, err
	}
	for t, m := range tr.reader.Modalities {
		if seen.moments[t].N == 0 {
			return seen, nil, &model.ModalityError{Modality: m.Name,
				Problem: "is in no training item: train without it, or add vectors"}
		}
		if err := checkFit(tr.opt.Features[m.Name], m, seen.moments[t]); err != nil {
			return seen, nil, err
		}
	}
	return seen, samples, nil
}

// checkFit refuses features that vectors with these moments cannot have.
func checkFit(kind model.FeatureKind, m model.Modality, moments *model.Moments) error {
	if kind.Fits(moments) {
		return nil
	}
	return fmt.Errorf("%w: features %v of modality %q: its vectors hold %g, and they need numbers of 0 or more: use raw, zscore or l2",
		model.ErrOption, kind, m.Name, moments.Lowest())
}

// items returns the number of items with each modality.
func (seen *scanned) items() (n []int) {
	for _, m := range seen.moments {
		n = append(n, m.N)
	}
	return n
}

// mostLabels returns the largest number of labels.
func (tr *trainer) mostLabels() int {
	if tr.opt.LabelEmbedding {
		return embeddingLabels(tr.opt.Bits)
	}
	return tr.opt.Bits
}

// scanHere reads the items for scan, into samples of both sorts. It returns label sets, H0 Y0' and moments.
func (tr *trainer) scanHere(ctx context.Context, anchors []*sample,
	samples []*choiceSample) (*labelSets, []float64, []*model.Moments, error) {
	sets := sum.NewSets(tr.opt.Bits, tr.mostLabels(), true)
	code := codec.NewCode(tr.opt.Bits)
	m, err := tr.reader.Sum(ctx, sum.MomentsPass(tr.reader.Modalities, tr.opt.Bits, tr.opt.Seed, nil),
		func(b *sum.Block) error {
			for i := range b.N {
				tr.from.signs(code)
				sets.Add(b.Labels[i], code)
			}
			for t := range b.X {
				if s := anchors[t]; s != nil {
					s.add(b.X[t])
				}
				if c := samples[t]; c != nil {
					c.add(b, t)
				}
			}
			return nil
		})
	if err != nil {
		return nil, nil, nil, err
	}
	found, hy, err := newLabelSets(sets)
	return found, hy, m.(*sum.MomentSums).Of, err
}

// undecided reports whether a setting of modality t has to be chosen.
func (tr *trainer) undecided(t int) bool { return tr.from.open != nil && tr.from.open[t].any() }

// makeMaps makes the maps with some settings, by modality, and says what they are.
func (tr *trainer) makeMaps(ctx context.Context, seen scanned,
	settings []tuned) (maps []*model.Map, chosen []Chosen, err error) {
	prepared, moments, err := tr.prepare(ctx, seen, settings)
	if err != nil {
		return nil, nil, err
	}
	for t, m := range tr.reader.Modalities {
		s, mo := settings[t], moments[t]
		c := Chosen{FeatureMap: s.features, Map: s.kind, Items: mo.N, Gamma: s.gamma, Mu: tr.opt.Mu[m.Name]}
		sigma, constant := mo.Sigma()
		c.Constant = constant
		if s.kind == model.MapLinear && !constant && s.byDefault {
			c.Gamma = defaultLinearGamma(sigma)
		}
		if s.kind != model.MapLinear {
			k := cmp.Or(tr.opt.Anchors, DefaultAnchorsOf(mo.N))
			if k > mo.N {
				return nil, nil, &AnchorsError{Modality: m.Name, Anchors: k, Items: mo.N}
			}
			c.Anchors, c.Width, c.Sigma = k, s.width, sigma*s.width
		}
		c.Features = s.kind.Size(c.Anchors, m.Dim)
		if err := tr.checkFeatures(m, c.Features, len(seen.sets.labels)); err != nil {
			return nil, nil, err
		}
		var anchors []model.Vector
		if s.kind != model.MapLinear {
			anchors = tr.drawAnchors(seen.anchors[t].ordered(), c.Anchors)
			prepared[t].ApplyAll(anchors)
		}
		maps = append(maps, model.NewMap(s.kind, prepared[t], s.width, mo, anchors))
		chosen = append(chosen, c)
	}
	return maps, chosen, nil
}

// drawAnchors returns k of the vectors, in order. The scan keeps more than k if the number of anchors follows
// the number of items, which it does not know.
func (tr *trainer) drawAnchors(xs []model.Vector, k int) []model.Vector {
	if len(xs) == k {
		return xs
	}
	s := newSample(random.Reservoir(rand.New(rand.NewPCG(tr.opt.Seed, random.Subset)), k))
	s.add(xs)
	return s.ordered()
}

// prepare returns the features of the modalities, and the moments of the transformed
// vectors. That takes a pass, unless all features are raw.
func (tr *trainer) prepare(ctx context.Context, seen scanned,
	settings []tuned) ([]*model.Features, []*model.Moments, error) {
	var prepared []*model.Features
	result, raw := slices.Clone(seen.moments), true
	for t, s := range settings {
		prepared = append(prepared, model.NewFeatures(s.features, seen.moments[t]))
		raw = raw && s.features == model.FeaturesRaw
	}
	if raw {
		return prepared, result, nil
	}
	s, err := tr.reader.Sum(ctx, sum.MomentsPass(tr.reader.Modalities, tr.opt.Bits, tr.opt.Seed, prepared),
		nil)
	if err != nil {
		return nil, nil, err
	}
	for t, m := range s.(*sum.MomentSums).Of {
		if prepared[t].Kind != model.FeaturesRaw {
			m.Settle()
			result[t] = m
		}
	}
	return prepared, result, nil
}

// checkFeatures refuses maps for which R_t'R_t = I or G_t'G_t = I is not possible, and
// maps whose Gram matrix would not fit into memory.
func (tr *trainer) checkFeatures(m model.Modality, k, labels int) error {
	if k > wire.MaxFeatures {
		return fmt.Errorf("%w: the map of modality %q has %d features, whose Gram matrix takes 8 k^2 bytes: at most %d, so use fewer anchors, or the rbf map", model.ErrOption, m.Name, k, wire.MaxFeatures)
	}
	if need := tr.need(labels); k < need {
		return &FeaturesError{Modality: m.Name, Features: k, Need: need, Method: tr.opt.Method}
	}
	return nil
}

// need returns the least number of features for the method and so many labels.
func (tr *trainer) need(labels int) int {
	switch tr.opt.Method {
	case model.MethodJoint:
		return labels
	case model.MethodPaper:
		return tr.opt.Bits
	}
	return 0
}

// maxRelaxed bounds Y of joint and paper: 2 GiB.
const maxRelaxed = 1 << 28

// solve does the sweeps, and moves labels apart that share a code.
func (tr *trainer) solve(ctx context.Context, sets *labelSets, hy []float64,
	maps []*model.Map) (*solution, error) {
	if n, c := sets.items, len(sets.labels); tr.opt.Method != model.MethodLabels && n > maxRelaxed/c {
		return nil, fmt.Errorf("%w: method %v holds a number for each of %d items and %d labels, at most %d in all: use the method labels, or fewer items",
			model.ErrOption, tr.opt.Method, n, c, maxRelaxed)
	}
	once := func(sets *labelSets) (*solution, error) {
		s := newSolver(tr.opt, tr.reader.Modalities, sets, hy, maps)
		return s.run(ctx, tr.reader, tr.opt.Sweeps, tr.from.rotation, tr.from.seen)
	}
	s, err := once(sets)
	if err != nil || sets.embedding == nil {
		return s, err
	}
	return tr.partLabels(s, once)
}

// aim returns the aim of the model: labels that are embedded are not at right angles.
func (tr *trainer) aim(sets *labelSets) model.Aim {
	if tr.opt.Aim == model.AimLabels && sets.embedding != nil {
		return model.AimWeighted
	}
	return tr.opt.Aim
}

// centred returns label sets without a share of their mean, with AimLabels: the given share, or else the
// default, until one is chosen.
func (tr *trainer) centred(sets *labelSets) (*labelSets, error) {
	given := tr.opt.Centre
	switch {
	case tr.aim(sets) == model.AimLabels && given != nil:
		return sets.withCentre(*given), nil
	case tr.aim(sets) == model.AimLabels:
		return sets.withCentre(sets.defaultCentre()), nil
	case given != nil: // as checkAim has refused it with AimCodes
		return nil, fmt.Errorf("%w: centre: there are more labels (%d) than bits (%d), and projections of embedded labels have none: leave it out", model.ErrOption, len(sets.labels), tr.opt.Bits)
	}
	return sets, nil
}

// parts returns the known parts of the model before its codes.
func (tr *trainer) parts(sets *labelSets, maps []*model.Map, chosen []Chosen) model.Parts {
	p := model.Parts{
		Bits: tr.opt.Bits, Method: tr.opt.Method, Seed: tr.opt.Seed, Labels: sets.labels,
		Modalities: tr.reader.Modalities, Maps: maps,
	}
	for _, c := range chosen {
		p.Gammas = append(p.Gammas, c.Gamma)
	}
	return p
}

// meanAim returns the mean aim of the training items, with the label weights of the projections.
func meanAim(m *model.Model, s *solution) []float64 {
	if m.Aim() == model.AimCodes {
		return s.meanCode()
	}
	mean, g := make([]float64, m.Bits()), make([]float64, m.Bits())
	for i, set := range s.sets.sets {
		m.LabelAim(g, s.sets.labelsOf(set))
		floats.AddScaled(mean, float64(s.sets.counts[i])/float64(s.sets.items), g)
	}
	return mean
}

// statistics is the last pass. It sums the lessons of the items. It also returns the codes of items that
// differ from the codes of their labels.
func (tr *trainer) statistics(ctx context.Context, m *model.Model,
	solved *solution) (*model.Statistics, map[int]codec.Code, error) {
	if m.Method() == model.MethodLabels {
		s, err := tr.reader.Sum(ctx, sum.StatisticsPass(m, nil), nil)
		if err != nil {
			return nil, nil, err
		}
		return s.(*sum.StatisticsSums).Tally.Statistics, map[int]codec.Code{}, nil
	}
	exceptions, byLabels := map[int]codec.Code{}, codec.NewCode(m.Bits())
	s, err := tr.reader.Sum(ctx, sum.StatisticsPass(m, solved.code), func(b *sum.Block) error {
		for i := range b.N {
			code := solved.code(b.First + i)
			if m.LabelCode(byLabels, b.Labels[i]); !slices.Equal(byLabels, code) {
				exceptions[b.First+i] = slices.Clone(code)
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return s.(*sum.StatisticsSums).Tally.Statistics, exceptions, nil
}

// breakTies gives the zeros of H0 Y' random signs. A label with an even number of items
// has many zeros; one of two items has them in half of its bits. In these bits the
// little that the polar factor takes from other labels would decide, for all of them
// alike. Two classes of two items would then agree in 57 of 64 bits.
func breakTies(hy []float64, rng *rand.Rand) {
	for i, v := range hy {
		if v == 0 {
			hy[i] = float64(rng.IntN(2)*2 - 1)
		}
	}
}

// defaultLinearGamma returns the default ridge of a linear map. Its features have the
// unit of the vectors, and so has the ridge: it is DefaultGamma times the mean squared
// distance from the mean. Features of other maps have no unit.
func defaultLinearGamma(sigma float64) float64 { return digits(DefaultGamma * sigma / 2) }

// Lesson returns the lesson of a training item in the Statistics, for Online.Forget. item is its position in
// the source, from 0, and labels are its labels. With AimCodes it is LabelCode of the labels, except for the
// exceptions. It is empty if the model knows none of the labels.
func (r *Result) Lesson(item int, labels []uint32) model.Lesson {
	if code, ok := r.exceptions[item]; ok {
		return model.Lesson{Codes: []codec.Code{code}}
	}
	return r.Model.LabelLesson(labels)
}
