package spaces

import (
	"context"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/model"
)

// Encoder is scratch memory for the projections of one goroutine.
type Encoder struct {
	*model.Encoder
	modalities []int       // of the collection, by modality of the model
	zs         []float64   // of the items of project, by modality
	Parts      [][]float64 // of item i and modality t of the model: i len(modalities) + t; nil where there is none
	fused      []float64
	total      []float64
}

// An Encoding is the codes of an item in one space.
type Encoding struct {
	Space      *Space
	First      TargetCode   // in the first target, mostly the only one
	Rest       []TargetCode // in the others
	Projection []byte       // the sum of the projections; nil: no features
}

// Encodings are those of an item in several spaces.
type Encodings []Encoding

// Of returns the encoding in a space, nil where there is none.
func (e Encodings) Of(s *Space) *Encoding {
	for i := range e {
		if e[i].Space == s {
			return &e[i]
		}
	}
	return nil
}

// A TargetCode is the code of an item for one target, and where it comes from.
type TargetCode struct {
	Code codec.Code // nil: none
	From codec.Provenance
}

// In returns the code for a target, by its position.
func (e *Encoding) In(v int) TargetCode {
	switch {
	case v == 0:
		return e.First
	case v <= len(e.Rest):
		return e.Rest[v-1]
	}
	return TargetCode{} // of an item that goes
}

func (e *Encoding) set(v int, c TargetCode) {
	if v == 0 {
		e.First = c
		return
	}
	if e.Rest == nil {
		e.Rest = make([]TargetCode, len(e.Space.Targets)-1)
	}
	e.Rest[v-1] = c
}

// HasCode reports whether there is a code for any target.
func (e *Encoding) HasCode() bool {
	return e.First.Code != nil || slices.ContainsFunc(e.Rest, func(c TargetCode) bool { return c.Code != nil })
}

// Position returns the modality of the model that a modality of the collection is.
func (e *Encoder) Position(t int) (int, bool) {
	i := slices.Index(e.modalities, t)
	return i, i >= 0
}

// Project makes the projections of the features of items that the model knows, by
// modality of the collection. at is the item of an error.
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

// Fuse returns what an item of project, without labels, is stored as for a target, in
// scratch memory (model.Fuse), and the modality of the model that made it alone
// because of the weights, else -1. Where the item has no features that the model
// knows, or they are so far from all that it has learned from that nothing is left of
// the kernel, that is zero and has no signs.
func (e *Encoder) Fuse(item, target int) (z []float64, only int) {
	n := len(e.modalities)
	only = e.Model().Fuse(e.fused, target, e.Parts[item*n:(item+1)*n])
	return e.fused, only
}

// sum returns the sum of the projections of an item of project, in scratch memory.
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

func IsZero(z []float64) bool {
	return !slices.ContainsFunc(z, func(x float64) bool { return x != 0 })
}

// Has reports whether an item has a modality of the collection.
func Has(vectors []model.Vector, t int) bool { return t < len(vectors) && vectors[t].Present() }

// Encode gives an item its codes: sgn(C y) where a label is known, else the signs of
// its fused projection for each target, if that says anything. For a target modality only
// items that have it get a code, as no others are found there. given is the code
// that an item of a codes-only collection brings.
func (s *Space) Encode(vectors []model.Vector, labelIDs []uint32, given codec.Code) (Encoding, error) {
	if s.Learned == nil {
		return Encoding{Space: s, First: TargetCode{given, codec.ProvenanceGiven}}, nil
	}
	e := s.Encoders.Get().(*Encoder)
	defer s.Encoders.Put(e)
	if _, err := e.Project([][]model.Vector{vectors}); err != nil {
		return Encoding{Space: s}, err
	}
	return s.EncodingOf(e, 0, vectors, labelIDs), nil
}

// EncodingOf is encode for an item that the encoder has projected.
func (s *Space) EncodingOf(e *Encoder, item int, vectors []model.Vector, labelIDs []uint32) Encoding {
	enc := Encoding{Space: s}
	if sum := e.sum(item); !IsZero(sum) {
		enc.Projection = codec.AppendProjection(make([]byte, 0, s.ProjectionBytes()), sum)
	}
	code := codec.NewCode(s.Bits)
	labelled := s.Learned.LabelCode(code, labelIDs)
	for v, target := range s.Targets {
		if target != record.SharedTarget && !Has(vectors, int(target)-1) {
			continue
		}
		if labelled {
			enc.set(v, TargetCode{code, codec.ProvenanceLabels})
			continue
		}
		z, only := e.Fuse(item, v)
		if IsZero(z) {
			continue
		}
		from := codec.ProvenanceFused
		if only >= 0 {
			from = codec.ProvenanceModality + codec.Provenance(s.Positions[only])
		}
		if code == nil {
			code = codec.NewCode(s.Bits)
		}
		enc.set(v, TargetCode{codec.PackSigns(code, z), from})
		code = nil
	}
	return enc
}

// EncodeRun is how many items are encoded together, at a fraction of what they
// would cost one by one.
const EncodeRun = 64

// EncodeAll is encode for many items of a space with a model: encs[i]
// becomes the encoding of what item(i) returns. failed names the item in an error.
func (s *Space) EncodeAll(ctx context.Context, workers int, encs []Encoding, item func(i int) (vectors []model.Vector, labelIDs []uint32), failed func(i int, err error) error) error {
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
