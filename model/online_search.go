package model

import (
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// The search for the codes of items without known labels: a code is that of the projection which has learned it.

// change returns v = W phi of new rows before modality t learns them, and g = Phi' (A +
// gamma I)^-1 with the new A. What is learned is W + (Y - W Phi) g, so B need not be
// multiplied. For with the old A and B, W (A + gamma I) = B; the new ones are A + Phi Phi'
// and B + Y Phi', and
//
//	B + Y Phi' = W (A + Phi Phi' + gamma I) + (Y - W Phi) Phi'.
//
// g has a row of k for each row of phi, and v a row of as many numbers as W has rows: what
// is said of label vectors Y holds for codes H, below them in W.
func (o *Online) change(t int, phi dense.Matrix[float32], wide []float64) (v, g dense.Matrix[float64]) {
	p, k := &o.parts[t], phi.Cols
	rows := len(p.w) / k
	v = dense.Of(phi.Rows, rows, make([]float64, phi.Rows*rows))
	dense.MulNT(v, phi, dense.Pack(dense.Of(rows, k, p.w)))
	g = dense.Of(phi.Rows, k, slices.Clone(wide))
	if phi.Rows > onlineUpdates {
		dense.CholeskySolve(g, p.factor, o.workers())
		return v, g
	}
	for row := range slices.Chunk(g.Data, k) {
		dense.CholeskySolveRow(row, p.factor)
	}
	return v, g
}

// move changes w of modality t to what it learns from x.
func (o *Online) move(t int, x teaching, v, g dense.Matrix[float64]) {
	d := dense.Of(v.Rows, v.Cols, make([]float64, v.Rows*v.Cols))
	for r := range v.Rows {
		row := d.Data[r*d.Cols : (r+1)*d.Cols]
		x.row(row, r, o.model.bits, o.stats.labels)
		floats.Sub(row, v.Data[r*d.Cols:(r+1)*d.Cols])
	}
	dense.AddTN(dense.Of(v.Cols, g.Cols, o.parts[t].w), d, g, o.workers())
}

// row writes what row r teaches to dst: its label vector of c numbers, then its code if
// dst has room for it; or the code alone if c is 0.
func (x *teaching) row(dst []float64, r, q, c int) {
	for l := range c {
		dst[l] = float64(x.y[r*c+l])
	}
	for j := range dst[c:] {
		dst[c+j] = float64(x.h[r*q+j])
	}
}

// widen returns x as float64.
func widen(x []float32) []float64 {
	wide := make([]float64, len(x))
	for i, v := range x {
		wide[i] = float64(v)
	}
	return wide
}

// search looks for codes that are those of the projection which has learned them. It
// returns the number of rounds. v are the rows that W gives before learning.
func (s *subject) search(m *Model, x mixture, v, g, phi dense.Matrix[float64]) (rounds int) {
	n := v.Rows
	z := m.mixRows(x, v)
	difference := dense.Of(n, s.q, make([]float64, n*s.q))
	k := dense.Of(n, n, make([]float64, n*n)) // Phi' (A + gamma I)^-1 Phi
	dense.MulNT(k, phi, dense.Pack(g))
	now := z
	next := dense.Of(n, s.q, make([]float64, n*s.q))
	taught := dense.Of(n, v.Cols, make([]float64, n*v.Cols))
	for rounds < onlineRounds {
		rounds++
		if !s.take(now.Data) && rounds > 1 {
			return rounds
		}
		// By the comment of change, the projections of these n rows after learning Y are z +
		// (Phi' (A + gamma I)^-1 Phi) (C J D Y - z): n^2 q multiplications a round, whatever
		// the number of features.
		for r := range n {
			s.row(taught.Data[r*v.Cols:(r+1)*v.Cols], r, s.q, s.c)
		}
		copy(difference.Data, m.mixRows(x, taught).Data)
		floats.Sub(difference.Data, z.Data)
		dense.MulNT(next, k, dense.PackTransposed(difference))
		floats.Add(next.Data, z.Data)
		now = next
	}
	return rounds
}

// take gives the open items the signs of z as codes, and reports whether any code
// changes.
func (s *subject) take(z []float64) (changed bool) {
	for r, open := range s.open {
		if !open {
			continue
		}
		h := s.h[r*s.q : (r+1)*s.q]
		for j, v := range z[r*s.q : (r+1)*s.q] {
			sign := float32(1)
			if v < 0 {
				sign = -1
			}
			if h[j] != sign {
				h[j], changed = sign, true
			}
		}
	}
	return changed
}
