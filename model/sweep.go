package model

import (
	"context"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"

	"github.com/fddhdb/fddhdb/codec"
)

// gather is the pass before the first sweep of joint and paper: M_t at Y0.
func (s *solver) gather(ctx context.Context, r *reader) error {
	return r.blocks(ctx, "features", s.maps, func(b *block) error {
		y := s.y[b.first*s.c : (b.first+b.n)*s.c]
		for t := range s.maps {
			s.addM(b, t, y)
		}
		return nil
	})
}

// addM adds the block's items to M_t; y are the block's rows of Y.
func (s *solver) addM(b *block, t int, y []float64) {
	rows, k := b.rows(t), s.maps[t].size()
	if rows == 0 {
		return
	}
	if rows < b.n { // pick the rows of Y that belong to those of phi
		y = gatherRows(y, s.c, b.at[t])
	}
	blas64.Gemm(blas.Trans, blas.NoTrans, 1,
		general(y, rows, s.c), general(b.phi[t], rows, k), 1, general(s.m[t], s.c, k))
}

// gatherRows copies the given rows of x, each of width numbers.
func gatherRows(x []float64, width int, rows []int) []float64 {
	dst := make([]float64, 0, len(rows)*width)
	for _, i := range rows {
		dst = append(dst, x[i*width:(i+1)*width]...)
	}
	return dst
}

// sweepItems is the sweep of joint and paper: a block at a time it does the
// H-step (with the Y of the sweep before), the Y-step, and the sums for the next
// sweep. It returns F at the new C, G, H and Y.
func (s *solver) sweepItems(ctx context.Context, r *reader, phase string) (float64, error) {
	clear(s.hy)
	for t := range s.m {
		clear(s.m[t])
	}
	w := &itemSweep{
		solver: s,
		gphi:   make([][]float64, len(s.maps)),
		row:    make([][]int, len(s.maps)),
		h:      make([]float64, blockItems*s.q),
		f:      make([]float64, blockItems),
		work:   make([][]float64, s.workers),
	}
	for t := range s.maps {
		w.gphi[t] = make([]float64, blockItems*s.c)
		w.row[t] = make([]int, blockItems)
	}
	for i := range w.work {
		w.work[i] = make([]float64, s.q+s.c)
	}
	var f float64
	err := r.blocks(ctx, phase, s.maps, func(b *block) error {
		w.block(b)
		for _, v := range w.f[:b.n] { // floats.Sum's order depends on the address
			f += v
		}
		return nil
	})
	return f, err
}

// itemSweep is the memory of one sweep over the items.
type itemSweep struct {
	*solver
	gphi [][]float64 // by modality: phi_t G_t, a row of c for each row of the block
	row  [][]int     // by modality and item of the block: its row, or -1
	h    []float64   // the block's H as +-1
	f    []float64   // each item's part of F
	work [][]float64 // a worker's z and b
}

func (w *itemSweep) block(b *block) {
	for t, f := range w.maps {
		row, rows, k := w.row[t], b.rows(t), f.size()
		for i := range row {
			row[i] = -1
		}
		for r, i := range b.at[t] {
			row[i] = r
		}
		if rows > 0 {
			blas64.Gemm(blas.NoTrans, blas.Trans, 1,
				general(b.phi[t], rows, k), general(w.g[t], w.c, k), 0, general(w.gphi[t], rows, w.c))
		}
	}
	parallel(w.workers, b.n, func(worker, i int) {
		w.f[i] = w.item(b, i, w.work[worker][:w.q], w.work[worker][w.q:])
	})
	y := w.y[b.first*w.c : (b.first+b.n)*w.c]
	blas64.Gemm(blas.Trans, blas.NoTrans, 1,
		general(y, b.n, w.c), general(w.h, b.n, w.q), 1, general(w.hy, w.c, w.q))
	for t := range w.maps {
		w.addM(b, t, y)
	}
}

// item does the H-step and the Y-step of item i of the block and returns its
// part of F. z and target are scratch of q and c numbers.
//
// For fixed C, G and H the problem splits by items, and with C'C = G'G = I by
// labels: |h - C y|^2 + sum mu |phi - G y|^2 + delta |y|^2 is, up to a constant,
// (1 + sum mu + delta) |y - v|^2 with v = (C'h + sum mu G'phi) / (1 + sum mu +
// delta), so that clamping v to the feasible side is exact (the eps-dragging; the sums
// go over the modalities that the item has).
func (w *itemSweep) item(b *block, i int, z, target []float64) float64 {
	item := b.first + i
	y := w.y[item*w.c : (item+1)*w.c]
	h := w.h[i*w.q : (i+1)*w.q]

	w.combine(z, y)
	code := codec.PackSigns(w.codes[item*w.words:(item+1)*w.words], z)
	clear(h)
	addSigns(h, code, 1)

	for l := range target {
		target[l] = floats.Dot(w.cm[l*w.q:(l+1)*w.q], h)
	}
	weight := 1 + w.delta
	for t, row := range w.row {
		if r := row[i]; r >= 0 {
			weight += w.mu[t]
			floats.AddScaled(target, w.mu[t], w.gphi[t][r*w.c:(r+1)*w.c])
		}
	}
	set := w.sets.sets[w.sets.of[item]]
	for l, v := range target {
		v /= weight
		if len(set) > 0 && int(set[0]) == l {
			y[l] = max(v, 1)
			set = set[1:]
		} else {
			y[l] = min(v, 0)
		}
	}

	w.combine(z, y)
	floats.Sub(z, h)
	f := floats.Dot(z, z) + w.delta*floats.Dot(y, y)
	for t, row := range w.row {
		r := row[i]
		if r < 0 {
			continue
		}
		// |phi - G y|^2 without another pass over the k features.
		k := w.maps[t].size()
		phi := b.phi[t][r*k : (r+1)*k]
		square := floats.Dot(phi, phi) - 2*floats.Dot(w.gphi[t][r*w.c:(r+1)*w.c], y)
		for l, v := range y {
			if v != 0 {
				square += v * floats.Dot(w.gg[t][l*w.c:(l+1)*w.c], y)
			}
		}
		f += w.mu[t] * square
	}
	return f
}

// combine writes C y to z.
func (s *solver) combine(z, y []float64) {
	clear(z)
	for l, v := range y {
		if v != 0 {
			floats.AddScaled(z, v, s.cm[l*s.q:(l+1)*s.q])
		}
	}
}
