package model

import (
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/model/internal/wire"
)

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
	w := wire.NewWriter(modelMagic)
	w.U32(uint32(m.bits))
	w.U8(uint8(m.method))
	w.U64(m.seed)
	w.U32(uint32(len(m.modalities)))
	for t, mod := range m.modalities {
		f := m.maps[t]
		WriteModality(w, mod)
		w.U8(uint8(f.features.Kind))
		w.F64s(f.features.Shift...)
		w.F64s(f.features.Scale...)
		w.F64s(f.mean...)
		p := m.p[t].Unpack()
		for j := range m.bits {
			w.F64s(p.Data[j*p.Cols : j*p.Cols+mod.Dim]...) // without the intercept
		}
	}
	return w.Finish()
}

// WriteModality writes name, dimension and form of a modality.
func WriteModality(w *wire.Writer, mod Modality) {
	w.Name(mod.Name)
	w.U32(uint32(mod.Dim))
	if mod.Sparse {
		w.U8(formSparse)
	} else {
		w.U8(formDense)
	}
}

// readLabelFree reads the rest of a model without labels, behind the seed.
func readLabelFree(r *wire.Reader, p *Parts) {
	names := map[string]bool{}
	for t := range r.Count("the number of modalities", 1, wire.MaxModalities) {
		mod := ReadModality(r, names)
		if r.Err == nil && mod.Dim >= wire.MaxFeatures {
			r.Fail("%d dimensions of modality %d", mod.Dim, t)
		}
		f := readFeatureMap(r, mod, MapLinear, ReadFeatures(r, mod, FeatureKind(r.U8("features"))))
		w := r.F64s(p.Bits*mod.Dim, "W")
		if r.Err != nil {
			return
		}
		p.Modalities, p.Maps, p.Projections = append(p.Modalities, mod), append(p.Maps, f),
			append(p.Projections, ZeroIntercept(w, p.Bits))
		p.Gammas, p.Fusion = append(p.Gammas, 0), append(p.Fusion, 1)
	}
}

// ReadModality reads name, dimension and form of a modality.
func ReadModality(r *wire.Reader, names map[string]bool) Modality {
	mod := Modality{Name: r.ModalityName(names)}
	mod.Dim = r.Count("dimension", 1, wire.MaxDim)
	form := r.U8("form")
	if form > formSparse {
		r.Fail("form %d of vectors", form)
	}
	mod.Sparse = form == formSparse
	return mod
}

// ReadFeatures reads the numbers of features of this kind.
func ReadFeatures(r *wire.Reader, mod Modality, kind FeatureKind) *Features {
	f := &Features{Kind: kind}
	if r.Err == nil && kind > FeaturesHellingerL2 {
		r.Fail("features %d", kind)
	}
	switch kind {
	case FeaturesZScore:
		if !mod.Sparse {
			f.Shift = r.F64s(mod.Dim, "means")
		}
		f.Scale = r.Positive(mod.Dim, "deviations")
	case FeaturesLog:
		f.Shift = r.Positive(mod.Dim, "eps")
	}
	return f
}

// The body of a model (magic "FDHM") in the frame that package wire
// describes; all numbers little-endian, float64 and float32 as IEEE 754 bits
// and finite, matrices by rows without gaps:
//
//	size      what
//	4         uint32 q: bits, a multiple of 8 from 8 to 4096
//	1         uint8 method: 1 labels, 2 joint, 3 paper
//	8         uint64 seed
//	4         uint32 c: labels, 1 to 2^20
//	4c        uint32 each: the labels, ascending, distinct
//	8cq       float64: C, a row of q for each label; C J if the aim is labels
//	1         uint8 aim: 1 labels, 2 codes, 3 weighted
//	          labels and weighted only:
//	8           float64: the prior a, 0 to 1
//	8c          float64: D, the weight of each label, more than 0
//	4         uint32 T: modalities, 1 to 1024
//	          and T times:
//	2+l       uint16 l, 1 to 1024, and l bytes: the name in UTF-8, distinct
//	4         uint32 d: dimension, 1 to 2^24
//	1         uint8 form of vectors: 0 dense, 1 sparse
//	1         uint8 map: 0 rbf, 1 linear, 2 rbf+linear
//	1         uint8 features: 0 raw, 1 zscore, 2 hellinger, 3 log, 4 l2,
//	          5 hellinger-l2
//	8         float64 gamma, zero or more
//	          zscore only:
//	8d          dense only: float64: the mean of each column of the training vectors
//	8d          float64: 1 / its standard deviation, more than 0
//	          log only:
//	8d          float64: eps of each column, more than 0
//	8d        float64: the mean of the features of the training vectors
//	          rbf and rbf+linear only:
//	8           float64 sigma, more than 0
//	4           uint32 k: anchors, 1 to 2^15
//	4kd         dense: float32: anchors, (a - mean) / sqrt(sigma), a row each
//	            sparse, k times: an anchor a, neither centred nor scaled
//	4             uint32 m: numbers, 0 to d
//	4m            uint32: their dimensions, ascending, distinct
//	4m            float32: the numbers
//	8qk       float64: the projection P, a row of k for each bit; k = d+1 if
//	          linear, and d+1 more than the anchors if rbf+linear, at most 2^15
//	          and after all of them:
//	8T        float64: the weights of the fusion, zero or more and not all zero
//	8q        float64: what is subtracted from each projection: the mean of what the training
//	          items teach, or zeros; -1 to 1 each if the aim is codes
//
// A model without labels has one of the other methods, and the body that stands further down.
//
// The body of statistics (magic "FDHS"):
//
//	8         uint64 fingerprint of the model's maps and code space
//	4         uint32 q: bits
//	4         uint32 T: modalities, 1 to 1024
//	4         uint32 c: labels, 1 to 2^20, for the aim labels; else 0
//	1         uint8: 1 for the aim weighted, else 0
//	          and T times:
//	2+l       uint16 l, 1 to 1024, and l bytes: the name in UTF-8, distinct
//	4         uint32 k: features, 1 to 2^15
//	8         uint64 n: items, below 2^63
//	8k(k+1)/2 float64: the lower triangle of A by rows: 1 number, 2, ... k
//	          codes and weighted:
//	8qk       float64: B, a row of k for each bit
//	          weighted only:
//	8         float64: the sum of the squared weights of the items, zero or more
//	          labels only:
//	8ck       float64: B, a row of k for each label
//	4c(c+1)   float64: the lower triangle of Y Y' by rows
//	8         uint64 u: items that projections have taught, at most n
//	          if u > 0:
//	8qk         float64: H phi' of these items, a row of k for each bit
const (
	modelMagic      = "FDHM"
	statisticsMagic = "FDHS"
)

// Forms of the vectors of a modality, as stored.
const (
	formDense  = 0
	formSparse = 1
)

// MarshalBinary returns the binary form of the model. Equal models give equal
// bytes. The error is always nil.
func (m *Model) MarshalBinary() ([]byte, error) {
	if m.LabelFree() {
		return m.marshalLabelFree(), nil
	}
	w := wire.NewWriter(modelMagic)
	w.U32(uint32(m.bits))
	w.U8(uint8(m.method))
	w.U64(m.seed)
	w.U32(uint32(len(m.labels)))
	for _, l := range m.labels {
		w.U32(l)
	}
	w.F64s(m.c...)
	w.U8(uint8(m.aim))
	if m.aim != AimCodes {
		w.F64s(m.prior)
		w.F64s(m.weights...)
	}
	w.U32(uint32(len(m.modalities)))
	for t, mod := range m.modalities {
		f := m.maps[t]
		WriteModality(w, mod)
		w.U8(uint8(f.kind))
		w.U8(uint8(f.features.Kind))
		w.F64s(m.gammas[t])
		w.F64s(f.features.Shift...)
		w.F64s(f.features.Scale...)
		w.F64s(f.mean...)
		if f.kind != MapLinear {
			w.F64s(f.sigma)
			w.U32(uint32(len(f.norms)))
			if mod.Sparse {
				writeSparse(w, &f.sparse.anchors)
			} else {
				w.F32s(f.anchors.Unpack().Data)
			}
		}
		w.F64s(m.p[t].Unpack().Data...)
	}
	w.F64s(m.fusion.Weights...)
	w.F64s(m.fusion.Mean...)
	return w.Finish(), nil
}

// Unmarshal reads a model from bytes of any origin, and does not keep them. The error wraps codec.ErrCorrupt,
// or is a *codec.FormatError for a model in another format.
func Unmarshal(b []byte) (*Model, error) {
	r, err := wire.Open(b, "model", modelMagic)
	if err != nil {
		return nil, err
	}
	p := Parts{Bits: r.Bits(), Method: Method(r.U8("method")), Seed: r.U64("seed")}
	switch {
	case r.Err != nil:
	case p.Method == MethodAuto || int(p.Method) >= len(methodNames):
		r.Fail("method %d", p.Method)
	case p.Method.LabelFree():
		readLabelFree(r, &p)
	default:
		readLabelled(r, &p)
	}
	if err := r.Close(); err != nil {
		return nil, err
	}
	m, err := New(p)
	if err != nil {
		return nil, wire.Corrupt("%v", err)
	}
	return m, nil
}

// readLabelled reads the rest of a model learned from labels, behind the seed.
func readLabelled(r *wire.Reader, p *Parts) {
	c := r.Count("the number of labels", 1, wire.MaxLabels)
	for range c {
		p.Labels = append(p.Labels, r.U32("labels"))
		if r.Err != nil {
			return
		}
	}
	p.C = r.F64s(c*p.Bits, "C")
	p.Aim = Aim(r.U8("aim"))
	if p.Aim != AimCodes {
		p.Prior = r.F64("prior")
		p.Weights = r.F64s(c, "the weights of labels")
	}
	names := map[string]bool{}
	for range r.Count("the number of modalities", 1, wire.MaxModalities) {
		mod := ReadModality(r, names)
		kind, features := MapKind(r.U8("map")), FeatureKind(r.U8("features"))
		if r.Err == nil && kind > MapRBFLinear {
			r.Fail("map %d", kind)
		}
		gamma := r.F64("gamma")
		f := readFeatureMap(r, mod, kind, ReadFeatures(r, mod, features))
		if r.Err != nil {
			return
		}
		p.Modalities, p.Maps, p.Gammas = append(p.Modalities, mod), append(p.Maps, f), append(p.Gammas, gamma)
		p.Projections = append(p.Projections, r.F64s(p.Bits*f.Size(), "P"))
	}
	p.Fusion, p.Mean = r.F64s(len(p.Modalities), "weights"), r.F64s(p.Bits, "the mean aim")
}

// readFeatureMap reads means, sigma and anchors, and makes the map; nil after an error.
func readFeatureMap(r *wire.Reader, mod Modality, kind MapKind, features *Features) *Map {
	mean := r.F64s(mod.Dim, "mean")
	if r.Err == nil && kind != MapRBF && kind.Size(0, mod.Dim) > wire.MaxFeatures {
		r.Fail("a linear map of %d dimensions", mod.Dim)
	}
	if r.Err != nil {
		return nil
	}
	if kind == MapLinear {
		return NewLinearMap(mod, features, mean)
	}
	sigma := r.F64("sigma")
	if r.Err == nil && !(sigma > 0 && !math.IsInf(1/sigma, 0)) {
		r.Fail("sigma is %g", sigma)
	}
	k := r.Count("the number of anchors", 1, wire.MaxFeatures)
	if r.Err == nil && kind.Size(k, mod.Dim) > wire.MaxFeatures {
		r.Fail("a map of %d features", kind.Size(k, mod.Dim))
	}
	var f *Map
	if mod.Sparse {
		anchors := readSparse(r, k, mod.Dim, "anchors")
		if r.Err != nil {
			return nil
		}
		f = newSparseMap(kind, mean, sigma, anchors)
	} else {
		anchors := r.F32s(k*mod.Dim, "anchors")
		if r.Err != nil {
			return nil
		}
		f = rbfMap(mean, sigma, anchors)
		f.kind = kind
	}
	f.features = features
	return f
}

// MarshalBinary returns the binary form of the statistics: 4 k (k+1) + 8 c k bytes for
// each modality, or 8 q k for codes, and a little more. The error is always nil.
func (s *Statistics) MarshalBinary() ([]byte, error) {
	weighted := s.labels == 0 && s.weighted
	w := wire.NewWriter(statisticsMagic)
	size := wire.FrameBytes + 64
	for _, p := range s.parts {
		size += 4*p.k*(p.k+1) + 8*(len(p.b)+len(p.pairs)+len(p.taught)) + len(p.name) + 32
	}
	w.B = slices.Grow(w.B, size) // large: growing it step by step would take twice the memory
	w.U64(s.fingerprint)
	w.U32(uint32(s.bits))
	w.U32(uint32(len(s.parts)))
	w.U32(uint32(s.labels))
	w.U8(map[bool]uint8{true: 1}[weighted])
	for _, p := range s.parts {
		w.Name(p.name)
		w.U32(uint32(p.k))
		w.U64(uint64(p.n))
		for i := range p.k {
			w.F64s(p.a[i*p.k : i*p.k+i+1]...)
		}
		w.F64s(p.b...)
		switch c := s.labels; {
		case c > 0:
			for l := range c {
				w.F64s(p.pairs[l*c : l*c+l+1]...)
			}
			w.U64(uint64(p.unlabelled))
			if p.unlabelled > 0 {
				w.F64s(p.taught...)
			}
		case weighted:
			w.F64s(p.square)
		}
	}
	return w.Finish(), nil
}

// UnmarshalStatistics reads statistics; see Unmarshal.
func UnmarshalStatistics(b []byte) (*Statistics, error) {
	r, err := wire.Open(b, "statistics", statisticsMagic)
	if err != nil {
		return nil, err
	}
	s := &Statistics{fingerprint: r.U64("fingerprint"), bits: r.Bits()}
	names := map[string]bool{}
	modalities := r.Count("the number of modalities", 1, wire.MaxModalities)
	s.labels = r.Count("the number of labels", 0, wire.MaxLabels)
	weighted := r.U8("the aim")
	if r.Err == nil && (weighted > 1 || weighted == 1 && s.labels > 0) {
		r.Fail("aim %d of %d labels", weighted, s.labels)
	}
	s.weighted = weighted == 1
	for range modalities {
		p := part{name: r.ModalityName(names), k: r.Count("the number of features", 1, wire.MaxFeatures)}
		n := r.U64("the number of items")
		if n > math.MaxInt64 {
			r.Fail("%d items", n)
		}
		p.n = int64(n)
		if p.a = r.Triangle(p.k, "A"); r.Err != nil {
			return nil, r.Err
		}
		switch {
		case s.labels > 0:
			readLabelSums(r, s, &p)
		default:
			p.b = r.F64s(s.bits*p.k, "B")
			p.square = float64(p.n)
			if s.weighted {
				p.square = r.F64("the weight of the items")
			}
			if r.Err == nil && p.square < 0 {
				r.Fail("a weight of %g of the items", p.square)
			}
		}
		s.parts = append(s.parts, p)
	}
	if err := r.Close(); err != nil {
		return nil, err
	}
	return s, nil
}

// labelSums reads the sums that AimLabels has for a modality, besides A.
func readLabelSums(r *wire.Reader, s *Statistics, p *part) {
	p.b = r.F64s(s.labels*p.k, "B")
	if p.pairs = r.Triangle(s.labels, "the pairs of labels"); r.Err != nil {
		return
	}
	for l := range s.labels {
		if p.pairs[l*s.labels+l] < 0 {
			r.Fail("label %d of fewer than no items", l)
		}
	}
	taught := r.U64("the number of items without labels")
	if r.Err == nil && taught > uint64(p.n) {
		r.Fail("%d of %d items without labels", taught, p.n)
	}
	if r.Err != nil || taught == 0 {
		return
	}
	p.unlabelled = int64(taught)
	p.taught = r.F64s(s.bits*p.k, "what projections have taught")
}
