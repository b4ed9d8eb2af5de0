package cells

import (
	"context"
	"math"
	"math/bits"
)

// A family has centres that lie together. Their codes around their mean tell which of them are worth a
// product with a query. A family never changes.
type family struct {
	mean   []float32
	length float64  // the square of the length of the mean
	spread float64  // the mean square of the distances of the centres from it
	coded  []byte   // groups
	number []uint32 // of the cell of each code
}

const (
	lonely       = 256 // up to so many centres are one family
	familyRounds = 3   // of k-means
	familyReach  = .8  // of the centre that is nearest to a query, see promise
)

// familiesOf puts the centres into families; the number of families is about the number of centres in each.
func (c *Centres) familiesOf() []family {
	var all [][]float32
	var number []uint32
	for i, cell := range c.cells {
		if cell.Centre != nil {
			all, number = append(all, cell.Centre), append(number, uint32(i))
		}
	}
	if len(all) == 0 {
		return nil
	}
	count := 1
	if len(all) > lonely {
		count = int(math.Sqrt(float64(len(all))))
	}
	of := make([]uint32, len(all))
	if count > 1 {
		// It takes 20 milliseconds for 2,000 centres, so it is never cancelled. Only a context could cause an
		// error; all centres would be one family then.
		ctx := context.Background()
		if means, err := Train(ctx, c.Geometry, all, count, familyRounds, 1); err == nil {
			count = means.Numbers()
			_ = means.Assign(ctx, of, all, 1)
		}
	}
	members := make([][]int, count)
	for i, f := range of {
		members[f] = append(members[f], i)
	}
	var families []family
	var e Entry
	for _, m := range members {
		if len(m) == 0 {
			continue
		}
		f := family{mean: make([]float32, c.size)}
		for j := range f.mean {
			sum := 0.0
			for _, i := range m {
				sum += float64(all[i][j])
			}
			f.mean[j] = float32(sum / float64(len(m)))
			f.length += float64(f.mean[j]) * float64(f.mean[j])
		}
		for n, i := range m {
			e.encode(L2, all[i], f.mean)
			f.coded = appendToGroups(f.coded, n, c.size, &e, number[i])
			f.number = append(f.number, number[i])
			f.spread += squaredDistance(all[i], f.mean) / float64(len(m))
		}
		families = append(families, f)
	}
	return families
}

// far returns the square of the distance between a query and the mean of a family.
func (f *family) far(q *Query) float64 {
	return max(0, q.square+f.length-2*float64(Product(q.x, f.mean)))
}

// promise returns about the least square of a distance between a query and the vectors around a centre at a
// mean square distance m, where far is F^2, the square of the distance of the centre.
//
// The vectors nearest to the query are about reach * sqrt(m) nearer than the centre, in its direction. Their
// distance is
//
//	F^2 + m - 2 reach sqrt(m) F
//
// With reach 1 it is (F - sqrt(m))^2, and hardly any vector is nearer; with 0 it is the average.
func promise(far, m, reach float64) float64 {
	if reach*reach*m > far { // the query lies among them
		return (1 - reach*reach) * m
	}
	return far + m - 2*reach*math.Sqrt(m*far)
}

// promiseDot returns about the least -2 x.q of vectors x = c + r around a centre c. far, q2 and c2 are the
// squares |q-c|^2, |q|^2 and |c|^2, along is the range of r along c, and m the mean square of r across c.
//
// The longest vector of a cell is the first for most queries in its direction. So r along c counts in full,
// for the vector that goes farthest: its product with q is |q| cos(q,c) times that. Across c, in D-1
// directions, r counts with a reach, as in promise:
//
//	-2 c.q - 2 |q| (along cos(q,c) + reach sqrt(m) sin(q,c))
func promiseDot(far, q2, c2, m float64, along reachAlong, reach float64) float64 {
	product := (q2 + c2 - far) / 2
	cos := 0.
	if both := q2 * c2; both > 0 {
		cos = max(-1, min(product/math.Sqrt(both), 1))
	}
	gain := max(cos*along.most, cos*along.least) + reach*math.Sqrt(m*(1-cos*cos))
	return -2*product - 2*math.Sqrt(q2)*gain
}

// A reachAlong is the range of the entries of a cell from its centre in the direction of the centre, for Dot:
// least is at most 0, and most at least 0.
type reachAlong struct{ least, most float64 }

// A promised is a family with its promise.
type promised struct {
	*family
	far   float64
	least float32
}

// Nearest returns the cell whose centre is nearest to a query, or one that is about as near. There is at
// least one centre.
func (c *Centres) Nearest(q *Query) uint32 {
	const none = math.MaxUint32
	best, least := uint32(none), float32(math.Inf(1))
	visit := func(cell uint32) {
		if d := float32(c.far(q, cell)); d < least || best == none {
			best, least = cell, d
		}
	}
	left := q.promised[:0]
	for i := range c.families {
		f := &c.families[i]
		far := f.far(q)
		left = append(left, promised{f, far, float32(promise(far, f.spread, familyReach))})
	}
	q.promised = left
	for len(left) > 0 {
		next := 0
		for i := range left {
			if left[i].least < left[next].least {
				next = i
			}
		}
		f := left[next]
		if f.least > least {
			break
		}
		left[next] = left[len(left)-1]
		left = left[:len(left)-1]
		if best == none {
			found, _ := q.scanFamily(c, f, 0, least)
			first := 0
			for i, d := range found {
				if d < found[first] {
					first = i
				}
			}
			visit(f.number[first])
		}
		found, hits := q.scanFamily(c, f, 2, least)
		for g, mask := range hits {
			for ; mask != 0; mask &= mask - 1 {
				if i := g*lanes + bits.TrailingZeros8(mask); i < len(found) && f.number[i] != best {
					visit(f.number[i])
				}
			}
		}
	}
	return best
}

// scanFamily estimates the squares of the distances between a query and the centres of a family. hits
// has a bit for each that may be below the floor, with so many standard deviations.
func (q *Query) scanFamily(c *Centres, f promised, sure float64,
	floor float32) (found []float32, hits []byte) {
	found, hits = q.room(len(f.number))
	s := q.scaleFor(c.size, f.far, sure, float64(floor))
	q.scan(found, hits, f.coded, &s, f.coded)
	return found[:len(f.number)], hits
}
