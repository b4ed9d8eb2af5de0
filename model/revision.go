package model

import (
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/model/internal/dense"
	"github.com/fddhdb/fddhdb/model/internal/wire"
)

// The body of a revision (magic "FDHR"), in the frame
// that package wire describes, with the numbers of marshal.go:
//
//	8         uint64 fingerprint of the base: the model that it is a revision of
//	4         uint32 q: bits, as the base has
//	4         uint32 g: labels that the base does not know
//	4g        uint32 each: these labels, ascending, distinct
//	8gq       float64: their rows of C
//	8c        unless the aim is codes: float64: the weight of each label, of the base and
//	          of these, more than 0
//	4         uint32 T: modalities, as the base has; and T times:
//	8           float64 gamma, zero or more
//	4           uint32 k: features, as the base has
//	8qk         float64: the projection P, a row of k for each bit
const revisionMagic = "FDHR"

// MarshalRevision returns the difference of m to its base ([Online.Revision],
// [Model.Refit], [Model.Grow]): projections, their gammas, added labels, and the weights of
// all. That is 8 q k bytes a modality, 4 + 8 q an added label, 8 a weight, and a little
// more. Equal revisions give equal bytes.
//
// The error wraps ErrMismatch if m differs from base in anything else: if a label set
// that base knows may have another code, a vector other features, or an unlabelled item
// another fusion of its projections.
func (m *Model) MarshalRevision(base *Model) ([]byte, error) {
	if m.LabelFree() {
		return nil, errNoRevisions
	}
	grown, err := m.grownSince(base)
	if err != nil {
		return nil, err
	}
	w := wire.NewWriter(revisionMagic)
	w.U64(base.fingerprint)
	w.U32(uint32(m.bits))
	w.U32(uint32(len(grown)))
	for _, l := range grown {
		w.U32(m.labels[l])
	}
	for _, l := range grown {
		w.F64s(m.c[l*m.bits : (l+1)*m.bits]...)
	}
	w.F64s(m.weights...)
	w.U32(uint32(len(m.p)))
	for t, p := range m.p {
		w.F64s(m.gammas[t])
		w.U32(uint32(m.maps[t].Size()))
		w.F64s(p.Unpack().Data...)
	}
	return w.Finish(), nil
}

// errNoRevisions says that a model without labels has no revisions.
var errNoRevisions = fmt.Errorf("%w: a model that was learned without labels has no revisions", ErrMismatch)

// grownSince returns the positions of the labels that base does not know.
func (m *Model) grownSince(base *Model) (grown []int, err error) {
	other := func(what string) ([]int, error) {
		return nil, fmt.Errorf("%w: the model is no revision of the base: it has other %s", ErrMismatch, what)
	}
	if m.bits != base.bits || m.method != base.method || m.seed != base.seed ||
		!slices.Equal(m.modalities, base.modalities) {
		return other("bits, modalities, method or seed")
	}
	if m.aim != base.aim || m.prior != base.prior {
		return other("aim or prior")
	}
	if !slices.Equal(m.fusion.Mean, base.fusion.Mean) ||
		!slices.Equal(m.fusion.Weights, base.fusion.Weights) {
		return other("fusion")
	}
	known := 0
	for l, label := range m.labels {
		if known == len(base.labels) || base.labels[known] != label {
			grown = append(grown, l)
			continue
		}
		if !slices.Equal(m.c[l*m.bits:(l+1)*m.bits], base.c[known*m.bits:(known+1)*m.bits]) {
			return other(fmt.Sprintf("directions, that of label %d for one", label))
		}
		known++
	}
	if known < len(base.labels) {
		return other(fmt.Sprintf("labels, and not %d", base.labels[known]))
	}
	if !slices.Equal(m.maps, base.maps) { // the same in memory; if read from bytes they may still be equal
		as := *m
		as.labels, as.c, as.weights = base.labels, base.c, base.weights
		if as.sign(); as.fingerprint != base.fingerprint {
			return other("maps")
		}
	}
	return grown, nil
}

// UnmarshalRevision reads a revision of m that MarshalRevision has written. The bytes may be of any origin,
// and are not kept. It returns the model that was written, to the last bit. The model shares the maps of m,
// so it takes only the memory of its projections. The error wraps codec.ErrCorrupt, or ErrMismatch if it is a
// revision of another model, or is a *codec.FormatError for one in another format.
func (m *Model) UnmarshalRevision(b []byte) (*Model, error) {
	if m.LabelFree() {
		return nil, errNoRevisions
	}
	r, err := wire.Open(b, "revision", revisionMagic)
	if err != nil {
		return nil, err
	}
	if of := r.U64("fingerprint"); r.Err == nil && of != m.fingerprint {
		return nil, fmt.Errorf("%w: the bytes are a revision of another model, %016x instead of %016x",
			ErrMismatch, of, m.fingerprint)
	}
	if q := r.Bits(); r.Err == nil && q != m.bits {
		r.Fail("%d bits, where its base has %d", q, m.bits)
	}
	next := *m
	readGrown(r, &next)
	if r.Err == nil && m.aim != AimCodes {
		next.weights = r.Positive(len(next.labels), "the weights of labels")
	}
	if T := r.Count("the number of modalities", 1, wire.MaxModalities); r.Err == nil && T != len(m.maps) {
		r.Fail("%d modalities, where its base has %d", T, len(m.maps))
	}
	next.gammas, next.p = nil, nil
	for t, f := range m.maps {
		gamma := r.F64("gamma")
		if r.Err == nil && gamma < 0 {
			r.Fail("gamma is %g", gamma)
		}
		k := r.Count("the number of features", 1, wire.MaxFeatures)
		if r.Err == nil && k != f.Size() {
			r.Fail("%d features of modality %q, where its base has %d", k, m.modalities[t].Name, f.Size())
		}
		p := r.F64s(m.bits*k, "P")
		if r.Err != nil {
			return nil, r.Err
		}
		next.gammas = append(next.gammas, gamma)
		next.p = append(next.p, dense.Pack(dense.Of(m.bits, k, p)))
	}
	if err := r.Close(); err != nil {
		return nil, err
	}
	if len(next.labels) > len(m.labels) {
		next.sign()
	}
	return &next, nil
}

// readGrown reads labels and their directions, and merges them with the labels of m.
func readGrown(r *wire.Reader, m *Model) {
	n := r.Count("the number of new labels", 0, wire.MaxLabels-len(m.labels))
	var labels []uint32
	for range n {
		l := r.U32("labels")
		if r.Err != nil {
			return
		}
		if len(labels) > 0 && l <= labels[len(labels)-1] {
			r.Fail("label %d follows %d", l, labels[len(labels)-1])
		}
		if _, known := slices.BinarySearch(m.labels, l); known {
			r.Fail("label %d is known to the base", l)
		}
		labels = append(labels, l)
	}
	c := r.F64s(n*m.bits, "C")
	if r.Err != nil || n == 0 {
		return
	}
	oldLabels, oldC := m.labels, m.c
	m.labels, m.c = nil, nil
	for len(labels) > 0 || len(oldLabels) > 0 {
		from, directions := &labels, &c
		if len(labels) == 0 || len(oldLabels) > 0 && oldLabels[0] < labels[0] {
			from, directions = &oldLabels, &oldC
		}
		m.labels, m.c = append(m.labels, (*from)[0]), append(m.c, (*directions)[:m.bits]...)
		*from, *directions = (*from)[1:], (*directions)[m.bits:]
	}
}

// GrownSince returns the labels that m knows and base does not, where m is a revision of base: it differs
// from it in projections, their gammas, weights of labels, and labels that have grown. For another model the
// error wraps ErrMismatch.
func (m *Model) GrownSince(base *Model) (labels []uint32, err error) {
	if m.LabelFree() {
		return nil, errNoRevisions
	}
	grown, err := m.grownSince(base)
	for _, l := range grown {
		labels = append(labels, m.labels[l])
	}
	return labels, err
}
