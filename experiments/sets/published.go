package sets

import (
	"context"
	"iter"
	"slices"

	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

// Settings of the authors of FDDH: anchors, and the weight of the ridge.
const (
	PublishedAnchors = 800
	PublishedGamma   = 1e-4
)

// Published returns the settings of the authors' experiments with FDDH, for some modalities.
func Published(modalities []string, bits, anchors int) fit.Options {
	opt := fit.Options{Bits: bits, Anchors: anchors, Method: model.MethodPaper, Aim: model.AimCodes,
		Features: map[string]model.FeatureKind{}, Map: map[string]model.MapKind{},
		Gamma: map[string]float64{}, Width: map[string]float64{}}
	for _, m := range modalities {
		opt.Features[m], opt.Map[m] = model.FeaturesRaw, model.MapRBF
		opt.Gamma[m], opt.Width[m] = PublishedGamma, fit.DefaultWidth
	}
	return opt
}

// Examples are training items; they implement sum.Source.
type Examples []model.Example

// Examples implements sum.Source.
func (e Examples) Examples(context.Context) iter.Seq2[model.Example, error] {
	return func(yield func(model.Example, error) bool) {
		for _, ex := range e {
			if !yield(ex, nil) {
				return
			}
		}
	}
}

// Examples returns the items of a part. A label has the number of its place among all labels of the set.
func (s *Set) Examples(p *Part) Examples {
	names := s.labels()
	var all Examples
	for i, of := range p.Labels {
		var ex model.Example
		for _, name := range of {
			if l, known := slices.BinarySearch(names, name); known {
				ex.Labels = append(ex.Labels, uint32(l))
			}
		}
		slices.Sort(ex.Labels)
		for t := range p.Vectors {
			ex.Vectors = append(ex.Vectors, model.Dense(p.Vectors[t][i]))
		}
		all = append(all, ex)
	}
	return all
}

// ModelModalities returns the modalities as package model has them.
func (s *Set) ModelModalities() (all []model.Modality) {
	for t, name := range s.Modalities {
		all = append(all, model.Modality{Name: name, Dim: s.Dims[t]})
	}
	return all
}
