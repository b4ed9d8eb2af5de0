package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model/internal/aims"
	"github.com/fddhdb/fddhdb/model/internal/dense"
	"github.com/fddhdb/fddhdb/model/internal/parallel"
	"gonum.org/v1/gonum/floats"
)

// Aim says what the projections learn from a labelled item. The package comment explains why AimLabels
// retrieves better.
type Aim uint8

const (
	AimAuto Aim = iota

	// AimLabels: C J D y, where y is the vector of the item's labels, of length 1. J removes the common part
	// of all classes (labelSets.withCentre), by fit.Options.Centre. D = diag((mean count / n_l)^a) favours
	// rare labels: n_l counts the items that have taught label l, once for each modality, items with m labels
	// as 1/m, and a is fit.Options.Prior.
	AimLabels

	// AimCodes: the code, sgn(C y), as published; J is the identity.
	AimCodes

	// AimWeighted: the code, times the mean weight of the item's labels in D. AimLabels becomes this aim if
	// there are more labels than bits (fit.Options.LabelEmbedding), because the directions of so many labels
	// are not at right angles.
	AimWeighted
)

var aimNames = []string{"auto", "labels", "codes", "weighted"}

func (a Aim) String() string { return nameOf(aimNames, int(a), "aim") }

// MarshalText writes the name, for reports.
func (a Aim) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads the name.
func (a *Aim) UnmarshalText(b []byte) error {
	i := slices.Index(aimNames, string(b))
	if i < 0 {
		return fmt.Errorf("%w: aim %q: it is %s", ErrOption, b, "auto, labels, codes or weighted")
	}
	*a = Aim(i)
	return nil
}

// ParseAim returns the aim with this name, for fit.Options: auto, labels or codes.
func ParseAim(s string) (a Aim, err error) {
	if err := a.UnmarshalText([]byte(s)); err != nil || a == AimWeighted {
		return 0, fmt.Errorf("%w: aim %q: it is auto, labels or codes", ErrOption, s)
	}
	return a, nil
}

// Aim returns the aim of the projections for labelled items; never AimAuto.
func (m *Model) Aim() Aim { return m.aim }

// Prior returns a; see AimLabels. It is 0 for AimCodes.
func (m *Model) Prior() float64 { return m.prior }

// Weights of labels, D, and what a label teaches.

// A mixture says how projections follow from the solution of the statistics: P = C J D W + s V. W are the
// projections to labels, and V the projections to the codes that projections have taught. With AimCodes and
// AimWeighted there is no mixture: P is the solution.
type mixture struct {
	weights []float64 // D, by label
	scale   float64   // s: the root mean square of the numbers of C J D y
}

// mixture returns the mixture for statistics of the model. Weights follow the counts of
// all modalities together.
func (m *Model) mixture(s *Statistics) mixture {
	if m.aim != AimLabels {
		return mixture{m.weights, 1}
	}
	c := len(m.labels)
	counts := make([]float64, c)
	items := 0.0
	for t := range s.parts {
		p := &s.parts[t]
		for l := range c {
			counts[l] += p.pairs[l*c+l]
		}
		items += float64(p.n - p.unlabelled)
	}
	x := mixture{aims.Weigh(counts, m.prior), 0}
	if items == 0 {
		// No labelled item is left: each label counts alike.
		x.weights = m.weights
		x.scale = floats.Norm(m.c, 2) / math.Sqrt(float64(len(m.c)))
		return x
	}
	squares := 0.0
	for t := range s.parts {
		squares += m.squares(x, &s.parts[t])
	}
	x.scale = math.Sqrt(squares / items / float64(m.bits))
	return x
}

// squares returns the sum of |C J D y|^2 over the labelled items of p.
func (m *Model) squares(x mixture, p *part) (sum float64) {
	c, q := len(m.labels), m.bits
	for l := range c {
		for k, n := range p.pairs[l*c : l*c+l+1] {
			if n == 0 {
				continue
			}
			dot := n * x.weights[l] * x.weights[k] * floats.Dot(m.c[l*q:(l+1)*q], m.c[k*q:(k+1)*q])
			if k < l { // the pair counts twice
				dot *= 2
			}
			sum += dot
		}
	}
	return sum
}

// aimAt writes the aim of an item with these labels, as columns: q numbers. code is scratch memory for a
// code.
func (m *Model) aimAt(dst []float64, columns []int32, weights []float64, code codec.Code) {
	clear(dst)
	if m.aim == AimLabels {
		aims.AddDirections(dst, m.c, columns, weights)
		return
	}
	m.codeOf(code, columns)
	aims.AddSigns(dst, code, m.weightOf(columns))
}

// weightOf returns the weight of the code of a set of labels: 1 for AimCodes.
func (m *Model) weightOf(columns []int32) float64 {
	if m.aim != AimWeighted {
		return 1
	}
	return aims.MeanWeight(columns, m.weights)
}

// LabelAim writes the aim for the projections of an item with these labels to dst, q numbers, and reports
// whether the model knows any of the labels; if not, dst is unchanged. Labels must be sorted and distinct.
// See Aim.
func (m *Model) LabelAim(dst []float64, labels []uint32) bool {
	columns := aims.Known(nil, m.labels, labels)
	if len(columns) == 0 {
		return false
	}
	m.aimAt(dst, columns, m.weights, codec.NewCode(m.bits))
	return true
}

// summedLabels returns the number of labels that statistics of the model sum by: c for
// AimLabels, 0 for the others, which sum codes.
func (m *Model) summedLabels() int {
	if m.aim == AimLabels {
		return len(m.labels)
	}
	return 0
}

// mix returns the projection, q rows, for the solution of the statistics: W, a row for each label, then V, a
// row for each bit, if projections have taught. For codes it is w itself.
func (m *Model) mix(x mixture, w dense.Matrix[float64]) dense.Matrix[float64] {
	if m.aim != AimLabels {
		return w
	}
	c, q, k := len(m.labels), m.bits, w.Cols
	p := dense.Of(q, k, make([]float64, q*k))
	dense.AddTN(p, dense.Of(c, q, m.directions(x.weights)), w.Slice(0, c), parallel.Workers())
	if w.Rows > c {
		floats.AddScaled(p.Data, x.scale, w.Data[c*k:])
	}
	return p
}

// mixRows is mix for the rows that W and V give for items: v has a row for each item.
func (m *Model) mixRows(x mixture, v dense.Matrix[float64]) dense.Matrix[float64] {
	if m.aim != AimLabels {
		return v
	}
	c, q := len(m.labels), m.bits
	z := dense.Of(v.Rows, q, make([]float64, v.Rows*q))
	labels := dense.Matrix[float64]{Rows: v.Rows, Cols: c, Stride: v.Stride, Data: v.Data}
	dense.MulNT(z, labels, dense.PackTransposed(dense.Of(c, q, m.directions(x.weights))))
	if v.Cols > c {
		for r := range v.Rows {
			floats.AddScaled(z.Data[r*q:(r+1)*q], x.scale, v.Data[r*v.Stride+c:][:q])
		}
	}
	return z
}

// directions returns C J D, a row of q for each label.
func (m *Model) directions(weights []float64) []float64 {
	rows := slices.Clone(m.c)
	for l, w := range weights {
		floats.Scale(w, rows[l*m.bits:(l+1)*m.bits])
	}
	return rows
}

// labelsOf returns the labels at columns of C.
func (m *Model) labelsOf(columns []int32) []uint32 {
	labels := make([]uint32, len(columns))
	for i, l := range columns {
		labels[i] = m.labels[l]
	}
	return labels
}
