package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// A freeTrainer carries a training without labels from phase to phase. It belongs to the goroutine
// of Train. It reads the source once, for a sample; all that follows is about the sample.
type freeTrainer struct {
	opt        Options
	modalities []Modality
	groups     [][]int // modalities by the space of their vectors
	sample     *itemSample
	items      [][]Vector // of the sample: vectors by modality
	report     Report

	features []*features
	means    [][]float64   // of features
	maps     []*featureMap // by modality, to centre with
}

// trainLabelFree is Train for methods without labels; with an engine and no source it is TrainOver.
func trainLabelFree(ctx context.Context, modalities []Modality, src Source, engine Engine, opt Options) (_ *Result, err error) {
	defer guard(&err, "in the numerics")
	tr := &freeTrainer{opt: opt, modalities: modalities}
	clock := newStopwatch()
	if err := tr.check(); err != nil {
		return nil, err
	}
	if err := tr.read(ctx, src, engine); err != nil {
		return nil, err
	}
	clock.phase("scan")
	if err := tr.checkMemory(); err != nil {
		return nil, err
	}
	if err := tr.prepare(); err != nil {
		return nil, err
	}
	if err := tr.pairs(); err != nil {
		return nil, err
	}
	m, err := tr.model(ctx)
	if err != nil {
		return nil, err
	}
	clock.phase("solve")
	if err := tr.describe(m); err != nil {
		return nil, err
	}
	tr.report.Seconds = clock.seconds
	return &Result{Model: m, Report: tr.report}, nil
}

// check refuses options that do not fit, and fills in what follows from the modalities.
func (tr *freeTrainer) check() (err error) {
	if err := checkModalities(tr.modalities); err != nil {
		return err
	}
	if tr.groups, err = groups(tr.modalities, tr.opt.Shared); err != nil {
		return err
	}
	if err := tr.opt.checkLabelFree(); err != nil {
		return err
	}
	tr.opt.Bits = cmp.Or(tr.opt.Bits, DefaultLabelFreeBits)
	if err := codec.CheckBits(tr.opt.Bits); err != nil {
		return fmt.Errorf("%w: bits: %w", ErrOption, err)
	}
	if tr.opt.Features, err = complete("feature map", tr.modalities, tr.opt.Features, FeaturesL2); err != nil {
		return err
	}
	for _, m := range tr.modalities {
		if k := tr.opt.Features[m.Name]; int(k) >= len(featureNames) {
			return fmt.Errorf("%w: %v of modality %q: they are raw, zscore, hellinger, log, l2 or hellinger-l2", ErrOption, k, m.Name)
		}
		if m.Dim >= maxFeatures {
			return fmt.Errorf("%w: modality %q has %d dimensions, and method %v takes at most %d: reduce its vectors first, or leave it out", ErrOption, m.Name, m.Dim, tr.opt.Method, maxFeatures-1)
		}
	}
	first := tr.modalities[tr.groups[0][0]]
	switch several := len(tr.groups) > 1; {
	case several && tr.opt.Method != MethodCCAITQ:
		return fmt.Errorf("%w: method %v compares vectors of one space, and those of %q and %q lie in spaces of their own: use cca-itq, which learns from items that have both", ErrOption, tr.opt.Method, first.Name, tr.modalities[tr.groups[1][0]].Name)
	case !several && tr.opt.Method == MethodCCAITQ:
		return fmt.Errorf("%w: method %v learns from items with vectors in two spaces or more, and there is the one of %q: use itq", ErrOption, tr.opt.Method, first.Name)
	}
	tr.report = Report{Seed: tr.opt.Seed, Chosen: map[string]Chosen{}}
	return nil
}

// checkMemory refuses a training that needs more memory than the options allow. The sample itself,
// which is there by then, takes a quarter of it.
func (tr *freeTrainer) checkMemory() error {
	numbers, widest := 0, 0
	for _, m := range tr.modalities {
		numbers, widest = numbers+m.Dim, max(widest, m.Dim)
	}
	need := int64(16*len(tr.sample.kept)*numbers) + int64(24*min(tr.opt.Bits, widest)*widest)
	tr.report.MemoryBytes = need
	if limit := tr.opt.MemoryBytes; limit > 0 && limit < need {
		return &MemoryError{Needed: need, Available: limit, Sampling: true}
	}
	return nil
}

// read reads the source, or lets an engine read if there is one.
func (tr *freeTrainer) read(ctx context.Context, src Source, engine Engine) error {
	rng := rand.New(rand.NewPCG(tr.opt.Seed, streamItems))
	tr.sample = newItemSample(tr.modalities, sampleSize(tr.modalities), rng)
	var err error
	if engine != nil {
		err = tr.sample.readElsewhere(ctx, engine, tr.opt.Seed)
	} else {
		err = tr.sample.read(ctx, src, tr.opt.Progress)
	}
	if err != nil {
		return err
	}
	if tr.sample.n == 0 {
		return ErrNoItems
	}
	tr.report.TrainItems = tr.sample.n
	for _, k := range tr.sample.kept {
		tr.items = append(tr.items, k.vectors)
	}
	return nil
}

// prepare makes the features of each modality and their means.
func (tr *freeTrainer) prepare() error {
	for t, mod := range tr.modalities {
		xs, _ := vectorsOf(tr.items, t)
		if len(xs) == 0 {
			return &ModalityError{Modality: mod.Name, Problem: "is in no training item, or in hardly any: train without it, or add vectors"}
		}
		kind := tr.opt.Features[mod.Name]
		var raw *moments // of the vectors, for features that depend on them
		if kind != FeaturesRaw && kind != FeaturesL2 {
			raw = featureMoments(mod, nil, xs)
			if !kind.fits(raw) {
				return fmt.Errorf("%w: features %v of modality %q: its vectors hold %g, and they need numbers of 0 or more: use raw, zscore or l2",
					ErrOption, kind, mod.Name, raw.lowest())
			}
		}
		f := newFeatures(kind, raw)
		m := featureMoments(mod, f, xs)
		if _, constant := m.sigma(); constant {
			return fmt.Errorf("%w: all %d sampled vectors of modality %q are equal, but for what features %v leave out: without labels there is nothing to learn of them", ErrOneVector, len(xs), mod.Name, kind)
		}
		centring := linearMap(m.mean)
		centring.features = f
		tr.features, tr.means, tr.maps = append(tr.features, f), append(tr.means, m.mean), append(tr.maps, centring)
		tr.report.Chosen[mod.Name] = Chosen{Map: MapLinear, FeatureMap: kind, Items: tr.sample.items[t], Features: mod.Dim}
	}
	return nil
}

// model learns from the sample.
func (tr *freeTrainer) model(ctx context.Context) (*Model, error) {
	c, err := tr.directions(ctx)
	if err != nil {
		return nil, err
	}
	byGroup, err := c.itq(ctx, tr.opt.Bits, tr.random(streamTurn))
	if err != nil {
		return nil, err
	}
	w := make([]dense.Matrix[float64], len(tr.modalities))
	for g, group := range tr.groups {
		for _, t := range group {
			w[t] = byGroup[g]
		}
	}
	return newLabelFree(tr.opt.Method, tr.opt.Bits, tr.opt.Seed, tr.modalities, tr.features, tr.means, w), nil
}

// directions returns the directions that codes are made of.
func (tr *freeTrainer) directions(ctx context.Context) (*canonical, error) {
	if tr.opt.Method == MethodCCAITQ {
		return tr.correlate(ctx)
	}
	rows, _ := tr.centredRows(tr.groups[0])
	axes, _, err := principal(ctx, rows, min(tr.opt.Bits, rows.Cols), tr.random(streamAxes))
	if err != nil {
		return nil, err
	}
	return &canonical{[]dense.Matrix[float64]{axes}, projected(rows, axes)}, nil
}

// random returns the random numbers of a stream.
func (tr *freeTrainer) random(stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(tr.opt.Seed, stream))
}

// describe fills in what the report says of the codes of the sampled items.
func (tr *freeTrainer) describe(m *Model) error {
	r := &tr.report
	r.Bits, r.Method = m.bits, m.method
	codes, err := itemCodes(m, tr.items)
	if err != nil {
		return err
	}
	sums, distinct, n := make([]float64, m.bits), map[string]struct{}{}, 0
	var key []byte
	for i := range codes.Len() {
		code := codes.At(i)
		addSigns(sums, code, 1)
		key = code.AppendBytes(key[:0], m.bits)
		distinct[string(key)] = struct{}{}
		n++
	}
	for _, sum := range sums {
		mean := max(sum, -sum) / float64(n)
		r.BitBalance += mean / float64(m.bits)
		if mean == 1 {
			r.ConstantBits++
		}
	}
	r.DistinctCodes = len(distinct)
	return nil
}

// Reasons for which a training without labels cannot start.
var (
	// ErrNoItems says that no training item has a vector.
	ErrNoItems = errors.New("no items to learn from")
	// ErrOneVector says that all vectors of a modality are equal.
	ErrOneVector = errors.New("only one distinct vector")
	// ErrUnpaired says that too few items have vectors of several modalities.
	ErrUnpaired = errors.New("too few items with vectors of several modalities")
)

// itemCodes returns the codes that a model gives to items, without regard to labels. An item whose
// projection is zero has the code of sgn(0) = +1 here.
func itemCodes(m *Model, items [][]Vector) (codec.Codes, error) {
	words, q, T := codec.Words(m.bits), m.bits, len(m.maps)
	packed := make([]uint64, len(items)*words)
	workers := workerCount()
	failed := make([]error, workers)
	encoders := make([]*Encoder, workers)
	chunks(workers, len(items), mapRows, func(worker, from, to int) {
		if encoders[worker] == nil {
			encoders[worker] = m.NewEncoder()
		}
		e, parts, fused := encoders[worker], make([][]float64, (to-from)*T), make([]float64, q)
		for t := range T {
			xs, of := vectorsOf(items[from:to], t)
			zs := make([]float64, len(xs)*q)
			if err := e.ProjectVectors(zs, t, xs); err != nil {
				failed[worker] = err
				return
			}
			for r, i := range of {
				parts[i*T+t] = zs[r*q : (r+1)*q]
			}
		}
		for i := range to - from {
			m.Fuse(fused, parts[i*T:(i+1)*T])
			codec.PackSigns(packed[(from+i)*words:(from+i+1)*words], fused)
		}
	})
	codes := codec.NewCodes(q, len(items))
	for i := range items {
		codes.Append(packed[i*words : (i+1)*words])
	}
	return codes, cmp.Or(failed...)
}
