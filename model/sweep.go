package model

import (
	"context"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// gather is the pass before the first sweep of joint and paper: it sums M_t at Y0.
func (s *solver) gather(ctx context.Context, r *reader) error {
	return r.blocks(ctx, "features", s.maps, func(b *block) error {
		for t := range s.maps {
			s.addM(b, t)
		}
		return nil
	})
}

// rowsOfY returns the rows of Y for the items of the block.
func (s *solver) rowsOfY(b *block) dense.Matrix[float64] {
	return dense.Of(b.n, s.c, s.y[b.first*s.c:])
}

// addM adds the items of the block to M_t = Y phi_t'.
func (s *solver) addM(b *block, t int) {
	rows, k := b.rows(t), s.maps[t].size()
	y := s.rowsOfY(b)
	if rows < b.n { // pick the rows of Y for the rows of phi
		picked := make([]float64, 0, rows*s.c)
		for _, i := range b.at[t] {
			picked = append(picked, y.Data[i*s.c:(i+1)*s.c]...)
		}
		y = dense.Of(rows, s.c, picked)
	}
	dense.AddTN(dense.Of(s.c, k, s.m[t]), y, dense.Of(rows, k, b.phi[t]), s.workers)
}

// sweepItems is the sweep of joint and paper. For each block it does the H-step (with Y
// of the sweep before), the Y-step, and the sums for the next sweep. It returns F at
// the new C, G, H and Y.
func (s *solver) sweepItems(ctx context.Context, r *reader, phase string) (float64, error) {
	clear(s.hy)
	for t := range s.m {
		clear(s.m[t])
	}
	w := &itemSweep{
		solver: s,
		gphi:   make([][]float64, len(s.maps)),
		row:    make([][]int, len(s.maps)),
		h:      make([]float32, blockItems*s.q),
		f:      make([]float64, blockItems),
		work:   make([]sweepScratch, s.workers),
	}
	for t := range s.maps {
		w.gphi[t] = make([]float64, blockItems*s.c)
		w.row[t] = make([]int, blockItems)
	}
	for i := range w.work {
		w.work[i] = sweepScratch{z: make([]float64, sweepRows*s.q), y: make([]float64, sweepRows*s.c)}
	}
	var f float64
	err := r.blocks(ctx, phase, s.maps, func(b *block) error {
		w.block(b)
		for _, v := range w.f[:b.n] { // not floats.Sum, whose order depends on the address
			f += v
		}
		return nil
	})
	return f, err
}

// sweepRows is the number of items that one goroutine takes at a time.
const sweepRows = 64

// itemSweep is the memory of one sweep over the items.
type itemSweep struct {
	*solver
	gphi [][]float64    // by modality: phi_t G_t, a row of c for each row of the block
	row  [][]int        // by modality and item of the block: its row, or -1
	h    []float32      // H of the block as +-1
	f    []float64      // by item: its part of F
	work []sweepScratch // by goroutine
}

// sweepScratch is the memory of one goroutine: rows of q and of c.
type sweepScratch struct{ z, y []float64 }

// block does the sweep of a block: phi G of its rows, the steps of its items, and the sums
// H Y' and M_t of the next sweep, which need the new Y.
func (w *itemSweep) block(b *block) {
	for t, f := range w.maps {
		row, rows := w.row[t], b.rows(t)
		for i := range row {
			row[i] = -1
		}
		for r, i := range b.at[t] {
			row[i] = r
		}
		phi, gphi := dense.Of(rows, f.size(), b.phi[t]), dense.Of(rows, w.c, w.gphi[t])
		chunks(w.workers, rows, sweepRows, func(_, from, to int) {
			dense.MulNT(gphi.Slice(from, to), phi.Slice(from, to), w.right.g[t])
		})
	}
	chunks(w.workers, b.n, sweepRows, func(worker, from, to int) {
		w.items(b, from, to, &w.work[worker])
	})
	h := dense.Of(b.n, w.q, w.h)
	dense.AddTN(dense.Of(w.c, w.q, w.hy), w.rowsOfY(b), h, w.workers)
	for t := range w.maps {
		w.addM(b, t)
	}
}

// items does the H-step and the Y-step of some items of the block, and computes their
// parts of F.
//
// For fixed C, G and H the problem separates by items, and with C'C = G'G = I by
// labels. With w = 1 + sum mu + delta,
//
//	|h - C y|^2 + sum mu |phi - G y|^2 + delta |y|^2 = w |y - v|^2 + constant,
//	v = (C'h + sum mu G'phi) / w.
//
// So clamping v to the feasible side is exact (the eps-dragging). The sums go over the
// modalities of the item. With delta = +Inf v is 0 and y is the labels.
func (w *itemSweep) items(b *block, from, to int, work *sweepScratch) {
	n, first := to-from, b.first+from
	y, h := w.rowsOfY(b).Slice(from, to), dense.Of(b.n, w.q, w.h).Slice(from, to)
	z, target := dense.Of(n, w.q, work.z), dense.Of(n, w.c, work.y)
	row := func(m dense.Matrix[float64], i int) []float64 { return m.Data[i*m.Cols : (i+1)*m.Cols] }

	dense.MulNT(z, y, w.right.ct)
	for i := range n {
		item := first + i
		code := codec.PackSigns(w.codes[item*w.words:(item+1)*w.words], row(z, i))
		signs(h.Data[i*w.q:(i+1)*w.q], code)
	}

	dense.MulNT(target, h, w.right.c)
	for i := range n {
		target, y := row(target, i), row(y, i)
		weight := 1 + w.delta
		for t := range w.maps {
			if r := w.row[t][from+i]; r >= 0 {
				weight += w.mu[t]
				floats.AddScaled(target, w.mu[t], w.gphi[t][r*w.c:(r+1)*w.c])
			}
		}
		set := w.sets.sets[w.sets.setOf(first+i)]
		for l, v := range target {
			v /= weight
			if len(set) > 0 && int(set[0]) == l {
				y[l] = max(v, 1)
				set = set[1:]
			} else {
				y[l] = min(v, 0)
			}
		}
	}

	dense.MulNT(z, y, w.right.ct)
	delta := w.delta
	if math.IsInf(delta, 1) { // the part of delta is constant
		delta = 0
	}
	for i := range n {
		var f float64
		for j, v := range h.Data[i*w.q : (i+1)*w.q] {
			d := row(z, i)[j] - float64(v)
			f += d * d
		}
		w.f[from+i] = f + delta*floats.Dot(row(y, i), row(y, i))
	}
	ggy := target // G'G y, in the memory of target, which is done with
	for t, f := range w.maps {
		dense.MulNT(ggy, y, w.right.gg[t])
		k := f.size()
		for i := range n {
			if r := w.row[t][from+i]; r >= 0 {
				// phi - G y|^2, without another pass over the k features.
				phi := dense.SquaredNorm(b.phi[t][r*k : (r+1)*k])
				gphi := w.gphi[t][r*w.c : (r+1)*w.c]
				w.f[from+i] += w.mu[t] * (phi - 2*floats.Dot(gphi, row(y, i)) + floats.Dot(row(ggy, i), row(y, i)))
			}
		}
	}
}
