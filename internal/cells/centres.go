package cells

import (
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/internal/rotate"
)

// A Metric says what makes two vectors near.
type Metric byte

const (
	Cosine Metric = iota // a large cosine of their angle
	Dot                  // a large inner product
	L2                   // a small Euclidean distance
)

// Size returns the number of coordinates of vectors of so many dimensions: the next multiple of 64.
func Size(dims int) int { return (dims + 63) &^ 63 }

// A Geometry says what the coordinates of a vector are: a random rotation of it, so that each says
// about as much as any other. It never changes.
type Geometry struct {
	Metric Metric
	Dims   int // of vectors
	size   int // of coordinates
	turn   *rotate.Rotation
}

// NewGeometry returns the geometry of vectors of so many dimensions, and of a seed.
func NewGeometry(metric Metric, dims int, seed uint64) *Geometry {
	return &Geometry{Metric: metric, Dims: dims, size: Size(dims), turn: rotate.New(Size(dims), seed)}
}

// Size returns the number of coordinates.
func (g *Geometry) Size() int { return g.size }

// Place writes the coordinates of a vector to dst, of Size numbers. Those of a cosine have length 1; a
// vector without a direction is all zeros there, as its cosine with all others is. Where lengths
// count, a vector that is longer than 1e17 has no place: NaNs are written, see HasPlace.
func (g *Geometry) Place(dst, x []float32) {
	square := 0.0
	for _, v := range x {
		square += float64(v) * float64(v)
	}
	switch {
	case g.Metric != Cosine && square > longest*longest:
		for i := range dst {
			dst[i] = float32(math.NaN())
		}
		return
	case g.Metric != Cosine:
		clear(dst[copy(dst, x):])
		g.turn.Apply(dst)
		return
	case square == 0:
		clear(dst)
		return
	}
	scale := 1 / math.Sqrt(square)
	for i, v := range x {
		dst[i] = float32(float64(v) * scale)
	}
	clear(dst[len(x):])
	g.turn.Apply(dst)
}

// longest is a length up to which neither squares of distances nor what entries have of them exceed a
// float32, with up to 2^16 coordinates.
const longest = 1e17

// HasPlace reports whether Place has found coordinates. What has none is compared with all.
func HasPlace(x []float32) bool { return x[0] == x[0] }

// Centres are the centres of cells in coordinates, which says where a vector belongs. A cell keeps
// its number; a number may have no centre. They never change, and are safe for any number of
// goroutines.
type Centres struct {
	*Geometry
	coordinates [][]float32 // by cell; nil: there is none
	squares     []float64   // of their lengths
	count       int         // of those that there are

	// Codes of the centres themselves, around their mean, tell which are worth a product.
	mean   []float32
	coded  []byte   // groups
	number []uint32 // of the cell of each code
}

// NewCentres returns the centres with these coordinates, by cell, which it keeps; nil where a number
// has none.
func NewCentres(g *Geometry, coordinates [][]float32) *Centres {
	c := &Centres{Geometry: g, coordinates: coordinates, squares: make([]float64, len(coordinates)), mean: make([]float32, g.size)}
	sum := make([]float64, g.size)
	for i, x := range coordinates {
		if x == nil {
			continue
		}
		c.count++
		for j, v := range x {
			sum[j] += float64(v)
			c.squares[i] += float64(v) * float64(v)
		}
	}
	for j := range c.mean {
		c.mean[j] = float32(sum[j] / float64(max(c.count, 1)))
	}
	var e Entry
	for i, x := range coordinates {
		if x == nil {
			continue
		}
		e.encode(L2, x, c.mean)
		c.coded = appendToGroups(c.coded, len(c.number), g.size, &e, uint32(i))
		c.number = append(c.number, uint32(i))
	}
	return c
}

// With returns the centres where some have changed: nil takes one out.
func (c *Centres) With(changes map[uint32][]float32) *Centres {
	all := slices.Clone(c.coordinates)
	for cell, x := range changes {
		for int(cell) >= len(all) {
			all = append(all, nil)
		}
		all[cell] = x
	}
	return NewCentres(c.Geometry, all)
}

// Numbers returns the number behind that of the last cell.
func (c *Centres) Numbers() int { return len(c.coordinates) }

// Count returns how many cells there are.
func (c *Centres) Count() int { return c.count }

// Of returns the coordinates of the centre of a cell, nil if it has none.
func (c *Centres) Of(cell uint32) []float32 {
	if int(cell) >= len(c.coordinates) {
		return nil
	}
	return c.coordinates[cell]
}

// far returns the square of the distance between a query and a centre.
func (c *Centres) far(q *Query, cell uint32) float64 {
	return max(0, q.square+c.squares[cell]-2*float64(product(q.x, c.coordinates[cell])))
}

// Nearest returns the cell whose centre is nearest to a query. It may err by one that is about as
// near. There is at least one centre.
func (c *Centres) Nearest(q *Query) uint32 {
	const sure = 2 // standard deviations
	found, hits := q.room(len(c.number))
	far := squaredDistance(q.x, c.mean)
	s := q.scaleFor(c.size, far, sure, math.Inf(1))
	q.scan(found, hits, c.coded, &s, c.coded)
	first := 0
	for i := range c.number {
		if found[i] < found[first] {
			first = i
		}
	}
	best := c.number[first]
	least := c.far(q, best)
	var spreads *[lanes]float32
	for i, cell := range c.number {
		if i%lanes == 0 {
			spreads = spreadsOf(c.coded, i/lanes, c.size)
		}
		if i != first && found[i]-float32(spreads[i%lanes]*s.reach) < float32(least) {
			if d := c.far(q, cell); d < least {
				best, least = cell, d
			}
		}
	}
	return best
}

func squaredDistance(x, y []float32) (s float64) {
	y = y[:len(x)]
	for i, v := range x {
		d := float64(v) - float64(y[i])
		s += d * d
	}
	return s
}
