package cells

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// Train finds about count centres for vectors, given by the coordinates of a sample in random
// order, by k-means (Lloyd's algorithm) of some rounds. A cell that has vectors of two kinds is split:
// so there are up to an eighth more than count, but at most one for each vector. Train uses so many
// goroutines; the result does not depend on how many. The sample has at least one vector. A round
// costs some microseconds a vector.
func Train(ctx context.Context, g *Geometry, sample [][]float32, count, rounds,
	workers int) (*Centres, error) {
	count = min(count, len(sample))
	centres := make([][]float32, count)
	for i := range centres {
		centres[i] = sample[i*len(sample)/count]
	}
	c := around(g, centres)
	cells := make([]uint32, len(sample))
	most := min(count+count/8, len(sample))
	for round := range rounds {
		if err := c.Assign(ctx, cells, sample, workers); err != nil {
			return nil, err
		}
		counts := make([]int, count)
		for _, cell := range cells {
			counts[cell]++
		}
		refill(cells, counts)
		if rounds/2 <= round && round < rounds-1 {
			counts = c.split(cells, counts, sample, most)
			count = len(counts)
		}
		c = around(g, means(sample, cells, counts, g.size, workers))
	}
	return c, nil
}

// Assign finds the nearest centre of each vector.
func (c *Centres) Assign(ctx context.Context, dst []uint32, x [][]float32, workers int) error {
	const run = 64
	var next atomic.Int64
	var wg sync.WaitGroup
	for range max(workers, 1) {
		wg.Go(func() {
			q := c.NewQuery()
			for ctx.Err() == nil {
				from := int(next.Add(run)) - run
				if from >= len(x) {
					return
				}
				for i := from; i < min(from+run, len(x)); i++ {
					q.Set(x[i])
					dst[i] = c.Nearest(q)
				}
			}
		})
	}
	wg.Wait()
	return ctx.Err()
}

// refill gives a vector of the largest cell to each one that is empty, as far as there are others.
func refill(cells []uint32, counts []int) {
	at := 0
	for empty := range counts {
		if counts[empty] > 0 {
			continue
		}
		largest := 0
		for j, n := range counts {
			if n > counts[largest] {
				largest = j
			}
		}
		if counts[largest] < 2 {
			return
		}
		for cells[at] != uint32(largest) {
			at = (at + 1) % len(cells)
		}
		cells[at] = uint32(empty)
		counts[empty], counts[largest] = 1, counts[largest]-1
	}
}

// outlier bounds the square of the distance of a vector from the centre of its cell, in medians of the cell:
// a vector beyond it is an outlier.
const outlier = 4

// split moves the outliers of a cell into a cell of their own if they are at least two and an eighth of the
// cell. The cells whose outliers are farthest in sum come first, until there are most cells. k-means alone
// finds no centre for a small group if no first centre was among its vectors. A cell does not promise its
// outliers (spreadOfSquares), so searches would miss them.
func (c *Centres) split(cells []uint32, counts []int, x [][]float32, most int) []int {
	squares := make([]float64, len(x))
	of := make([][]int, len(counts))
	for i, cell := range cells {
		_, squares[i] = c.partsOf(x[i], cell)
		of[cell] = append(of[cell], i)
	}
	type group struct {
		outliers []int
		sum      float64 // of their squares
	}
	var groups []group
	for _, members := range of {
		slices.SortFunc(members, func(a, b int) int { return cmp.Compare(squares[a], squares[b]) })
		at, sum := len(members), 0.
		for at > 0 && squares[members[at-1]] > outlier*squares[members[len(members)/2]] {
			at--
			sum += squares[members[at]]
		}
		if n := len(members) - at; n >= max(2, len(members)/8) {
			groups = append(groups, group{members[at:], sum})
		}
	}
	slices.SortStableFunc(groups, func(a, b group) int { return cmp.Compare(b.sum, a.sum) })
	for _, g := range groups[:min(len(groups), max(0, most-len(counts)))] {
		counts[cells[g.outliers[0]]] -= len(g.outliers)
		for _, i := range g.outliers {
			cells[i] = uint32(len(counts))
		}
		counts = append(counts, len(g.outliers))
	}
	return counts
}

// means returns the mean of the vectors of each cell; nil where it has none.
func means(x [][]float32, cells []uint32, counts []int, size, workers int) [][]float32 {
	all := make([][]float32, len(counts))
	for i, n := range counts {
		if n > 0 {
			all[i] = make([]float32, size)
		}
	}
	var wg sync.WaitGroup
	workers = max(workers, 1)
	for w := range workers { // each some of the coordinates, so that sums do not depend on them
		from, to := size*w/workers, size*(w+1)/workers
		wg.Go(func() {
			sums := make([]float64, len(counts)*(to-from))
			for i, cell := range cells {
				sum := sums[int(cell)*(to-from):][:to-from]
				for j, v := range x[i][from:to] {
					sum[j] += float64(v)
				}
			}
			for i, n := range counts {
				for j := range to - from {
					if n > 0 {
						all[i][from+j] = float32(sums[i*(to-from)+j] / float64(n))
					}
				}
			}
		})
	}
	wg.Wait()
	return all
}
