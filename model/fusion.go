package model

import (
	"fmt"
	"slices"
)

// Views says how many codes an unlabelled item has. A labelled item has the code of its
// labels in every view.
type Views uint8

const (
	ViewsShared Views = iota // one code, whichever modality is searched
	ViewsTarget              // a code for each modality that can be searched
)

var viewsNames = []string{"shared", "target"}

func (v Views) String() string { return nameOf(viewsNames, int(v), "views") }

// MarshalText writes the name, for reports.
func (v Views) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads the name.
func (v *Views) UnmarshalText(b []byte) (err error) {
	*v, err = ParseViews(string(b))
	return err
}

// ParseViews returns the views with this name: shared or target.
func ParseViews(s string) (Views, error) {
	if i := slices.Index(viewsNames, s); i >= 0 {
		return Views(i), nil
	}
	return 0, fmt.Errorf("%w: views %q: they are shared or target", ErrOption, s)
}

// count returns the number of views of a model with so many modalities.
func (v Views) count(modalities int) int {
	if v == ViewsTarget {
		return modalities
	}
	return 1
}

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
	FusionTarget                     // the projection of the target modality alone: the codes of the paper; needs ViewsTarget
	FusionModality                   // the projection of one modality alone, for all targets
)

var fusionNames = []string{"auto", "sum", "target"}

// String returns the text form, which ParseFusion reads.
func (f Fusion) String() string {
	if f.Rule == FusionModality {
		return f.Modality
	}
	return nameOf(fusionNames, int(f.Rule), "fusion")
}

// ParseFusion reads auto, sum, target or the name of a modality. It takes any name;
// Train checks that there is such a modality.
func ParseFusion(s string) (Fusion, error) {
	if i := slices.Index(fusionNames, s); i >= 0 {
		return Fusion{Rule: FusionRule(i)}, nil
	}
	if s == "" {
		return Fusion{}, fmt.Errorf("%w: a fusion without a name: it is auto, sum, target or the name of a modality", ErrOption)
	}
	return Fusion{Rule: FusionModality, Modality: s}, nil
}

// check refuses a fusion that the modalities or the views rule out.
func (f Fusion) check(views Views, modalities []Modality) error {
	switch {
	case int(views) >= len(viewsNames):
		return fmt.Errorf("%w: %v: they are shared or target", ErrOption, views)
	case f.Rule > FusionModality:
		return fmt.Errorf("%w: %v: it is auto, sum, target or the name of a modality", ErrOption, f)
	case f.Rule == FusionTarget && views != ViewsTarget:
		return fmt.Errorf("%w: fusion target gives an item a code for each target, and the views are shared: use the views target, or the name of one modality", ErrOption)
	case f.Rule == FusionModality && f.position(modalities) < 0:
		return &ModalityError{Modality: f.Modality, Problem: "is the fusion of the options, but is not a modality of the items: it is auto, sum, target or the name of one"}
	}
	return nil
}

func (f Fusion) position(modalities []Modality) int {
	return slices.IndexFunc(modalities, func(m Modality) bool { return m.Name == f.Modality })
}

// A fusion is how a view makes codes from projections.
type fusion struct {
	weights []float64 // by modality
	centre  float64   // share of the mean aim that is subtracted
}

// given returns the fusion of a view by the rule. FusionAuto is the sum here, for views
// that cannot be measured.
func (f Fusion) given(view int, modalities []Modality) fusion {
	w := fusion{weights: make([]float64, len(modalities))}
	switch f.Rule {
	case FusionTarget:
		w.weights[view] = 1
	case FusionModality:
		w.weights[f.position(modalities)] = 1
	default:
		for t := range w.weights {
			w.weights[t] = 1
		}
	}
	return w
}

// Views returns the number of codes that the model gives an unlabelled item.
func (m *Model) Views() Views { return m.views }

// Weights returns the weights of a view, by modality. They are finite and not negative,
// and at least one is positive. view is 0 for ViewsShared, and the position of the
// target modality for ViewsTarget. See Fuse.
func (m *Model) Weights(view int) []float64 { return slices.Clone(m.fusions[view].weights) }

// Centre returns the share of the mean aim that Fuse subtracts in a view.
func (m *Model) Centre(view int) float64 { return m.fusions[view].centre }

// Fuse writes the fused projection of an unlabelled item to dst: q numbers whose signs
// are its code in this view (codec.PackSigns):
//
//	sum over t of w_t (z_t - b gmean)
//
// z[t] is the projection of the item in modality t of the model, q numbers, or nil if
// it lacks t. A projection of zeros, of a vector far from everything, counts as none. w
// are the Weights of the view and b is its Centre. gmean is the mean aim: that of what
// the training items teach (Aim), which a ridge regression pulls all projections towards.
// If the view gives no weight to any modality of the item, each of them gets the weight
// 1. If the item has no projection, dst is zero.
//
// only is the one modality that made the code, if w is 0 for all others that the item
// has, else -1. It costs q multiplications a modality and no allocation.
func (m *Model) Fuse(dst []float64, view int, z [][]float64) (only int) {
	f := m.fusions[view]
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
