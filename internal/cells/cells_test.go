package cells

import (
	"bytes"
	"context"
	"flag"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/internal/simd"
	"github.com/fddhdb/fddhdb/internal/synth"
)

var (
	items  = flag.Int("items", 20000, "vectors of TestRecall")
	dims   = flag.Int("dims", 128, "their dimensions, a multiple of 32")
	number = flag.Int("cells", 0, "cells; 0: twice the square root of the items")
	sure   = flag.Float64("sure", 2, "standard deviations of the error of an estimate that are allowed for")
)

func parallel(n int, f func(i int)) {
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			for i := w; i < n; i += 2 {
				f(i)
			}
		})
	}
	wg.Wait()
}

// TestRecall measures what a search by cells finds of the nearest, and what it looks at.
func TestRecall(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about recall, and takes long with the race detector")
	}
	for _, set := range synth.EmbeddingSets() {
		t.Run(string(set), func(t *testing.T) { testRecall(t, set) })
	}
}

func testRecall(t *testing.T, set synth.EmbeddingSet) {
	n, d := *items, *dims
	e, err := synth.NewEmbeddingSource(set, d, 1)
	if err != nil {
		t.Fatal(err)
	}
	x := make([][]float32, n)
	parallel(n, func(i int) { x[i] = e.Vector(i) })
	const queries, k = 200, 10
	qs, truth := make([][]float32, queries), make([]float32, queries)
	parallel(queries, func(i int) {
		qs[i] = e.Vector(1<<40 + i)
		ds := make([]float32, n)
		for j := range n {
			ds[j] = 2 - 2*Product(qs[i], x[j])
		}
		slices.Sort(ds)
		truth[i] = ds[k-1]
	})
	count := *number
	if count == 0 {
		count = int(2 * math.Sqrt(float64(n)))
	}
	g := NewGeometry(Cosine, d, 1)
	start := time.Now()
	m := min(n, count*30)
	sample := make([][]float32, m)
	parallel(m, func(i int) { sample[i] = make([]float32, g.Size()); g.Place(sample[i], x[i*(n/m)]) })
	c, err := Train(context.Background(), g, sample, count, 6, 2)
	if err != nil {
		t.Fatal(err)
	}
	trained := time.Since(start)
	start = time.Now()
	entries := make([]Entry, n)
	parallel(n, func(i int) {
		q := g.NewQuery() // one a worker in earnest
		y := make([]float32, g.Size())
		g.Place(y, x[i])
		q.Set(y)
		c.Encode(&entries[i], y, c.Nearest(q))
	})
	encoded := time.Since(start)
	start = time.Now()
	w := NewWriter(c)
	for i := range entries {
		w.Put(uint32(i), &entries[i])
	}
	table := w.Publish()
	t.Logf("trained in %v, encoded in %v, put in %v; %d bytes", trained, encoded, time.Since(start),
		table.Bytes())
	q := g.NewQuery()
	y := make([]float32, g.Size())
	var probes Probes
	var found []Found
	for _, reach := range []float64{.2, .25, .3, .4, .5, .6, .7, .8} {
		var hits, probed, refined int
		var took []time.Duration
		for i := range qs {
			began := time.Now()
			g.Place(y, qs[i])
			q.Set(y)
			table.Probes(q, reach, &probes)
			top := make([]float32, 0, k+1)
			floor := float32(math.Inf(1))
			for p, ok := probes.Next(floor); ok; p, ok = probes.Next(floor) {
				probed++
				found = table.Scan(found[:0], q, p, *sure, floor)
				if math.IsInf(float64(floor), 1) {
					slices.SortFunc(found, func(a,
						b Found) int {
						return int(math.Copysign(1, float64(a.Distance-b.Distance)))
					})
				}
				for j, f := range found {
					if j >= 6*k && math.IsInf(float64(floor), 1) {
						break
					}
					refined++
					s := 2 - 2*Product(qs[i], x[f.Row])
					if s < floor || len(top) < k {
						at, _ := slices.BinarySearch(top, s)
						top = slices.Insert(top, at, s)
						if len(top) > k {
							top = top[:k]
						}
						if len(top) == k && j >= 2*k {
							floor = top[k-1]
						}
					}
				}
				if len(top) == k {
					floor = top[k-1]
				}
			}
			took = append(took, time.Since(began))
			for _, s := range top {
				if s <= truth[i]+1e-6 {
					hits++
				}
			}
		}
		slices.Sort(took)
		t.Logf("reach %.2f recall %.4f probes %.1f refined %d median %v", reach, float64(hits)/queries/k,
			float64(probed)/queries, refined/queries, took[len(took)/2])
	}
}

// Kernels agree, to the last bit, for any size of codes and any number of groups, and write to the
// places of these alone.
func TestKernelsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, d := range []int{1, 64, 65, 128, 384, 1000, 1984, 2048, 4096, 9000} {
		g := NewGeometry(L2, d, 1)
		random := func() []float32 {
			x := make([]float32, g.Size())
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
			return x
		}
		centre := random()
		opposite := make([]float32, g.Size())
		for i := range opposite {
			opposite[i] = -1000
		}
		for n := 1; n < 40; n += 3 {
			x := random()
			switch n {
			case 1: // with opposite it has the largest sum that there is
				for i := range x {
					x[i] = 1
				}
			case 4:
				clear(x)
			}
			var groups []byte
			var e Entry
			for i := range n {
				y := random()
				if i%7 == 0 {
					y = opposite
				}
				e.encode(L2, y, centre)
				groups = appendToGroups(groups, i, g.Size(), &e, uint32(i))
			}
			groups = slices.Clip(groups)
			count := (n + lanes - 1) / lanes
			floor := float32(math.Inf(1))
			var want []float32
			var wantHits []byte
			for _, k := range slices.Backward(sets) { // generic is the first
				use(t, k)
				q := g.NewQuery()
				q.Set(x)
				s := q.scaleFor(g.Size(), 3, 2, 0)
				got, gotHits := make([]float32, (count+1)*lanes), make([]byte, count+1)
				if k == simd.Generic {
					q.scan(got, gotHits[:count], groups, &s, groups)
					floor = slices.Min(got[:n]) + (slices.Max(got[:n])-slices.Min(got[:n]))/2
				}
				s.floor = floor
				q.scan(got, gotHits[:count], groups, &s, groups)
				if k == simd.Generic {
					want, wantHits = got, gotHits
				}
				if got, want := Product(x, centre), productGeneric(x, centre); got != want {
					t.Fatalf("%v, %d dimensions: product %v, want %v", k, d, got, want)
				}
				if !slices.Equal(want, got) || !slices.Equal(wantHits, gotHits) {
					t.Fatalf("%v, %d dimensions, %d codes: %v and hits %b, want %v and %b", k, d, n, got,
						gotHits, want, wantHits)
				}
			}
		}
	}
}

// use makes a kernel the active one until the test ends.
func use(t testing.TB, k simd.Set) {
	before := active
	active = k
	t.Cleanup(func() { active = before })
}

// An estimate has no bias, and the deviation that it says.
func TestEstimates(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, metric := range []Metric{Cosine, Dot, L2} {
		const d, n = 192, 4000
		g := NewGeometry(metric, d, 5)
		random := func(around []float32) []float32 {
			x := make([]float32, d)
			for i := range x {
				x[i] = float32(r.NormFloat64())
				if around != nil {
					x[i] = around[i] + .7*x[i]
				}
			}
			return x
		}
		place := func(x []float32) []float32 {
			y := make([]float32, g.Size())
			g.Place(y, x)
			return y
		}
		centre := random(nil)
		c := around(g, [][]float32{place(centre)})
		w := NewWriter(c)
		var e Entry
		var x [][]float32
		for i := range n {
			x = append(x, random(centre))
			c.Encode(&e, place(x[i]), 0)
			w.Put(uint32(i), &e)
		}
		table := w.Publish()
		v := random(centre)
		q := g.NewQuery()
		q.Set(place(v))
		var p Probes
		table.Probes(q, .5, &p)
		probe, ok := p.Next(float32(math.Inf(1)))
		if !ok {
			t.Fatal("no cell")
		}
		var sum, squares float64
		found := table.Scan(nil, q, probe, 0, float32(math.Inf(1)))
		if len(found) != n {
			t.Fatalf("%d found", len(found))
		}
		for _, f := range found {
			var xy, xx, yy float64
			for j, a := range x[f.Row] {
				xy, xx, yy = xy+float64(a)*float64(v[j]), xx+float64(a)*float64(a),
					yy+float64(v[j])*float64(v[j])
			}
			want := map[Metric]float64{Cosine: 2 - 2*xy/math.Sqrt(xx*yy), Dot: -2 * xy,
				L2: xx + yy - 2*xy}[metric]
			z := (float64(f.Distance) - want) / float64(f.Spread)
			sum, squares = sum+z, squares+z*z
		}
		if mean, deviation := sum/n, math.Sqrt(squares/n); math.Abs(mean) > .15 || deviation < .8 ||
			deviation > 1.2 {
			t.Errorf("metric %d: errors have mean %.3f and deviation %.3f, in those that are said", metric,
				mean, deviation)
		}
	}
}

// A table has the entries that were put last, in their cells, and tables that were published stay.
func TestTablesAreWhatWasPut(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	g := NewGeometry(L2, 70, 1)
	place := func() []float32 {
		y := make([]float32, g.Size())
		for i := range 70 {
			y[i] = float32(r.NormFloat64())
		}
		return y
	}
	var centres [][]float32
	for range 5 {
		centres = append(centres, place())
	}
	centres[3] = nil
	c := around(g, centres)
	w := NewWriter(c)
	type state struct {
		table *Table
		rows  map[uint32]Entry
	}
	now := map[uint32]Entry{}
	var states []state
	for i := range 6000 {
		row := uint32(r.IntN(2500))
		if r.IntN(3) == 0 {
			w.Remove(row)
			delete(now, row)
		} else {
			var e Entry
			c.Encode(&e, place(), []uint32{0, 1, 2, 4}[r.IntN(4)])
			w.Put(row, &e)
			now[row] = e
		}
		if i%500 == 77 {
			states = append(states, state{w.Publish(), maps.Clone(now)})
		}
	}
	states = append(states, state{w.Publish(), now})
	for _, s := range states {
		if s.table.Rows() != len(s.rows) {
			t.Fatalf("%d rows, there are %d", s.table.Rows(), len(s.rows))
		}
		seen := 0
		for cell := range uint32(5) {
			load := 0.0
			for i := range s.table.Len(cell) {
				seen++
				_, row := s.table.lists.At(cell).lane(i, g.Size())
				want, there := s.rows[row]
				of, found := s.table.Cell(row)
				got, gotRow := s.table.lists.At(cell).lane(i, g.Size())
				got.Cell = cell
				if !there || !found || of != want.Cell || gotRow != row || !got.Equal(&want) {
					t.Fatalf("row %d is not what was put", row)
				}
				load += s.table.Weight(&want)
			}
			if l := s.table.lists.At(cell); l != nil && math.Abs(l.load-load) > 1e-6*load+1e-9 {
				t.Fatalf("cell %d: a load of %v, it is %v", cell, l.load, load)
			}
		}
		if seen != len(s.rows) {
			t.Fatalf("%d rows in cells, there are %d", seen, len(s.rows))
		}
	}
}

// Of cells the most promising come first, but for a few whose estimate was wrong, each once, and with
// no floor all.
func TestProbesYieldAllCells(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	g := NewGeometry(L2, 64, 1)
	var centres [][]float32
	for range 600 { // several families
		y := make([]float32, 64)
		for i := range y {
			y[i] = float32(r.NormFloat64())
		}
		centres = append(centres, y)
	}
	c := around(g, centres)
	w := NewWriter(c)
	var e Entry
	for i := range 3000 {
		y := slices.Clone(centres[i%450]) // the others stay empty
		for j := range y {
			y[j] += .3 * float32(r.NormFloat64())
		}
		c.Encode(&e, y, uint32(i%450))
		w.Put(uint32(i), &e)
	}
	q := g.NewQuery()
	q.Set(centres[7])
	if cell := c.Nearest(q); cell != 7 {
		t.Errorf("the nearest is %d", cell)
	}
	var p Probes
	w.Publish().Probes(q, .3, &p)
	seen, last, late := map[uint32]bool{}, math.Inf(-1), 0
	for {
		next, ok := p.Next(float32(math.Inf(1)))
		if !ok {
			break
		}
		if seen[next.Cell] {
			t.Fatalf("cell %d comes twice", next.Cell)
		}
		if next.Least < last {
			late++
		}
		if want := squaredDistance(q.x, centres[next.Cell]); math.Abs(want-next.Far) > 1e-3 {
			t.Fatalf("cell %d is at %v, not %v", next.Cell, want, next.Far)
		}
		seen[next.Cell], last = true, max(last, next.Least)
	}
	if len(seen) != 450 || !seen[7] || late > 20 {
		t.Errorf("%d cells, %d late", len(seen), late)
	}
}

// Few vectors are put into another cell than that of the nearest centre, and none into one that is far.
func TestNearestIsAboutTheNearest(t *testing.T) {
	const d, n, count = 128, 12000, 700
	for _, set := range synth.EmbeddingSets() {
		e, err := synth.NewEmbeddingSource(set, d, 1)
		if err != nil {
			t.Fatal(err)
		}
		g := NewGeometry(Cosine, d, 1)
		placed := make([][]float32, n)
		parallel(n, func(i int) { placed[i] = make([]float32, g.Size()); g.Place(placed[i], e.Vector(i)) })
		c, err := Train(t.Context(), g, placed, count, 2, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.families) < 2 {
			t.Fatalf("%d families", len(c.families))
		}
		q := g.NewQuery()
		others, worst := 0, 1.0
		for i := range 1000 {
			q.Set(placed[i])
			least := math.Inf(1)
			for cell := range c.Numbers() {
				if c.Of(uint32(cell)) != nil {
					least = min(least, squaredDistance(placed[i], c.Of(uint32(cell))))
				}
			}
			if got := squaredDistance(placed[i], c.Of(c.Nearest(q))); got > least*(1+1e-5) {
				others++
				worst = max(worst, got/least)
			}
		}
		if others > 50 || worst > 2 {
			t.Errorf("%s: %d of 1,000 vectors are in another cell, up to %.2f times as far in square", set,
				others, worst)
		}
		t.Logf("%s: %d, %.2f", set, others, worst)
	}
}

// A stored entry is what it was made of, whatever the bytes; and bytes of any origin do no harm.
func FuzzEntry(f *testing.F) {
	f.Add(make([]byte, EntryBytes(3)), uint16(3))
	f.Add(bytes.Repeat([]byte{0x3f}, EntryBytes(70)), uint16(70))
	f.Fuzz(func(t *testing.T, b []byte, dims uint16) {
		if dims == 0 {
			return
		}
		e, err := DecodeEntry(b, int(dims))
		if err != nil {
			return
		}
		if again := e.Append(nil); !bytes.Equal(again, b) {
			t.Fatalf("%x became %x", b, again)
		}
		if math.IsNaN(e.square(Size(int(dims)))) {
			t.Fatal("no square")
		}
	})
}

// Entries are the same on every machine: what is stored is compared with what is made again.
func TestEntriesArePinned(t *testing.T) {
	h := fnv.New64a()
	for _, metric := range []Metric{Cosine, Dot, L2} {
		g := NewGeometry(metric, 100, 9)
		y, z := make([]float32, g.Size()), make([]float32, g.Size())
		x := make([]float32, 100)
		state := uint64(1)
		next := func() float32 {
			state = state*6364136223846793005 + 1442695040888963407
			return float32(int32(state>>33))/(1<<30) - .5
		}
		for i := range x {
			x[i] = next()
		}
		g.Place(y, x)
		for i := range z {
			z[i] = y[i] + next()/8
		}
		c := around(g, [][]float32{z})
		var e Entry
		c.Encode(&e, y, 0)
		h.Write(e.Append(nil))
	}
	const want = 0xf334e7f335da828c
	if got := h.Sum64(); got != want {
		t.Errorf("entries hash to %#x", got)
	}
}

// clouds makes a table of a few cells of 100 vectors each, around centres that lie apart, and returns it
// with the coordinates by row.
func clouds(metric Metric, seed uint64) (w *Writer, placed [][]float32) {
	r := rand.New(rand.NewPCG(seed, 9))
	g := NewGeometry(metric, 48, seed)
	around := func(x []float32, sigma float64) []float32 {
		y := make([]float32, len(x))
		for i := range y {
			y[i] = x[i] + float32(sigma*r.NormFloat64())
		}
		return y
	}
	var centres [][]float32
	for range 8 {
		centres = append(centres, around(make([]float32, 48), 1))
	}
	var all []Cell
	for _, c := range centres {
		y := make([]float32, g.Size())
		g.Place(y, c)
		all = append(all, Cell{Centre: y})
	}
	c := NewCentres(g, all)
	w = NewWriter(c)
	var e Entry
	for row := range 800 {
		y := make([]float32, g.Size())
		g.Place(y, around(centres[row%8], .2))
		c.Encode(&e, y, uint32(row%8))
		w.Put(uint32(row), &e)
		placed = append(placed, y)
	}
	w.Fit()
	return w, placed
}

// A small group has a cell of its own, also if k-means began with none of its vectors.
func TestSmallGroupsHaveCells(t *testing.T) {
	for _, metric := range []Metric{Cosine, Dot, L2} {
		r := rand.New(rand.NewPCG(1, 2))
		g := NewGeometry(metric, 48, 1)
		vector := func(around []float32, sigma float64) []float32 {
			x := slices.Clone(around)
			for i := range x {
				x[i] += float32(sigma * r.NormFloat64())
			}
			return x
		}
		const count, ofKind = 12, 80
		var kinds [][]float32
		for range count + 1 {
			kinds = append(kinds, vector(make([]float32, 48), 1))
		}
		var sample [][]float32
		for i := range count * ofKind {
			kind := i % count
			if i%100 == 1 { // k-means begins with every 80th vector
				kind = count
			}
			sample = append(sample, make([]float32, g.Size()))
			g.Place(sample[i], vector(kinds[kind], .1))
		}
		c, err := Train(t.Context(), g, sample, count, 6, 2)
		if err != nil {
			t.Fatal(err)
		}
		q := c.NewQuery()
		q.Set(sample[1])
		own, other := c.far(q, c.Nearest(q)), squaredDistance(sample[1], sample[0])
		if own > other/10 {
			t.Errorf("metric %v: a vector of the small group is %.2f from the nearest of %d centres; from one of another group it is %.2f", metric, own, c.Count(), other)
		}
	}
}

// What a cell promises is what it did when it was fitted, however many come from far away; but it is
// overfull then, and is not when those have gone.
func TestOutliersDoNotSpoilACell(t *testing.T) {
	for _, metric := range []Metric{Cosine, Dot, L2} {
		w, placed := clouds(metric, 1)
		c := w.Table().Centres()
		q := c.NewQuery()
		q.Set(placed[3])
		first := func() Probe {
			var p Probes
			w.Publish().Probes(q, .5, &p)
			next, _ := p.Next(float32(math.Inf(1)))
			return next
		}
		want := first()
		if want.Cell != 3 || w.Table().Overfull(3, 0) {
			t.Fatalf("metric %v: a vector of cell 3 is at home in %d", metric, want.Cell)
		}
		var e Entry
		for i := range uint32(10) {
			c.Encode(&e, placed[i%3], 3) // of other clouds
			w.Put(1000+i, &e)
		}
		got := first()
		if got.Cell != 3 || got.Least != want.Least {
			t.Errorf("metric %v: cell %d promises %v; before outliers came it was %d with %v", metric,
				got.Cell, got.Least, want.Cell, want.Least)
		}
		if !w.Table().Overfull(3, 0) {
			t.Errorf("metric %v: ten outliers do not overfill a cell", metric)
		}
		for i := range uint32(10) {
			w.Remove(1000 + i)
		}
		if w.Table().Overfull(3, 0) {
			t.Errorf("metric %v: a cell is overfull when the outliers have gone", metric)
		}
		for i := range uint32(30) { // as many as a quarter, and some more, of its own kind
			c.Encode(&e, placed[3+8*i], 3)
			w.Put(1000+i, &e)
		}
		if !w.Table().Overfull(3, 0) {
			t.Errorf("metric %v: a third more do not overfill a cell", metric)
		}
	}
}

// By Dot the longest vector of a cell is the first for queries in its direction, and its cell promises it,
// also if it came later: such vectors overfill no cell.
func TestCellsPromiseTheirLongest(t *testing.T) {
	w, _ := clouds(Dot, 3)
	c := w.Table().Centres()
	q := c.NewQuery()
	var e Entry
	for cell := range uint32(8) {
		long := slices.Clone(c.Of(cell))
		q.Set(long)
		for i := range long {
			long[i] *= 3
		}
		c.Encode(&e, long, cell)
		w.Put(1000+cell, &e)
		if w.Table().Overfull(cell, 0) {
			t.Errorf("cell %d is overfull of one that is long", cell)
		}
		var p Probes
		w.Publish().Probes(q, 0, &p)
		next, _ := p.Next(float32(math.Inf(1)))
		if want := -2 * float64(Product(q.x, long)); next.Cell != cell ||
			math.Abs(next.Least-want) > 1e-3*math.Abs(want) {
			t.Errorf("cell %d promises %v, not cell %d the %v that it has", next.Cell, next.Least, cell, want)
		}
	}
}

// No entry of a cell is nearer than the bound of the cell.
func TestBoundsOfCells(t *testing.T) {
	for _, metric := range []Metric{Cosine, Dot, L2} {
		w, placed := clouds(metric, 2)
		table := w.Publish()
		q := table.Centres().NewQuery()
		var queries [][]float32
		for row, y := range placed[:50] {
			cell, _ := table.Cell(uint32(row))
			// nothing is nearer to them than y, of all in its cell
			out, beyond := slices.Clone(y), slices.Clone(y)
			for i, v := range table.Centres().Of(cell) {
				out[i] = 10 * (y[i] - v)
				beyond[i] = v + out[i]
			}
			queries = append(queries, y, out, beyond)
		}
		for _, x := range queries {
			q.Set(x)
			var p Probes
			table.Probes(q, 1, &p)
			for next, ok := p.Next(float32(math.Inf(1))); ok; next, ok = p.Next(float32(math.Inf(1))) {
				for row, y := range placed {
					of, _ := table.Cell(uint32(row))
					d := squaredDistance(x, y)
					if metric == Dot {
						d = -2 * float64(Product(x, y))
					}
					if of == next.Cell && d < next.Bound-1e-4*(1+math.Abs(d)) {
						t.Fatalf("metric %v: an entry at %v in a cell with bound %v", metric, d, next.Bound)
					}
				}
			}
		}
	}
}

// In a cell around a query, where rounding it to 4 bits would tell nothing, estimates are as good as their
// spreads say, and tell near from far.
func TestEstimatesInANearCell(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	g := NewGeometry(Cosine, 48, 1)
	centre := make([]float64, 48)
	for i := range centre {
		centre[i] = r.NormFloat64()
	}
	place := func() []float32 {
		x, y := make([]float32, 48), make([]float32, g.Size())
		for i := range x {
			x[i] = float32(centre[i] + .01*r.NormFloat64())
		}
		g.Place(y, x)
		return y
	}
	for _, kernel := range sets {
		was := active
		active = kernel
		c := around(g, [][]float32{place()})
		w := NewWriter(c)
		placed := make([][]float32, 500)
		var e Entry
		for i := range placed {
			placed[i] = place()
			c.Encode(&e, placed[i], 0)
			w.Put(uint32(i), &e)
		}
		w.Fit()
		q := c.NewQuery()
		beyond, all, spreads, squares := 0, 0, 0., 0.
		for range 20 {
			q.Set(place())
			found := w.Publish().Scan(nil, q, Probe{Far: c.far(q, 0)}, 3, float32(math.Inf(1)))
			if len(found) != len(placed) {
				t.Fatalf("%v: %d found of %d", kernel, len(found), len(placed))
			}
			for _, f := range found {
				d := squaredDistance(q.x, placed[f.Row])
				if all++; math.Abs(float64(f.Distance)-d) > 2*float64(f.Spread) {
					beyond++
				}
				spreads, squares = spreads+float64(f.Spread), squares+d
			}
		}
		if beyond > all/10 || spreads > squares/3 {
			t.Errorf("%v: %d of %d estimates are wrong by more than two spreads, which are %.2f of the distances", kernel, beyond, all, spreads/squares)
		}
		active = was
	}
}

// A cell takes on its share of what comes: an eighth where as much comes everywhere, and a few where they
// come to this cell alone, as vectors of one new kind do.
func TestCellsTakeOnTheirShare(t *testing.T) {
	for _, everywhere := range []bool{true, false} {
		w, placed := clouds(Cosine, 4)
		c := w.Table().Centres()
		var e Entry
		came := 0
		for row := range uint32(800) {
			cell := row % 8
			if !everywhere && cell > 0 {
				continue
			}
			c.Encode(&e, placed[row], cell)
			if w.Table().Overfull(cell, w.Table().Weight(&e)) {
				break
			}
			w.Put(1000+row, &e)
			came++
		}
		// Cells of 100: an eighth of 800 entries, less what an outlier weighs, and a twentieth of 100 and the
		// slack.
		if everywhere && came < 70 || !everywhere && came > 12 {
			t.Errorf("everywhere %t: %d have come", everywhere, came)
		}
	}
}
