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
	signs    func(dst codec.Code)        // H0 of the next item; bits beyond q are 0
	anchors  func(t, items, k int) []int // which of the items that have t, ascending
	rotation func(t, k int) []float64    // the first R_t of MethodPaper, k x q
	seen     func(*solver)               // after each sweep; may be nil
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
		anchors: func(_, items, k int) []int {
			return choose(rand.New(rand.NewPCG(seed, streamAnchors)), items, k)
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

// choose draws k of n numbers without replacement, ascending, in O(k) memory
// (Floyd's algorithm).
func choose(rng *rand.Rand, n, k int) []int {
	in := make(map[int]bool, k)
	for j := n - k; j < n; j++ {
		i := rng.IntN(j + 1)
		if in[i] {
			i = j
		}
		in[i] = true
	}
	chosen := make([]int, 0, k)
	for i := range in {
		chosen = append(chosen, i)
	}
	slices.Sort(chosen)
	return chosen
}

// Train learns a model from labelled items. See the package comment for what it
// computes and Options for the settings.
//
// It reads the source once for the labels and the moments, once for the
// anchors, once for the statistics, and with MethodJoint or MethodPaper once
// more and once a sweep. It holds a block of 512 items and, an item, 4 bytes
// (MethodLabels) or 4 + 8c + q/8 (the others), apart from the statistics. Time
// is n k (k + d + 2q) multiplications a modality, plus n k (d + 2c) for every
// sweep of joint and paper.
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
	if err := tr.makeMaps(ctx); err != nil {
		return nil, err
	}
	clock.phase("anchors")
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

// scan counts, checks every vector, collects label sets and moments, and folds
// the random codes H0 into H0 Y0': H0 itself is not needed.
func (tr *trainer) scan(ctx context.Context) error {
	for _, m := range tr.reader.modalities {
		tr.moments = append(tr.moments, &moments{mean: make([]float64, m.Dim)})
	}
	sets := newSetBuilder(tr.opt.Bits)
	code := codec.NewCode(tr.opt.Bits)
	err := tr.reader.blocks(ctx, "scan", nil, func(b *block) error {
		for i := range b.n {
			tr.from.signs(code)
			sets.add(b.labels[i], code)
		}
		for t, m := range tr.reader.modalities {
			for r := range b.rows(t) {
				tr.moments[t].add(b.x[t][r*m.Dim : (r+1)*m.Dim])
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

// makeMaps decides the maps and gathers the anchors of all modalities in one
// pass, which ends with the last anchor.
func (tr *trainer) makeMaps(ctx context.Context) error {
	type gathering struct {
		want    []int // positions among the items that have the modality
		seen    int   // such items so far
		got     int   // anchors so far
		anchors []float32
	}
	gather := make([]gathering, len(tr.reader.modalities))
	tr.maps = make([]*featureMap, len(tr.reader.modalities))
	missing := 0 // anchors not yet gathered
	for t, m := range tr.reader.modalities {
		mo := tr.moments[t]
		chosen := Chosen{Map: tr.opt.Map[m.Name], Items: mo.n, Gamma: tr.opt.Gamma[m.Name], Mu: tr.opt.Mu[m.Name]}
		sigma, constant := mo.sigma()
		chosen.Constant = constant
		if chosen.Map == MapLinear {
			tr.maps[t] = linearMap(mo.mean)
			chosen.Features = tr.maps[t].size()
		} else {
			k := cmp.Or(tr.opt.Anchors, min(DefaultAnchors, mo.n))
			if k > mo.n {
				return &AnchorsError{Modality: m.Name, Anchors: k, Items: mo.n}
			}
			chosen.Anchors, chosen.Features, chosen.Sigma = k, k, sigma
		}
		if err := tr.checkFeatures(m, chosen.Features); err != nil {
			return err
		}
		if k := chosen.Anchors; k > 0 {
			gather[t].want = tr.from.anchors(t, mo.n, k)
			gather[t].anchors = make([]float32, k*m.Dim)
			// A map without anchors yet, which can centre them.
			tr.maps[t] = rbfMap(mo.mean, sigma, nil)
			missing += k
		}
		tr.report.Chosen[m.Name] = chosen
	}
	if missing == 0 {
		return nil
	}
	err := tr.reader.blocks(ctx, "anchors", nil, func(b *block) error {
		for t := range gather {
			g, d := &gather[t], tr.maps[t].dim
			for r := range b.rows(t) {
				if g.got < len(g.want) && g.want[g.got] == g.seen {
					tr.maps[t].centre(g.anchors[g.got*d:(g.got+1)*d], b.x[t][r*d:(r+1)*d])
					g.got++
					missing--
				}
				g.seen++
			}
		}
		if missing == 0 {
			return errStop
		}
		return nil
	})
	if err != nil {
		return err
	}
	if missing > 0 {
		return fmt.Errorf("%w: fewer vectors than in the first pass: the source must yield the same items each time", ErrMismatch)
	}
	for t, f := range tr.maps {
		if f.kind == MapRBF {
			tr.maps[t] = rbfMap(f.mean, f.sigma, gather[t].anchors)
		}
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
	h := make([]float64, blockItems*m.bits)
	err := tr.reader.blocks(ctx, "statistics", tr.maps, func(b *block) error {
		for t := range tr.maps {
			signs := h[:b.rows(t)*m.bits]
			clear(signs)
			for r, i := range b.at[t] {
				addSigns(signs[r*m.bits:(r+1)*m.bits], tr.solver.code(b.first+i), 1)
			}
			if err := stats.Add(t, b.rows(t), b.phi[t], signs); err != nil {
				return err
			}
		}
		return nil
	})
	return stats, err
}
