package mih

import (
	"context"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/fddhdb/fddhdb/codec"
)

// A Join finds all pairs of codes within Radius bits of each other, exactly.
//
// It does not search for each code. It rests on the pigeonhole principle, as searches do. The bits are cut
// into blocks, and each block has a tolerance; the sum of the tolerances, with 1 added to each, is Radius+1.
// Two codes within Radius bits are then within the tolerance of one block at least. For each block the join
// sorts the codes by their bits there. It compares the codes of each bucket with each other, and with the
// codes of the buckets within the tolerance. Two codes that meet in several blocks are found in the first.
// A sample of the codes decides how the bits are cut (cut).
type Join struct {
	Codes  codec.Codes // of two codes the one with the larger index is the later one
	Radius int

	// From leaves out the pairs whose later code has an index below it. With Across the earlier code has
	// an index below From: the join is then one between Codes[:From] and Codes[From:].
	From   int
	Across bool

	Workers int // goroutines; 0 means GOMAXPROCS

	blocks []block // of tests; nil: those of cut
}

// A Pair is two codes within the radius of a join, by their indexes.
type Pair struct {
	Later, Earlier uint32
	Distance       uint16
}

// A block is bits of a code that have to be within near bits of each other. They are the bits of some pieces.
type block struct {
	pieces [][2]int // start and width of each
	width  int      // of all: at most maxJoinKey
	near   int
}

const (
	maxJoinKey  = 32 // largest width of a block; a wider one is cut
	maxNearKey  = 22 // largest width of a block with a tolerance: its buckets are found by a table of offsets
	maxJoinCut  = 64 // largest number of blocks
	joinUnit    = 512
	joinRoom    = 1 << 14 // codes that a worker compares at once
	joinSamples = 512
)

// key returns the bits of a block.
func (b *block) key(c codec.Code) uint64 {
	k := uint64(0)
	for _, p := range b.pieces {
		k = k<<p[1] | codec.Substring(c, p[0], p[1])
	}
	return k
}

// add adds a piece of the code, or as much of it as the block has room for. The condition of a block holds
// for each part of its bits, so a block may be cut.
func (b *block) add(from, width int) {
	most := maxJoinKey
	if b.near > 0 {
		most = maxNearKey
	}
	if width = min(width, most-b.width); width > 0 {
		b.pieces = append(b.pieces, [2]int{from, width})
		b.width += width
	}
}

// joinCuts returns the ways to cut codes of q bits into blocks for a radius. In each of them, two codes
// within the radius are within the tolerance of one block at least.
func joinCuts(q, radius int) [][]block {
	cuts := [][]block{{{}}} // one block without bits: all codes are compared with each other
	if radius >= q {
		return cuts
	}
	for m := 1; m <= min(radius+1, q, maxJoinCut); m++ {
		split, cut := NewSplit(q, m), make([]block, m)
		for j := range cut {
			cut[j].near = (radius+1)/m - 1
			if j < (radius+1)%m {
				cut[j].near++
			}
			cut[j].add(split.starts[j], split.Width(j))
		}
		if slices.IndexFunc(cut, func(b block) bool { return balls(b.width, b.near) > 1<<14 }) < 0 {
			cuts = append(cuts, cut)
		}
	}
	// Of radius+k substrings k are equal: each k of them are a block (Manku, Jain and Das Sarma, "Detecting
	// Near-Duplicates for Web Crawling", WWW 2007).
	for k := 2; k <= 4 && radius+k <= q && choose(radius+k, k) <= maxJoinCut; k++ {
		split := NewSplit(q, radius+k)
		var cut []block
		for x := firstMask(k); x>>(radius+k) == 0; x = nextMask(x) {
			b := block{}
			for j := range radius + k {
				if x>>j&1 == 1 {
					b.add(split.starts[j], split.Width(j))
				}
			}
			cut = append(cut, b)
		}
		cuts = append(cuts, cut)
	}
	return cuts
}

// balls returns the number of values of width bits within near bits of one.
func balls(width, near int) float64 {
	sum := 0.0
	for a := range min(near, width) + 1 {
		sum += choose(width, a)
	}
	return sum
}

// cut returns the blocks that are predicted to take the least time.
func (j *Join) cut() []block {
	n, words := float64(j.Codes.Len()), float64(codec.Words(j.Codes.Bits()))
	later := n - float64(j.From)
	pairs := later * (n + float64(j.From)) / 2
	if j.Across {
		pairs = later * float64(j.From)
	}
	sample := codec.NewCodes(j.Codes.Bits(), joinSamples)
	count := min(j.Codes.Len(), max(j.Codes.Len()/64, joinSamples/8), joinSamples)
	for i := range count {
		sample.Append(j.Codes.At(i * (j.Codes.Len() / count)))
	}
	keys := make([]uint64, count)
	// share returns the share of the pairs of the sample that meet in a block. So few pairs do not show a
	// small one, so that of codes with random bits is the least.
	share := func(b *block) float64 {
		for i := range keys {
			keys[i] = b.key(sample.At(i))
		}
		meet := 0
		for i, x := range keys {
			for _, y := range keys[:i] {
				if bits.OnesCount64(x^y) <= b.near {
					meet++
				}
			}
		}
		return max(float64(meet)/(float64(count)*float64(count-1)/2),
			balls(b.width, b.near)/math.Exp2(float64(b.width)))
	}
	var best []block
	least := math.Inf(1)
	for _, cut := range joinCuts(j.Codes.Bits(), j.Radius) {
		cost := 0.0 // in nanoseconds
		for i := range cut {
			b := &cut[i]
			if b.width > 0 {
				cost += n * (10 + 3*words + 5*math.Ceil(float64(b.width)/11))
			}
			probes := balls(b.width, b.near)
			if j.From == 0 {
				probes = (probes + 1) / 2
			}
			full := min(n/math.Exp2(float64(b.width)), 1) // share of the buckets with codes
			// The table of a wide block is not in the nearest cache.
			cost += later * (20 + probes*(2+max(float64(b.width-16), 0)*1.5+5*full))
			if cost < least {
				cost += pairs * share(b) * (.1 + .15*words)
			}
		}
		if cost < least {
			best, least = cut, cost
		}
	}
	return best
}

// Run finds the pairs, in no order, and gives them to found, which it calls from one goroutine at a time and
// which must not keep them. An error of found, or the end of ctx, ends it. It takes the memory of the codes
// again, and 16 bytes a code.
func (j *Join) Run(ctx context.Context, found func([]Pair) error) error {
	n := j.Codes.Len()
	if n < 2 || j.From >= n || j.Radius < 0 || j.Across && j.From == 0 {
		return ctx.Err()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &joinRun{Join: j, n: n, w: codec.Words(j.Codes.Bits()), workers: j.Workers, blocks: j.blocks,
		cancel: cancel, found: found}
	if r.blocks == nil {
		r.blocks = j.cut()
	}
	if r.workers == 0 {
		r.workers = runtime.GOMAXPROCS(0)
	}
	r.order, r.other, r.sorted = make([]uint64, n), make([]uint64, n), make([]uint64, n*r.w)
	for at := range r.blocks {
		if r.block(ctx, at); ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// A joinRun is a join that runs.
type joinRun struct {
	*Join
	n, w    int // codes, and words of each
	workers int
	blocks  []block
	cancel  context.CancelCauseFunc
	mu      sync.Mutex // held while found runs
	found   func([]Pair) error

	// Of the present block:
	at           int
	order, other []uint64 // key<<32 | index of each code, sorted; scratch memory
	sorted       []uint64 // the codes in that order
	masks        []uint32 // differences to the keys of the other buckets within the tolerance
	offsets      []uint32 // start of each bucket, and the end of the last one; if there are masks
	middles      []uint32 // first code of each bucket at From or behind it; if there are masks and a From
}

// block finds the pairs that meet in a block, and in none before it.
func (r *joinRun) block(ctx context.Context, at int) {
	b := &r.blocks[at]
	r.at = at
	r.parts(func(_, from, to int) {
		for i := from; i < to; i++ {
			r.order[i] = b.key(r.Codes.At(i))<<32 | uint64(i)
		}
	})
	for shift := 0; shift < b.width && ctx.Err() == nil; shift += radixBits {
		r.sortBy(32+shift, min(radixBits, b.width-shift))
	}
	r.parts(func(_, from, to int) {
		for i := from; i < to; i++ {
			copy(r.sorted[i*r.w:(i+1)*r.w], r.Codes.At(int(uint32(r.order[i]))))
		}
	})
	r.findBuckets(b)
	var next atomic.Int64
	r.each(func(int) {
		p := &joiner{joinRun: r, block: b, near: make([]codec.Near, joinRoom+8)}
		for ctx.Err() == nil {
			from := int(next.Add(joinUnit)) - joinUnit
			if from >= r.n {
				break
			}
			p.unit(ctx, from, min(from+joinUnit, r.n))
		}
		p.flush(ctx)
	})
}

// each runs f for each worker, and waits for all.
func (r *joinRun) each(f func(worker int)) {
	var wg sync.WaitGroup
	for i := range r.workers {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// parts gives each worker its part of the codes.
func (r *joinRun) parts(f func(worker, from, to int)) {
	r.each(func(i int) { f(i, r.n*i/r.workers, r.n*(i+1)/r.workers) })
}

const radixBits = 11

// sortBy sorts order by some of its bits. It is stable.
func (r *joinRun) sortBy(shift, width int) {
	counts := make([][1 << radixBits]int, r.workers)
	mask := uint64(1)<<width - 1
	r.parts(func(i, from, to int) {
		for _, x := range r.order[from:to] {
			counts[i][x>>shift&mask]++
		}
	})
	sum := 0
	for digit := range 1 << width {
		for i := range counts {
			counts[i][digit], sum = sum, sum+counts[i][digit]
		}
	}
	r.parts(func(i, from, to int) {
		next := &counts[i]
		for _, x := range r.order[from:to] {
			at := &next[x>>shift&mask]
			r.other[*at] = x
			*at++
		}
	})
	r.order, r.other = r.other, r.order
}

// findBuckets finds the buckets of a block with a tolerance.
func (r *joinRun) findBuckets(b *block) {
	r.masks = r.masks[:0]
	for a := 1; a <= min(b.near, b.width); a++ {
		for x := firstMask(a); x>>b.width == 0; x = nextMask(x) {
			r.masks = append(r.masks, uint32(x))
		}
	}
	if len(r.masks) == 0 {
		return
	}
	if r.From > 0 {
		r.middles = append(r.middles[:0], make([]uint32, 1<<b.width)...)
	}
	buckets := 1 << b.width
	r.offsets = append(r.offsets[:0], make([]uint32, buckets+1)...)
	for _, x := range r.order {
		r.offsets[x>>32+1]++
		if int(uint32(x)) < r.From {
			r.middles[x>>32]++
		}
	}
	for k := range buckets {
		r.offsets[k+1] += r.offsets[k]
		if r.From > 0 {
			r.middles[k] += r.offsets[k]
		}
	}
}

// A joiner is the work of one goroutine on a block.
type joiner struct {
	*joinRun
	block    *block
	from, to []uint32 // ranges of sorted to compare a code with
	room     int      // codes that the ranges may still grow by
	near     []codec.Near
	pairs    []Pair
}

// unit finds the pairs of the codes from..to-1 in the order of the block.
func (p *joiner) unit(ctx context.Context, from, to int) {
	key := p.order[from] >> 32
	start := sort.Search(from, func(i int) bool { return p.order[i]>>32 >= key })
	middle := -1 // first code of the bucket at From or behind it, if that is behind from
	for i := from; i < to; i++ {
		if k := p.order[i] >> 32; k != key || i == from {
			if k != key {
				key, start = k, i
			}
			middle = -1
		}
		if int(uint32(p.order[i])) < p.From {
			continue
		}
		if i%64 == 0 && ctx.Err() != nil {
			return
		}
		if middle < 0 {
			middle = start + sort.Search(i-start, func(d int) bool {
				return int(uint32(p.order[start+d])) >= p.From
			})
		}
		p.from, p.to, p.room = p.from[:0], p.to[:0], joinRoom
		if p.Across {
			p.add(ctx, i, start, middle)
		} else {
			p.add(ctx, i, start, i)
		}
		for _, mask := range p.masks {
			// Codes of two buckets are compared once: a code behind From with the codes before it in all
			// buckets, and with the other ones in buckets of lower keys.
			u := uint32(key) ^ mask
			end := uint32(0)
			switch {
			case u < uint32(key) && !p.Across:
				end = p.offsets[u+1]
			case p.From > 0:
				end = p.middles[u]
			}
			if start := p.offsets[u]; start < end {
				p.add(ctx, i, int(start), int(end))
			}
		}
		p.compare(ctx, i)
	}
}

// add adds a range to compare code i with.
func (p *joiner) add(ctx context.Context, i, from, to int) {
	for from < to {
		part := min(to-from, p.room)
		p.from, p.to = append(p.from, uint32(from)), append(p.to, uint32(from+part))
		from += part
		if p.room -= part; p.room == 0 {
			p.compare(ctx, i)
		}
	}
}

// compare compares code i with the ranges.
func (p *joiner) compare(ctx context.Context, i int) {
	query := codec.Code(p.sorted[i*p.w : (i+1)*p.w])
	found := codec.WithinRanges(p.near, query, p.sorted, p.from, p.to, p.Radius)
	p.from, p.to, p.room = p.from[:0], p.to[:0], joinRoom
	for _, x := range p.near[:found] {
		a, b := uint32(p.order[i]), uint32(p.order[x.Position()])
		if p.at == 0 || !p.metBefore(p.Codes.At(int(a)), p.Codes.At(int(b))) {
			p.pairs = append(p.pairs, Pair{max(a, b), min(a, b), uint16(x.Distance())})
		}
	}
	if len(p.pairs) >= joinRoom {
		p.flush(ctx)
	}
}

// metBefore reports whether two codes have met in an earlier block.
func (p *joiner) metBefore(a, b codec.Code) bool {
	for i := range p.blocks[:p.at] {
		c := &p.blocks[i]
		if bits.OnesCount64(c.key(a)^c.key(b)) <= c.near {
			return true
		}
	}
	return false
}

// flush hands over the pairs.
func (p *joiner) flush(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.pairs) > 0 && ctx.Err() == nil {
		if err := p.found(p.pairs); err != nil {
			p.cancel(err)
		}
	}
	p.pairs = p.pairs[:0]
}
