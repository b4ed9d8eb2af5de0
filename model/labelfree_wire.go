package model

import "github.com/fddhdb/fddhdb/model/internal/dense"

// The body of a model without labels, with the numbers of marshal.go:
//
//	size      what
//	4         uint32 q: bits, a multiple of 8 from 8 to 4096
//	1         uint8 method: 4 itq, 5 cca-itq
//	8         uint64 seed
//	4         uint32 T: modalities, 1 to 1024; and T times:
//	2+l         uint16 l, 1 to 1024, and l bytes: the name in UTF-8, distinct
//	4           uint32 d: dimension, 1 to 2^15-1
//	1           uint8 form of vectors: 0 dense, 1 sparse
//	1           uint8 features, as in marshal.go
//	            zscore and log: their numbers, as in marshal.go
//	8d          float64: the mean of the features
//	8qd         float64: W, a row of d for each bit

// marshalLabelFree is MarshalBinary for a model without labels.
func (m *Model) marshalLabelFree() []byte {
	w := newWireWriter(modelMagic)
	w.u32(uint32(m.bits))
	w.u8(uint8(m.method))
	w.u64(m.seed)
	w.u32(uint32(len(m.modalities)))
	for t, mod := range m.modalities {
		f := m.maps[t]
		w.modality(mod)
		w.u8(uint8(f.features.kind))
		w.f64s(f.features.shift...)
		w.f64s(f.features.scale...)
		w.f64s(f.mean...)
		p := m.p[t].Unpack()
		for j := range m.bits {
			w.f64s(p.Data[j*p.Cols : j*p.Cols+mod.Dim]...) // without the intercept
		}
	}
	return w.finish()
}

// modality writes name, dimension and form of a modality.
func (w *wireWriter) modality(mod Modality) {
	w.name(mod.Name)
	w.u32(uint32(mod.Dim))
	if mod.Sparse {
		w.u8(formSparse)
	} else {
		w.u8(formDense)
	}
}

// labelFree reads the body of a model without labels, behind the bits and the method, which m has.
func (r *wireReader) labelFree(m *Model) (*Model, error) {
	bits, method, seed := m.bits, m.method, r.u64("seed")
	if r.err == nil && int(method) >= len(methodNames) {
		r.fail("method %d", method)
	}
	var modalities []Modality
	var prepared []*features
	var means [][]float64
	var w []dense.Matrix[float64]
	names := map[string]bool{}
	for t := range r.count("the number of modalities", 1, maxModalities) {
		mod := r.modality(names)
		if r.err == nil && mod.Dim >= maxFeatures {
			r.fail("%d dimensions of modality %d", mod.Dim, t)
		}
		f := r.features(mod, FeatureKind(r.u8("features")))
		mean := r.f64s(mod.Dim, "mean")
		rows := dense.Of(bits, mod.Dim, r.f64s(bits*mod.Dim, "W"))
		if r.err != nil {
			return nil, r.err
		}
		modalities, prepared, means, w = append(modalities, mod), append(prepared, f), append(means, mean), append(w, rows)
	}
	if err := r.close(); err != nil {
		return nil, err
	}
	return newLabelFree(method, bits, seed, modalities, prepared, means, w), nil
}

// modality reads name, dimension and form of a modality.
func (r *wireReader) modality(names map[string]bool) Modality {
	mod := Modality{Name: r.modalityName(names)}
	mod.Dim = r.count("dimension", 1, maxDim)
	form := r.u8("form")
	if form > formSparse {
		r.fail("form %d of vectors", form)
	}
	mod.Sparse = form == formSparse
	return mod
}

// features reads the numbers of features of this kind.
func (r *wireReader) features(mod Modality, kind FeatureKind) *features {
	f := &features{kind: kind}
	if r.err == nil && kind > FeaturesHellingerL2 {
		r.fail("features %d", kind)
	}
	switch kind {
	case FeaturesZScore:
		if !mod.Sparse {
			f.shift = r.f64s(mod.Dim, "means")
		}
		f.scale = r.positive(mod.Dim, "deviations")
	case FeaturesLog:
		f.shift = r.positive(mod.Dim, "eps")
	}
	return f
}
