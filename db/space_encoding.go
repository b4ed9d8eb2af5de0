package db

import (
	"context"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/model"
)

// encoder is scratch memory for the projections of one goroutine.
type encoder struct {
	*model.Encoder
	modalities []int       // of the collection, by modality of the model
	zs         []float64   // of the items of project, by modality
	parts      [][]float64 // of item i and modality t of the model: i len(modalities) + t; nil where there is none
	fused      []float64
	total      []float64
}

// An encoding is the codes of an item in one space.
type encoding struct {
	space      *space
	first      targetCode   // in the first target, mostly the only one
	rest       []targetCode // in the others
	projection []byte       // the sum of the projections; nil: no features
}

// encodings are those of an item in several spaces.
type encodings []encoding

// of returns the encoding in a space, nil where there is none.
func (e encodings) of(s *space) *encoding {
	for i := range e {
		if e[i].space == s {
			return &e[i]
		}
	}
	return nil
}

// A targetCode is the code of an item for one target, and where it comes from.
type targetCode struct {
	code codec.Code // nil: none
	from codec.Provenance
}

// in returns the code for a target, by its position.
func (e *encoding) in(v int) targetCode {
	switch {
	case v == 0:
		return e.first
	case v <= len(e.rest):
		return e.rest[v-1]
	}
	return targetCode{} // of an item that goes
}

func (e *encoding) set(v int, c targetCode) {
	if v == 0 {
		e.first = c
		return
	}
	if e.rest == nil {
		e.rest = make([]targetCode, len(e.space.targets)-1)
	}
	e.rest[v-1] = c
}

// hasCode reports whether there is a code for any target.
func (e *encoding) hasCode() bool {
	return e.first.code != nil || slices.ContainsFunc(e.rest, func(c targetCode) bool { return c.code != nil })
}

// position returns the modality of the model that a modality of the collection is.
func (e *encoder) position(t int) (int, bool) {
	i := slices.Index(e.modalities, t)
	return i, i >= 0
}

// project makes the projections of the features of items that the model knows, by
// modality of the collection. at is the item of an error.
func (e *encoder) project(items [][]model.Vector) (at int, err error) {
	q, n := e.Model().Bits(), len(e.modalities)
	if need := len(items) * n * q; len(e.zs) < need {
		e.zs, e.parts = make([]float64, need), make([][]float64, len(items)*n)
	}
	clear(e.parts)
	for i, t := range e.modalities {
		var xs [encodeRun]model.Vector
		var of [encodeRun]int
		have := 0
		for j, vectors := range items {
			if has(vectors, t) {
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
			e.parts[of[j]*n+i] = zs[j*q : (j+1)*q]
		}
	}
	return 0, nil
}

// fuse returns what an item of project, without labels, is stored as for a target, in
// scratch memory (model.Fuse), and the modality of the model that made it alone
// because of the weights, else -1. Where the item has no features that the model
// knows, or they are so far from all that it has learned from that nothing is left of
// the kernel, that is zero and has no signs.
func (e *encoder) fuse(item, target int) (z []float64, only int) {
	n := len(e.modalities)
	only = e.Model().Fuse(e.fused, target, e.parts[item*n:(item+1)*n])
	return e.fused, only
}

// sum returns the sum of the projections of an item of project, in scratch memory.
func (e *encoder) sum(item int) []float64 {
	clear(e.total)
	n := len(e.modalities)
	for _, z := range e.parts[item*n : (item+1)*n] {
		for j, v := range z {
			e.total[j] += v
		}
	}
	return e.total
}

func isZero(z []float64) bool {
	return !slices.ContainsFunc(z, func(x float64) bool { return x != 0 })
}

// has reports whether an item has a modality of the collection.
func has(vectors []model.Vector, t int) bool { return t < len(vectors) && vectors[t].Present() }

// encode gives an item its codes: sgn(C y) where a label is known, else the signs of
// its fused projection for each target, if that says anything. For a target modality only
// items that have it get a code, as no others are found there. given is the code
// that an item of a codes-only collection brings.
func (s *space) encode(vectors []model.Vector, labelIDs []uint32, given codec.Code) (encoding, error) {
	if s.model == nil {
		return encoding{space: s, first: targetCode{given, codec.ProvenanceGiven}}, nil
	}
	e := s.encoders.Get().(*encoder)
	defer s.encoders.Put(e)
	if _, err := e.project([][]model.Vector{vectors}); err != nil {
		return encoding{space: s}, err
	}
	return s.encoding(e, 0, vectors, labelIDs), nil
}

// encoding is encode for an item that the encoder has projected.
func (s *space) encoding(e *encoder, item int, vectors []model.Vector, labelIDs []uint32) encoding {
	enc := encoding{space: s}
	if sum := e.sum(item); !isZero(sum) {
		enc.projection = codec.AppendProjection(make([]byte, 0, s.projectionBytes()), sum)
	}
	code := codec.NewCode(s.Bits)
	labelled := s.model.LabelCode(code, labelIDs)
	for v, target := range s.targets {
		if target != record.SharedTarget && !has(vectors, int(target)-1) {
			continue
		}
		if labelled {
			enc.set(v, targetCode{code, codec.ProvenanceLabels})
			continue
		}
		z, only := e.fuse(item, v)
		if isZero(z) {
			continue
		}
		from := codec.ProvenanceFused
		if only >= 0 {
			from = codec.ProvenanceModality + codec.Provenance(s.modalities[only])
		}
		if code == nil {
			code = codec.NewCode(s.Bits)
		}
		enc.set(v, targetCode{codec.PackSigns(code, z), from})
		code = nil
	}
	return enc
}

// encodeRun is how many items are encoded together, at a fraction of what they
// would cost one by one.
const encodeRun = 64

// encodeAll is encode for many items of a space with a model: encs[i]
// becomes the encoding of what item(i) returns. failed names the item in an error.
func (s *space) encodeAll(ctx context.Context, workers int, encs []encoding, item func(i int) (vectors []model.Vector, labelIDs []uint32), failed func(i int, err error) error) error {
	runs := (len(encs) + encodeRun - 1) / encodeRun
	return work.ParallelBy(ctx, workers, 1, runs, func(run int) error {
		from, to := run*encodeRun, min((run+1)*encodeRun, len(encs))
		e := s.encoders.Get().(*encoder)
		defer s.encoders.Put(e)
		var vectors [encodeRun][]model.Vector
		var labelIDs [encodeRun][]uint32
		for i := from; i < to; i++ {
			vectors[i-from], labelIDs[i-from] = item(i)
		}
		if at, err := e.project(vectors[:to-from]); err != nil {
			return failed(from+at, err)
		}
		for i := from; i < to; i++ {
			encs[i] = s.encoding(e, i-from, vectors[i-from], labelIDs[i-from])
		}
		return nil
	})
}
