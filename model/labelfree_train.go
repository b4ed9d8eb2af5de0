package model

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// A freeTrainer carries a training without labels from phase to phase. It belongs to the goroutine
// of Train. It reads the source once, for a sample; all that follows is about the sample. Some of its
// items are held out, to measure with, and teach nothing: so what the report says is about the very
// model that is returned.
type freeTrainer struct {
	opt        Options
	modalities []Modality
	groups     [][]int // modalities by the space of their vectors
	sample     *itemSample
	learn      [][]Vector // items to learn from: vectors by modality
	held       [][]Vector // items to measure with
	report     Report

	features []*features
	means    [][]float64   // of features
	maps     []*featureMap // by modality, to centre with

	axes      dense.Matrix[float64] // of MethodITQ: principal axes; without rows until they are needed
	rows      dense.Matrix[float32] // of MethodITQ: centred vectors, likewise
	canonical *canonical            // of MethodCCAITQ
}

// trainLabelFree is Train for methods without labels, and for MethodAuto where items have none; with an engine and
// no source it is TrainOver.
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
	m, err := tr.choose(ctx)
	if err != nil {
		return nil, err
	}
	clock.phase("choose")
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
	asked := tr.opt.Method
	if asked == MethodAuto && len(tr.groups) > 1 {
		tr.opt.Method = MethodCCAITQ
	}
	if err := tr.opt.checkLabelFree(asked); err != nil {
		return err
	}
	if tr.opt.Bits != 0 {
		if err := codec.CheckBits(tr.opt.Bits); err != nil {
			return fmt.Errorf("%w: bits: %w", ErrOption, err)
		}
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
		return fmt.Errorf("%w: method %v learns from items with vectors in two spaces or more, and there is the one of %q: use rotation or itq", ErrOption, tr.opt.Method, first.Name)
	case tr.opt.Method == MethodITQ && max(tr.opt.Bits, codec.MinBits) > first.Dim:
		return fmt.Errorf("%w: method itq makes at most one bit of a dimension, and %q has %d: use fewer bits, or the method rotation", ErrOption, first.Name, first.Dim)
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
	bits := max(tr.opt.Bits, triedBits[len(triedBits)-1])
	need := int64(16*len(tr.sample.kept)*numbers) + int64(24*min(bits, widest)*widest)
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
	tr.learn, tr.held = tr.sample.split()
	return nil
}

// prepare makes the features of each modality and their means.
func (tr *freeTrainer) prepare() error {
	for t, mod := range tr.modalities {
		xs, _ := vectorsOf(tr.learn, t)
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

// model learns by a method from the sample. axes and the like are kept for the next number of bits.
func (tr *freeTrainer) model(ctx context.Context, method Method, bits int) (*Model, error) {
	var w []dense.Matrix[float64]
	switch method {
	case MethodITQ:
		if tr.axes.Rows < bits {
			var err error
			tr.rows, _ = tr.centredRows(tr.groups[0])
			r := min(max(bits, tr.mostAxes()), tr.rows.Cols)
			if tr.axes, _, err = principal(ctx, tr.rows, r, tr.random(streamAxes)); err != nil {
				return nil, err
			}
		}
		axes := tr.axes.Slice(0, bits)
		r, err := itq(ctx, projected(tr.rows, axes), tr.random(streamTurn))
		if err != nil {
			return nil, err
		}
		w = slices.Repeat([]dense.Matrix[float64]{turned(r, axes)}, len(tr.modalities))
	case MethodCCAITQ:
		byGroup, err := tr.canonicalITQ(ctx, bits)
		if err != nil {
			return nil, err
		}
		w = make([]dense.Matrix[float64], len(tr.modalities))
		for g, group := range tr.groups {
			for _, t := range group {
				w[t] = byGroup[g]
			}
		}
	}
	return newLabelFree(method, bits, tr.opt.Seed, tr.modalities, tr.features, tr.means, w), nil
}

// mostAxes returns the largest number of bits that itq is going to be tried with.
func (tr *freeTrainer) mostAxes() int {
	most := tr.opt.Bits
	for _, c := range tr.candidates() {
		if c.method == MethodITQ {
			most = max(most, c.bits)
		}
	}
	return most
}

// random returns the random numbers of a stream.
func (tr *freeTrainer) random(stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(tr.opt.Seed, stream))
}

// describe fills in what the report says of the codes of the sampled items.
func (tr *freeTrainer) describe(m *Model) error {
	r := &tr.report
	r.Bits, r.Method = m.bits, m.method
	codes, err := itemCodes(m, tr.learn)
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

// hasLabels reports whether the first item of a source has labels.
func hasLabels(ctx context.Context, src Source) (bool, error) {
	for ex, err := range src.Examples(ctx) {
		return len(ex.Labels) > 0, err
	}
	return true, nil // without items the methods that learn from labels say so
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
