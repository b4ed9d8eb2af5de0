package model

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// Canonical correlation analysis of vectors in G spaces, of items that have several of them. In
// each space the vectors are centred, and projected to their first principal axes, a_g; there the
// covariance C_gg is diagonal. It looks for directions v_g along which the projections of an item in
// all spaces agree: the generalised eigenproblem
//
//	sum over h of C_gh v_h = lambda (C_gg + rho I) v_g,
//
// where C_gh sums over the items that have both (Gong, Ke, Isard and Lazebnik, "A multi-view
// embedding space for modeling internet images, tags, and their semantics", IJCV 2014, eqs. 4 and
// 5). rho keeps directions of little variance, which correlate by chance, from the top. With u_g =
// (C_gg + rho I)^(1/2) v_g it is a symmetric eigenproblem. Of two spaces lambda - 1 is the canonical
// correlation; of G spaces (lambda-1)/(G-1) is the mean over pairs. Directions are scaled by it, so
// that those that correlate more count more.
const (
	leastPairs    = 50  // items that each space must share with another one
	canonicalAxes = 512 // most principal axes of a space
	ccaRidge      = .01 // rho, as a share of the mean variance of the axes
)

// A canonical has directions in each space: by falling correlation, or by falling variance where there is one
// space and they are its principal axes.
type canonical struct {
	directions []dense.Matrix[float64] // by group: a row for each direction, scaled
	mean       dense.Matrix[float32]   // by paired item: the mean of its projections to them
}

// pairs refuses a sample in which some space has too few items in common with the others.
func (tr *freeTrainer) pairs() error {
	if tr.opt.Method != MethodCCAITQ {
		return nil
	}
	G := len(tr.groups)
	has := func(item [][]Vector, i, g int) bool {
		return slices.ContainsFunc(tr.groups[g], func(t int) bool { return item[i][t].Present() })
	}
	linked := make([]int, G) // by group: the least group that it is linked with by enough items
	for g := range linked {
		linked[g] = g
	}
	need := min(leastPairs, max(2, len(tr.items)/2)) // of a handful of items all that there are
	for g := range G {
		for h := range g {
			both := 0
			for i := range tr.items {
				if has(tr.items, i, g) && has(tr.items, i, h) {
					both++
				}
			}
			if both >= need && linked[g] != linked[h] {
				from, to := max(linked[g], linked[h]), min(linked[g], linked[h])
				for k := range linked {
					if linked[k] == from {
						linked[k] = to
					}
				}
			}
		}
	}
	for g := range G {
		if linked[g] != 0 {
			return fmt.Errorf("%w: modalities %q and %q lie in spaces of their own, and hardly any item has both, nor others in between: cca-itq learns from at least %d that do. Put items that have both; or keep modalities of one space alone in a collection, for itq; or give items labels",
				ErrUnpaired, tr.modalities[tr.groups[0][0]].Name, tr.modalities[tr.groups[g][0]].Name, need)
		}
	}
	return nil
}

// correlate does the analysis.
func (tr *freeTrainer) correlate(ctx context.Context) (*canonical, error) {
	G, workers := len(tr.groups), workerCount()
	most := max(1, min(canonicalAxes, maxCanonicalAxes/G))
	var axes []dense.Matrix[float64]  // by group, p x d
	var white []dense.Matrix[float32] // by group: the projections of its items to them, divided by (variance + rho)^(1/2)
	var of [][]int                    // by group: the item of each row
	var start []int                   // by group: its first place in the joint eigenproblem
	total := 0
	least := math.MaxInt // axes
	var own []float64    // by place: variance / (variance + rho)
	random := tr.random(streamAxes)
	for _, group := range tr.groups {
		x, items := tr.centredRows(group)
		a, variances, err := principal(ctx, x, min(most, x.Cols), random)
		if err != nil {
			return nil, err
		}
		p := len(variances)
		for p > 1 && variances[p-1] <= leastAxisShare*variances[0] {
			p--
		}
		a, variances = a.Slice(0, p), variances[:p]
		rho := 0.0
		for _, v := range variances {
			rho += ccaRidge * v / float64(p)
		}
		for i, v := range variances {
			scale := 1 / math.Sqrt(v+rho)
			own = append(own, v/(v+rho))
			for j := range a.Cols {
				a.Data[i*a.Cols+j] *= scale
			}
		}
		axes, of, start = append(axes, a), append(of, items), append(start, total)
		white = append(white, projected(x, a))
		total, least = total+p, min(least, p)
	}
	joint := dense.Of(total, total, make([]float64, total*total))
	for i, v := range own {
		joint.Data[i*total+i] = v
	}
	for g := range G {
		for h := range g {
			x, y := commonRows(white[g], of[g], white[h], of[h])
			c := dense.Of(x.Cols, y.Cols, make([]float64, x.Cols*y.Cols))
			dense.AddTN(c, x, y, workers)
			for i := range c.Rows {
				for j := range c.Cols {
					v := c.Data[i*c.Cols+j] / float64(max(x.Rows, 1))
					joint.Data[(start[g]+i)*total+start[h]+j] = v
					joint.Data[(start[h]+j)*total+start[g]+i] = v
				}
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	values, vectors, err := eigen(joint)
	if err != nil {
		return nil, err
	}
	r := 0
	for r < least && values[r] > 1 {
		r++
	}
	r = max(r, 1)
	c := &canonical{}
	for g, a := range axes {
		v := dense.Of(a.Rows, r, make([]float64, a.Rows*r))
		for k := range r {
			correlation := max((values[k]-1)/float64(G-1), 1e-3)
			for i := range a.Rows {
				v.Data[i*r+k] = vectors.Data[k*total+start[g]+i] * correlation
			}
		}
		w := dense.Of(r, a.Cols, make([]float64, r*a.Cols))
		dense.AddTN(w, v, a, workers)
		c.directions = append(c.directions, w)
	}
	c.average(tr, of)
	return c, nil
}

// average sets the mean projections of the items that are in several groups.
func (c *canonical) average(tr *freeTrainer, of [][]int) {
	count := make([]int, len(tr.items))
	for _, items := range of {
		for _, i := range items {
			count[i]++
		}
	}
	rows, r := 0, c.directions[0].Rows
	place := make([]int, len(tr.items))
	for i, n := range count {
		place[i] = -1
		if n > 1 {
			place[i] = rows
			rows++
		}
	}
	c.mean = dense.Of(rows, r, make([]float32, rows*r))
	for g, group := range tr.groups {
		x, items := tr.centredRows(group)
		z := projected(x, c.directions[g])
		for row, i := range items {
			if place[i] < 0 {
				continue
			}
			to := c.mean.Data[place[i]*r : (place[i]+1)*r]
			for k := range to {
				to[k] += z.Data[row*r+k] / float32(count[i])
			}
		}
	}
}

// commonRows returns the rows of two matrices that are of the same items.
func commonRows(x dense.Matrix[float32], ofX []int, y dense.Matrix[float32], ofY []int) (a, b dense.Matrix[float32]) {
	var left, right []float32
	n := 0
	for i, j := 0, 0; i < len(ofX) && j < len(ofY); {
		switch {
		case ofX[i] < ofY[j]:
			i++
		case ofX[i] > ofY[j]:
			j++
		default:
			left = append(left, x.Data[i*x.Cols:(i+1)*x.Cols]...)
			right = append(right, y.Data[j*y.Cols:(j+1)*y.Cols]...)
			i, j, n = i+1, j+1, n+1
		}
	}
	return dense.Of(n, x.Cols, left), dense.Of(n, y.Cols, right)
}

// itq returns W of each group for codes of so many bits: its first directions, turned so that the mean
// projections of items are near their signs. Where there are more bits than directions, the others come
// from the same directions, turned at random.
func (c *canonical) itq(ctx context.Context, bits int, random *rand.Rand) ([]dense.Matrix[float64], error) {
	r := min(bits, c.mean.Cols)
	v := dense.Of(c.mean.Rows, r, make([]float32, c.mean.Rows*r))
	for i := range v.Rows {
		copy(v.Data[i*r:(i+1)*r], c.mean.Data[i*c.mean.Cols:])
	}
	turn, err := itq(ctx, v, random)
	if err != nil {
		return nil, err
	}
	w := make([]dense.Matrix[float64], len(c.directions))
	for g, d := range c.directions {
		w[g] = dense.Of(bits, d.Cols, make([]float64, bits*d.Cols))
	}
	for from := 0; from < bits; from += r {
		for g, d := range c.directions {
			copy(w[g].Data[from*d.Cols:], turned(turn, d.Slice(0, r)).Data)
		}
		turn = randomRotation(r, random)
	}
	return w, nil
}
