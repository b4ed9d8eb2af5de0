package model

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// maxEmbedded bounds the numbers of C if there are more labels than bits: 256 MiB, and
// a few times that while training.
const maxEmbedded = 1 << 25

// maxEmbeddingDims bounds r, and so the time of the decompositions.
const maxEmbeddingDims = 512

// Constants of embeddings; docs/EVALUATION.md has the measurements.
const (
	embeddingMeans = .9   // share of the means in the squared length of a vector
	embeddingRidge = 3e-3 // ridge of whitening, as a share of the largest eigenvalue
	embeddingWidth = 256  // least dimensions of a sketch
)

// embeddingLabels returns the number of labels that an embedding takes.
func embeddingLabels(bits int) int { return min(maxLabels, maxEmbedded/bits) }

// An embedding maps c labels, more than bits, into r <= q dimensions. E is c x r and
// has a vector of length 1 for each label. A label set is the sum of the vectors of its
// labels. C is orthonormal in the r dimensions. The model keeps E C, c x q, so users of
// the model do not need to know about the embedding.
//
// With c > r some vectors must be near others. The choice decides about retrieval. E
// brings labels near each other whose items look alike, since a projection confuses
// their codes anyway, and keeps other labels apart. The vector of a label is the mean
// of the features of its items, all modalities together, whitened over the labels with
// a ridge. Whitening takes out what most labels have in common. A small part of each
// vector is random, so no two labels have the same vector, however alike they are.
// Projections that see the whole label Gram (PCA) leave out rare labels, and frames of
// low coherence were no better than random ones.
type embedding struct {
	e dense.Matrix[float64] // E, c x r
}

// randomEmbedding returns the embedding in use before the features are known.
func randomEmbedding(labels, bits int, seed uint64) *embedding {
	rng := rand.New(rand.NewPCG(seed, streamEmbedding))
	r := min(bits, maxEmbeddingDims)
	e := &embedding{dense.Of(labels, r, make([]float64, labels*r))}
	for i := range e.e.Data {
		e.e.Data[i] = rng.NormFloat64()
	}
	for l := range labels {
		normalise64(e.label(l), 1)
	}
	return e
}

// label returns the vector of label l. It aliases the embedding.
func (e *embedding) label(l int) []float64 {
	r := e.e.Cols
	return e.e.Data[l*r : (l+1)*r]
}

// normalise64 scales x to a length, unless x is zero.
func normalise64(x []float64, length float64) {
	// Dividing by the largest value keeps squares from overflowing.
	largest := 0.0
	for _, v := range x {
		largest = max(largest, math.Abs(v))
	}
	if largest == 0 {
		return
	}
	floats.Scale(1/largest, x)
	floats.Scale(length/math.Sqrt(floats.Dot(x, x)), x)
}

// polar writes E C to cm, c x q. C = polar(E' H Y') is the step for C with embedded
// labels as Y.
func (e *embedding) polar(cm, hy []float64, q, workers int) error {
	c, r := e.e.Rows, e.e.Cols
	step := dense.Of(r, q, make([]float64, r*q))
	dense.AddTN(step, e.e, dense.Of(c, q, hy), workers)
	if err := polar(step.Data, step.Data, r, q, false); err != nil {
		return err
	}
	packed := dense.PackTransposed(step)
	product := dense.Of(c, q, cm)
	chunks(workers, c, mapRows, func(_, from, to int) {
		dense.MulNT(product.Slice(from, to), e.e.Slice(from, to), packed)
	})
	return nil
}

// embed replaces the random embedding by one made from the features, in one pass.
func (tr *trainer) embed(ctx context.Context) error {
	parts := tr.parts() // its labels have no directions yet
	parts.C, parts.Aim = make([]float64, len(tr.sets.labels)*tr.opt.Bits), AimCodes
	parts.Fusion = slices.Repeat([]float64{1}, len(parts.Modalities))
	m, err := New(parts)
	if err != nil {
		return err
	}
	p := tr.newPass(passEmbedding)
	p.m = m
	p.random = sketchDirections(tr.maps, tr.opt.Bits, tr.opt.Seed)
	s, err := tr.sum(ctx, p, nil)
	if err != nil {
		return err
	}
	return s.(*sketches).finish(tr.sets.embedding)
}

// sketches sum up the features of the items of each label. A sketch is a random
// projection: with so many dimensions it keeps the distances of means well enough.
type sketches struct {
	m       *Model                   // maps and labels
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
	c, maps := len(m.labels), m.maps
	s := &sketches{m: m, width: sketchWidth(m.bits), workers: workerCount(), random: random}
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
	for t, f := range s.m.maps {
		rows := b.rows(t)
		phi := dense.Of(rows, f.size(), b.phi[t])
		chunks(s.workers, rows, mapRows, func(_, from, to int) {
			dense.MulNT(s.z.Slice(from, to), phi.Slice(from, to), s.random[t])
		})
		for r, i := range b.at[t] {
			z := s.z.Data[r*s.width : (r+1)*s.width]
			floats.Add(s.total[t], z)
			s.columns = appendKnown(s.columns[:0], s.m.labels, b.labels[i])
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

// finish mixes the whitened means into the random embedding.
func (s *sketches) finish(e *embedding) error {
	c, r, w := e.e.Rows, e.e.Cols, s.width
	means := dense.Of(c, w, make([]float64, c*w))
	for t, sums := range s.sums {
		// Take the difference from the mean of all items, each modality in its own
		// unit.
		floats.Scale(1/s.items[t], s.total[t])
		var square float64
		for l, n := range s.counts[t] {
			if row := sums[l*w : (l+1)*w]; n > 0 {
				floats.Scale(1/n, row)
				floats.Sub(row, s.total[t])
				square += floats.Dot(row, row)
			}
		}
		if scale := 1 / math.Sqrt(square/float64(c)); !math.IsInf(scale, 0) && scale > 0 {
			floats.AddScaled(means.Data, scale, sums)
		}
	}
	gram := dense.Of(w, w, make([]float64, w*w))
	dense.AddGram(gram, means, s.workers)
	symmetric := mat.NewSymDense(w, nil)
	for i := range w {
		for j := range i + 1 {
			symmetric.SetSym(j, i, gram.Data[i*w+j])
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(symmetric, true) {
		return errors.New("the eigenvalues of the labels' means did not converge")
	}
	values := eigen.Values(nil) // ascending
	largest := values[w-1]
	if !(largest > 0) {
		return nil // no modality tells the labels apart
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	whiten := dense.Of(r, w, make([]float64, r*w))
	for j := range r {
		v := values[w-1-j]
		if v <= 0 {
			break
		}
		scale := 1 / math.Sqrt(v+embeddingRidge*largest)
		for i := range w {
			whiten.Data[j*w+i] = vectors.At(i, w-1-j) * scale
		}
	}
	packed := dense.Pack(whiten)
	chunks(s.workers, c, mapRows, func(_, from, to int) {
		z := dense.Of(to-from, r, make([]float64, (to-from)*r))
		dense.MulNT(z, means.Slice(from, to), packed)
		for l := from; l < to; l++ {
			mean := z.Data[(l-from)*r : (l-from+1)*r]
			normalise64(mean, math.Sqrt(embeddingMeans))
			v := e.label(l)
			floats.Scale(math.Sqrt(1-embeddingMeans), v)
			floats.Add(v, mean)
			normalise64(v, 1)
		}
	})
	return nil
}

// checkEmbedding decides whether labels are embedded, once they are known.
func (tr *trainer) checkEmbedding() error {
	c := len(tr.sets.labels)
	if c <= tr.opt.Bits {
		return nil
	}
	if tr.opt.Method != MethodLabels {
		return fmt.Errorf("%w: label embedding: method %v relaxes each of the %d labels by itself, in codes of %d bits: use the method labels", ErrOption, tr.opt.Method, c, tr.opt.Bits)
	}
	tr.sets.embedding = randomEmbedding(c, tr.opt.Bits, tr.opt.Seed)
	return nil
}
