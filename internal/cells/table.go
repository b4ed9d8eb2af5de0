package cells

import (
	"math"
	"math/bits"
	"slices"

	"github.com/fddhdb/fddhdb/internal/paged"
)

// A Table is one state of the entries of rows, cell by cell. It is immutable, and safe for any
// number of goroutines.
type Table struct {
	centres *Centres
	lists   paged.Array[list] // by cell
	cellOf  paged.Array[[rowsOfPage]uint32]
	rows    int
	bytes   int

	load, was float64 // sums over the lists
}

// A list is the entries of a cell, in no order: in pages of pageGroups groups.
type list struct {
	n     int
	load  float64 // sum of the weights of the entries
	was   float64 // what of the load has been there since Fit
	most  float64 // no square of a distance from the centre is larger
	along reachAlong
	pages []*page
}

// A page belongs to the writer in the epoch that made it; after that it never changes.
type page struct {
	epoch  uint64
	groups []byte
}

const (
	pageGroups = 8
	pageLanes  = pageGroups * lanes
	rowsOfPage = 1024 // of cellOf, which has 1 + the number of a cell
)

// Centres returns the centres of the cells.
func (t *Table) Centres() *Centres { return t.centres }

// Rows returns how many rows have an entry.
func (t *Table) Rows() int { return t.rows }

// Bytes returns the memory of the table in bytes, without the centres.
func (t *Table) Bytes() int { return t.bytes }

// Len returns how many entries a cell has.
func (t *Table) Len(cell uint32) int {
	if l := t.lists.At(cell); l != nil {
		return l.n
	}
	return 0
}

// Overfull reports whether a cell that takes on this much more would have taken on more since Fit than its
// share of what all cells have taken on, or more than an eighth of its load. What Fit has found need not hold
// then: many vectors of one kind have come, and lie on one side of the cell. A share of chance is three
// standard deviations.
func (t *Table) Overfull(cell uint32, more float64) bool {
	l := t.lists.At(cell)
	if l == nil {
		l = new(list)
	}
	share := 0.
	if t.was > 0 {
		share = l.was * max(0, t.load/t.was-1)
	}
	return l.load+more > l.was+Slack+min(l.was/8, l.was/64+share+3*math.Sqrt(share))
}

// Weight says how much an entry burdens its cell.
func (t *Table) Weight(e *Entry) float64 {
	_, square := t.centres.parts(e)
	return t.centres.cells[e.Cell].weight(square)
}

// Cell returns the cell of a row, and whether it has one.
func (t *Table) Cell(row uint32) (cell uint32, found bool) {
	if p := t.cellOf.At(row / rowsOfPage); p != nil && p[row%rowsOfPage] != 0 {
		return p[row%rowsOfPage] - 1, true
	}
	return 0, false
}

// A Writer changes a table and publishes its states. It belongs to one goroutine; the tables that
// it publishes may be shared.
type Writer struct {
	t     Table
	epoch uint64 // number of published states + 1
}

// NewWriter returns the writer of a table without entries.
func NewWriter(c *Centres) *Writer { return &Writer{t: Table{centres: c}, epoch: 1} }

// Table returns the table as it is, which changes with the next call. Only the goroutine of the
// writer may use it.
func (w *Writer) Table() *Table { return &w.t }

// Publish returns the current state, which never changes. The first change of each page after it
// copies the page, of some kilobytes.
func (w *Writer) Publish() *Table {
	w.epoch++
	t := w.t
	return &t
}

// Fit finds out what the cells promise, by the entries that they have, and returns them by number, for
// what stores them. It costs some nanoseconds an entry.
func (w *Writer) Fit() map[uint32]Cell {
	size := w.t.centres.size
	all := slices.Clone(w.t.centres.cells)
	fitted := map[uint32]Cell{}
	var squares []float64
	for number := range all {
		c := &all[number]
		if c.Centre == nil {
			continue
		}
		if l := w.t.lists.At(uint32(number)); l != nil {
			squares = squares[:0]
			for i := range l.n {
				e, _ := l.lane(i, size)
				e.Cell = uint32(number)
				_, square := w.t.centres.parts(&e)
				squares = append(squares, square)
			}
			c.Spread = float32(spreadOfSquares(squares))
			l = w.t.lists.Own(uint32(number), w.epoch, ownPages)
			l.load = 0
			for _, square := range squares {
				l.load += c.weight(square)
			}
			l.was, c.Load = l.load, float32(l.load)
		}
		fitted[uint32(number)] = *c
	}
	w.sum()
	next := *w.t.centres
	next.cells = all
	w.t.centres = &next
	return fitted
}

// spreadOfSquares returns the mean of the squares, without outliers far above most. It sorts them.
func spreadOfSquares(squares []float64) float64 {
	if len(squares) == 0 {
		return 0
	}
	slices.Sort(squares)
	most := outlier * squares[len(squares)/2]
	n, sum := 0, 0.
	for _, square := range squares {
		if square <= most {
			n, sum = n+1, sum+square
		}
	}
	return sum / float64(n)
}

// Resume says that all entries of cells that Fit has seen before have been put again.
func (w *Writer) Resume() {
	for i, c := range w.t.centres.cells {
		if l := w.t.lists.At(uint32(i)); l != nil {
			w.t.lists.Own(uint32(i), w.epoch, ownPages).was = min(float64(c.Load), l.load)
		}
	}
	w.sum()
}

// sum adds up the loads of all lists.
func (w *Writer) sum() {
	w.t.load, w.t.was = 0, 0
	for i := range w.t.centres.cells {
		if l := w.t.lists.At(uint32(i)); l != nil {
			w.t.load, w.t.was = w.t.load+l.load, w.t.was+l.was
		}
	}
}

// Put makes an entry, which it copies, the one of a row, in place of that before.
func (w *Writer) Put(row uint32, e *Entry) {
	w.Remove(row)
	l := w.t.lists.Own(e.Cell, w.epoch, ownPages)
	if l.n == len(l.pages)*pageLanes {
		l.pages = append(l.pages, &page{epoch: w.epoch,
			groups: make([]byte, pageGroups*groupBytes(w.t.centres.size))})
		w.t.bytes += w.pageBytes()
	}
	w.set(l, l.n, e, row)
	l.n++
	along, square := w.t.centres.parts(e)
	weight := w.t.centres.cells[e.Cell].weight(square)
	l.load, w.t.load = l.load+weight, w.t.load+weight
	l.along = reachAlong{min(l.along.least, along), max(l.along.most, along)}
	l.most = max(l.most, e.mostSquare(w.t.centres.size))
	w.t.rows++
	w.note(row, e.Cell+1)
}

// Remove takes away the entry of a row, if it has one.
func (w *Writer) Remove(row uint32) {
	cell, found := w.t.Cell(row)
	if !found {
		return
	}
	w.note(row, 0)
	w.t.rows--
	size := w.t.centres.size
	l := w.t.lists.Own(cell, w.epoch, ownPages)
	at := l.find(row, size)
	e, _ := l.lane(at, size)
	e.Cell = cell
	weight := w.t.Weight(&e)
	l.n--
	before := *l
	// A heavy entry has most likely come since Fit, if as much load has. The age of the others is unknown.
	// They count as older, so that a cell whose entries are replaced is overfull in time.
	if weight < 2 || l.load-l.was < weight {
		l.was = max(0, l.was-1)
	}
	if l.load -= weight; l.n == 0 {
		l.load, l.was, l.most, l.along = 0, 0, 0, reachAlong{}
	}
	w.t.load, w.t.was = w.t.load+l.load-before.load, w.t.was+l.was-before.was
	if at != l.n {
		last, lastRow := l.lane(l.n, size)
		w.set(l, at, &last, lastRow)
	}
	if l.n%pageLanes == 0 {
		l.pages[len(l.pages)-1] = nil
		l.pages = l.pages[:len(l.pages)-1]
		w.t.bytes -= w.pageBytes()
	}
}

// ownPages makes the list of pages of a list that has been copied the writer's own.
func ownPages(l *list) { l.pages = slices.Clone(l.pages) }

func (w *Writer) pageBytes() int { return pageGroups*groupBytes(w.t.centres.size) + 48 }

// note stores the cell of a row, plus 1; 0: none.
func (w *Writer) note(row, cell uint32) {
	if w.t.cellOf.At(row/rowsOfPage) == nil {
		w.t.bytes += 4 * rowsOfPage
	}
	w.t.cellOf.Own(row/rowsOfPage, w.epoch, func(*[rowsOfPage]uint32) {})[row%rowsOfPage] = cell
}

// set writes an entry to place i of a list.
func (w *Writer) set(l *list, i int, e *Entry, row uint32) {
	p := l.pages[i/pageLanes]
	if p.epoch != w.epoch {
		p = &page{epoch: w.epoch, groups: slices.Clone(p.groups)}
		l.pages[i/pageLanes] = p
	}
	size := w.t.centres.size
	setLane(p.groups[i%pageLanes/lanes*groupBytes(size):], i%lanes, size, e, row)
}

// find returns the place of a row that the list has.
func (l *list) find(row uint32, size int) int {
	length := groupBytes(size)
	for n, p := range l.pages {
		for i := range min(pageLanes, l.n-n*pageLanes) {
			if rowAt(p.groups[i/lanes*length:], i%lanes, size) == row {
				return n*pageLanes + i
			}
		}
	}
	panic("cells: a row is not in its cell")
}

// lane returns the entry and the row at a place of a list.
func (l *list) lane(i, size int) (Entry, uint32) {
	return lane(l.pages[i/pageLanes].groups[i%pageLanes/lanes*groupBytes(size):], i%lanes, size)
}

// A Found is an entry that a search has come across.
type Found struct {
	Row      uint32
	Distance float32 // about the distance of the vector, see Entry
	Spread   float32 // a standard deviation of its error
}

// Scan appends to dst the entries of a cell that may be as near to the query as floor: those whose
// distance, less sure standard deviations of its error, is not above it.
func (t *Table) Scan(dst []Found, q *Query, p Probe, sure float64, floor float32) []Found {
	l := t.lists.At(p.Cell)
	if l == nil {
		return dst
	}
	c := t.centres
	s := q.scaleFor(c.size, p.Far, sure, float64(floor))
	if c.Metric == Dot {
		s.far = float32(p.Far - q.square - c.squares[p.Cell]) // -2 c.q
	}
	root, scan := q.deviation(p.Far), q.scan
	if q.rounding() > p.Far {
		q.setRest()
		root, scan = q.rest.deviation(p.Far), q.scanTwice
		s.reach = float32(sure) * root
	}
	length := groupBytes(c.size)
	found, hits := q.room(pageLanes)
	for n, pg := range l.pages {
		left := min(pageLanes, l.n-n*pageLanes)
		groups := (left + lanes - 1) / lanes
		next := l.pages[min(n+1, len(l.pages)-1)]
		scan(found[:groups*lanes], hits[:groups], pg.groups, &s, next.groups)
		for g, mask := range hits[:groups] {
			for ; mask != 0; mask &= mask - 1 {
				i := g*lanes + bits.TrailingZeros8(mask)
				if i >= left {
					break
				}
				group := pg.groups[g*length:]
				dst = append(dst, Found{rowAt(group, i%lanes, c.size), found[i],
					spreadOf(group, i%lanes, c.size) * root})
			}
		}
	}
	return dst
}

// A Probe is a cell that is worth a look.
type Probe struct {
	Cell  uint32
	Far   float64 // square of the distance of its centre from the query
	Least float64 // about the least distance of its entries, see Probes
	Bound float64 // no entry has a smaller distance
}

// Probes yields cells, the most promising first.
//
// A cell has to offer what promise says, with a reach of the search; for Dot, promiseDot. So it ends
// with the first cell whose Least is not below the distance of the k-th that it has found, and reach
// says how much it misses.
type Probes struct {
	t     *Table
	q     *Query
	reach float64
	heap  []probe
}

type probe struct {
	least float32
	cell  uint32
	exact bool
	far   float32
}

// Forget lets go of the table and the query, and keeps memory for the next.
func (p *Probes) Forget() { p.t, p.q = nil, nil }

// Probes returns the cells for a query. The query keeps memory for one Probes at a time.
func (t *Table) Probes(q *Query, reach float64, dst *Probes) {
	c := t.centres
	dst.t, dst.q, dst.reach, dst.heap = t, q, reach, dst.heap[:0]
	const sure = 2
	for i := range c.families {
		f := promised{family: &c.families[i]}
		f.far = f.family.far(q)
		root := sure * q.deviation(f.far)
		found, _ := q.scanFamily(c, f, 0, float32(math.Inf(1)))
		for i, cell := range f.number {
			if l := t.lists.At(cell); l != nil && l.n > 0 {
				d := max(0, found[i]-root*spreadOf(f.coded, i, c.size))
				dst.heap = append(dst.heap, probe{least: dst.least(float64(d), cell, reach), cell: cell,
					far: d})
			}
		}
	}
	for i := len(dst.heap)/2 - 1; i >= 0; i-- {
		dst.down(i)
	}
}

// least is what a cell has to offer with a reach, where the square of the distance of its centre is far.
func (p *Probes) least(far float64, cell uint32, reach float64) float32 {
	c := p.t.centres
	m := float64(c.cells[cell].Spread)
	if c.Metric == Dot {
		return float32(promiseDot(far, p.q.square, c.squares[cell], m, p.t.lists.At(cell).along, reach))
	}
	return float32(promise(far, m, reach))
}

// bound returns a distance that no entry of a cell is below, where the square of the distance of its
// centre is far. With R the largest distance of an entry from the centre c, |x-q| is at least |q-c| - R,
// and x.q at most c.q + R |q|.
func (p *Probes) bound(far float64, cell uint32) float64 {
	c, radius := p.t.centres, math.Sqrt(p.t.lists.At(cell).most)
	if c.Metric == Dot {
		return far - p.q.square - c.squares[cell] - 2*radius*math.Sqrt(p.q.square)
	}
	least := max(0, math.Sqrt(far)-radius)
	return least * least
}

// Next returns the most promising cell that is left, unless all have more than floor to offer.
func (p *Probes) Next(floor float32) (next Probe, ok bool) {
	for len(p.heap) > 0 {
		top := &p.heap[0]
		if top.least > floor {
			return Probe{}, false
		}
		if top.exact {
			next = Probe{top.cell, float64(top.far), float64(top.least), p.bound(float64(top.far), top.cell)}
			last := len(p.heap) - 1
			p.heap[0] = p.heap[last]
			p.heap = p.heap[:last]
			p.down(0)
			return next, true
		}
		far := p.t.centres.far(p.q, top.cell)
		*top = probe{p.least(far, top.cell, p.reach), top.cell, true, float32(far)}
		p.down(0)
	}
	return Probe{}, false
}

// down moves element i of the heap to where it belongs.
func (p *Probes) down(i int) {
	h := p.heap
	for {
		j := 2*i + 1
		if j >= len(h) {
			return
		}
		if j+1 < len(h) && h[j+1].least < h[j].least {
			j++
		}
		if h[i].least <= h[j].least {
			return
		}
		h[i], h[j] = h[j], h[i]
		i = j
	}
}

// These say from how many vectors on an index is worth its work. Tests have less, so that few items
// meet all that an index does; they set them before a database is open.
var (
	// ExactCost is the cost in nanoseconds up to which all vectors are compared exactly instead, for any
	// recall. With 0 an index is always used.
	ExactCost = 125_000.

	// MergeAfter is how many rows an index may be behind: a search compares them all, which takes some
	// 20 microseconds.
	MergeAfter = 512

	// Slack is how much a cell takes on in any case, however few entries it has.
	Slack = 4.
)
