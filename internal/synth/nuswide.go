package synth

import (
	"fmt"
	"math"
)

// These numbers are the shape of NUS-WIDE as cross-modal hashing uses it: pictures as
// bags of 500 visual words, their tags as bags of 1,000 words, the 10 most frequent
// concepts as labels, and about 184,000 pairs.
const (
	NUSWideItems  = 184_000
	NUSWideImage  = 500  // dimensions; dense
	NUSWideText   = 1000 // dimensions; sparse
	NUSWideLabels = 10

	// NUSWideLeastWords and NUSWideMostWords bound the words of a text.
	NUSWideLeastWords = 20
	NUSWideMostWords  = 50
)

// DefaultNUSWideNoise gives an mAP well above chance and well below 1.
const DefaultNUSWideNoise = 0.8

// NUSWide makes items of the shape of NUS-WIDE, any number of them. An item depends on
// the seed, the noise and its number alone. So any part can be made anywhere, in any
// order, and repeatedly: equal to the last bit on one architecture.
//
// Labels come from three latent factors and from thresholds. The factors make some
// labels go together (clouds with sky) and others avoid each other. The thresholds make
// their frequencies fall from .42 to .06. Every item has at least one label. Each label
// is a topic: a distribution over visual words and one over words. An item mixes the
// topics of its labels with one background topic and with two of twenty nuisance
// topics. The nuisance topics say nothing of the labels but are the same in both
// modalities, like a subject without a concept of its own. Noise is the share of the
// mixture that does not come from the labels; it varies from item to item.
//
// The picture is the mixture, with each visual word multiplied by an exponentially
// distributed deviation, scaled to the sum 1. The text is drawn word by word from the
// mixture until it has 20 to 50 different words; its numbers are counts.
//
// All methods are safe for concurrent use. Making the features of an item takes
// a few microseconds.
type NUSWide struct {
	seed  uint64
	noise float64

	visual [topics][NUSWideImage]float32 // a distribution over visual words for each topic
	// the inverse of the distribution function over words, for each topic
	words [topics][quantiles]uint16
}

const (
	background = NUSWideLabels
	nuisance   = NUSWideLabels + 1 // the first of them
	nuisances  = 20
	topics     = nuisance + nuisances

	quantiles = 1 << 14 // size of the tables that turn a random number into a word
)

// NewNUSWide returns the generator of a seed. noise is from 0 (the items follow their
// labels alone) to 1 (the items have no trace of them).
func NewNUSWide(seed uint64, noise float64) (*NUSWide, error) {
	if !(noise >= 0 && noise <= 1) {
		return nil, fmt.Errorf("synth: noise %v: from 0 to 1 is possible", noise)
	}
	g := &NUSWide{seed: seed, noise: noise}
	for t := range topics {
		r := stream(seed).split('t', uint64(t))
		// The weights are log-normal: a topic prefers some visual words, but less
		// clearly than it prefers some words.
		sum := 0.0
		var weights [NUSWideImage]float64
		for j := range weights {
			weights[j] = math.Exp(.6 * r.normal())
			sum += weights[j]
		}
		for j, w := range weights {
			g.visual[t][j] = float32(w / sum)
		}
		g.words[t] = zipf(&r)
	}
	return g, nil
}

// zipf returns the quantiles of a distribution over words. The i-th word, in a random
// order, has the weight 1/(i+5).
func zipf(r *stream) (table [quantiles]uint16) {
	var order [NUSWideText]uint16
	sum := 0.0
	for i := range order {
		order[i] = uint16(i)
		sum += 1 / float64(i+5)
	}
	for i := len(order) - 1; i > 0; i-- {
		j := r.below(i + 1)
		order[i], order[j] = order[j], order[i]
	}
	word, reached := 0, 1/5./sum
	for q := range table {
		for word < len(order)-1 && (float64(q)+.5)/quantiles > reached {
			word++
			reached += 1 / float64(word+5) / sum
		}
		table[q] = order[word]
	}
	return table
}

// labelModel says when an item has a label. The weighted factors, plus a normal
// deviation that brings the variance to 1, have to exceed a threshold. Draws without
// any label, three in ten, are repeated, which raises all frequencies.
var labelModel = [NUSWideLabels]struct {
	factors   [3]float64 // weights of the factors outdoors, water, people
	threshold float64
}{
	{[3]float64{.8, .2, -.1}, .55}, // sky
	{[3]float64{.8, .3, -.2}, .85},
	{[3]float64{-.2, -.2, .7}, .90},
	{[3]float64{.3, .8, -.1}, 1.10},
	{[3]float64{-.1, .1, -.6}, 1.15},
	{[3]float64{.5, -.3, -.3}, 1.30},
	{[3]float64{.3, -.5, .4}, 1.40},
	{[3]float64{-.5, -.4, .3}, 1.55},
	{[3]float64{.3, -.1, -.6}, 1.65},
	{[3]float64{.3, .8, -.2}, 1.75}, // lake
}

// AppendLabels appends the labels of item i to dst in ascending order: one to ten of
// the numbers 0 to 9.
func (g *NUSWide) AppendLabels(dst []uint32, i int) []uint32 {
	r := stream(g.seed).split('l', uint64(i))
	for n := len(dst); len(dst) == n; {
		var factors [3]float64
		for k := range factors {
			factors[k] = r.normal()
		}
		for l, m := range labelModel {
			x, own := 0.0, 1.0
			for k, w := range m.factors {
				x += w * factors[k]
				own -= w * w
			}
			if x+math.Sqrt(own)*r.normal() > m.threshold {
				dst = append(dst, uint32(l))
			}
		}
	}
	return dst
}

// A mixture is the content of an item: topics and their shares, which add up to 1. The
// first topics are the labels.
type mixture struct {
	n      int
	topics [NUSWideLabels + 3]int
	shares [NUSWideLabels + 3]float64
}

func (m *mixture) add(topic int, share float64) {
	m.topics[m.n], m.shares[m.n] = topic, share
	m.n++
}

func (g *NUSWide) mixture(i int) (m mixture) {
	var room [NUSWideLabels]uint32
	labels := g.AppendLabels(room[:0], i)
	r := stream(g.seed).split('m', uint64(i))
	// An item is clearer or less clear than the average. A power of the noise keeps 0
	// and 1 as they are.
	noise := math.Pow(g.noise, math.Exp(.5*r.normal()))
	for _, l := range labels {
		m.add(int(l), (1-noise)/float64(len(labels)))
	}
	m.add(background, noise/2)
	first := r.below(nuisances)
	second := (first + 1 + r.below(nuisances-1)) % nuisances
	share := r.uniform()
	m.add(nuisance+first, noise/2*share)
	m.add(nuisance+second, noise/2*(1-share))
	return m
}

// Image writes the picture of item i to dst, which has NUSWideImage numbers. None is
// negative, and their sum is 1.
func (g *NUSWide) Image(dst []float32, i int) {
	m := g.mixture(i)
	dst = dst[:NUSWideImage]
	clear(dst)
	for k := range m.n {
		share := float32(m.shares[k])
		for j, v := range &g.visual[m.topics[k]] {
			dst[j] += share * v
		}
	}
	r := stream(g.seed).split('i', uint64(i))
	var sum float32
	for j := 0; j < len(dst); j += 5 { // a word gives five draws of 12 bits
		bits := r.next()
		for k := j; k < j+5; k++ {
			dst[k] *= deviations[bits&0xfff]
			sum += dst[k]
			bits >>= 12
		}
	}
	for j := range dst {
		dst[j] *= 1 / sum
	}
}

// AppendText appends the text of item i: the numbers of 20 to 50 words in ascending
// order, and their counts.
func (g *NUSWide) AppendText(words []uint32, counts []float32, i int) ([]uint32, []float32) {
	var bag [NUSWideText]uint16
	g.bag(&bag, i)
	for w, c := range bag {
		if c > 0 {
			words = append(words, uint32(w))
			counts = append(counts, float32(c))
		}
	}
	return words, counts
}

// Text writes the text of item i to dst, which has NUSWideText numbers.
func (g *NUSWide) Text(dst []float32, i int) {
	var bag [NUSWideText]uint16
	g.bag(&bag, i)
	for w, c := range bag {
		dst[w] = float32(c)
	}
}

func (g *NUSWide) bag(bag *[NUSWideText]uint16, i int) {
	m := g.mixture(i)
	r := stream(g.seed).split('w', uint64(i))
	missing := NUSWideLeastWords + r.below(NUSWideMostWords-NUSWideLeastWords+1)
	for missing > 0 {
		u, topic := r.uniform(), 0
		for u >= m.shares[topic] && topic < m.n-1 {
			u -= m.shares[topic]
			topic++
		}
		word := g.words[m.topics[topic]][r.below(quantiles)]
		if bag[word] == 0 {
			missing--
		}
		bag[word]++
	}
}

// Data returns the items from from to to-1 in memory, with dense texts: 6,000 bytes an
// item. The first modality is the picture.
func (g *NUSWide) Data(from, to int) *Data {
	d := &Data{Vectors: make([][][]float32, 2)}
	for i := from; i < to; i++ {
		image, text := make([]float32, NUSWideImage), make([]float32, NUSWideText)
		g.Image(image, i)
		g.Text(text, i)
		d.Vectors[0] = append(d.Vectors[0], image)
		d.Vectors[1] = append(d.Vectors[1], text)
		d.Labels = append(d.Labels, g.AppendLabels(nil, i))
	}
	return d
}
