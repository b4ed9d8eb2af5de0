package model

import (
	"math"
	"slices"
)

// The body of a model (magic "FDHM") in the frame that wire.go
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
//	8         float64: its centre, 0 to 1
//	8q        float64: the mean of what the training items teach; -1 to 1 each if
//	          the aim is codes
//
// A model without labels has one of the other methods, and the body of labelfree_wire.go.
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
	w := newWireWriter(modelMagic)
	w.u32(uint32(m.bits))
	w.u8(uint8(m.method))
	w.u64(m.seed)
	w.u32(uint32(len(m.labels)))
	for _, l := range m.labels {
		w.u32(l)
	}
	w.f64s(m.c...)
	w.u8(uint8(m.aim))
	if m.aim != AimCodes {
		w.f64s(m.prior)
		w.f64s(m.weights...)
	}
	w.u32(uint32(len(m.modalities)))
	for t, mod := range m.modalities {
		f := m.maps[t]
		writeModality(w, mod)
		w.u8(uint8(f.kind))
		w.u8(uint8(f.features.kind))
		w.f64s(m.gammas[t])
		w.f64s(f.features.shift...)
		w.f64s(f.features.scale...)
		w.f64s(f.mean...)
		if f.kind != MapLinear {
			w.f64s(f.sigma)
			w.u32(uint32(len(f.norms)))
			if mod.Sparse {
				writeSparse(w, &f.sparse.anchors)
			} else {
				w.f32s(f.anchors.Unpack().Data)
			}
		}
		w.f64s(m.p[t].Unpack().Data...)
	}
	w.f64s(m.fusion.weights...)
	w.f64s(m.fusion.centre)
	w.f64s(m.mean...)
	return w.finish(), nil
}

// Unmarshal reads a model from bytes of any origin, and keeps none of them. The error
// wraps codec.ErrCorrupt, or is a *codec.FormatError for a model in another format.
func Unmarshal(b []byte) (*Model, error) {
	r, err := openFrame(b, "model", modelMagic)
	if err != nil {
		return nil, err
	}
	p := Parts{Bits: r.bits(), Method: Method(r.u8("method")), Seed: r.u64("seed")}
	switch {
	case r.err != nil:
	case p.Method == MethodAuto || int(p.Method) >= len(methodNames):
		r.fail("method %d", p.Method)
	case p.Method.LabelFree():
		readLabelFree(r, &p)
	default:
		readLabelled(r, &p)
	}
	if err := r.close(); err != nil {
		return nil, err
	}
	m, err := New(p)
	if err != nil {
		return nil, corrupt("%v", err)
	}
	return m, nil
}

// readLabelled reads what follows the seed of a model that has learned from labels.
func readLabelled(r *wireReader, p *Parts) {
	c := r.count("the number of labels", 1, maxLabels)
	for range c {
		p.Labels = append(p.Labels, r.u32("labels"))
		if r.err != nil {
			return
		}
	}
	p.C = r.f64s(c*p.Bits, "C")
	p.Aim = Aim(r.u8("aim"))
	if p.Aim != AimCodes {
		p.Prior = r.f64("prior")
		p.Weights = r.f64s(c, "the weights of labels")
	}
	names := map[string]bool{}
	for range r.count("the number of modalities", 1, maxModalities) {
		mod := readModality(r, names)
		kind, features := MapKind(r.u8("map")), FeatureKind(r.u8("features"))
		if r.err == nil && kind > MapRBFLinear {
			r.fail("map %d", kind)
		}
		gamma := r.f64("gamma")
		f := readFeatureMap(r, mod, kind, readFeatures(r, mod, features))
		if r.err != nil {
			return
		}
		p.Modalities, p.Maps, p.Gammas = append(p.Modalities, mod), append(p.Maps, f), append(p.Gammas, gamma)
		p.Projections = append(p.Projections, r.f64s(p.Bits*f.size(), "P"))
	}
	p.Fusion, p.Centre, p.Mean = r.f64s(len(p.Modalities), "weights"), r.f64("centre"), r.f64s(p.Bits, "the mean aim")
}

// readFeatureMap reads means, sigma and anchors, and makes the map; nil after an error.
func readFeatureMap(r *wireReader, mod Modality, kind MapKind, features *features) *featureMap {
	mean := r.f64s(mod.Dim, "mean")
	if r.err == nil && kind != MapRBF && kind.size(0, mod.Dim) > maxFeatures {
		r.fail("a linear map of %d dimensions", mod.Dim)
	}
	if r.err != nil {
		return nil
	}
	if kind == MapLinear {
		return newLinearMap(mod, features, mean)
	}
	sigma := r.f64("sigma")
	if r.err == nil && !(sigma > 0 && !math.IsInf(1/sigma, 0)) {
		r.fail("sigma is %g", sigma)
	}
	k := r.count("the number of anchors", 1, maxFeatures)
	if r.err == nil && kind.size(k, mod.Dim) > maxFeatures {
		r.fail("a map of %d features", kind.size(k, mod.Dim))
	}
	var f *featureMap
	if mod.Sparse {
		anchors := readSparse(r, k, mod.Dim, "anchors")
		if r.err != nil {
			return nil
		}
		f = newSparseMap(kind, mean, sigma, anchors)
	} else {
		anchors := r.f32s(k*mod.Dim, "anchors")
		if r.err != nil {
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
	w := newWireWriter(statisticsMagic)
	size := frameBytes + 64
	for _, p := range s.parts {
		size += 4*p.k*(p.k+1) + 8*(len(p.b)+len(p.pairs)+len(p.taught)) + len(p.name) + 32
	}
	w.b = slices.Grow(w.b, size) // large: growing it step by step would take twice the memory
	w.u64(s.fingerprint)
	w.u32(uint32(s.bits))
	w.u32(uint32(len(s.parts)))
	w.u32(uint32(s.labels))
	w.u8(map[bool]uint8{true: 1}[weighted])
	for _, p := range s.parts {
		w.name(p.name)
		w.u32(uint32(p.k))
		w.u64(uint64(p.n))
		for i := range p.k {
			w.f64s(p.a[i*p.k : i*p.k+i+1]...)
		}
		w.f64s(p.b...)
		switch c := s.labels; {
		case c > 0:
			for l := range c {
				w.f64s(p.pairs[l*c : l*c+l+1]...)
			}
			w.u64(uint64(p.unlabelled))
			if p.unlabelled > 0 {
				w.f64s(p.taught...)
			}
		case weighted:
			w.f64s(p.square)
		}
	}
	return w.finish(), nil
}

// UnmarshalStatistics reads statistics; see Unmarshal.
func UnmarshalStatistics(b []byte) (*Statistics, error) {
	r, err := openFrame(b, "statistics", statisticsMagic)
	if err != nil {
		return nil, err
	}
	s := &Statistics{fingerprint: r.u64("fingerprint"), bits: r.bits()}
	names := map[string]bool{}
	modalities := r.count("the number of modalities", 1, maxModalities)
	s.labels = r.count("the number of labels", 0, maxLabels)
	weighted := r.u8("the aim")
	if r.err == nil && (weighted > 1 || weighted == 1 && s.labels > 0) {
		r.fail("aim %d of %d labels", weighted, s.labels)
	}
	s.weighted = weighted == 1
	for range modalities {
		p := part{name: r.modalityName(names), k: r.count("the number of features", 1, maxFeatures)}
		n := r.u64("the number of items")
		if n > math.MaxInt64 {
			r.fail("%d items", n)
		}
		p.n = int64(n)
		if p.a = r.triangle(p.k, "A"); r.err != nil {
			return nil, r.err
		}
		switch {
		case s.labels > 0:
			readLabelSums(r, s, &p)
		default:
			p.b = r.f64s(s.bits*p.k, "B")
			p.square = float64(p.n)
			if s.weighted {
				p.square = r.f64("the weight of the items")
			}
			if r.err == nil && p.square < 0 {
				r.fail("a weight of %g of the items", p.square)
			}
		}
		s.parts = append(s.parts, p)
	}
	if err := r.close(); err != nil {
		return nil, err
	}
	return s, nil
}

// labelSums reads the sums that AimLabels has for a modality, besides A.
func readLabelSums(r *wireReader, s *Statistics, p *part) {
	p.b = r.f64s(s.labels*p.k, "B")
	if p.pairs = r.triangle(s.labels, "the pairs of labels"); r.err != nil {
		return
	}
	for l := range s.labels {
		if p.pairs[l*s.labels+l] < 0 {
			r.fail("label %d of fewer than no items", l)
		}
	}
	taught := r.u64("the number of items without labels")
	if r.err == nil && taught > uint64(p.n) {
		r.fail("%d of %d items without labels", taught, p.n)
	}
	if r.err != nil || taught == 0 {
		return
	}
	p.unlabelled = int64(taught)
	p.taught = r.f64s(s.bits*p.k, "what projections have taught")
}
