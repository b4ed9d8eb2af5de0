package model

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
)

// Result is what a training returns.
type Result struct {
	Model      *Model
	Statistics *Statistics
	Report     Report
}

// The streams of random numbers of one seed.
const (
	streamSigns = iota
	streamAnchors
	streamRotations
)

// start is where a training starts: what it would draw at random. Tests start
// it from a recorded run instead; nothing else differs.
type start struct {
	signs    func(dst codec.Code)                   // H0 of the next item; bits beyond q are 0
	anchors  func(t, k int) func(i int) (place int) // see newSample
	rotation func(t, k int) []float64               // the first R_t of MethodPaper, k x q
	seen     func(*solver)                          // after each sweep; may be nil
}

// seeded draws the start from the seed. The anchors of every modality come from
// the same stream, so that they are the same items when all items have all
// modalities.
func seeded(seed uint64, bits int) start {
	signs := rand.New(rand.NewPCG(seed, streamSigns))
	rotations := rand.New(rand.NewPCG(seed, streamRotations))
	return start{
		signs: func(dst codec.Code) {
			for i := range dst {
				dst[i] = signs.Uint64()
			}
			if tail := bits % 64; tail > 0 {
				dst[len(dst)-1] &= 1<<tail - 1
			}
		},
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

// Train learns a model from labelled items. See the package comment for what it
// computes and Options for the settings.
//
// It reads the source twice: once for the labels, the moments and the anchors, and
// once for the statistics; with MethodJoint or MethodPaper once more and once a
// sweep. It holds two blocks of 512 items and, an item, 4 bytes
// (MethodLabels) or 4 + 8c + q/8 (the others), apart from the statistics. Time
// is n k (k/2 + d + q) multiplications a modality, plus n k (d + 2c) for every
// sweep of joint and paper, all on GOMAXPROCS cores; the next block is read
// meanwhile.
//
// Equal options and data give a model with equal bytes, on one architecture,
// whatever GOMAXPROCS is. Cancelling the context stops it within a block.
func Train(ctx context.Context, modalities []Modality, src Source, opt Options) (*Result, error) {
	opt, err := opt.withDefaults(modalities)
	if err != nil {
		return nil, fmt.Errorf("training: %w", err)
	}
	result, err := train(ctx, slices.Clone(modalities), src, opt, seeded(opt.Seed, opt.Bits))
	if err != nil {
		return nil, fmt.Errorf("training: %w", err)
	}
	return result, nil
}

// A trainer carries the training from phase to phase.
type trainer struct {
	opt    Options // complete
	from   start
	reader *reader
	report Report

	sets    *labelSets
	hy      []float64 // H0 Y0'
	moments []*moments
	samples []*sample // nil for a linear map
	maps    []*featureMap
	solver  *solver
}

func train(ctx context.Context, modalities []Modality, src Source, opt Options, from start) (_ *Result, err error) {
	defer guard(&err, "in the numerics")
	tr := &trainer{
		opt: opt, from: from,
		reader: &reader{modalities: modalities, src: src, items: -1, progress: opt.Progress},
		report: Report{
			Bits: opt.Bits, Method: opt.Method, Seed: opt.Seed, Sweeps: opt.Sweeps,
			Chosen: map[string]Chosen{},
		},
	}
	clock := newStopwatch()
	if err := tr.scan(ctx); err != nil {
		return nil, err
	}
	clock.phase("scan")
	if err := tr.makeMaps(); err != nil {
		return nil, err
	}
	clock.phase("maps")
	if err := tr.solve(ctx); err != nil {
		return nil, err
	}
	clock.phase("sweeps")
	m := &Model{
		bits: opt.Bits, method: opt.Method, seed: opt.Seed,
		labels: tr.sets.labels, c: tr.solver.cm,
		modalities: modalities, maps: tr.maps,
	}
	for _, mod := range modalities {
		m.gammas = append(m.gammas, opt.Gamma[mod.Name])
	}
	m.sign()
	stats, err := tr.statistics(ctx, m)
	if err != nil {
		return nil, err
	}
	clock.phase("statistics")
	if m, err = m.Refit(stats, nil); err != nil {
		return nil, err
	}
	clock.phase("solve")
	tr.report.Seconds = clock.seconds
	return &Result{Model: m, Statistics: stats, Report: tr.report}, nil
}

// scan counts, checks every vector, collects label sets, moments and anchors, and
// folds the random codes H0 into H0 Y0': H0 itself is not needed.
func (tr *trainer) scan(ctx context.Context) error {
	for t, m := range tr.reader.modalities {
		tr.moments = append(tr.moments, newMoments(m.Dim))
		var s *sample
		if tr.opt.Map[m.Name] == MapRBF {
			// makeMaps refuses more.
			k := min(cmp.Or(tr.opt.Anchors, DefaultAnchors), maxFeatures+1)
			s = newSample(tr.from.anchors(t, k))
		}
		tr.samples = append(tr.samples, s)
	}
	sets := newSetBuilder(tr.opt.Bits)
	code := codec.NewCode(tr.opt.Bits)
	err := tr.reader.blocks(ctx, "scan", nil, func(b *block) error {
		for i := range b.n {
			tr.from.signs(code)
			sets.add(b.labels[i], code)
		}
		for t, m := range tr.moments {
			m.add(b.x[t], workerCount())
			if s := tr.samples[t]; s != nil {
				s.add(b.x[t])
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if tr.sets, tr.hy, err = sets.finish(); err != nil {
		return err
	}
	tr.reader.items = len(tr.sets.of)
	tr.report.TrainItems = len(tr.sets.of)
	tr.report.Labels = len(tr.sets.labels)
	tr.report.LabelSets = len(tr.sets.sets)
	for t, m := range tr.reader.modalities {
		if tr.moments[t].n == 0 {
			return &ModalityError{Modality: m.Name, Problem: "is in no training item: train without it, or add vectors"}
		}
	}
	return nil
}

// makeMaps makes the maps from what the scan has gathered.
func (tr *trainer) makeMaps() error {
	for t, m := range tr.reader.modalities {
		mo := tr.moments[t]
		chosen := Chosen{Map: tr.opt.Map[m.Name], Items: mo.n, Gamma: tr.opt.Gamma[m.Name], Mu: tr.opt.Mu[m.Name]}
		sigma, constant := mo.sigma()
		chosen.Constant = constant
		f := linearMap(mo.mean)
		chosen.Features = f.size()
		if chosen.Map == MapRBF {
			k := cmp.Or(tr.opt.Anchors, min(DefaultAnchors, mo.n))
			if k > mo.n {
				return &AnchorsError{Modality: m.Name, Anchors: k, Items: mo.n}
			}
			chosen.Anchors, chosen.Features, chosen.Sigma = k, k, sigma
		}
		if err := tr.checkFeatures(m, chosen.Features); err != nil {
			return err
		}
		if chosen.Map == MapRBF {
			f = rbfMap(mo.mean, sigma, nil) // without anchors yet, but it can centre them
			anchors := make([]float32, chosen.Anchors*m.Dim)
			for j, x := range tr.samples[t].ordered() {
				f.centre(anchors[j*m.Dim:(j+1)*m.Dim], x)
			}
			tr.samples[t] = nil
			f = rbfMap(mo.mean, sigma, anchors)
		}
		tr.maps = append(tr.maps, f)
		tr.report.Chosen[m.Name] = chosen
	}
	return nil
}

// checkFeatures refuses maps on which R_t'R_t = I, or G_t'G_t = I, cannot hold,
// and those whose Gram matrix would not fit into memory.
func (tr *trainer) checkFeatures(m Modality, k int) error {
	if k > maxFeatures {
		return fmt.Errorf("%w: the map of modality %q has %d features, whose Gram matrix takes 8 k^2 bytes: at most %d, so use fewer anchors, or the rbf map", ErrOption, m.Name, k, maxFeatures)
	}
	need := 0
	switch tr.opt.Method {
	case MethodJoint:
		need = len(tr.sets.labels)
	case MethodPaper:
		need = tr.opt.Bits
	}
	if k < need {
		return &FeaturesError{Modality: m.Name, Features: k, Need: need, Method: tr.opt.Method}
	}
	return nil
}

// maxRelaxed bounds Y, which joint and paper hold: 2 GiB.
const maxRelaxed = 1 << 28

func (tr *trainer) solve(ctx context.Context) error {
	if n, c := len(tr.sets.of), len(tr.sets.labels); tr.opt.Method != MethodLabels && n > maxRelaxed/c {
		return fmt.Errorf("%w: method %v holds a number for each of %d items and %d labels, at most %d in all: use the method labels, or fewer items",
			ErrOption, tr.opt.Method, n, c, maxRelaxed)
	}
	s := newSolver(tr.opt, tr.reader.modalities, tr.sets, tr.hy)
	if s.method != MethodLabels {
		s.useMaps(tr.maps, tr.from.rotation)
	}
	var err error
	if tr.report.Objective, err = s.run(ctx, tr.reader, tr.opt.Sweeps, tr.from.seen); err != nil {
		return err
	}
	tr.solver = s
	tr.report.judgeCodes(s)
	return nil
}

// statistics is the last pass: A_t and B_t = H phi_t' with the H of the solver.
func (tr *trainer) statistics(ctx context.Context, m *Model) (*Statistics, error) {
	stats := NewStatistics(m)
	h := make([]float32, blockItems*m.bits)
	err := tr.reader.blocks(ctx, "statistics", tr.maps, func(b *block) error {
		for t := range tr.maps {
			for r, i := range b.at[t] {
				signs(h[r*m.bits:(r+1)*m.bits], tr.solver.code(b.first+i))
			}
			if err := stats.Add(t, b.rows(t), b.phi[t], h); err != nil {
				return err
			}
		}
		return nil
	})
	return stats, err
}
