package search

import (
	"math"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/mih"
	"github.com/fddhdb/fddhdb/model"
)

// A Point is a query in the terms of a space.
type Point struct {
	Code codec.Code
	Z    []float64 // projection; nil for a query by code
	unit []float32 // z at length 1, to order the items of one code by; nil: do not

	scorer   *mih.Scorer  // of z
	modality int          // that z comes from
	vector   model.Vector // likewise, in the form of the modality
}

// point finds out which codes a query is for, and encodes it.
func (s *Searcher) point() (*Point, error) {
	q := s.q
	if err := q.checkStart(); err != nil {
		return nil, err
	}
	var err error
	if s.Set, err = s.Cv.CodesFor(q.To); err != nil {
		return nil, err
	}
	return s.encode()
}

// checkStart checks that a query starts from one thing.
func (q *Query) checkStart() error {
	given := 0
	for _, is := range []bool{q.Vector != nil, q.Sparse, q.Key != "", q.Code != nil} {
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
func (s *Searcher) encode() (*Point, error) {
	cv, q := s.Cv, s.q
	switch {
	case q.Vector != nil || q.Sparse:
		if q.From == "" {
			return nil, fault.Invalid("a query by vector names the modality that the vector is of")
		}
		t, err := cv.ModalityOf(q.From)
		if err != nil {
			return nil, err
		}
		x, err := q.vector(&cv.Modalities[t])
		if err != nil {
			return nil, err
		}
		return s.Project(t, x)
	case q.Code != nil:
		if len(q.Code) != codec.Bytes(cv.Space.Bits) {
			return nil, fault.Invalid("code of %d bytes, collection %q has codes of %d (%d bits)",
				len(q.Code), cv.Name, codec.Bytes(cv.Space.Bits), cv.Space.Bits)
		}
		p := &Point{Code: codec.NewCode(cv.Space.Bits)}
		p.Code.SetBytes(q.Code)
		return p, nil
	}
	row, err := cv.Row(s.V.Snap, q.Key)
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
			x, found, err := record.ReadVector(s.V.Snap, cv.ID, row, t, cv.Modalities[t])
			if err != nil {
				return nil, err
			}
			if found {
				return s.Project(t, x)
			}
		}
	}
	code, found, err := cv.ItemCode(s.V.Snap, s.Set, row)
	if err == nil && !found {
		lacks := "neither features nor a label that the model knows"
		if _, is := s.Set.Modality(); is {
			lacks = "no features of a modality that the model knows, and there are codes for these only"
		}
		err = fault.Invalid("item %q has no code: it has %s", q.Key, lacks)
	}
	if err != nil {
		return nil, err
	}
	return &Point{Code: code}, nil
}

// Project encodes a vector of modality t as a query.
func (s *Searcher) Project(t int, x model.Vector) (*Point, error) {
	sp := s.Cv.Space
	e := sp.Encoders.Get().(*spaces.Encoder)
	defer sp.Encoders.Put(e)
	i, known := e.Position(t)
	if !known {
		return nil, s.Cv.Unlearned(t)
	}
	p := &Point{Z: make([]float64, sp.Bits), modality: t, vector: x}
	if err := e.ProjectVectors(p.Z, i, []model.Vector{x}); err != nil {
		return nil, fault.Invalid("encode: %w", err)
	}
	if spaces.IsZero(p.Z) {
		return nil, ErrFarAway
	}
	p.scorer = mih.NewScorer(p.Z)
	p.Code = p.scorer.Code()
	sum := 0.0
	for _, z := range p.Z {
		sum += z * z
	}
	if sum > 0 && !math.IsInf(sum, 1) {
		p.unit = make([]float32, len(p.Z))
		for j, z := range p.Z {
			p.unit[j] = float32(z / math.Sqrt(sum))
		}
	}
	return p, nil
}

// vector returns the vector that the query starts from, in the form of its modality.
func (q *Query) vector(m *record.Modality) (model.Vector, error) {
	if q.Sparse {
		return m.OfSparse(q.Index, q.Value)
	}
	return m.OfDense(q.Vector)
}

// Encode returns the code that a query starts from, and the projection whose signs it
// is, nil where there is none.
func Encode(v *state.View, cv *state.CollectionView, q *Query) (codec.Code, []float64, error) {
	if err := q.checkStart(); err != nil {
		return nil, nil, err
	}
	s := &Searcher{V: v, Cv: cv, q: q}
	var err error
	if q.To != "" || q.Key != "" || cv.Space == nil {
		if s.Set, err = cv.CodesFor(q.To); err != nil {
			return nil, nil, err
		}
	}
	p, err := s.encode()
	if err != nil {
		return nil, nil, err
	}
	return p.Code, p.Z, nil
}

// ErrFarAway is about a vector without a direction in code space.
var ErrFarAway = fault.Invalid("the vector is far from everything that the model has learned from: is it scaled as the training vectors were?")
