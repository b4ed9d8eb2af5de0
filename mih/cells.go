package mih

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fddhdb/fddhdb/codec"
)

// cells are groups of the codes of a segment, each around a centre. A k-NN search that
// may leave some results out reads the codes of the cells whose centres are nearest to
// the query. How many cells that takes for a recall is measured when the segment is
// built: it is where the nearest codes of a sample of queries are.
//
// Centres are the majorities of the bits of their codes (k-means in Hamming space). They
// are found in two steps, by groups of centres, so that cells take the time of some
// hundred comparisons a code.
type cells struct {
	centres codec.Codes
	starts  []uint32 // of the slots of each cell; and the end of the last one

	// needs[i] says how many cells bring each of the cellSamples[i] nearest codes of the
	// sampled queries, ascending. It has every such number, or one of a few.
	needs [len(cellSamples)][]uint16

	pace float64 // measured time of reading a code of a cell, or a centre, in nanoseconds
}

// cellSamples are the k for which recall is measured. For a greater k searches find all.
var cellSamples = [...]int{10, 100, 1000}

// minCelled is the number of codes of a segment from which on it has cells. Only tests
// change it.
var minCelled = 1 << 14

const (
	sampledOfCell = 16      // codes of a cell that its centre is found by
	cellRounds    = 6       // of k-means
	nearGroups    = 4       // groups of centres that a code is compared with
	maxNeeds      = 1 << 12 // numbers in each of needs
	maxMeasured   = 1 << 28 // words that the measurement of recall reads
	minMeasured   = 32      // queries of that measurement
	recallMargin  = .2      // the sample is asked for so much fewer missing results
)

// celled reports whether a segment of n codes of q bits has cells. Codes of one word have
// none: they stand beside their entries, and exact searches are as fast.
func celled(q, n int) bool { return n >= minCelled && codec.Words(q) > 1 }

// fill makes the cells of codes. It writes the indexes of the codes to order, by cell.
func (c *cells) fill(ctx context.Context, codes codec.Codes, order []uint32, workers int) error {
	n := codes.Len()
	b := &cellBuild{ctx: ctx, codes: codes, workers: workers}
	groups := b.groups(int(4 * math.Sqrt(float64(n))))
	if err := ctx.Err(); err != nil {
		return err
	}
	c.centres = codec.NewCodes(codes.Bits(), 0)
	var firsts []int // number of the first centre of each group
	for _, g := range groups.fine {
		firsts = append(firsts, c.centres.Len())
		for i := range g.Len() {
			c.centres.Append(g.At(i))
		}
	}
	cell := make([]uint32, n)
	b.each(n, func(from, to int) {
		var near []codec.Near
		distances := make([]uint16, c.centres.Len())
		for i := from; i < to; i++ {
			code, best := codes.At(i), codec.NearOf(codes.Bits()+1, 0)
			near = nearest(near[:0], distances, code, groups.coarse, nearGroups)
			for _, g := range near {
				fine := groups.fine[g.Position()]
				d := distances[:fine.Len()]
				codec.Distances(d, code, fine.Slice(0, len(d)))
				for j, x := range d {
					best = min(best, codec.NearOf(int(x), uint32(firsts[g.Position()]+j)))
				}
			}
			cell[i] = best.Position()
		}
	})
	if err := ctx.Err(); err != nil {
		return err
	}
	c.starts = make([]uint32, c.centres.Len()+1)
	sortIntoBuckets(c.starts, order, func(i int) uint32 { return cell[i] })
	return nil
}

// nearest appends the n nearest of some centres to dst, by distance. distances is scratch
// memory for all of them.
func nearest(dst []codec.Near, distances []uint16, code codec.Code, centres codec.Codes, n int) []codec.Near {
	count := centres.Len()
	d := distances[:count]
	codec.Distances(d, code, centres.Slice(0, count))
	if n = min(n, count); n <= nearGroups {
		start := len(dst)
		for i, x := range d {
			at := codec.NearOf(int(x), uint32(i))
			if len(dst)-start == n {
				if at >= dst[len(dst)-1] {
					continue
				}
				dst = dst[:len(dst)-1]
			}
			k, _ := slices.BinarySearch(dst[start:], at)
			dst = slices.Insert(dst, start+k, at)
		}
		return dst
	}
	// The distance within which there are n is found by counting.
	var counts [codec.MaxBits + 2]uint32
	for _, x := range d {
		counts[x]++
	}
	bound, sum := 0, counts[0]
	for int(sum) < n {
		bound++
		sum += counts[bound]
	}
	start := len(dst)
	dst = slices.Grow(dst, n)[:start+n]
	at := uint32(start)
	for x := range bound + 1 { // counts become the places of the next one at each distance
		at, counts[x] = at+counts[x], at
	}
	for i, x := range d {
		if int(x) <= bound {
			if at := counts[x]; int(at) < len(dst) {
				dst[at] = codec.NearOf(int(x), uint32(i))
			}
			counts[x]++
		}
	}
	return dst
}

// A cellBuild finds the centres of cells.
type cellBuild struct {
	ctx     context.Context
	codes   codec.Codes
	workers int
}

// centreGroups are centres in groups, each around a coarse centre.
type centreGroups struct {
	coarse codec.Codes
	fine   []codec.Codes
}

// groups finds about so many centres.
func (b *cellBuild) groups(count int) *centreGroups {
	rng := rand.New(rand.NewPCG(1, uint64(count)))
	some := make([]uint32, min(sampledOfCell*count, b.codes.Len()))
	for i := range some {
		some[i] = uint32(i * (b.codes.Len() / len(some)))
	}
	rng.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	side := int(math.Sqrt(float64(count)))
	coarse, of := b.cluster(some, side, rng.Uint64())
	members := make([][]uint32, coarse.Len())
	for i, g := range of {
		members[g] = append(members[g], some[i])
	}
	out := &centreGroups{coarse: coarse, fine: make([]codec.Codes, coarse.Len())}
	seeds := make([]uint64, len(members))
	for i := range seeds {
		seeds[i] = rng.Uint64()
	}
	var next atomic.Int64
	b.run(func() {
		alone := &cellBuild{ctx: b.ctx, codes: b.codes, workers: 1}
		for g := int(next.Add(1)) - 1; g < len(members); g = int(next.Add(1)) - 1 {
			out.fine[g], _ = alone.cluster(members[g], count*len(members[g])/len(some), seeds[g])
		}
	})
	return out
}

// cluster finds at most k centres of members, at least one if there are members, and
// returns the centre of each member.
func (b *cellBuild) cluster(members []uint32, k int, seed uint64) (centres codec.Codes, of []uint32) {
	centres = codec.NewCodes(b.codes.Bits(), k)
	of = make([]uint32, len(members))
	if len(members) == 0 {
		return centres, of
	}
	k = max(k, 1)
	rng := rand.New(rand.NewPCG(seed, 2))
	for _, i := range rng.Perm(len(members))[:min(k, len(members))] {
		centres.Append(b.codes.At(int(members[i])))
	}
	k = centres.Len()
	for range cellRounds {
		b.each(len(members), func(from, to int) {
			d := make([]uint16, k)
			for i := from; i < to; i++ {
				codec.Distances(d, b.codes.At(int(members[i])), centres.Slice(0, k))
				best := 0
				for j, x := range d {
					if x < d[best] {
						best = j
					}
				}
				of[i] = uint32(best)
			}
		})
		if k == 1 || b.ctx.Err() != nil {
			return centres, of
		}
		centres = b.majorities(members, of, centres)
	}
	return centres, of
}

// majorities returns the majority of the bits of the members of each centre. A centre
// without members becomes a copy of some member.
func (b *cellBuild) majorities(members, of []uint32, old codec.Codes) codec.Codes {
	q, k := b.codes.Bits(), old.Len()
	counts, sizes := make([]int32, k*q), make([]int32, k)
	for i, c := range of {
		sizes[c]++
		to := counts[int(c)*q:][:q]
		for w, x := range b.codes.At(int(members[i])) {
			for bits := to[64*w : min(64*w+64, q)]; len(bits) > 0; bits, x = bits[1:], x>>1 {
				bits[0] += int32(x & 1)
			}
		}
	}
	centres := codec.NewCodes(q, k)
	for c := range k {
		code := slices.Clone(old.At(c))
		if sizes[c] == 0 {
			copy(code, b.codes.At(int(members[c*len(members)/k])))
		}
		for j := range q {
			if n := 2*counts[c*q+j] - sizes[c]; n > 0 && !code.Bit(j) || n < 0 && code.Bit(j) {
				code.Flip(j)
			}
		}
		centres.Append(code)
	}
	return centres
}

// each calls f with parts of 0..n-1 on all workers, and waits for them. It stops early
// when the context ends.
func (b *cellBuild) each(n int, f func(from, to int)) {
	const part = 4096
	var next atomic.Int64
	b.run(func() {
		for b.ctx.Err() == nil {
			from := int(next.Add(part)) - part
			if from >= n {
				return
			}
			f(from, min(from+part, n))
		}
	})
}

// run calls f on all workers, and waits for them.
func (b *cellBuild) run(f func()) {
	var wg sync.WaitGroup
	for range b.workers - 1 {
		wg.Go(f)
	}
	f()
	wg.Wait()
}

// measureRecall measures how many cells bring the nearest codes of queries, which are
// codes of the segment with some bits flipped. The code that a query was made of does not
// count: it is nearer than others. Of long codes, or many, it measures fewer queries.
func (g *segment) measureRecall(ctx context.Context, queries []codec.Code) error {
	most := max(maxMeasured/len(g.codes.Slice(0, g.len())), minMeasured)
	step := max(len(queries)/most, 1)
	t := &Table{bits: g.codes.Bits()}
	s := t.newSearch(nil)
	defer s.release()
	distances, near := make([]uint16, g.cells.centres.Len()), []codec.Near{}
	ranks := make([]uint16, len(distances))
	k := cellSamples[len(cellSamples)-1]
	for i := 0; i < len(queries); i += step {
		own := g.numbers[i*g.len()/len(queries)]
		near = nearest(near[:0], distances, queries[i], g.cells.centres, len(ranks))
		for rank, x := range near {
			ranks[x.Position()] = uint16(min(rank, math.MaxUint16-1))
		}
		s.query = queries[i]
		s.start(g.codes.Bits(), k, nil, func(n uint32, _ int) int {
			if n == own {
				return 0
			}
			return 1
		})
		if err := g.scan(ctx, s, s.bound, s.takeMore); err != nil {
			return err
		}
		near = s.appendTo(near[:0])
		for j, k := range cellSamples {
			for _, x := range near[:min(k, len(near))] {
				// The first cell that starts behind the slot is the one after its cell.
				after, _ := slices.BinarySearch(g.cells.starts, uint32(g.slotOf(x.Position()))+1)
				g.cells.needs[j] = append(g.cells.needs[j], ranks[after-1]+1)
			}
		}
	}
	for j := range g.cells.needs {
		all := g.cells.needs[j]
		slices.Sort(all)
		few := make([]uint16, min(len(all), maxNeeds))
		for i := range few {
			few[i] = all[(i+1)*len(all)/len(few)-1]
		}
		g.cells.needs[j] = few
	}
	return g.measurePace(ctx, queries)
}

// measurePace measures the time of reading cells.
func (g *segment) measurePace(ctx context.Context, queries []codec.Code) error {
	t := &Table{bits: g.codes.Bits()}
	s := t.newSearch(nil)
	defer s.release()
	var paces []float64
	probes := g.cells.enough(.95, cellSamples[0])
	for _, q := range queries[:min(len(queries), 24)] {
		s.query = q
		s.start(g.codes.Bits(), cellSamples[0], nil, func(uint32, int) int { return 1 })
		start := time.Now()
		if err := g.probe(ctx, s, probes); err != nil {
			return err
		}
		paces = append(paces, float64(time.Since(start))/g.read(probes))
	}
	slices.Sort(paces)
	g.cells.pace = paces[len(paces)/2]
	return nil
}

// enough returns how many cells bring a share of the k nearest codes; 0 if that was not
// measured.
func (c *cells) enough(recall float64, k int) int {
	for i, most := range cellSamples {
		if needs := c.needs[i]; k <= most && len(needs) > 0 {
			recall = 1 - (1-recall)*(1-recallMargin)
			return int(needs[min(int(recall*float64(len(needs))), len(needs)-1)])
		}
	}
	return 0
}

// read returns the number of centres and codes that so many cells take, in the mean.
func (g *segment) read(probes int) float64 {
	centres := float64(g.cells.centres.Len())
	return centres + float64(probes)*float64(g.len())/centres
}

// probes returns how many cells of a segment the search reads; 0 if it finds all results.
func (s *search) probes(g *segment) int {
	if s.recall == 0 || g.cells == nil {
		return 0
	}
	k := s.t.codesOf(s.k)
	if s.filtered > 0 { // of so many nearest rows k pass the filter
		k = int(min(float64(k)*float64(s.t.items)/float64(s.filtered), math.MaxInt32))
	}
	probes := g.cells.enough(s.recall, k)
	if g.cells.pace*g.read(probes) >= g.costs.all(k) {
		return 0
	}
	return probes
}

// probe reads the nearest cells.
func (g *segment) probe(ctx context.Context, s *search, probes int) error {
	s.byCells = true
	count := g.cells.centres.Len()
	s.distances = slices.Grow(s.distances[:0], count)[:count]
	near := nearest(s.nears[:0], s.distances, s.query, g.cells.centres, probes)
	s.explain.Probes += len(near)
	s.from, s.to = s.from[:0], s.to[:0]
	for _, x := range near {
		// A cell of many codes is read in pieces, which the bound may cut short.
		end := g.cells.starts[x.Position()+1]
		for start := g.cells.starts[x.Position()]; start < end; start += scanBlock {
			s.from, s.to = append(s.from, start), append(s.to, min(start+scanBlock, end))
		}
	}
	s.nears = near[:0]
	for i, cells := 0, 1; i < len(s.from); cells = min(2*cells, len(s.from)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		end, size := i, 0
		for end < len(s.from) && end < i+cells && (end == i || size < scanBlock) {
			size += int(s.to[end] - s.from[end])
			end++
		}
		found := s.nearsFor(size + 8)
		n := codec.WithinRanges(found, s.query, g.codes.Slice(0, g.len()), s.from[i:end], s.to[i:end],
			s.bound)
		for _, x := range found[:n] {
			s.found = append(s.found, codec.NearOf(x.Distance(), g.numbers[x.Position()]))
		}
		s.take()
		s.explain.Scanned += size
		i = end
	}
	return nil
}
