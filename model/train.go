package model

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/fddhdb/fddhdb/codec"
)

// Result is what a training returns.
type Result struct {
	Model      *Model
	Statistics *Statistics // nil for methods without labels
	Report     Report

	// The codes of items in Statistics that are not LabelCode of their labels, by position in the source. With
	// MethodLabels codes follow from labels, and it is nil. The other methods move Y of each item by its
	// features: with a small Delta there can be many.
	exceptions map[int]codec.Code
}

// Streams of random numbers of one seed.
const (
	streamSigns = iota
	streamAnchors
	streamRotations
	streamChoice // items to choose with; the same ones in every modality that is complete
	streamFolds  // order of these items
	streamSubset // which anchors are kept
	streamStarts // other starts of C
	streamEmbedding
	streamSketch  // sketches of the features of labels
	streamParting // parting of labels that share a code
	streamTies    // zeros of H0 Y'
	streamItems   // items to learn from without labels
	streamAxes    // where the search for principal axes begins
	streamTurn    // rotations that ITQ begins with, and those that it does not turn
)

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
	rotations := rand.New(rand.NewPCG(seed, streamRotations))
	return start{
		ties:  rand.New(rand.NewPCG(seed, streamTies)),
		signs: signsFrom(seed, bits, 0),
		anchors: func(_, k int) func(int) int {
			return reservoir(rand.New(rand.NewPCG(seed, streamAnchors)), k)
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
// Equal options and data give a model with equal bytes, on one architecture, for any GOMAXPROCS, and also where
// TrainOver lets other processes read the items. Cancelling the context stops it within a block.
func Train(ctx context.Context, modalities []Modality, src Source, opt Options) (*Result, error) {
	if opt.Method.LabelFree() && int(opt.Method) < len(methodNames) {
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

// A trainer carries a training from phase to phase. It belongs to the goroutine of
// Train. scan sets sets, hy, moments, samples and choices; choose fills in opt, may
// replace hy and the centre of sets, and sets fusion; makeMaps sets maps; solve sets
// solver. A phase drops what no later one needs: choose drops choices, starts and solvers,
// makeMaps drops samples.
type trainer struct {
	opt    Options // with defaults filled in
	from   start
	reader *reader
	engine Engine // does the passes, if the reader has no source; else nil
	report Report

	sets    *labelSets
	hy      []float64       // H0 Y0', c x q
	starts  [][]float64     // candidates for hy; the first is hy itself
	solvers []*solver       // of the starts, while there is something to choose
	moments []*moments      // by modality
	samples []*sample       // by modality: candidates for anchors; nil for a linear map
	choices []*choiceSample // by modality: nil if there is nothing to choose
	maps    []*featureMap   // by modality
	solver  *solver
	fusion  fusion
}

// train is Train from a given start, or TrainOver if there is an engine and no source.
func train(ctx context.Context, modalities []Modality, src Source, engine Engine, opt Options, from start) (_ *Result, err error) {
	defer guard(&err, "in the numerics")
	tr := &trainer{
		opt: opt, from: from, engine: engine,
		reader: &reader{modalities: modalities, src: src, items: -1, progress: opt.Progress},
		report: Report{
			Bits: opt.Bits, Method: opt.Method, Seed: opt.Seed, Sweeps: opt.Sweeps,
			Chosen: map[string]Chosen{},
		},
	}
	if err := tr.checkMemory(); err != nil {
		return nil, err
	}
	clock := newStopwatch()
	if err := tr.scan(ctx); err != nil {
		return nil, err
	}
	clock.phase("scan")
	if err := tr.checkMemory(); err != nil {
		return nil, err
	}
	if err := tr.choose(ctx); err != nil {
		return nil, err
	}
	clock.phase("choose")
	if err := tr.makeMaps(ctx); err != nil {
		return nil, err
	}
	clock.phase("maps")
	if tr.sets.embedding != nil && !tr.from.randomEmbedding {
		if err := tr.embed(ctx); err != nil {
			return nil, err
		}
		clock.phase("embedding")
	}
	if err := tr.solve(ctx); err != nil {
		return nil, err
	}
	clock.phase("sweeps")
	m := &Model{
		bits: opt.Bits, method: opt.Method, seed: opt.Seed,
		labels: tr.sets.labels, c: tr.solver.cm, aim: tr.aim(),
		modalities: modalities, maps: tr.maps,
		fusion: tr.fusion,
	}
	tr.weigh(m)
	tr.report.Aim, tr.report.Prior = m.aim, m.prior
	for _, mod := range modalities {
		m.gammas = append(m.gammas, opt.Gamma[mod.Name])
	}
	// The fingerprint must be there before the statistics, which carry it.
	m.sign()
	stats, exceptions, err := tr.statistics(ctx, m)
	if err != nil {
		return nil, err
	}
	clock.phase("statistics")
	if m, err = tr.project(m, stats); err != nil {
		return nil, err
	}
	m.mean = tr.meanAim(m)
	clock.phase("solve")
	tr.report.Seconds = clock.seconds
	return &Result{Model: m, Statistics: stats, Report: tr.report, exceptions: exceptions}, nil
}

// scan is the first pass. It counts the items, checks every vector, and collects label
// sets, moments and anchors. It folds the random codes H0 into H0 Y0', as H0 itself is
// not needed.
func (tr *trainer) scan(ctx context.Context) error {
	for t, m := range tr.reader.modalities {
		undecided := tr.undecided(t)
		var s *sample
		if undecided || tr.opt.Map[m.Name] != MapLinear {
			// makeMaps refuses more anchors, and takes fewer if there are not so many
			// items.
			k := min(cmp.Or(tr.opt.Anchors, MaxDefaultAnchors), maxFeatures+1)
			s = newSample(tr.from.anchors(t, k))
		}
		var c *choiceSample
		if undecided || tr.measures() {
			c = newChoiceSample(rand.New(rand.NewPCG(tr.opt.Seed, streamChoice)), m)
		}
		tr.samples, tr.choices = append(tr.samples, s), append(tr.choices, c)
	}
	scan := tr.scanHere
	if tr.engine != nil {
		scan = tr.scanElsewhere
	}
	err := scan(ctx)
	if err != nil {
		return err
	}
	for _, m := range tr.moments {
		m.settle()
	}
	if tr.from.ties != nil {
		breakTies(tr.hy, tr.from.ties)
	}
	if err := tr.checkEmbedding(); err != nil {
		return err
	}
	if err := tr.startCentre(); err != nil {
		return err
	}
	tr.reader.items = tr.sets.items
	tr.report.TrainItems = tr.sets.items
	tr.report.Labels = len(tr.sets.labels)
	tr.report.LabelSets = len(tr.sets.sets)
	for t, m := range tr.reader.modalities {
		if tr.moments[t].n == 0 {
			return &ModalityError{Modality: m.Name, Problem: "is in no training item: train without it, or add vectors"}
		}
		if kind := tr.opt.Features[m.Name]; !kind.fits(tr.moments[t]) {
			return fmt.Errorf("%w: features %v of modality %q: its vectors hold %g, and they need numbers of 0 or more: use raw, zscore or l2",
				ErrOption, kind, m.Name, tr.moments[t].lowest())
		}
	}
	return nil
}

// mostLabels returns the largest number of labels.
func (tr *trainer) mostLabels() int {
	if tr.opt.LabelEmbedding {
		return embeddingLabels(tr.opt.Bits)
	}
	return tr.opt.Bits
}

// scanHere reads the items for scan.
func (tr *trainer) scanHere(ctx context.Context) error {
	sets := newSetBuilder(tr.opt.Bits, tr.mostLabels(), true)
	code := codec.NewCode(tr.opt.Bits)
	p := tr.newPass(passMoments)
	m, err := tr.reader.sum(ctx, "scan", p, func(b *block) error {
		for i := range b.n {
			tr.from.signs(code)
			sets.add(b.labels[i], code)
		}
		for t := range b.x {
			if s := tr.samples[t]; s != nil {
				s.add(b.x[t])
			}
			if c := tr.choices[t]; c != nil {
				c.add(b, t)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	tr.moments = m.(*momentSums).of
	tr.sets, tr.hy, err = sets.finish()
	return err
}

// undecided reports whether a setting of modality t is to be chosen.
func (tr *trainer) undecided(t int) bool { return tr.from.open != nil && tr.from.open[t].any() }

// makeMaps makes the maps from what the scan has gathered.
func (tr *trainer) makeMaps(ctx context.Context) error {
	prepared, moments, err := tr.prepare(ctx)
	if err != nil {
		return err
	}
	for t, m := range tr.reader.modalities {
		mo := moments[t]
		kind := tr.opt.Map[m.Name]
		chosen := Chosen{FeatureMap: prepared[t].kind, Map: kind, Items: mo.n, Gamma: tr.opt.Gamma[m.Name], Mu: tr.opt.Mu[m.Name]}
		sigma, constant := mo.sigma()
		chosen.Constant = constant
		if kind == MapLinear && !constant && tr.gammaIsDefault(t) {
			chosen.Gamma = defaultLinearGamma(sigma)
			tr.setGamma(m.Name, chosen.Gamma)
		}
		if kind != MapLinear {
			k := cmp.Or(tr.opt.Anchors, DefaultAnchorsOf(mo.n))
			if k > mo.n {
				return &AnchorsError{Modality: m.Name, Anchors: k, Items: mo.n}
			}
			chosen.Anchors, chosen.Width = k, tr.opt.Width[m.Name]
			chosen.Sigma = sigma * chosen.Width
		}
		chosen.Features = kind.size(chosen.Anchors, m.Dim)
		if err := tr.checkFeatures(m, chosen.Features); err != nil {
			return err
		}
		var anchors []Vector
		if kind != MapLinear {
			anchors = tr.drawAnchors(tr.samples[t].ordered(), chosen.Anchors)
			prepared[t].applyAll(anchors)
		}
		tr.samples[t] = nil
		f := newMap(kind, tr.opt.Width[m.Name], mo, anchors)
		f.features = prepared[t]
		tr.maps = append(tr.maps, f)
		tr.report.Chosen[m.Name] = chosen
	}
	return nil
}

// drawAnchors returns k of the vectors, in order. The scan keeps more than k if the
// number of anchors follows that of the items, which it does not know.
func (tr *trainer) drawAnchors(xs []Vector, k int) []Vector {
	if len(xs) == k {
		return xs
	}
	s := newSample(reservoir(rand.New(rand.NewPCG(tr.opt.Seed, streamSubset)), k))
	s.add(xs)
	return s.ordered()
}

// prepare returns the features of the modalities, and the moments of the transformed
// vectors. That takes a pass, unless all features are raw.
func (tr *trainer) prepare(ctx context.Context) ([]*features, []*moments, error) {
	prepared, result := make([]*features, len(tr.moments)), slices.Clone(tr.moments)
	raw := true
	for t, m := range tr.reader.modalities {
		kind := tr.opt.Features[m.Name]
		prepared[t] = newFeatures(kind, tr.moments[t])
		raw = raw && kind == FeaturesRaw
	}
	if raw {
		return prepared, result, nil
	}
	p := tr.newPass(passMoments)
	p.features = prepared
	s, err := tr.sum(ctx, p, nil)
	if err != nil {
		return nil, nil, err
	}
	for t, m := range s.(*momentSums).of {
		if prepared[t].kind != FeaturesRaw {
			m.settle()
			result[t] = m
		}
	}
	return prepared, result, nil
}

// checkFeatures refuses maps for which R_t'R_t = I or G_t'G_t = I is not possible, and
// maps whose Gram matrix would not fit into memory.
func (tr *trainer) checkFeatures(m Modality, k int) error {
	if k > maxFeatures {
		return fmt.Errorf("%w: the map of modality %q has %d features, whose Gram matrix takes 8 k^2 bytes: at most %d, so use fewer anchors, or the rbf map", ErrOption, m.Name, k, maxFeatures)
	}
	if need := tr.need(); k < need {
		return &FeaturesError{Modality: m.Name, Features: k, Need: need, Method: tr.opt.Method}
	}
	return nil
}

// need returns the least number of features for the method.
func (tr *trainer) need() int {
	switch tr.opt.Method {
	case MethodJoint:
		return len(tr.sets.labels)
	case MethodPaper:
		return tr.opt.Bits
	}
	return 0
}

// maxRelaxed bounds Y of joint and paper: 2 GiB.
const maxRelaxed = 1 << 28

// solve does the sweeps, and moves labels apart that share a code.
func (tr *trainer) solve(ctx context.Context) error {
	if n, c := tr.sets.items, len(tr.sets.labels); tr.opt.Method != MethodLabels && n > maxRelaxed/c {
		return fmt.Errorf("%w: method %v holds a number for each of %d items and %d labels, at most %d in all: use the method labels, or fewer items",
			ErrOption, tr.opt.Method, n, c, maxRelaxed)
	}
	hy := tr.hy
	if tr.sets.embedding != nil {
		hy = slices.Clone(hy) // a copy, to start from again
	}
	s, err := tr.solveOnce(ctx, hy)
	if tr.sets.embedding != nil && err == nil {
		s, err = tr.partLabels(ctx, s)
	}
	if err != nil {
		return err
	}
	tr.solver = s
	tr.report.judgeCodes(s)
	tr.report.judgeLabels(s)
	return nil
}

// solveOnce does the sweeps. hy is H0 Y0', and is overwritten.
func (tr *trainer) solveOnce(ctx context.Context, hy []float64) (s *solver, err error) {
	s = newSolver(tr.opt, tr.reader.modalities, tr.sets, hy)
	if s.method != MethodLabels {
		s.useMaps(tr.maps, tr.from.rotation)
	}
	tr.report.Objective, err = s.run(ctx, tr.reader, tr.opt.Sweeps, tr.from.seen)
	return s, err
}

// aim returns the aim of the model: labels that are embedded are not at right angles.
func (tr *trainer) aim() Aim {
	if tr.opt.Aim == AimLabels && tr.sets.embedding != nil {
		return AimWeighted
	}
	return tr.opt.Aim
}

// startCentre takes the mean of the labels out of what AimLabels learns: the share that is
// given, or else the default, until one is chosen.
func (tr *trainer) startCentre() error {
	given := tr.opt.Centre
	switch {
	case tr.aim() == AimLabels:
		share := tr.sets.defaultCentre()
		if given != nil {
			share = *given
		}
		tr.setCentre(share)
	case given != nil: // as checkAim has refused it with AimCodes
		return fmt.Errorf("%w: centre: there are more labels (%d) than bits (%d), and projections of embedded labels have none: leave it out", ErrOption, len(tr.sets.labels), tr.opt.Bits)
	}
	return nil
}

// setCentre takes a share of the mean of the labels out of what they teach.
func (tr *trainer) setCentre(share float64) {
	tr.sets.setCentre(share)
	tr.report.Centre = share
}

// weigh gives the model the prior and the weights of its labels.
func (tr *trainer) weigh(m *Model) {
	if m.aim == AimCodes {
		return
	}
	m.prior = *tr.opt.Prior
	m.weights = tr.sets.weights(m.aim, m.prior)
}

// meanAim returns the mean of what the training items teach, with the weights of labels
// that the projections have.
func (tr *trainer) meanAim(m *Model) []float64 {
	if m.aim == AimCodes {
		return tr.solver.meanCode()
	}
	mean, g, code := make([]float64, m.bits), make([]float64, m.bits), codec.NewCode(m.bits)
	for i, set := range tr.sets.sets {
		m.aimAt(g, set, m.weights, code)
		floats.AddScaled(mean, float64(tr.sets.counts[i])/float64(tr.sets.items), g)
	}
	return mean
}

// statistics is the last pass. It sums what the items teach. It also returns the codes of
// items that are not those of their labels.
func (tr *trainer) statistics(ctx context.Context, m *Model) (*Statistics, map[int]codec.Code, error) {
	p := tr.newPass(passStatistics)
	p.m = m
	if m.method == MethodLabels {
		s, err := tr.sum(ctx, p, nil)
		if err != nil {
			return nil, nil, err
		}
		return s.(*statisticsSums).stats, map[int]codec.Code{}, nil
	}
	p.code = tr.solver.code
	exceptions, byLabels := map[int]codec.Code{}, codec.NewCode(m.bits)
	s, err := tr.sum(ctx, p, func(b *block) error {
		for i := range b.n {
			code := tr.solver.code(b.first + i)
			if m.LabelCode(byLabels, b.labels[i]); !slices.Equal(byLabels, code) {
				exceptions[b.first+i] = slices.Clone(code)
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return s.(*statisticsSums).stats, exceptions, nil
}

// newPass returns a pass over the items of the training.
func (tr *trainer) newPass(kind passKind) *Pass {
	return &Pass{kind: kind, modalities: tr.reader.modalities, bits: tr.opt.Bits, seed: tr.opt.Seed}
}

// sum does a pass over the items: here, and then each is called with each block unless it is nil, or by the engine.
func (tr *trainer) sum(ctx context.Context, p *Pass, each func(*block) error) (sums, error) {
	if tr.engine != nil {
		return sumElsewhere(ctx, tr.engine, p)
	}
	return tr.reader.sum(ctx, p.Stage(), p, each)
}
