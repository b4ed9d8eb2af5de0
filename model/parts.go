package model

import (
	"errors"
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// Parts are all that a Model is made of. A training ends with them, and a stored model begins with
// them.
type Parts struct {
	Bits   int
	Method Method
	Seed   uint64

	Labels  []uint32  // ascending, distinct; none without labels
	C       []float64 // a row of Bits for each label: C, or C J for AimLabels
	Aim     Aim       // AimAuto without labels
	Prior   float64   // 0 for AimCodes
	Weights []float64 // D, by label; nil for AimCodes

	// By modality.
	Modalities  []Modality
	Maps        []*featureMap
	Gammas      []float64
	Projections [][]float64 // Bits rows of as many numbers as the map has features; nil: zeros, until Refit
	Fusion      []float64   // the weights of Model.Fuse

	Centre float64   // of Model.Fuse
	Mean   []float64 // mean of what the training items teach, Bits numbers; nil: zeros
}

// New returns the model of the parts, and the reason if they do not make one. The model keeps the slices:
// the caller must not change them.
func New(p Parts) (*Model, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	m := &Model{
		bits: p.Bits, method: p.Method, seed: p.Seed,
		labels: p.Labels, c: p.C, aim: p.Aim, prior: p.Prior, weights: p.Weights,
		modalities: p.Modalities, maps: p.Maps, gammas: p.Gammas,
		fusion: fusion{weights: p.Fusion, centre: p.Centre}, mean: p.Mean,
	}
	if m.mean == nil {
		m.mean = make([]float64, m.bits)
	}
	for t, f := range m.maps {
		rows := make([]float64, m.bits*f.size())
		if p.Projections != nil {
			rows = p.Projections[t]
		}
		m.p = append(m.p, dense.Pack(dense.Of(m.bits, f.size(), rows)))
	}
	m.sign()
	return m, nil
}

// Parts returns the parts of the model. They share its slices: do not write to them.
func (m *Model) Parts() Parts {
	p := Parts{
		Bits: m.bits, Method: m.method, Seed: m.seed,
		Labels: m.labels, C: m.c, Aim: m.aim, Prior: m.prior, Weights: m.weights,
		Modalities: m.modalities, Maps: m.maps, Gammas: m.gammas,
		Fusion: m.fusion.weights, Centre: m.fusion.centre, Mean: m.mean,
	}
	for _, rows := range m.p {
		p.Projections = append(p.Projections, rows.Unpack().Data)
	}
	return p
}

// check refuses parts that make no model.
func (p *Parts) check() error {
	c, T := len(p.Labels), len(p.Modalities)
	switch {
	case codec.CheckBits(p.Bits) != nil:
		return codec.CheckBits(p.Bits)
	case p.Method == MethodAuto || int(p.Method) >= len(methodNames):
		return fmt.Errorf("%v", p.Method)
	case p.Method.LabelFree() && (c > 0 || p.Aim != AimAuto):
		return fmt.Errorf("%d labels and the aim %v, but method %v has none", c, p.Aim, p.Method)
	case !p.Method.LabelFree() && (p.Aim == AimAuto || p.Aim > AimWeighted || p.Aim != AimCodes && p.Method != MethodLabels):
		return fmt.Errorf("the aim %v of method %v", p.Aim, p.Method)
	case !ascend(p.Labels):
		return errors.New("labels that do not ascend")
	case len(p.C) != c*p.Bits:
		return fmt.Errorf("%d numbers of C for %d labels", len(p.C), c)
	case !(p.Prior >= 0 && p.Prior <= 1):
		return fmt.Errorf("a prior of %g", p.Prior)
	case (p.Aim == AimLabels || p.Aim == AimWeighted) && len(p.Weights) != c, (p.Aim == AimAuto || p.Aim == AimCodes) && p.Weights != nil:
		return fmt.Errorf("%d weights of %d labels", len(p.Weights), c)
	case slices.ContainsFunc(p.Weights, func(w float64) bool { return !(w > 0) }):
		return fmt.Errorf("the weights of labels are %v", p.Weights)
	case T == 0 || len(p.Maps) != T || len(p.Gammas) != T || len(p.Fusion) != T || p.Projections != nil && len(p.Projections) != T:
		return fmt.Errorf("%d modalities with %d maps, %d gammas, %d weights and %d projections", T, len(p.Maps), len(p.Gammas), len(p.Fusion), len(p.Projections))
	case slices.Min(p.Fusion) < 0 || slices.Max(p.Fusion) == 0:
		return fmt.Errorf("the weights of the fusion are %v", p.Fusion)
	case !(p.Centre >= 0 && p.Centre <= 1):
		return fmt.Errorf("the centre of the fusion is %g", p.Centre)
	case p.Mean != nil && len(p.Mean) != p.Bits:
		return fmt.Errorf("a mean aim of %d numbers", len(p.Mean))
	case p.Mean != nil && p.Aim == AimCodes && (slices.Min(p.Mean) < -1 || slices.Max(p.Mean) > 1):
		return errors.New("the mean code is not from -1 to 1")
	}
	for t, mod := range p.Modalities {
		switch f := p.Maps[t]; {
		case f.dim != mod.Dim || (f.sparse != nil) != mod.Sparse:
			return fmt.Errorf("the map of modality %q has %d dimensions or another form", mod.Name, f.dim)
		case f.size() > maxFeatures:
			return fmt.Errorf("the map of modality %q has %d features", mod.Name, f.size())
		case !(p.Gammas[t] >= 0):
			return fmt.Errorf("a gamma of %g of modality %q", p.Gammas[t], mod.Name)
		case p.Projections != nil && len(p.Projections[t]) != p.Bits*f.size():
			return fmt.Errorf("a projection of %d numbers of modality %q, with %d features", len(p.Projections[t]), mod.Name, f.size())
		}
	}
	return nil
}
