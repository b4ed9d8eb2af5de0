package model

import (
	"fmt"
	"slices"
)

// Fusion says which projections make the code of an unlabelled item. The zero value
// chooses by measurement; see FusionChoice.
type Fusion struct {
	Rule     FusionRule
	Modality string // for FusionModality
}

// FusionRule is the rule of a Fusion.
type FusionRule uint8

const (
	FusionAuto     FusionRule = iota // chosen from the training items
	FusionSum                        // the sum of all projections
	FusionModality                   // the projection of one modality alone
)

var fusionNames = []string{"auto", "sum"}

// String returns the text form, which ParseFusion reads.
func (f Fusion) String() string {
	if f.Rule == FusionModality {
		return f.Modality
	}
	return nameOf(fusionNames, int(f.Rule), "fusion")
}

// ParseFusion reads auto, sum or the name of a modality. It takes any name;
// Train checks that there is such a modality.
func ParseFusion(s string) (Fusion, error) {
	if i := slices.Index(fusionNames, s); i >= 0 {
		return Fusion{Rule: FusionRule(i)}, nil
	}
	if s == "" {
		return Fusion{}, fmt.Errorf("%w: a fusion without a name: it is auto, sum or the name of a modality", ErrOption)
	}
	return Fusion{Rule: FusionModality, Modality: s}, nil
}

// check refuses a fusion that the modalities rule out.
func (f Fusion) check(modalities []Modality) error {
	switch {
	case f.Rule > FusionModality:
		return fmt.Errorf("%w: %v: it is auto, sum or the name of a modality", ErrOption, f)
	case f.Rule == FusionModality && f.position(modalities) < 0:
		return &ModalityError{Modality: f.Modality, Problem: "is the fusion of the options, but is not a modality of the items: it is auto, sum or the name of one"}
	}
	return nil
}

func (f Fusion) position(modalities []Modality) int {
	return slices.IndexFunc(modalities, func(m Modality) bool { return m.Name == f.Modality })
}

// A fusion is how codes are made from projections.
type fusion struct {
	weights []float64 // by modality
	centre  float64   // share of the mean aim that is subtracted
}

// given returns the fusion of the rule. FusionAuto is the sum here, where nothing can be measured.
func (f Fusion) given(modalities []Modality) fusion {
	w := fusion{weights: make([]float64, len(modalities))}
	if f.Rule == FusionModality {
		w.weights[f.position(modalities)] = 1
		return w
	}
	for t := range w.weights {
		w.weights[t] = 1
	}
	return w
}

// Weights returns the weights of the fusion, by modality. They are finite and not negative, and at least one is
// positive. See Fuse.
func (m *Model) Weights() []float64 { return slices.Clone(m.fusion.weights) }

// Centre returns the share of the mean aim that Fuse subtracts.
func (m *Model) Centre() float64 { return m.fusion.centre }

// Fuse writes the fused projection of an unlabelled item to dst: q numbers whose signs
// are its code (codec.PackSigns):
//
//	sum over t of w_t (z_t - b gmean)
//
// z[t] is the projection of the item in modality t of the model, q numbers, or nil if
// it lacks t. A projection of zeros, of a vector far from everything, counts as none. w
// are the Weights and b is the Centre. gmean is the mean aim: that of what
// the training items teach (Aim), which a ridge regression pulls all projections towards.
// If there is no weight for any modality of the item, each of them gets the weight
// 1. If the item has no projection, dst is zero.
//
// only is the one modality that made the code, if w is 0 for all others that the item
// has, else -1. It costs q multiplications a modality and no allocation.
func (m *Model) Fuse(dst []float64, z [][]float64) (only int) {
	f := m.fusion
	has, counts := 0, 0
	for t, x := range z {
		if isZero(x) {
			continue
		}
		has++
		if f.weights[t] > 0 {
			counts++
			only = t
		}
	}
	if counts != 1 || has == 1 {
		only = -1
	}
	clear(dst)
	total := 0.0
	for t, x := range z {
		w := f.weights[t]
		if counts == 0 {
			w = 1
		}
		if w == 0 || isZero(x) {
			continue
		}
		total += w
		for j, v := range x {
			dst[j] += w * v
		}
	}
	if f.centre != 0 {
		for j, h := range m.mean {
			dst[j] -= total * f.centre * h
		}
	}
	return only
}

func isZero(x []float64) bool {
	return !slices.ContainsFunc(x, func(v float64) bool { return v != 0 })
}
