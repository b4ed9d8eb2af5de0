package fit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/dense"
	"github.com/fddhdb/fddhdb/model/internal/parallel"
	"github.com/fddhdb/fddhdb/model/internal/random"
	"github.com/fddhdb/fddhdb/model/internal/rank"
	"github.com/fddhdb/fddhdb/model/internal/wire"
	"github.com/fddhdb/fddhdb/model/sum"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
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
func embeddingLabels(bits int) int { return min(wire.MaxLabels, maxEmbedded/bits) }

// An embedding maps c labels, more than bits, into r <= q dimensions. E is c x r and
// has a vector of length 1 for each label. A label set is the sum of the vectors of its
// labels. C is orthonormal in the r dimensions. The model keeps E C, c x q, so users of
// the model do not need to know about the embedding.
//
// With c > r some vectors must be near others. This choice decides the quality of retrieval. E brings labels
// near each other if their items look alike, because a projection confuses their codes anyway, and keeps
// other labels apart. The vector of a label is the mean of the features of its items, all modalities
// together, whitened over the labels with a ridge. Whitening removes the common part of most labels. A small
// part of each vector is random, so no two labels have the same vector, however alike they are. Projections
// of the whole label Gram matrix (PCA) leave out rare labels, and frames of low coherence were no better than
// random ones.
type embedding struct {
	e dense.Matrix[float64] // E, c x r
}

// randomEmbedding returns the embedding in use before the features are known.
func randomEmbedding(labels, bits int, seed uint64) *embedding {
	rng := rand.New(rand.NewPCG(seed, random.Embedding))
	r := min(bits, sum.MaxEmbeddingDims)
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
	parallel.Chunks(workers, c, parallel.Rows, func(_, from, to int) {
		dense.MulNT(product.Slice(from, to), e.e.Slice(from, to), packed)
	})
	return nil
}

// clone returns a copy.
func (e *embedding) clone() *embedding {
	return &embedding{dense.Of(e.e.Rows, e.e.Cols, slices.Clone(e.e.Data))}
}

// embed returns an embedding that is made from the features, in one pass, and from a random one. parts are of
// a model whose labels have no directions yet.
func (tr *trainer) embed(ctx context.Context, random *embedding, parts model.Parts) (*embedding, error) {
	parts.C, parts.Aim = make([]float64, len(parts.Labels)*tr.opt.Bits), model.AimCodes
	parts.Fusion = slices.Repeat([]float64{1}, len(parts.Modalities))
	m, err := model.New(parts)
	if err != nil {
		return nil, err
	}
	s, err := tr.reader.Sum(ctx, sum.EmbeddingPass(m), nil)
	if err != nil {
		return nil, err
	}
	return random.learned(s.(*sum.Sketches))
}

// learned returns the embedding with the whitened means of the labels mixed in.
func (e *embedding) learned(s *sum.Sketches) (*embedding, error) {
	c, r, w := e.e.Rows, e.e.Cols, s.Width
	means := dense.Of(c, w, make([]float64, c*w))
	for t, sums := range s.Sums {
		// Take the difference from the mean of all items, each modality in its own
		// unit.
		floats.Scale(1/s.Items[t], s.Total[t])
		var square float64
		for l, n := range s.Counts[t] {
			if row := sums[l*w : (l+1)*w]; n > 0 {
				floats.Scale(1/n, row)
				floats.Sub(row, s.Total[t])
				square += floats.Dot(row, row)
			}
		}
		if scale := 1 / math.Sqrt(square/float64(c)); !math.IsInf(scale, 0) && scale > 0 {
			floats.AddScaled(means.Data, scale, sums)
		}
	}
	gram := dense.Of(w, w, make([]float64, w*w))
	dense.AddGram(gram, means, s.Workers)
	symmetric := mat.NewSymDense(w, nil)
	for i := range w {
		for j := range i + 1 {
			symmetric.SetSym(j, i, gram.Data[i*w+j])
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(symmetric, true) {
		return nil, errors.New("the eigenvalues of the labels' means did not converge")
	}
	values := eigen.Values(nil) // ascending
	largest := values[w-1]
	if !(largest > 0) {
		return e, nil // no modality tells the labels apart
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
	packed, mixed := dense.Pack(whiten), e.clone()
	parallel.Chunks(s.Workers, c, parallel.Rows, func(_, from, to int) {
		z := dense.Of(to-from, r, make([]float64, (to-from)*r))
		dense.MulNT(z, means.Slice(from, to), packed)
		for l := from; l < to; l++ {
			mean := z.Data[(l-from)*r : (l-from+1)*r]
			normalise64(mean, math.Sqrt(embeddingMeans))
			v := mixed.label(l)
			floats.Scale(math.Sqrt(1-embeddingMeans), v)
			floats.Add(v, mean)
			normalise64(v, 1)
		}
	})
	return mixed, nil
}

// embedded returns label sets with a random embedding, if there are more labels than bits.
func (tr *trainer) embedded(sets *labelSets) (*labelSets, error) {
	c := len(sets.labels)
	if c <= tr.opt.Bits {
		return sets, nil
	}
	if tr.opt.Method != model.MethodLabels {
		return nil, fmt.Errorf("%w: label embedding: method %v relaxes each of the %d labels by itself, in codes of %d bits: use the method labels", model.ErrOption, tr.opt.Method, c, tr.opt.Bits)
	}
	return sets.withEmbedding(randomEmbedding(c, tr.opt.Bits, tr.opt.Seed)), nil
}

// partings bounds how often labels are moved apart.
const partings = 8

// partLabels moves labels apart that share a code, and solves again, a few times.
// Labels whose items look the same have nearly the same vector, so it adds more
// randomness to their vectors. first is the first solution; it returns the best one. again solves for other
// label sets.
func (tr *trainer) partLabels(first *solution,
	again func(*labelSets) (*solution, error)) (*solution, error) {
	rng := rand.New(rand.NewPCG(tr.opt.Seed, random.Parting))
	e := first.sets.embedding.clone()
	sets := first.sets.withEmbedding(e)
	sharing := first.sharing(first.labelCodes())
	best, least := first, len(sharing)
	other := make([]float64, e.e.Cols)
	for round := 0; round < partings && least > 0; round++ {
		for _, l := range sharing {
			for i := range other {
				other[i] = rng.NormFloat64()
			}
			normalise64(other, 1)
			v := e.label(l)
			floats.Add(v, other)
			normalise64(v, 1)
		}
		s, err := again(sets)
		if err != nil {
			return nil, err
		}
		sharing = s.sharing(s.labelCodes())
		if len(sharing) < least {
			best, least = s, len(sharing)
		}
	}
	return best, nil
}

// An Embedding reports how more labels than bits were embedded, and the cost in
// retrieval. Each label alone is a query by its code, and the training items are ranked
// by the codes of their label sets. MAP is 1 if nothing is lost: then all items with
// the label come first.
type Embedding struct {
	Dims int `json:"dims"` // r, the dimensions that labels are mapped to
	// MAP is the mean average precision, expected over ties, over all labels up to some thousands, else over
	// some of them, evenly spaced. MAPLeast is the least average precision of a label.
	MAP      float64 `json:"map_tie"`
	MAPLeast float64 `json:"map_tie_least"`
}

// judgedPairs bounds the pairs of codes that a report compares: about 0.1 s.
const judgedPairs = 1 << 27

// labelCodes returns the code of each label alone.
func (s *solution) labelCodes() []uint64 {
	codes := make([]uint64, s.c*s.words)
	for l := range s.c {
		codec.PackSigns(codes[l*s.words:(l+1)*s.words], s.cm[l*s.q:(l+1)*s.q])
	}
	return codes
}

// sharing returns the labels whose code another label has too, ascending.
func (s *solution) sharing(codes []uint64) (labels []int) {
	having := make(map[string]int)
	keys := make([]byte, 0, s.c*s.words*8)
	for l := range s.c {
		keys = codec.Code(codes[l*s.words:(l+1)*s.words]).AppendBytes(keys, s.q)
	}
	key := func(l int) string { return string(keys[l*s.q/8 : (l+1)*s.q/8]) }
	for l := range s.c {
		having[key(l)]++
	}
	for l := range s.c {
		if having[key(l)] > 1 {
			labels = append(labels, l)
		}
	}
	return labels
}

// judge fills in the fields of the report about codes of items and of labels.
func (r *Report) judge(s *solution) {
	var counts []int // of label sets
	if s.method == model.MethodLabels {
		counts = s.sets.counts
	}
	r.judgeCodes(s.codes, s.q, counts)
	codes := s.labelCodes()
	r.SharedLabels = len(s.sharing(codes))
	items := make([]int, s.c)
	for i, set := range s.sets.sets {
		for _, l := range set {
			items[l] += s.sets.counts[i]
		}
	}
	for _, n := range items {
		if n == r.TrainItems {
			r.Everywhere++
		}
	}
	if e := s.sets.embedding; e != nil {
		r.Embedding = e.judge(s, codes)
	}
}

// judge measures the embedding as [Embedding] describes.
func (e *embedding) judge(s *solution, codes []uint64) *Embedding {
	having := make([][]int32, s.c) // by label: the sets that hold it
	for i, set := range s.sets.sets {
		for _, l := range set {
			having[l] = append(having[l], int32(i))
		}
	}
	harmonic := rank.HarmonicNumbers(s.sets.items)
	judged := min(s.c, max(1, judgedPairs/max(s.c, len(s.sets.sets))))
	out := &Embedding{Dims: e.e.Cols, MAPLeast: 1}
	precisions := make([]float64, judged)
	type scratch struct {
		dist []uint16
		ties []rank.Tie
	}
	work := make([]scratch, parallel.Workers())
	for i := range work {
		work[i] = scratch{make([]uint16, len(s.sets.sets)), make([]rank.Tie, s.q+1)}
	}
	parallel.Do(len(work), judged, func(worker, i int) {
		w := &work[worker]
		l := int(int64(i) * int64(s.c) / int64(judged))
		code := codec.Code(codes[l*s.words : (l+1)*s.words])
		codec.Distances(w.dist, code, s.codes)
		clear(w.ties)
		for set, n := range s.sets.counts {
			w.ties[w.dist[set]].Rows += int32(n)
		}
		for _, set := range having[l] {
			w.ties[w.dist[set]].Relevant += int32(s.sets.counts[set])
		}
		precisions[i] = min(1, rank.ExpectedPrecision(w.ties, harmonic)) // at most 1 in spite of rounding
	})
	for _, p := range precisions {
		out.MAP += p
		out.MAPLeast = min(out.MAPLeast, p)
	}
	out.MAP /= float64(judged)
	return out
}
