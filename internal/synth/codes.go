package synth

import (
	"fmt"
	"math"
	"runtime"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/fddhdb/fddhdb/codec"
)

// Codes returns n codes of q bits. codec.CheckBits has to admit q. Equal arguments give
// equal codes. It runs on all cores and needs twice the memory of the codes.
func Codes(set CodeSet, q, n int, seed uint64) (codec.Codes, error) {
	g, err := newGenerator(set, q, n, seed)
	if err != nil {
		return codec.Codes{}, err
	}
	return g.codes(n, g.item), nil
}

// CodeQueries returns two kinds of queries, count of each, for the set that Codes makes
// of the same arguments. members are items drawn at random, with repetition; each bit
// is flipped with probability .03, so the item itself is among the nearest. fresh ones
// are drawn like the items, but are not among them. (Fresh codes of Learned are mostly
// centres, so many items have the same code.)
func CodeQueries(set CodeSet, q, n, count int, seed uint64) (members, fresh codec.Codes, err error) {
	g, err := newGenerator(set, q, n, seed)
	if err != nil {
		return codec.Codes{}, codec.Codes{}, err
	}
	if n == 0 || count < 0 {
		return codec.Codes{}, codec.Codes{},
			fmt.Errorf("%d queries for %d items: there must be an item, and 0 or more queries", count, n)
	}
	members = g.codes(count, func(dst codec.Code, i int) {
		s := g.base.split(forMembers, uint64(i))
		g.item(dst, s.below(n))
		g.flip(dst, &s, threePercent)
	})
	fresh = g.codes(count, func(dst codec.Code, i int) {
		s := g.base.split(forFresh, uint64(i))
		g.draw(dst, &s)
	})
	return members, fresh, nil
}

// Each purpose has a stream of its own.
const (
	forItems = iota + 1
	forMembers
	forFresh
	forCentres
	forDirections
)

const (
	itemsPerCentre = 50   // of Clustered
	learnedCentres = 2000 // of Learned
	factors        = 24   // of Projected
	decay          = .85  // ratio of the variances of two successive factors
	noiseShare     = .05  // share of the noise in the variance of a sum whose sign is a bit
)

// A generator draws codes of one set. It does not change after newGenerator, so
// goroutines may share it.
type generator struct {
	set  CodeSet
	q    int
	last uint64 // mask of the used bits of the last word
	base stream

	centres codec.Codes // of Clustered and Learned
	shares  []int       // running sums of the centres' weights

	// These belong to Projected. directions[i] holds the direction of bit 2i in the
	// lower half of its words, plus 2^32 times the direction of bit 2i+1. So one
	// product serves both bits.
	directions [][factors]int64
	noise      int64 // factor for the sum of two random bytes
}

func newGenerator(set CodeSet, q, n int, seed uint64) (*generator, error) {
	if err := codec.CheckBits(q); err != nil {
		return nil, err
	}
	if n < 0 || n > math.MaxUint32 {
		return nil, fmt.Errorf("a set has 0 to %d items, not %d", uint32(math.MaxUint32), n)
	}
	g := &generator{set: set, q: q, last: ^uint64(0) >> ((64 - q%64) % 64)}
	g.base = stream(mix(seed)).split(uint64(set), uint64(q))
	switch set {
	case Uniform:
	case Clustered:
		g.addCentres(max(n/itemsPerCentre, 1), func(rank float64) float64 { return 1 / rank })
	case Learned:
		g.addCentres(learnedCentres, func(rank float64) float64 { return 1 / math.Sqrt(rank) })
	case Projected:
		g.addDirections()
	default:
		return nil, unknown(set.String())
	}
	return g, nil
}

func (g *generator) addCentres(n int, weight func(rank float64) float64) {
	g.centres = g.codes(n, func(dst codec.Code, i int) {
		s := g.base.split(forCentres, uint64(i))
		g.toss(dst, &s)
	})
	g.shares = make([]int, n)
	total := 0
	for i := range g.shares {
		total += int(weight(float64(i+1)) * (1 << 40))
		g.shares[i] = total
	}
}

func (g *generator) addDirections() {
	// variance is the variance of a factor, total the sum over all factors: that of a
	// projection, in units of the squared variance of stream.byteSum.
	variance, total := 1.0, 0.0
	var deviations [factors]float64
	for f := range deviations {
		deviations[f] = math.Sqrt(variance)
		total += variance
		// the conversion rounds, so that the compiler does not fuse the operations
		variance = float64(variance * decay)
	}
	g.directions = make([][factors]int64, g.q/2)
	for j := range g.q {
		s := g.base.split(forDirections, uint64(j))
		for f := range factors {
			g.directions[j/2][f] += int64(float64(s.byteSum())*deviations[f]) << (j % 2 * 32)
		}
	}
	const (
		eight = 8 * (256*256 - 1) / 12. // variance of stream.byteSum
		pair  = 2 * (256*256 - 1) / 12. // variance of twoBytes
	)
	g.noise = int64(math.Sqrt(noiseShare/(1-noiseShare)*total/pair) * eight)
}

// codes returns n codes. It calls draw for each of them, on all cores.
func (g *generator) codes(n int, draw func(dst codec.Code, i int)) codec.Codes {
	const chunk = 1024
	w := codec.Words(g.q)
	data := make([]uint64, n*w)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (n+chunk-1)/chunk) {
		wg.Go(func() {
			for {
				from := int(next.Add(chunk)) - chunk
				if from >= n {
					return
				}
				for i := from; i < min(from+chunk, n); i++ {
					draw(data[i*w:(i+1)*w], i)
				}
			}
		})
	}
	wg.Wait()
	codes := codec.NewCodes(g.q, n)
	for i := range n {
		codes.Append(data[i*w : (i+1)*w])
	}
	return codes
}

// item makes item i.
func (g *generator) item(dst codec.Code, i int) {
	s := g.base.split(forItems, uint64(i))
	g.draw(dst, &s)
}

// draw draws a code of the set.
func (g *generator) draw(dst codec.Code, s *stream) {
	switch g.set {
	case Uniform:
		g.toss(dst, s)
	case Clustered:
		copy(dst, g.centre(s))
		g.flip(dst, s, fivePercent)
	case Learned:
		copy(dst, g.centre(s))
		if s.happens(oneFifth) {
			g.flip(dst, s, threePercent)
		}
	case Projected:
		g.project(dst, s)
	}
}

// toss draws every bit with probability 1/2.
func (g *generator) toss(dst codec.Code, s *stream) {
	for i := range dst {
		dst[i] = s.next()
	}
	dst[len(dst)-1] &= g.last
}

// flip inverts each bit with probability p.
func (g *generator) flip(dst codec.Code, s *stream, p chance) {
	for i := range dst {
		dst[i] ^= s.coins(p)
	}
	dst[len(dst)-1] &= g.last
}

// centre draws a centre by its weight.
func (g *generator) centre(s *stream) codec.Code {
	x := s.below(g.shares[len(g.shares)-1])
	return g.centres.At(sort.Search(len(g.shares), func(i int) bool { return g.shares[i] > x }))
}

// project draws the factors of an item and takes the signs of their projections.
func (g *generator) project(dst codec.Code, s *stream) {
	var x [factors]int64
	for f := range x {
		x[f] = int64(s.byteSum())
	}
	for i := range dst {
		var w, noise uint64
		for j := 0; j < min(64, g.q-64*i); j += 2 {
			if j%4 == 0 {
				noise = s.next() // two bytes for each bit
			}
			sum := int64(0)
			for f, d := range &g.directions[32*i+j/2] {
				sum += d * x[f]
			}
			// Neither product exceeds 2^25. So the lower half is right, and the upper
			// half is off by the sign of the lower one.
			low := int64(int32(sum))
			high := (sum - low) >> 32
			if low+g.noise*twoBytes(noise) >= 0 {
				w |= 1 << j
			}
			if high+g.noise*twoBytes(noise>>16) >= 0 {
				w |= 2 << j
			}
			noise >>= 32
		}
		dst[i] = w
	}
}

// twoBytes returns the sum of the two lowest bytes, minus its mean.
func twoBytes(w uint64) int64 { return int64(w&0xff+w>>8&0xff) - 255 }

// A CodeSet is a distribution of codes. Its value is the letter in reports.
type CodeSet byte

// These are the sets. The package comment describes them.
const (
	Uniform   CodeSet = 'U'
	Clustered CodeSet = 'C'
	Learned   CodeSet = 'L'
	Projected CodeSet = 'S'
)

// CodeSets returns all sets, in the order of reports.
func CodeSets() []CodeSet { return []CodeSet{Uniform, Clustered, Learned, Projected} }

func unknown(letter string) error {
	return fmt.Errorf("unknown set %q: there are U, C, L and S", letter)
}

// String returns the letter of the set.
func (s CodeSet) String() string { return string(rune(s)) }

// Name returns the name of the set in words.
func (s CodeSet) Name() string {
	switch s {
	case Uniform:
		return "uniform"
	case Clustered:
		return "clustered"
	case Learned:
		return "learned"
	case Projected:
		return "projected"
	}
	return fmt.Sprintf("CodeSet(%d)", byte(s))
}
