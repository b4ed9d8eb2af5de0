package fit

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/parallel"
	"github.com/fddhdb/fddhdb/model/internal/random"
	"github.com/fddhdb/fddhdb/model/internal/wire"
	"github.com/fddhdb/fddhdb/model/sum"
	"gonum.org/v1/gonum/floats"
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
	undecided := openSettings(opt, modalities)
	opt, err := opt.withDefaults(modalities)
	if err != nil {
		return nil, fmt.Errorf("training: %w", err)
	}
	from := seeded(opt.Seed, opt.Bits)
	from.open = undecided
	result, err := train(ctx, slices.Clone(modalities), src, nil, opt, from)
	if err != nil {
		return nil, fmt.Errorf("training: %w", err)
	}
	return result, nil
}

// A trainer has what all phases of a training share. It belongs to the goroutine of Train. The scan
// finds sets and moments; choose settles opt and the centre of sets. What else a phase makes it returns.
type trainer struct {
	opt    Options // with defaults filled in
	from   start
	reader *sum.Reader
	report Report

	sets    *labelSets
	moments []*model.Moments // by modality
}

// A scanned has what the scan keeps of the items for the phases that follow.
type scanned struct {
	hy      []float64       // H0 Y0', c x q
	samples []*sample       // by modality: candidates for anchors; nil for a linear map
	choices []*choiceSample // by modality: nil if there is nothing to choose
}

// train is Train from a given start, or TrainOver if there is an engine and no source.
func train(ctx context.Context, modalities []model.Modality, src sum.Source, engine sum.Engine, opt Options,
	from start) (_ *Result, err error) {
	defer parallel.Guard(&err, "in the numerics")
	tr := &trainer{
		opt: opt, from: from,
		reader: &sum.Reader{Modalities: modalities, Source: src, Engine: engine, Progress: opt.Progress},
		report: Report{
			Bits: opt.Bits, Method: opt.Method, Seed: opt.Seed, Sweeps: opt.Sweeps,
			Chosen: map[string]Chosen{},
		},
	}
	if err := tr.checkMemory(); err != nil {
		return nil, err
	}
	clock := newStopwatch()
	seen, err := tr.scan(ctx)
	if err != nil {
		return nil, err
	}
	clock.phase("scan")
	if err := tr.checkMemory(); err != nil {
		return nil, err
	}
	hy, how, err := tr.choose(ctx, seen.hy, seen.choices)
	if err != nil {
		return nil, err
	}
	clock.phase("choose")
	maps, err := tr.makeMaps(ctx, seen.samples)
	if err != nil {
		return nil, err
	}
	clock.phase("maps")
	if random := tr.sets.embedding; random != nil && !tr.from.randomEmbedding {
		learned, err := tr.embed(ctx, random, tr.parts(maps))
		if err != nil {
			return nil, err
		}
		tr.sets = tr.sets.withEmbedding(learned)
		clock.phase("embedding")
	}
	solved, err := tr.solve(ctx, hy, maps)
	if err != nil {
		return nil, err
	}
	clock.phase("sweeps")
	p := tr.parts(maps)
	p.C, p.Aim = solved.cm, tr.aim()
	if p.Aim != model.AimCodes {
		p.Prior = *tr.opt.Prior
		p.Weights = tr.sets.weights(p.Aim, p.Prior)
	}
	p.Fusion = how.Weights
	tr.report.Aim, tr.report.Prior = p.Aim, p.Prior
	m, err := model.New(p) // before the statistics, which carry its fingerprint
	if err != nil {
		return nil, err
	}
	stats, exceptions, err := tr.statistics(ctx, m, solved)
	if err != nil {
		return nil, err
	}
	clock.phase("statistics")
	m, conditions, err := m.Refit(stats, nil)
	if err != nil {
		return nil, err
	}
	for t, mod := range modalities {
		chosen := tr.report.Chosen[mod.Name]
		chosen.Condition = conditions[t]
		tr.report.Chosen[mod.Name] = chosen
	}
	if how.Mean != nil {
		p = m.Parts()
		p.Mean = tr.meanAim(m, solved)
		if m, err = model.New(p); err != nil {
			return nil, err
		}
	}
	clock.phase("solve")
	tr.report.Seconds = clock.seconds
	return &Result{Model: m, Statistics: stats, Report: tr.report, exceptions: exceptions}, nil
}

// scan is the first pass. It counts the items, checks every vector, and collects label sets, moments and
// anchors. It sums the random codes H0 into H0 Y0', because H0 itself is not needed.
func (tr *trainer) scan(ctx context.Context) (seen scanned, err error) {
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
		seen.samples, seen.choices = append(seen.samples, s), append(seen.choices, c)
	}
	scan := tr.scanHere
	if tr.reader.Engine != nil {
		scan = tr.scanElsewhere
	}
	if tr.sets, seen.hy, tr.moments, err = scan(ctx, seen); err != nil {
		return seen, err
	}
	for _, m := range tr.moments {
		m.Settle()
	}
	if tr.from.ties != nil {
		breakTies(seen.hy, tr.from.ties)
	}
	if tr.sets, err = tr.embedded(tr.sets); err != nil {
		return seen, err
	}
	if err := tr.startCentre(); err != nil {
		return seen, err
	}
	tr.report.TrainItems = tr.sets.items
	tr.report.Labels = len(tr.sets.labels)
	tr.report.LabelSets = len(tr.sets.sets)
	for t, m := range tr.reader.Modalities {
		if tr.moments[t].N == 0 {
			return seen, &model.ModalityError{Modality: m.Name,
				Problem: "is in no training item: train without it, or add vectors"}
		}
		if kind := tr.opt.Features[m.Name]; !kind.Fits(tr.moments[t]) {
			return seen, fmt.Errorf("%w: features %v of modality %q: its vectors hold %g, and they need numbers of 0 or more: use raw, zscore or l2",
				model.ErrOption, kind, m.Name, tr.moments[t].Lowest())
		}
	}
	return seen, nil
}

// mostLabels returns the largest number of labels.
func (tr *trainer) mostLabels() int {
	if tr.opt.LabelEmbedding {
		return embeddingLabels(tr.opt.Bits)
	}
	return tr.opt.Bits
}

// scanHere reads the items for scan, into samples and choices. It returns label sets, H0 Y0' and moments.
func (tr *trainer) scanHere(ctx context.Context,
	seen scanned) (*labelSets, []float64, []*model.Moments, error) {
	sets := sum.NewSets(tr.opt.Bits, tr.mostLabels(), true)
	code := codec.NewCode(tr.opt.Bits)
	m, err := tr.reader.Sum(ctx, sum.MomentsPass(tr.reader.Modalities, tr.opt.Bits, tr.opt.Seed, nil),
		func(b *sum.Block) error {
			for i := range b.N {
				tr.from.signs(code)
				sets.Add(b.Labels[i], code)
			}
			for t := range b.X {
				if s := seen.samples[t]; s != nil {
					s.add(b.X[t])
				}
				if c := seen.choices[t]; c != nil {
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

// makeMaps makes the maps from what the scan has gathered.
func (tr *trainer) makeMaps(ctx context.Context, samples []*sample) (maps []*model.Map, err error) {
	prepared, moments, err := tr.prepare(ctx)
	if err != nil {
		return nil, err
	}
	for t, m := range tr.reader.Modalities {
		mo := moments[t]
		kind := tr.opt.Map[m.Name]
		chosen := Chosen{FeatureMap: prepared[t].Kind, Map: kind, Items: mo.N, Gamma: tr.opt.Gamma[m.Name],
			Mu: tr.opt.Mu[m.Name]}
		sigma, constant := mo.Sigma()
		chosen.Constant = constant
		if kind == model.MapLinear && !constant && tr.gammaIsDefault(t) {
			chosen.Gamma = defaultLinearGamma(sigma)
			tr.opt.Gamma[m.Name] = chosen.Gamma
		}
		if kind != model.MapLinear {
			k := cmp.Or(tr.opt.Anchors, DefaultAnchorsOf(mo.N))
			if k > mo.N {
				return nil, &AnchorsError{Modality: m.Name, Anchors: k, Items: mo.N}
			}
			chosen.Anchors, chosen.Width = k, tr.opt.Width[m.Name]
			chosen.Sigma = sigma * chosen.Width
		}
		chosen.Features = kind.Size(chosen.Anchors, m.Dim)
		if err := tr.checkFeatures(m, chosen.Features); err != nil {
			return nil, err
		}
		var anchors []model.Vector
		if kind != model.MapLinear {
			anchors = tr.drawAnchors(samples[t].ordered(), chosen.Anchors)
			prepared[t].ApplyAll(anchors)
		}
		samples[t] = nil // it may be large
		maps = append(maps, model.NewMap(kind, prepared[t], tr.opt.Width[m.Name], mo, anchors))
		tr.report.Chosen[m.Name] = chosen
	}
	return maps, nil
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
func (tr *trainer) prepare(ctx context.Context) ([]*model.Features, []*model.Moments, error) {
	prepared, result := make([]*model.Features, len(tr.moments)), slices.Clone(tr.moments)
	raw := true
	for t, m := range tr.reader.Modalities {
		kind := tr.opt.Features[m.Name]
		prepared[t] = model.NewFeatures(kind, tr.moments[t])
		raw = raw && kind == model.FeaturesRaw
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
func (tr *trainer) checkFeatures(m model.Modality, k int) error {
	if k > wire.MaxFeatures {
		return fmt.Errorf("%w: the map of modality %q has %d features, whose Gram matrix takes 8 k^2 bytes: at most %d, so use fewer anchors, or the rbf map", model.ErrOption, m.Name, k, wire.MaxFeatures)
	}
	if need := tr.need(); k < need {
		return &FeaturesError{Modality: m.Name, Features: k, Need: need, Method: tr.opt.Method}
	}
	return nil
}

// need returns the least number of features for the method.
func (tr *trainer) need() int {
	switch tr.opt.Method {
	case model.MethodJoint:
		return len(tr.sets.labels)
	case model.MethodPaper:
		return tr.opt.Bits
	}
	return 0
}

// maxRelaxed bounds Y of joint and paper: 2 GiB.
const maxRelaxed = 1 << 28

// solve does the sweeps, and moves labels apart that share a code.
func (tr *trainer) solve(ctx context.Context, hy []float64, maps []*model.Map) (*solution, error) {
	if n, c := tr.sets.items, len(tr.sets.labels); tr.opt.Method != model.MethodLabels && n > maxRelaxed/c {
		return nil, fmt.Errorf("%w: method %v holds a number for each of %d items and %d labels, at most %d in all: use the method labels, or fewer items",
			model.ErrOption, tr.opt.Method, n, c, maxRelaxed)
	}
	once := func(sets *labelSets) (*solution, error) {
		s := newSolver(tr.opt, tr.reader.Modalities, sets, hy, maps)
		return s.run(ctx, tr.reader, tr.opt.Sweeps, tr.from.rotation, tr.from.seen)
	}
	s, err := once(tr.sets)
	if err == nil && tr.sets.embedding != nil {
		s, err = tr.partLabels(s, once)
	}
	if err != nil {
		return nil, err
	}
	tr.report.Objective = s.objective
	var counts []int // of label sets
	if s.method == model.MethodLabels {
		counts = tr.sets.counts
	}
	tr.report.judgeCodes(s.codes, s.q, counts)
	tr.report.judgeLabels(s)
	return s, nil
}

// aim returns the aim of the model: labels that are embedded are not at right angles.
func (tr *trainer) aim() model.Aim {
	if tr.opt.Aim == model.AimLabels && tr.sets.embedding != nil {
		return model.AimWeighted
	}
	return tr.opt.Aim
}

// startCentre removes a share of the mean of the labels from their aims, with AimLabels: the given
// share, or else the default, until one is chosen.
func (tr *trainer) startCentre() error {
	given := tr.opt.Centre
	switch {
	case tr.aim() == model.AimLabels:
		share := tr.sets.defaultCentre()
		if given != nil {
			share = *given
		}
		tr.setCentre(share)
	case given != nil: // as checkAim has refused it with AimCodes
		return fmt.Errorf("%w: centre: there are more labels (%d) than bits (%d), and projections of embedded labels have none: leave it out", model.ErrOption, len(tr.sets.labels), tr.opt.Bits)
	}
	return nil
}

// setCentre removes a share of the mean of the labels from their aims.
func (tr *trainer) setCentre(share float64) {
	tr.sets = tr.sets.withCentre(share)
	tr.report.Centre = share
}

// parts returns the known parts of the model before its codes.
func (tr *trainer) parts(maps []*model.Map) model.Parts {
	p := model.Parts{
		Bits: tr.opt.Bits, Method: tr.opt.Method, Seed: tr.opt.Seed, Labels: tr.sets.labels,
		Modalities: tr.reader.Modalities, Maps: maps,
	}
	for _, mod := range p.Modalities {
		p.Gammas = append(p.Gammas, tr.opt.Gamma[mod.Name])
	}
	return p
}

// meanAim returns the mean aim of the training items, with the label weights of the projections.
func (tr *trainer) meanAim(m *model.Model, s *solution) []float64 {
	if m.Aim() == model.AimCodes {
		return s.meanCode()
	}
	mean, g := make([]float64, m.Bits()), make([]float64, m.Bits())
	for i, set := range tr.sets.sets {
		m.LabelAim(g, tr.sets.labelsOf(set))
		floats.AddScaled(mean, float64(tr.sets.counts[i])/float64(tr.sets.items), g)
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

// gammaIsDefault reports whether gamma of modality t is neither given nor chosen.
func (tr *trainer) gammaIsDefault(t int) bool {
	if tr.from.open == nil || !tr.from.open[t].gamma {
		return false
	}
	choice := tr.report.Choices[tr.reader.Modalities[t].Name]
	return choice == nil || choice.Unfit != ""
}

// Lesson returns the lesson of a training item in the Statistics, for Online.Forget. item is its position in
// the source, from 0, and labels are its labels. With AimCodes it is LabelCode of the labels, except for the
// exceptions. It is empty if the model knows none of the labels.
func (r *Result) Lesson(item int, labels []uint32) model.Lesson {
	if code, ok := r.exceptions[item]; ok {
		return model.Lesson{Codes: []codec.Code{code}}
	}
	return r.Model.LabelLesson(labels)
}
