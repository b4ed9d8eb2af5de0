package synth

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"sync"
)

// Shape of Embeddings.
const (
	embeddingTopics = 2000 // by Zipf weights, 1/rank
	topicAxes       = 16   // directions in which items of a topic differ from each other
	topicSpread     = .65  // length of these differences, where centres of topics have 1
	commonOffset    = .6   // length of what all vectors share
)

// Purposes of the streams of Embeddings.
const (
	purposeTopic = iota + 100
	purposeAxis
	purposeEmbedding
	purposeOffset
	purposePaired
)

// Embeddings makes vectors of the set Topics, of d dimensions: items of n rows, from number first on.
// Each has a random stream of its own, so that queries can be made beside any number of items.
func Embeddings(first, n, d int, seed uint64) [][]float32 {
	p := newTopics(d, stream(seed))
	rows := make([][]float32, n)
	x := make([]float64, d)
	for i := range rows {
		p.vector(x, first+i)
		rows[i] = unit(x)
	}
	return rows
}

// unit returns x at length 1.
func unit(x []float64) []float32 {
	square := 0.0
	for _, v := range x {
		square += v * v
	}
	row := make([]float32, len(x))
	for j, v := range x {
		row[j] = float32(v / math.Sqrt(square))
	}
	return row
}

// PairedEmbeddings makes n items with a vector in each of two encoders' spaces, of d and e
// dimensions: Embeddings of 64 dimensions, seen through a random linear map for each space, with
// noise of a fifth of their length there.
func PairedEmbeddings(first, n, d, e int, seed uint64) (a, b [][]float32) {
	latent := Embeddings(first, n, 64, seed)
	s := stream(seed)
	seen := func(space uint64, dim int) [][]float32 {
		maps := s.split(purposePaired, space)
		m := make([]float64, dim*64)
		for i := range m {
			m[i] = maps.normal() / 8
		}
		rows := make([][]float32, n)
		for i, z := range latent {
			own := s.split(purposePaired+1+space, uint64(first+i))
			x := make([]float64, dim)
			for j := range x {
				x[j] = .2 / 8 * own.normal()
				for k, v := range z {
					x[j] += m[j*64+k] * float64(v)
				}
			}
			rows[i] = unit(x)
		}
		return rows
	}
	return seen(0, d), seen(1, e)
}

// An EmbeddingSet says what vectors an EmbeddingSource makes. All have unit length.
type EmbeddingSet string

const (
	// Topics look like vectors of a neural encoder: 2,000 topics of very different sizes; a spectrum
	// that decays, variances falling as 1/(1 + j/8) over directions j; items of a topic that differ in
	// directions of the topic's own, and less in all others; and a common offset.
	Topics EmbeddingSet = "topics"

	// Mixture has 1,000 centres of equal weight in all dimensions, and noise that is the same in all.
	// The items of a centre are all about as far from each other.
	Mixture EmbeddingSet = "mixture"

	// Tails have 32 factors with heavy tails and little noise: some items are near to many, and
	// some far from all.
	Tails EmbeddingSet = "tails"
)

// EmbeddingSets returns all sets.
func EmbeddingSets() []EmbeddingSet { return []EmbeddingSet{Topics, Mixture, Tails} }

const (
	mixtureCount = 1000
	tailFactors  = 32
)

// Purposes of the streams of the other sets.
const (
	purposeCentre = iota + 110
	purposeFactor
	purposeMixture
	purposeTail
)

// An EmbeddingSource makes vectors of one set. It is safe for any number of goroutines.
type EmbeddingSource struct {
	set  EmbeddingSet
	dims int
	seed stream

	topics  *topicVectors // of Topics
	vectors [][]float64   // centres of Mixture, factors of Tails
}

// NewEmbeddingSource returns the source of a set of vectors of dims dimensions. Equal arguments make
// equal vectors, on one architecture.
func NewEmbeddingSource(set EmbeddingSet, dims int, seed uint64) (*EmbeddingSource, error) {
	e := &EmbeddingSource{set: set, dims: dims, seed: stream(seed)}
	normals := func(purpose uint64, n int) {
		for i := range n {
			s, x := e.seed.split(purpose, uint64(i)), make([]float64, dims)
			for j := range x {
				x[j] = s.normal()
			}
			e.vectors = append(e.vectors, x)
		}
	}
	switch {
	case dims < 1:
		return nil, fmt.Errorf("vectors of %d dimensions", dims)
	case set == Topics:
		e.topics = newTopics(dims, e.seed)
	case set == Mixture:
		normals(purposeCentre, mixtureCount)
	case set == Tails:
		normals(purposeFactor, tailFactors)
	default:
		return nil, fmt.Errorf("unknown set %q of embeddings: %v are known", set, EmbeddingSets())
	}
	return e, nil
}

// Vector returns vector i. It needs no other vector.
func (e *EmbeddingSource) Vector(i int) []float32 {
	x := make([]float64, e.dims)
	switch e.set {
	case Topics:
		e.topics.vector(x, i)
	case Mixture:
		s := e.seed.split(purposeMixture, uint64(i))
		c := e.vectors[s.below(mixtureCount)]
		for j := range x {
			x[j] = c[j] + .8*s.normal()
		}
	case Tails:
		s := e.seed.split(purposeTail, uint64(i))
		for f, factor := range e.vectors {
			w := s.normal() * math.Pow(.93, float64(f)) / math.Sqrt(.05-math.Log(1-s.uniform()))
			for j, v := range factor {
				x[j] += w * v
			}
		}
		for j := range x {
			x[j] += .3 * s.normal()
		}
	}
	return unit(x)
}

// topicVectors are those of Topics, which are made when they are first needed.
type topicVectors struct {
	seed     stream
	spectrum []float64 // deviation of each direction
	offset   []float64
	weights  []float64 // sums, by topic
	made     []sync.Once
	centres  [][]float64
	axes     [][][]float64
}

func newTopics(d int, seed stream) *topicVectors {
	p := &topicVectors{seed: seed, spectrum: make([]float64, d), weights: make([]float64, embeddingTopics),
		made: make([]sync.Once, embeddingTopics)}
	sum := 0.0
	for j := range p.spectrum {
		p.spectrum[j] = 1 / (1 + float64(j)/8)
		sum += p.spectrum[j]
	}
	for j := range p.spectrum {
		p.spectrum[j] = math.Sqrt(p.spectrum[j] / sum)
	}
	p.offset = p.shaped(purposeOffset, 0)
	p.centres, p.axes = make([][]float64, embeddingTopics), make([][][]float64, embeddingTopics)
	total := 0.0
	for t := range embeddingTopics {
		total += 1 / float64(t+1)
		p.weights[t] = total
	}
	return p
}

// shaped draws a vector with the spectrum.
func (p *topicVectors) shaped(purpose, i uint64) []float64 {
	own, x := p.seed.split(purpose, i), make([]float64, len(p.spectrum))
	for j := range x {
		x[j] = own.normal() * p.spectrum[j]
	}
	return x
}

// vector writes vector i to x.
func (p *topicVectors) vector(x []float64, i int) {
	own := p.seed.split(purposeEmbedding, uint64(i))
	t := min(sort.SearchFloat64s(p.weights, own.uniform()*p.weights[embeddingTopics-1]), embeddingTopics-1)
	p.made[t].Do(func() {
		p.centres[t] = p.shaped(purposeTopic, uint64(t))
		for a := range topicAxes {
			p.axes[t] = append(p.axes[t], p.shaped(purposeAxis, uint64(t*topicAxes+a)))
		}
	})
	for j := range x {
		x[j] = p.centres[t][j] + commonOffset*p.offset[j] + .2*topicSpread*own.normal()*p.spectrum[j]
	}
	for _, axis := range p.axes[t] {
		w := topicSpread / math.Sqrt(topicAxes) * own.normal()
		for j, v := range axis {
			x[j] += w * v
		}
	}
}

// Unbalanced returns n items of 20 Gaussian classes in two modalities. The most frequent
// class has 300 times as many items as the rarest, which is the last one or, reversed, the
// first. The first 20 items are one of each class.
func Unbalanced(seed uint64, n int, reversed bool) *Data {
	const classes = 20
	dims, noise := []int{64, 32}, []float64{2.6, 2}
	centres := rand.New(rand.NewPCG(9, 9)) // the same for all seeds
	var centre [2][classes][]float64
	for t, dim := range dims {
		for l := range classes {
			for range dim {
				centre[t][l] = append(centre[t][l], centres.NormFloat64())
			}
		}
	}
	var share [classes]float64
	total := 0.0
	for l := range classes {
		at := float64(l) / (classes - 1)
		if reversed {
			at = 1 - at
		}
		share[l] = math.Pow(300, -at)
		total += share[l]
	}
	rng := rand.New(rand.NewPCG(seed, 5))
	d := &Data{Vectors: make([][][]float32, 2)}
	for i := range n {
		l := i
		if i >= classes {
			l = 0
			for u := rng.Float64() * total; l < classes-1 && u >= share[l]; l++ {
				u -= share[l]
			}
		}
		d.Labels = append(d.Labels, []uint32{uint32(l)})
		for t := range dims {
			x := make([]float32, dims[t])
			for j := range x {
				x[j] = float32(centre[t][l][j] + noise[t]*rng.NormFloat64())
			}
			d.Vectors[t] = append(d.Vectors[t], x)
		}
	}
	return d
}
