package cells

import (
	"math"

	"github.com/fddhdb/fddhdb/internal/rotate"
)

// A Metric decides which vectors are near.
type Metric byte

const (
	Cosine Metric = iota // a large cosine of their angle
	Dot                  // a large inner product
	L2                   // a small Euclidean distance
)

// Size returns the number of coordinates of vectors of so many dimensions: the next multiple of 64.
func Size(dims int) int { return (dims + 63) &^ 63 }

// A Geometry defines the coordinates of a vector: a random rotation of it, so that each coordinate carries
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

// Place writes the coordinates of a vector to dst, of Size numbers. For a cosine they have length 1; a vector
// without a direction is all zeros, and so is its cosine with all others. Where lengths count, a vector
// longer than 1e17 has no place: NaNs are written, see HasPlace.
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

// longest is a length up to which neither squares of distances nor the numbers of entries exceed a float32,
// with up to 2^16 coordinates.
const longest = 1e17

// HasPlace reports whether Place has found coordinates. Every query is compared with vectors that have none.
func HasPlace(x []float32) bool { return x[0] == x[0] }

// A Cell has the vectors nearest to its centre. Fit measures their distances from it, which tell for which
// queries to visit the cell. These figures stay, so later vectors from far away cannot spoil the promise of
// the cell for the others.
type Cell struct {
	Centre []float32 // coordinates; nil: the cell does not exist
	// mean square of the distances of its vectors from the centre, see parts, without outliers
	Spread float32
	Load   float32 // sum of the weights of its vectors, see weight
}

// weight returns the load that a vector at this square of a distance from the centre puts on the cell: 1 at
// the distance of most of its vectors, and more in proportion to the square farther out.
func (c *Cell) weight(square float64) float64 {
	const most = 64
	if square <= float64(c.Spread) {
		return 1
	}
	return min(square/float64(c.Spread), most)
}

// Centres are the cells in coordinates, which decide where a vector belongs. A cell keeps its number; a
// number may have no cell. They never change, and are safe for any number of goroutines.
type Centres struct {
	*Geometry
	cells    []Cell
	squares  []float64 // of the lengths of centres
	count    int       // number of existing cells
	families []family
}

// NewCentres returns these cells, which it keeps.
func NewCentres(g *Geometry, all []Cell) *Centres {
	c := &Centres{Geometry: g, cells: all, squares: make([]float64, len(all))}
	for i, cell := range all {
		if cell.Centre != nil {
			c.count++
			for _, v := range cell.Centre {
				c.squares[i] += float64(v) * float64(v)
			}
		}
	}
	c.families = c.familiesOf()
	return c
}

// around returns centres with these coordinates and no other facts about their cells.
func around(g *Geometry, coordinates [][]float32) *Centres {
	all := make([]Cell, len(coordinates))
	for i, x := range coordinates {
		all[i].Centre = x
	}
	return NewCentres(g, all)
}

// parts returns the square of the distance of an entry from the centre of its cell. For Dot that is its
// distance from the line through zero and the centre, and along is how far it goes along that line, which
// is negative towards zero.
func (c *Centres) parts(e *Entry) (along, square float64) {
	square = e.square(c.size)
	if c.Metric != Dot || c.squares[e.Cell] == 0 || e.spread == math.MaxFloat32 {
		return 0, square
	}
	along = e.with(c.cells[e.Cell].Centre) / math.Sqrt(c.squares[e.Cell])
	return along, max(0, square-along*along)
}

// partsOf is parts of a vector, given by its coordinates.
func (c *Centres) partsOf(x []float32, cell uint32) (along, square float64) {
	centre := c.cells[cell].Centre
	square = squaredDistance(x, centre)
	if c.Metric != Dot || c.squares[cell] == 0 {
		return 0, square
	}
	along = (float64(Product(x, centre)) - c.squares[cell]) / math.Sqrt(c.squares[cell])
	return along, max(0, square-along*along)
}

// Numbers returns 1 + the number of the last cell.
func (c *Centres) Numbers() int { return len(c.cells) }

// Count returns the number of cells.
func (c *Centres) Count() int { return c.count }

// Of returns the coordinates of the centre of a cell, nil if it has none.
func (c *Centres) Of(cell uint32) []float32 { return c.Cell(cell).Centre }

// Cell returns the cell with a number.
func (c *Centres) Cell(number uint32) Cell {
	if int(number) >= len(c.cells) {
		return Cell{}
	}
	return c.cells[number]
}

// far returns the square of the distance between a query and a centre.
func (c *Centres) far(q *Query, cell uint32) float64 {
	return max(0, q.square+c.squares[cell]-2*float64(Product(q.x, c.cells[cell].Centre)))
}

func squaredDistance(x, y []float32) float64 {
	y = y[:len(x)]
	var s0, s1, s2, s3 float64 // each waits for its last addition alone
	for i := 0; i+4 <= len(x); i += 4 {
		p, q := x[i:i+4:i+4], y[i:i+4:i+4]
		a, b := float64(p[0])-float64(q[0]), float64(p[1])-float64(q[1])
		c, d := float64(p[2])-float64(q[2]), float64(p[3])-float64(q[3])
		s0 += a * a
		s1 += b * b
		s2 += c * c
		s3 += d * d
	}
	return (s0 + s1) + (s2 + s3)
}
