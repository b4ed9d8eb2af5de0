package model

import (
	"math/rand/v2"

	"github.com/fddhdb/fddhdb/model/internal/dense"
	"gonum.org/v1/gonum/floats"
)

// maxEmbeddingDims bounds r, and so the time of the decompositions.
const maxEmbeddingDims = 512

// embeddingWidth is the least number of dimensions of a sketch.
const embeddingWidth = 256

// sketches sum up the features of the items of each label. A sketch is a random
// projection: with so many dimensions it keeps the distances of means well enough.
type sketches struct {
	maps    []*featureMap            // by modality
	labels  []uint32                 // ascending
	width   int                      // dimensions of a sketch
	workers int                      // goroutines
	random  []*dense.Packed[float64] // by modality: width x k
	sums    [][]float64              // by modality: c x width
	counts  [][]float64              // by modality and label: number of items
	total   [][]float64              // by modality: sum over all items
	items   []float64                // by modality: number of items
	z       dense.Matrix[float64]    // scratch memory of add
	columns []int32                  // likewise
}

// sketchWidth returns the dimensions of a sketch for codes of so many bits.
func sketchWidth(bits int) int { return max(embeddingWidth, 2*min(bits, maxEmbeddingDims)) }

// sketchDirections returns the random directions of sketches, by modality. They come from a stream of
// their own, so other choices do not depend on them.
func sketchDirections(maps []*featureMap, bits int, seed uint64) (packed []*dense.Packed[float64]) {
	width := sketchWidth(bits)
	rng := rand.New(rand.NewPCG(seed, streamSketch))
	for _, f := range maps {
		random := dense.Of(width, f.size(), make([]float64, width*f.size()))
		for i := range random.Data {
			random.Data[i] = rng.NormFloat64()
		}
		packed = append(packed, dense.Pack(random))
	}
	return packed
}

// newSketches returns the sketches of no items, for the maps and the labels of a model.
func newSketches(m *Model, random []*dense.Packed[float64]) *sketches {
	c, maps := len(m.Labels()), m.Maps()
	s := &sketches{maps: maps, labels: m.Labels(), width: sketchWidth(m.Bits()), workers: workerCount(), random: random}
	for range maps {
		s.sums = append(s.sums, make([]float64, c*s.width))
		s.counts = append(s.counts, make([]float64, c))
		s.total = append(s.total, make([]float64, s.width))
	}
	s.items = make([]float64, len(maps))
	s.z = dense.Of(blockItems, s.width, make([]float64, blockItems*s.width))
	return s
}

// add projects the features of a block to random directions, and adds each item to its
// labels and to the total of each modality.
func (s *sketches) add(b *block) error {
	for t, f := range s.maps {
		rows := b.rows(t)
		phi := dense.Of(rows, f.size(), b.phi[t])
		chunks(s.workers, rows, mapRows, func(_, from, to int) {
			dense.MulNT(s.z.Slice(from, to), phi.Slice(from, to), s.random[t])
		})
		for r, i := range b.at[t] {
			z := s.z.Data[r*s.width : (r+1)*s.width]
			floats.Add(s.total[t], z)
			s.columns = appendKnown(s.columns[:0], s.labels, b.labels[i])
			for _, l := range s.columns {
				floats.Add(s.sums[t][int(l)*s.width:(int(l)+1)*s.width], z)
				s.counts[t][l]++
			}
		}
		s.items[t] += float64(rows)
	}
	return nil
}

func (s *sketches) merge(o sums) {
	other := o.(*sketches)
	for t := range s.sums {
		floats.Add(s.sums[t], other.sums[t])
		floats.Add(s.counts[t], other.counts[t])
		floats.Add(s.total[t], other.total[t])
	}
	floats.Add(s.items, other.items)
}

func (s *sketches) reset() {
	for t := range s.sums {
		clear(s.sums[t])
		clear(s.counts[t])
		clear(s.total[t])
	}
	clear(s.items)
}

func (s *sketches) appendTo(w *wireWriter) {
	for t := range s.sums {
		w.f64s(s.sums[t]...)
		w.f64s(s.counts[t]...)
		w.f64s(s.total[t]...)
	}
	w.f64s(s.items...)
}

func (s *sketches) readFrom(r *wireReader) {
	for t := range s.sums {
		s.sums[t] = r.f64s(len(s.sums[t]), "sketches")
		s.counts[t] = r.f64s(len(s.counts[t]), "the items of labels")
		s.total[t] = r.f64s(len(s.total[t]), "the sketch of all items")
	}
	s.items = r.f64s(len(s.items), "the number of items")
}
