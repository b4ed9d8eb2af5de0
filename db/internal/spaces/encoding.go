package spaces

import (
	"context"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/model"
)

// An Encoder is the scratch memory in which one goroutine makes projections and codes. Take one from
// Space.Encoders and put it back. Project fills it with the projections of up to EncodeRun items; Fuse and
// Space.EncodingOf read them until the next Project.
type Encoder struct {
	*model.Encoder
	modalities []int     // Space.Positions: position in the collection, by modality of the model
	zs         []float64 // memory of Parts: for each modality, the projections of the items that have it

	// Parts has the projection of item i of Project in modality t of the model at
	// i*len(Space.Positions) + t: one number for each bit, or nil where the item lacks the
	// modality.
	Parts [][]float64

	fused []float64 // result of Fuse, one number for each bit
	total []float64 // result of sum, one number for each bit
}

// An Encoding is the code of an item in one space. Its slices may be shared with other encodings and are not
// written to. A deleted item has the zero value.
type Encoding struct {
	Space      *Space           // the revision that made it; codes of another revision may differ
	Code       codec.Code       // nil: none, so searches do not find the item
	From       codec.Provenance // labels, a projection, or the user; nothing where Code is nil
	Projection []byte           // codec.AppendProjection of the sum of the projections; nil: no features
}

// Encodings are the encodings of one item in several spaces.
type Encodings []Encoding

// Of returns the encoding that this revision of a space has made, nil where there is none. It
// compares pointers, so that a caller with an encoding of an earlier revision finds none and
// encodes again.
func (e Encodings) Of(s *Space) *Encoding {
	for i := range e {
		if e[i].Space == s {
			return &e[i]
		}
	}
	return nil
}

// Position returns which modality of the model modality t of the collection is, and whether
// the model knows it.
func (e *Encoder) Position(t int) (int, bool) {
	i := slices.Index(e.modalities, t)
	return i, i >= 0
}

// Project makes the projections of up to EncodeRun items, each given as its vectors by
// modality of the collection, in all modalities that the model knows. The results are Parts,
// valid until the next call. A matrix product over many items costs a fraction of what they
// cost one by one. An error is about items[at], such as a number that is not finite.
func (e *Encoder) Project(items [][]model.Vector) (at int, err error) {
	q, n := e.Model().Bits(), len(e.modalities)
	if need := len(items) * n * q; len(e.zs) < need {
		e.zs, e.Parts = make([]float64, need), make([][]float64, len(items)*n)
	}
	clear(e.Parts)
	for i, t := range e.modalities {
		var xs [EncodeRun]model.Vector
		var of [EncodeRun]int
		have := 0
		for j, vectors := range items {
			if Has(vectors, t) {
				xs[have], of[have] = vectors[t], j
				have++
			}
		}
		zs := e.zs[i*len(items)*q:][:have*q]
		if err := e.ProjectVectors(zs, i, xs[:have]); err != nil {
			for j := range have { // which of them is it?
				if err := e.ProjectVectors(e.fused, i, xs[j:j+1]); err != nil {
					return of[j], err
				}
			}
			return 0, err
		}
		for j := range have {
			e.Parts[of[j]*n+i] = zs[j*q : (j+1)*q]
		}
	}
	return 0, nil
}

// Fuse returns the fused projection of an item of the last Project, one number for each bit, in scratch
// memory that the next Fuse overwrites: its signs are the code of an item without known labels (see
// model.Model.Fuse). only is the modality of the model that made it alone because of the weights, else -1.
// Where the item has no features that the model knows, or they are so far from all that it has learned from
// that nothing is left of the kernel, z is zero and has no signs.
func (e *Encoder) Fuse(item int) (z []float64, only int) {
	n := len(e.modalities)
	only = e.Model().Fuse(e.fused, e.Parts[item*n:(item+1)*n])
	return e.fused, only
}

// sum returns the plain sum of the projections of an item of the last Project, in scratch
// memory.
func (e *Encoder) sum(item int) []float64 {
	clear(e.total)
	n := len(e.modalities)
	for _, z := range e.Parts[item*n : (item+1)*n] {
		for j, v := range z {
			e.total[j] += v
		}
	}
	return e.total
}

// IsZero reports whether a projection is zero in all bits, and so has no direction.
func IsZero(z []float64) bool {
	return !slices.ContainsFunc(z, func(x float64) bool { return x != 0 })
}

// Has reports whether an item with these vectors has modality t of the collection.
func Has(vectors []model.Vector, t int) bool { return t < len(vectors) && vectors[t].Present() }

// Encode gives an item its code: sgn(C y) if the model knows one of its labels, regardless of its vectors,
// else the signs of its fused projection, if that is not zero. vectors are by modality of the collection,
// labelIDs ascend. given is the code that an item of a codes-only collection brings. The encoding aliases it;
// spaces with a model ignore it. An error is an error of model, about a vector.
func (s *Space) Encode(vectors []model.Vector, labelIDs []uint32, given codec.Code) (Encoding, error) {
	if s.Learned == nil {
		return Encoding{Space: s, Code: given, From: codec.ProvenanceGiven}, nil
	}
	e := s.Encoders.Get().(*Encoder)
	defer s.Encoders.Put(e)
	if _, err := e.Project([][]model.Vector{vectors}); err != nil {
		return Encoding{Space: s}, err
	}
	return s.EncodingOf(e, 0, vectors, labelIDs), nil
}

// EncodingOf is Encode for one of the items of the encoder's last Project, which were these
// vectors. The result shares nothing with the encoder.
func (s *Space) EncodingOf(e *Encoder, item int, vectors []model.Vector, labelIDs []uint32) Encoding {
	enc := Encoding{Space: s}
	if sum := e.sum(item); !IsZero(sum) {
		enc.Projection = codec.AppendProjection(make([]byte, 0, s.ProjectionBytes()), sum)
	}
	code := codec.NewCode(s.Bits)
	if s.Learned.LabelCode(code, labelIDs) {
		enc.Code, enc.From = code, codec.ProvenanceLabels
		return enc
	}
	z, only := e.Fuse(item)
	if IsZero(z) {
		return enc
	}
	enc.Code, enc.From = codec.PackSigns(code, z), codec.ProvenanceFused
	if only >= 0 {
		enc.From = codec.ProvenanceModality + codec.Provenance(s.Positions[only])
	}
	return enc
}

// EncodeRun is how many items an Encoder projects together at most.
const EncodeRun = 64

// EncodeAll is Encode for many items of a space, which must have a model, on up to so many goroutines:
// encs[i] becomes the encoding of the vectors and label ids that item(i) returns. EncodeAll calls item once
// for each i, from any of the goroutines; leave its results unchanged until EncodeAll returns. failed makes
// the returned error from the number of an item and its error. EncodeAll ends early with the context.
func (s *Space) EncodeAll(ctx context.Context, workers int, encs []Encoding,
	item func(i int) (vectors []model.Vector, labelIDs []uint32), failed func(i int, err error) error) error {
	runs := (len(encs) + EncodeRun - 1) / EncodeRun
	return work.ParallelBy(ctx, workers, 1, runs, func(run int) error {
		from, to := run*EncodeRun, min((run+1)*EncodeRun, len(encs))
		e := s.Encoders.Get().(*Encoder)
		defer s.Encoders.Put(e)
		var vectors [EncodeRun][]model.Vector
		var labelIDs [EncodeRun][]uint32
		for i := from; i < to; i++ {
			vectors[i-from], labelIDs[i-from] = item(i)
		}
		if at, err := e.Project(vectors[:to-from]); err != nil {
			return failed(from+at, err)
		}
		for i := from; i < to; i++ {
			encs[i] = s.EncodingOf(e, i-from, vectors[i-from], labelIDs[i-from])
		}
		return nil
	})
}
