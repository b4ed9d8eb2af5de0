package cells

import (
	"context"
	"sync"
	"sync/atomic"
)

// Train finds at most count centres for vectors, given by the coordinates of a sample in random
// order, by k-means (Lloyd's algorithm) of some rounds. It uses so many goroutines; the result does
// not depend on how many. The sample has at least one vector. A round costs some microseconds a
// vector.
func Train(ctx context.Context, g *Geometry, sample [][]float32, count, rounds, workers int) (*Centres, error) {
	count = min(count, len(sample))
	centres := make([][]float32, count)
	for i := range centres {
		centres[i] = sample[i*len(sample)/count]
	}
	c := around(g, centres)
	cells := make([]uint32, len(sample))
	for range rounds {
		if err := c.Assign(ctx, cells, sample, workers); err != nil {
			return nil, err
		}
		counts := make([]int, count)
		for _, cell := range cells {
			counts[cell]++
		}
		refill(cells, counts)
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
