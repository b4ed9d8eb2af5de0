package synth

import (
	"fmt"
	"math"
	"math/bits"
	"sort"

	"github.com/fddhdb/fddhdb/internal/rotate"
)

// An EmbeddingSet says what vectors EmbeddingSource makes. All have unit length.
type EmbeddingSet string

const (
	// Topics look like vectors of sentence and picture encoders: 2,000 topics of weights 1/rank,
	// whose centres have a decaying spectrum, noise with that spectrum along axes of the topic's
	// own, and an offset that all have in common.
	Topics EmbeddingSet = "topics"

	// Mixture is the hard case of an index: 1,000 centres of equal weight in all dimensions, and
	// noise that is the same in all. The items of a centre are all about as far from each other.
	Mixture EmbeddingSet = "mixture"

	// Tails have 32 factors with heavy tails and little noise: some items are near to many, and
	// some far from all.
	Tails EmbeddingSet = "tails"
)

// EmbeddingSets returns all sets.
func EmbeddingSets() []EmbeddingSet { return []EmbeddingSet{Topics, Mixture, Tails} }

// EmbeddingSource makes vectors of one set. It is safe for any number of goroutines.
type EmbeddingSource struct {
	set     EmbeddingSet
	dims    int
	seed    stream
	turn    *rotate.Rotation
	scales  []float64   // of the axes of a topic
	centres [][]float32 // Topics, Mixture
	chances []float64   // Topics: sums of weights
	factors [][]float32 // Tails
	offset  []float32
}

// Purposes of streams.
const (
	forCentre = 100 + iota
	forOffset
	forFactor
	forAxes
	forEmbedding
)

const (
	topicCount   = 2000
	mixtureCount = 1000
	tailFactors  = 32
)

// NewEmbeddingSource returns the maker of a set of vectors of dims dimensions. Equal arguments make equal
// vectors, on one architecture.
func NewEmbeddingSource(set EmbeddingSet, dims int, seed uint64) (*EmbeddingSource, error) {
	e := &EmbeddingSource{set: set, dims: dims, seed: stream(seed), turn: rotate.New(dims, seed)}
	if dims < 2 {
		return nil, fmt.Errorf("vectors of %d dimensions: at least 2 are needed", dims)
	}
	normals := func(purpose, i uint64, n int) []float32 {
		s, x := e.seed.split(purpose, i), make([]float32, n)
		for j := range x {
			x[j] = float32(s.normal())
		}
		return x
	}
	switch set {
	case Topics:
		sum := 0.0
		for j := range dims {
			e.scales = append(e.scales, 1/math.Sqrt(1+float64(j)))
			sum += e.scales[j] * e.scales[j]
		}
		for j := range e.scales {
			e.scales[j] /= math.Sqrt(sum)
		}
		total := 0.0
		for t := range topicCount {
			c := normals(forCentre, uint64(t), dims)
			for j := range c {
				c[j] *= float32(e.scales[j])
			}
			total += 1 / float64(t+1)
			e.centres, e.chances = append(e.centres, c), append(e.chances, total)
		}
		e.offset = normals(forOffset, 0, dims)
		for j := range e.offset {
			e.offset[j] *= float32(.7 / math.Sqrt(float64(dims)))
		}
	case Mixture:
		for t := range mixtureCount {
			e.centres = append(e.centres, normals(forCentre, uint64(t), dims))
		}
	case Tails:
		for f := range tailFactors {
			e.factors = append(e.factors, normals(forFactor, uint64(f), dims))
		}
	default:
		return nil, fmt.Errorf("unknown set %q of embeddings: %v are known", set, EmbeddingSets())
	}
	return e, nil
}

// Vector writes vector i to x, which has the dimensions of the set. It needs no other vector.
func (e *EmbeddingSource) Vector(x []float32, i int) {
	s := e.seed.split(forEmbedding, uint64(i))
	switch e.set {
	case Topics:
		t := sort.SearchFloat64s(e.chances, s.uniform()*e.chances[len(e.chances)-1])
		// An odd multiple and an offset permute the axes, of a power of two.
		axes := e.seed.split(forAxes, uint64(t))
		step, first := axes.next()|1, axes.next()
		width := uint64(1) << (64 - uint(bits.LeadingZeros64(uint64(e.dims-1))))
		at := uint64(0)
		for j := range x {
			axis := e.dims
			for ; axis >= e.dims; at++ {
				axis = int((at*step + first) & (width - 1))
			}
			x[j] = e.centres[t][j] + e.offset[j] + float32(.7*s.normal()*e.scales[axis])
		}
	case Mixture:
		c := e.centres[s.below(mixtureCount)]
		for j := range x {
			x[j] = c[j] + float32(.8*s.normal())
		}
	case Tails:
		clear(x)
		for f, factor := range e.factors {
			w := float32(s.normal() * math.Pow(.93, float64(f)) / math.Sqrt(.05-math.Log(1-s.uniform())))
			for j, v := range factor {
				x[j] += w * v
			}
		}
		for j := range x {
			x[j] += float32(.3 * s.normal())
		}
	}
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	for j := range x {
		x[j] = float32(float64(x[j]) / math.Sqrt(sum))
	}
	e.turn.Apply(x) // so that no dimension says more than others
}
