package db

import (
	"math"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/mih"
	"github.com/fddhdb/fddhdb/model"
)

// A point is a query in the terms of a space.
type point struct {
	code codec.Code
	z    []float64 // projection; nil for a query by code
	unit []float32 // z at length 1, to order the items of one code by; nil: do not

	scorer   *mih.Scorer  // of z
	modality int          // that z comes from
	vector   model.Vector // likewise, in the form of the modality
}

// point finds out which codes a query is for, and encodes it.
func (s *searcher) point(q Query) (*point, error) {
	if err := q.checkStart(); err != nil {
		return nil, err
	}
	var err error
	if s.set, err = s.cv.CodesFor(q.To); err != nil {
		return nil, err
	}
	return s.encode(q)
}

// checkStart checks that a query starts from one thing.
func (q *Query) checkStart() error {
	given := 0
	for _, is := range []bool{q.Vector != nil, q.Sparse != nil, q.Key != "", q.Code != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		return fault.Invalid("a query starts from one of a vector, a key and a code; %d are given", given)
	}
	return nil
}

// encode is point once it is known which codes are searched; only a query by key needs
// to know.
func (s *searcher) encode(q Query) (*point, error) {
	cv := s.cv
	switch {
	case q.Vector != nil || q.Sparse != nil:
		if q.From == "" {
			return nil, fault.Invalid("a query by vector names the modality that the vector is of")
		}
		t, err := cv.ModalityOf(q.From)
		if err != nil {
			return nil, err
		}
		x, err := vectorOf(&cv.Modalities[t], q.Vector, q.Sparse)
		if err != nil {
			return nil, err
		}
		return s.project(t, x)
	case q.Code != nil:
		if len(q.Code) != codec.Bytes(cv.Space.Bits) {
			return nil, fault.Invalid("code of %d bytes, collection %q has codes of %d (%d bits)",
				len(q.Code), cv.Name, codec.Bytes(cv.Space.Bits), cv.Space.Bits)
		}
		p := &point{code: codec.NewCode(cv.Space.Bits)}
		p.code.SetBytes(q.Code)
		return p, nil
	}
	row, err := cv.Row(s.v.Snap, q.Key)
	if err != nil {
		return nil, err
	}
	s.self = row
	if q.From != "" {
		t, err := cv.ModalityOf(q.From)
		if err != nil {
			return nil, err
		}
		if !cv.IndexOnly {
			x, found, err := record.ReadVector(s.v.Snap, cv.ID, row, t, cv.Modalities[t])
			if err != nil {
				return nil, err
			}
			if found {
				return s.project(t, x)
			}
		}
	}
	code, found, err := cv.ItemCode(s.v.Snap, s.set, row)
	if err == nil && !found {
		lacks := "neither features nor a label that the model knows"
		if _, is := s.set.Modality(); is {
			lacks = "no features of a modality that the model knows, and there are codes for these only"
		}
		err = fault.Invalid("item %q has no code: it has %s", q.Key, lacks)
	}
	if err != nil {
		return nil, err
	}
	return &point{code: code}, nil
}

// project encodes a vector of modality t as a query.
func (s *searcher) project(t int, x model.Vector) (*point, error) {
	sp := s.cv.Space
	e := sp.Encoders.Get().(*spaces.Encoder)
	defer sp.Encoders.Put(e)
	i, known := e.Position(t)
	if !known {
		return nil, s.cv.Unlearned(t)
	}
	p := &point{z: make([]float64, sp.Bits), modality: t, vector: x}
	if err := e.ProjectVectors(p.z, i, []model.Vector{x}); err != nil {
		return nil, fault.Invalid("encode: %w", err)
	}
	if spaces.IsZero(p.z) {
		return nil, errFarAway
	}
	p.scorer = mih.NewScorer(p.z)
	p.code = p.scorer.Code()
	sum := 0.0
	for _, z := range p.z {
		sum += z * z
	}
	if sum > 0 && !math.IsInf(sum, 1) {
		p.unit = make([]float32, len(p.z))
		for j, z := range p.z {
			p.unit[j] = float32(z / math.Sqrt(sum))
		}
	}
	return p, nil
}
