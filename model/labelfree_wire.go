package model

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
		writeModality(w, mod)
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
func writeModality(w *wireWriter, mod Modality) {
	w.name(mod.Name)
	w.u32(uint32(mod.Dim))
	if mod.Sparse {
		w.u8(formSparse)
	} else {
		w.u8(formDense)
	}
}

// readLabelFree reads what follows the seed of a model without labels.
func readLabelFree(r *wireReader, p *Parts) {
	names := map[string]bool{}
	for t := range r.count("the number of modalities", 1, maxModalities) {
		mod := readModality(r, names)
		if r.err == nil && mod.Dim >= maxFeatures {
			r.fail("%d dimensions of modality %d", mod.Dim, t)
		}
		f := readFeatureMap(r, mod, MapLinear, readFeatures(r, mod, FeatureKind(r.u8("features"))))
		w := r.f64s(p.Bits*mod.Dim, "W")
		if r.err != nil {
			return
		}
		p.Modalities, p.Maps, p.Projections = append(p.Modalities, mod), append(p.Maps, f), append(p.Projections, zeroIntercept(w, p.Bits))
		p.Gammas, p.Fusion = append(p.Gammas, 0), append(p.Fusion, 1)
	}
}

// modality reads name, dimension and form of a modality.
func readModality(r *wireReader, names map[string]bool) Modality {
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
func readFeatures(r *wireReader, mod Modality, kind FeatureKind) *features {
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
