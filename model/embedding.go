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

// Constants of embeddings; docs/EVALUATION.md has the measurements.
const (
	embeddingMeans = .9   // share of the means in the squared length of a vector
	embeddingRidge = 3e-3 // ridge of whitening, as a share of the largest eigenvalue
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
	s, err := tr.reader.sum(ctx, embeddingPass(m), nil)
	if err != nil {
		return err
	}
	return tr.sets.embedding.learn(s.(*sketches))
}

// learn mixes the whitened means of the labels into the random embedding.
func (e *embedding) learn(s *sketches) error {
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
