package model

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"gonum.org/v1/gonum/floats"
)

// ErrNoDirection says that the code space has no direction left for a label: the
// directions of the other labels span it.
var ErrNoDirection = errors.New("no direction is left for another label")

// growDraws is the number of random directions from which a new label gets the best
// one.
const growDraws = 64

// Grow returns a model with a direction for a label that training has not seen, and its
// statistics, which share sums with s. The new column of C is orthogonal to all
// others. So codes of items without the label do not change, and items with the label
// get another code. Of random directions Grow takes the one whose code is
// farthest from the nearest code of another label. The projections know nothing of the
// label until labelled items teach them ([Online]).
//
// It costs about c q^2 multiplications. The error wraps ErrNoDirection; ErrMismatch if
// s belongs to another model; or ErrOption if the label is known.
func (m *Model) Grow(s *Statistics, label uint32) (*Model, *Statistics, error) {
	if err := m.CheckStatistics(s); err != nil {
		return nil, nil, err
	}
	place, known := slices.BinarySearch(m.labels, label)
	if known {
		return nil, nil, fmt.Errorf("%w: label %d is known", ErrOption, label)
	}
	basis := m.span()
	if len(basis) >= m.bits {
		return nil, nil, fmt.Errorf("%w: %d labels span all %d bits: train again with more bits",
			ErrNoDirection, len(m.labels), m.bits)
	}
	direction := m.newDirection(basis, rand.New(rand.NewPCG(m.seed, uint64(label)^growStream)))
	next := *m
	next.labels = slices.Insert(slices.Clone(m.labels), place, label)
	next.c = slices.Insert(slices.Clone(m.c), place*m.bits, direction...)
	if m.weights != nil {
		next.weights = slices.Insert(slices.Clone(m.weights), place, 1)
	}
	next.sign()
	return &next, s.grow(&next, place), nil
}

// Grow is Model.Grow for the model and the statistics of the Online: its next revisions know the label. Its
// projections and its sums do not change: they have no item of the label. On an error the Online is
// unchanged.
func (o *Online) Grow(label uint32) error {
	place, _ := slices.BinarySearch(o.model.labels, label)
	m, s, err := o.model.Grow(o.Statistics(), label)
	if err != nil {
		return err
	}
	*o.stats = *s
	o.model = m
	for t := range o.parts {
		if p := &o.parts[t]; m.aim == AimLabels && p.state == current {
			p.w = slices.Insert(p.w, place*s.parts[t].k, make([]float64, s.parts[t].k)...)
		}
	}
	return nil
}

// grow returns the statistics with a label more, which no item has: a row of zeros at its
// place. Sums that do not change are shared.
func (s *Statistics) grow(m *Model, place int) *Statistics {
	grown := *s
	grown.fingerprint = m.fingerprint
	grown.parts = slices.Clone(s.parts)
	if m.aim != AimLabels {
		return &grown
	}
	c := s.labels
	grown.labels = c + 1
	for t := range grown.parts {
		p := &grown.parts[t]
		p.b = slices.Insert(slices.Clone(p.b), place*p.k, make([]float64, p.k)...)
		pairs := make([]float64, 0, (c+1)*(c+1))
		for l := range c + 1 {
			if l == place {
				pairs = append(pairs, make([]float64, c+1)...)
				continue
			}
			old := l
			if l > place {
				old--
			}
			row := p.pairs[old*c : (old+1)*c]
			pairs = append(append(append(pairs, row[:place]...), 0), row[place:]...)
		}
		p.pairs = pairs
	}
	return &grown
}

// growStream separates the random numbers of Grow from the random numbers of training.
const growStream = 0x67726f77 << 32

// span returns an orthonormal basis of the directions of the labels.
func (m *Model) span() (basis [][]float64) {
	for c := range slices.Chunk(m.c, m.bits) {
		v := slices.Clone(c)
		length := floats.Norm(v, 2)
		removeAll(v, basis)
		if left := floats.Norm(v, 2); left > 1e-6*length {
			floats.Scale(1/left, v)
			basis = append(basis, v)
		}
	}
	return basis
}

// removeAll makes v orthogonal to an orthonormal basis. It goes over the basis twice,
// as rounding leaves something the first time.
func removeAll(v []float64, basis [][]float64) {
	for range 2 {
		for _, b := range basis {
			floats.AddScaled(v, -floats.Dot(v, b), b)
		}
	}
}

// newDirection returns a unit vector orthogonal to the basis.
func (m *Model) newDirection(basis [][]float64, rng *rand.Rand) (best []float64) {
	var others []codec.Code
	for _, l := range m.labels {
		code := codec.NewCode(m.bits)
		m.LabelCode(code, []uint32{l})
		others = append(others, code)
	}
	farthest := -1
	code := codec.NewCode(m.bits)
	for range growDraws {
		v := make([]float64, m.bits)
		for j := range v {
			v[j] = rng.NormFloat64()
		}
		removeAll(v, basis)
		// Make v about as large in every bit, so that its signs say most about it.
		for range 10 {
			for j, x := range v {
				v[j] = math.Copysign(1, x)
			}
			removeAll(v, basis)
		}
		floats.Scale(1/floats.Norm(v, 2), v)
		nearest := m.bits
		codec.PackSigns(code, v)
		for _, other := range others {
			nearest = min(nearest, codec.Distance(code, other))
		}
		if nearest > farthest {
			best, farthest = v, nearest
		}
	}
	return best
}
