package quant

import "math/bits"

// A Part collects the vectors of rows that follow each other, for a writer that does not
// cover them yet. Any goroutine may make one, from some state of the rows, while the writer
// goes on from that state: what it is given meanwhile counts.
//
//	in the writer's goroutine: w.Open()
//	then, of a state of the rows that is not older: p := NewPart(dims, w.Covered()), p.Append ...
//	in the writer's goroutine: w.Install(p, end)
type Part struct {
	stride int
	row    uint32 // it has all vectors of rows from it on
	first  uint32 // number of the first page
	pages  []page
}

// NewPart returns a part for rows from one on.
func NewPart(dims int, row uint32) *Part {
	return &Part{stride: stride(dims), row: row, first: row / pageRows}
}

// Append adds the vector of a row, a signed byte a dimension, which it copies. Rows ascend.
func (p *Part) Append(row uint32, v []byte) {
	number := int(row/pageRows - p.first)
	for len(p.pages) <= number {
		p.trim()
		p.pages = append(p.pages, page{})
	}
	pg := &p.pages[number]
	if pg.data == nil {
		pg.data = make([]int8, 0, pageRows*p.stride)
	}
	pg.mask |= 1 << (row % pageRows)
	at := len(pg.data)
	pg.data = pg.data[:at+p.stride]
	copy(pg.data[at:], int8s(v))
}

// trim frees what the last page does not need, as no more rows come to it.
func (p *Part) trim() {
	if n := len(p.pages); n > 0 {
		p.pages[n-1].data = exact(p.pages[n-1].data)
	}
}

// Install takes over a part that has all vectors of rows from Covered on, and below end, as of
// a state not older than when the writer was opened; it then covers these rows. Rows that the
// writer has been given since stay as they are. It does nothing if the writer has been closed
// since, as it does not know what it has missed, or if the part begins elsewhere. The part must
// not be used again.
func (w *Writer) Install(p *Part, end uint32) {
	if !w.open || p.row != w.t.covered || end <= w.t.covered {
		return
	}
	p.trim()
	ours := map[uint32]uint64{} // by page: rows of which the writer knows better
	if n := w.t.covered % pageRows; n != 0 {
		ours[w.t.covered/pageRows] = 1<<n - 1
	}
	for _, row := range w.touched {
		ours[row/pageRows] |= 1 << (row % pageRows)
	}
	for i, pg := range p.pages {
		number := p.first + uint32(i)
		keep := ours[number]
		var old page
		if p := w.t.pages.At(number); p != nil {
			old = *p
			w.t.bytes -= old.bytes()
		}
		pg = merged(old, pg, keep, w.t.stride)
		if pg.mask == 0 {
			w.t.pages.Drop(number, w.epoch)
			continue
		}
		pg.owned = w.epoch
		w.set(number, pg)
	}
	w.Cover(end)
}

// exact returns a slice with the same numbers and no room for others.
func exact(data []int8) []int8 {
	if len(data) == cap(data) {
		return data
	}
	out := make([]int8, len(data))
	copy(out, data)
	return out
}

// merged returns a page with the rows in keep as they are in ours, and the others as in theirs.
func merged(ours, theirs page, keep uint64, stride int) page {
	if keep == 0 {
		return theirs
	}
	p := page{mask: ours.mask&keep | theirs.mask&^keep}
	p.data = make([]int8, 0, bits.OnesCount64(p.mask)*stride)
	for rest := p.mask; rest != 0; rest &= rest - 1 {
		row := uint32(bits.TrailingZeros64(rest))
		from := &theirs
		if keep&(1<<row) != 0 {
			from = &ours
		}
		p.data = append(p.data, from.at(row, stride)...)
	}
	return p
}
