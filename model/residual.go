package model

import (
	"github.com/fddhdb/fddhdb/model/internal/dense"
	"github.com/fddhdb/fddhdb/model/internal/parallel"
	"gonum.org/v1/gonum/floats"
)

// ResidualOf says, for each modality, how far the projections miss the aim of the labels (LabelAim): the sum
// of |g - z|^2 over items as a share of the sum of |g|^2, where z is the projection of an item and g the aim
// of its labels. It is 0 if projections give everything, 1 if they tell nothing, and more if they mislead. It
// counts the items that have the modality and a label that the model knows; n is their number. Without any it
// is 1.
//
// Items that have taught are nearer to the model than others. Given the statistics that have learned from all
// items, each item counts as if it had been left out of them: for items of a training this is the residual to
// expect of others from the same source. With nil no item has taught.
//
// It costs k (d+q) multiplications an item and modality, on one goroutine; with statistics k^2 more, and
// k^3/3 a modality. It has the errors of Encoder.Project, and *SingularError.
func (m *Model) ResidualOf(items []Example, taught *Statistics) (residuals []float64, n []int, err error) {
	defer parallel.Guard(&err, "computing residuals")
	if taught != nil {
		if err := m.CheckStatistics(taught); err != nil {
			return nil, nil, err
		}
	}
	g := make([]float64, m.bits)
	for t := range m.maps {
		var left *leftOut
		if taught != nil {
			if left, err = m.newLeftOut(t, taught); err != nil {
				return nil, nil, err
			}
		}
		count, sum, total := 0, 0., 0.
		err := m.projections(t, items, func(item Example, z []float64) error {
			if !m.LabelAim(g, item.Labels) {
				return nil
			}
			share := 1.
			if left != nil {
				if share, err = left.share(item.Vectors[t]); err != nil {
					return err
				}
			}
			count++
			for j, v := range z {
				missed := (g[j] - v) / share
				sum += missed * missed
				total += g[j] * g[j]
			}
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
		residual := 1.
		if total > 0 {
			residual = sum / total
		}
		residuals, n = append(residuals, residual), append(n, count)
	}
	return residuals, n, nil
}

// OffsetOf says, for each modality, how far the mean of the projections z of items is from 0, which is their
// mean over the items of a training without labels: |mean of z|^2 as a share of the mean of |z|^2. For n
// items like the training items it is mostly below 3/n; it is 1 if all projections are the same. n is the
// number of items that have the modality; without any it is 0. It costs as much as ResidualOf.
func (m *Model) OffsetOf(items []Example) (offsets []float64, n []int, err error) {
	defer parallel.Guard(&err, "computing offsets")
	for t := range m.maps {
		count, squares, sum := 0, 0., make([]float64, m.bits)
		err := m.projections(t, items, func(_ Example, z []float64) error {
			count++
			floats.Add(sum, z)
			squares += floats.Dot(z, z)
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
		offset := 0.
		if squares > 0 {
			offset = floats.Dot(sum, sum) / float64(count) / squares
		}
		offsets, n = append(offsets, offset), append(n, count)
	}
	return offsets, n, nil
}

// projections calls f for each item that has modality t, with its projection, which is valid until f
// returns.
func (m *Model) projections(t int, items []Example, f func(item Example, z []float64) error) error {
	var have []Example
	var xs []Vector
	for _, item := range items {
		if err := m.checkVectors(item); err != nil {
			return err
		}
		if x := item.Vectors[t]; x.Present() {
			have, xs = append(have, item), append(xs, x)
		}
	}
	e, q := m.NewEncoder(), m.bits
	zs := make([]float64, min(parallel.Rows, len(xs))*q)
	for from := 0; from < len(xs); from += parallel.Rows {
		to := min(from+parallel.Rows, len(xs))
		if err := e.ProjectVectors(zs[:(to-from)*q], t, xs[from:to]); err != nil {
			return err
		}
		for i := from; i < to; i++ {
			if err := f(have[i], zs[(i-from)*q:(i-from+1)*q]); err != nil {
				return err
			}
		}
	}
	return nil
}

// leastLeft bounds from below the share of an item that its own features leave open. A smaller share is
// rounding.
const leastLeft = 1e-6

// A leftOut computes how much more the projection of an item that has taught would miss without the item.
type leftOut struct {
	encoder *Encoder
	t       int
	factor  dense.Matrix[float64] // Cholesky factor of A + gamma I
	phi     []float32             // scratch for features
	row     dense.Matrix[float64] // the same, as one row
}

func (m *Model) newLeftOut(t int, s *Statistics) (*leftOut, error) {
	k := s.parts[t].k
	l := &leftOut{m.NewEncoder(), t, dense.Of(k, k, make([]float64, k*k)), make([]float32, k),
		dense.Of(1, k, make([]float64, k))}
	return l, s.parts[t].factorise(l.factor, m.gammas[t], parallel.Workers())
}

// share returns 1 - h, where h = phi' (A + gamma I)^-1 phi is the leverage of an item: without it, it would
// miss (g - z) / (1 - h) instead of g - z (Sherman and Morrison).
func (l *leftOut) share(x Vector) (float64, error) {
	if err := l.encoder.MapVector(l.phi, l.t, x); err != nil {
		return 0, err
	}
	for i, v := range l.phi {
		l.row.Data[i] = float64(v)
	}
	dense.CholeskyForward(l.row, l.factor, 1)
	return max(1-floats.Dot(l.row.Data, l.row.Data), leastLeft), nil
}
