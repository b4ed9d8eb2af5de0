package search

import (
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/internal/quant"
	"github.com/fddhdb/fddhdb/mih"
	"github.com/fddhdb/fddhdb/model"
)

// A Point is the place of a query in a space: its code, and its projection if it starts from a vector. A
// query by the features of a stored item has a projection; a query by a code, or by the stored code of an
// item, has none. Several goroutines may read a Point.
type Point struct {
	Code codec.Code // signs of Z, or the given code; do not write to it
	Z    []float64  // projection, one number a bit; nil for a query by code

	// direction is the direction of Z, for similarities; nil: the order needs none.
	direction *quant.Query

	// features is the direction of vector if vectors decide among the items of one code, else nil.
	features *quant.Query

	scorer   *mih.Scorer  // of Z; nil without Z
	modality int          // number of the modality of vector, in the collection
	vector   model.Vector // the vector that Z projects, in the form of the modality; it may alias the query
}

// point sets the code set that the query searches, and encodes the query.
func (s *Searcher) point() (*Point, error) {
	q := &s.q
	if err := q.checkStart(); err != nil {
		return nil, err
	}
	var err error
	if s.Set, err = s.Cv.CodesFor(q.To); err != nil {
		return nil, err
	}
	return s.encode()
}

// checkStart checks that exactly one of a vector, a key and a code is given. An empty slice that is not nil
// counts as given.
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

// encode makes the Point of a query. A query by key sets self, and takes the first of these that exists: the
// projection of the stored vector of modality From, if From is given; the code of the item.
func (s *Searcher) encode() (*Point, error) {
	cv, q := s.Cv, &s.q
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
			return nil, fault.Invalid("code of %d bits, collection %q has codes of %d",
				8*len(q.Code), cv.Name, cv.Space.Bits)
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
	code, found, err := cv.ItemCode(s.V.Snap, row)
	if err == nil && !found {
		err = fault.Invalid("item %q has no code: it has neither features nor a label that the model knows", q.Key)
	}
	if err != nil {
		return nil, err
	}
	return &Point{Code: code}, nil
}

// Project encodes a vector of modality number t of the collection as a query. x is in the form of the
// modality, and the Point keeps it. Project needs only Cv, with a space, and takes its scratch memory from
// that space, so several goroutines may call it at once. A modality that the model does not know is
// fault.ErrNoModel, a vector with a projection of zero is ErrFarAway.
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
	p.direction = quant.NewQuery(p.Z)
	return p, nil
}

// in returns the collection in the query's space, with the projections of the query's revision.
func (q *Query) in(v *state.View, cv *state.CollectionView) (*state.CollectionView, error) {
	cv, err := cv.InSpace(q.Space)
	switch {
	case err != nil:
		return nil, err
	case q.Revision == 0 || cv.Space != nil && q.Revision == cv.Space.Revision:
		return cv, nil
	case cv.Space == nil || cv.Space.Learned == nil:
		return nil, fault.NotFound("revision %d of collection %q, which has no model", q.Revision, cv.Name)
	}
	kept := func(d *spaces.RevisionDescriptor) bool { return d.Revision == q.Revision }
	if q.Revision != 1 && !slices.ContainsFunc(cv.Revisions, kept) {
		return nil, fault.NotFound("revision %d of space %d of collection %q: the present one is %d", q.Revision, cv.Space.ID, cv.Name, cv.Space.Revision)
	}
	in := *cv
	in.Space, err = cv.Space.Earlier(v.Snap, cv.ID, q.Revision)
	return &in, err
}

// vector returns the vector that the query starts from, in the form of its modality.
func (q *Query) vector(m *record.Modality) (model.Vector, error) {
	if q.Sparse {
		return m.OfSparse(q.Index, q.Value)
	}
	return m.OfDense(q.Vector)
}

// Encode returns the code that New would search for, bits/8 bytes, and its projection, nil for a query by
// code. The caller may read both. Encode does not search.
func Encode(v *state.View, cv *state.CollectionView, q Query) (code []byte, z []float64, err error) {
	if cv, err = q.in(v, cv); err != nil {
		return nil, nil, err
	}
	if err := q.checkStart(); err != nil {
		return nil, nil, err
	}
	s := &Searcher{V: v, Cv: cv, q: q}
	if q.To != "" || q.Key != "" || cv.Space == nil {
		if s.Set, err = cv.CodesFor(q.To); err != nil {
			return nil, nil, err
		}
	}
	p, err := s.encode()
	if err != nil {
		return nil, nil, err
	}
	return p.Code.AppendBytes(nil, cv.Space.Bits), p.Z, nil
}

// ErrFarAway is a fault.ErrInvalid: the projection of a vector is zero, so it has no signs. This happens to
// vectors for which all kernels vanish.
var ErrFarAway = fault.Invalid("the vector is far from everything that the model has learned from: is it scaled as the training vectors were?")
