package fit

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/aims"
	"gonum.org/v1/gonum/mat"
)

// centreOf is the definition of the vector v that labels share, with C J = C (I - v 1').
func centreOf(d *synth.Data, labels []uint32) []float64 {
	several := slices.ContainsFunc(d.Labels, func(set []uint32) bool { return len(set) > 1 })
	v := make([]float64, len(labels))
	switch {
	case several:
		for _, set := range d.Labels {
			for _, l := range set {
				v[slices.Index(labels, l)] += .5 / float64(len(set)) / float64(len(d.Labels))
			}
		}
	case len(labels) >= 5:
		for k := range v {
			v[k] = 1 / float64(len(v))
		}
	}
	return v
}

// TestCodesOfLabels: in each sweep C is the orthonormal matrix for which C J Y is nearest
// to the codes, and the codes are sgn(C J Y). The steps are written down literally here.
// Afterwards labels have the codes of the last sweep.
func TestCodesOfLabels(t *testing.T) {
	share := func(x float64) *float64 { return &x }
	for _, c := range []struct {
		classes, perItem int
		share            *float64 // of the mean, if it is given
		usual            float64  // what centreOf has
	}{
		{6, 1, nil, 1}, {5, 1, nil, 1}, {4, 1, nil, 0}, {2, 1, nil, 0}, {6, 3, nil, .5}, {3, 2, nil, .5},
		{6, 1, share(0), 1}, {6, 1, share(.25), 1}, {6, 3, share(0), .5}, {6, 3, share(1), .5},
	} {
		name := fmt.Sprintf("%d of %d labels", c.perItem, c.classes)
		if c.share != nil {
			name += fmt.Sprintf(", centre %g", *c.share)
		}
		t.Run(name, func(t *testing.T) {
			const q = 24
			d := synth.Pairs(synth.Config{Items: 200, Classes: c.classes, Dims: []int{6},
				LabelsPerItem: c.perItem})
			ms := modalitiesOf([]int{6})
			opt := settled(ms, Options{Bits: q, Anchors: 40, Sweeps: 6, Seed: 3})
			n := d.Items()
			// H0 is that of the seed; ties of H0 Y' would be broken at random.
			from := seeded(3, q)
			h, y := mat.NewDense(q, n, nil), mat.NewDense(c.classes, n, nil)
			code := codec.NewCode(q)
			for i, labels := range d.Labels {
				from.signs(code)
				column := make([]float64, q)
				aims.AddSigns(column, code, 1)
				h.SetCol(i, column)
				for _, l := range labels {
					y.Set(int(l), i, 1)
				}
			}
			var labels []uint32
			for l := range c.classes {
				labels = append(labels, uint32(l))
			}
			v := centreOf(d, labels)
			if c.share != nil {
				opt.Centre = c.share
				for l := range v {
					v[l] *= *c.share / c.usual
				}
			}
			j := mat.NewDense(c.classes, c.classes, nil)
			for a := range c.classes {
				for b := range c.classes {
					j.Set(a, b, -v[a])
				}
				j.Set(a, a, 1-v[a])
			}
			sweep, objective := 0, []float64{}
			from = seeded(3, q)
			from.ties = nil
			var last *solver
			from.seen = func(s *solver) {
				last = s
				sweep++
				cj := product(isometry(product(h, product(j, y).T())), j)
				if off := relative(transposed(slices.Clone(s.cm), c.classes, q), cj); off > 1e-9 {
					t.Fatalf("sweep %d: C J is off by %g", sweep, off)
				}
				z := product(cj, y)
				f := 0.0
				for i := range n {
					for b := range q {
						sign := 1.0
						if z.At(b, i) < -1e-9 { // labels that cancel out have +1
							sign = -1
						}
						h.Set(b, i, sign)
						f += (sign - z.At(b, i)) * (sign - z.At(b, i))
						stopIf(t, s.code(i).Bit(b) != (sign > 0), "sweep %d: bit %d of item %d is %t", sweep,
							b, i, s.code(i).Bit(b))
					}
				}
				objective = append(objective, f)
			}
			r := need(train(t.Context(), ms, synthetic(d), nil, opt, from))(t)
			for i, f := range r.Report.Objective {
				failIf(t, !approx(f/objective[i], 1, 1e-9) || i > 0 && f > objective[i-1]*(1+1e-12),
					"objective %v, want %v, which falls", r.Report.Objective, objective)
			}
			m := r.Model
			// C'C = I, so the products of the rows of C J are those of J.
			cj := mat.NewDense(c.classes, q, m.Parts().C)
			if off := relative(product(cj, cj.T()), product(j.T(), j)); off > 1e-9 {
				t.Errorf("the products of the directions are off by %g", off)
			}
			for i, set := range d.Labels {
				stopIf(t, !m.LabelCode(code, set) || !slices.Equal(code, last.code(i)),
					"item %d: code %x, in training %x", i, code, last.code(i))
			}
			if c.perItem == 1 && c.classes > 4 && c.share == nil {
				for b := range q {
					sum := 0.0
					for l := range c.classes {
						sum += m.Parts().C[l*q+b]
					}
					failIf(t, !approx(sum, 0, 1e-12), "bit %d: the directions share %g", b, sum)
				}
			}
		})
	}
}

// TestAimOptions: each error names its option.
func TestAimOptions(t *testing.T) {
	nan, number := math.NaN(), func(v float64) *float64 { return &v }
	src := synthetic(synth.Pairs(synth.Config{Items: 40, Dims: []int{4, 3}}))
	ms := modalitiesOf([]int{4, 3})
	widths := func(w float64) map[string]float64 { return map[string]float64{"text": w} }
	for _, c := range []struct {
		opt  Options
		says string // "" if it is right
	}{
		{Options{Aim: model.AimLabels, Method: model.MethodJoint}, "aim labels: method joint"},
		{Options{Aim: model.AimLabels, Method: model.MethodPaper}, "aim labels: method paper"},
		{Options{Aim: model.AimWeighted}, "weighted: it is auto, labels or codes"},
		{Options{Aim: 9}, "aim(9)"},
		{Options{Prior: number(-.01)}, "prior: -0.01"},
		{Options{Prior: number(1.01)}, "prior: 1.01"},
		{Options{Prior: number(nan)}, "prior: NaN"},
		{Options{Prior: number(math.Inf(1))}, "prior: +Inf"},
		{Options{Aim: model.AimCodes, Prior: number(0)}, "prior: the aim codes"},
		{Options{Method: model.MethodJoint, Prior: number(.1)}, "prior: the aim codes"},
		{Options{Width: widths(0)}, `width of modality "text": 0`},
		{Options{Width: widths(-1)}, `width of modality "text": -1`},
		{Options{Width: widths(nan)}, `width of modality "text": NaN`},
		{Options{Width: widths(math.Inf(1))}, `width of modality "text": +Inf`},
		{Options{Width: widths(1e7)}, `width of modality "text": 1e+07`},
		{Options{Width: widths(1e-7)}, `width of modality "text": 1e-07`},
		{Options{Centre: number(-.01)}, "centre: -0.01"},
		{Options{Centre: number(1.01)}, "centre: 1.01"},
		{Options{Centre: number(nan)}, "centre: NaN"},
		{Options{Aim: model.AimCodes, Centre: number(0)}, "centre: the aim codes"},
		{Options{Method: model.MethodPaper, Centre: number(.1)}, "centre: the aim codes"},
		{Options{Aim: model.AimLabels, Prior: number(0)}, ""},
		{Options{Centre: number(.25)}, ""},
		{Options{Centre: number(0)}, ""},
		{Options{Prior: number(1), Width: widths(1e-6)}, ""},
		{Options{Width: widths(1e6)}, ""},
		{Options{Aim: model.AimCodes, Method: model.MethodJoint, Anchors: 30}, ""},
	} {
		c.opt.Bits = 16
		r, err := Train(t.Context(), ms, src, c.opt)
		if c.says == "" {
			if err != nil {
				t.Errorf("%+v: %v", c.opt, err)
			} else if share := c.opt.Centre; share != nil && r.Report.Centre != *share {
				t.Errorf("centre %g is given, and it is %g", *share, r.Report.Centre)
			} else if p := c.opt.Prior; p != nil && (r.Model.Prior() != *p || r.Report.Prior != *p) {
				t.Errorf("prior %g is given, and it is %g", *p, r.Model.Prior())
			}
			continue
		}
		failIf(t, !like(err, model.ErrOption, c.says), "%v, want it to say %q", err, c.says)
	}
	many := synthetic(synth.ManyLabels{Items: 60, Labels: 20, Dims: []int{4, 3}}.Make())
	errorIs(t, errOf(Train(t.Context(), ms, many, Options{Bits: 16, LabelEmbedding: true,
		Centre: number(0)})), model.ErrOption, "centre: there are more labels (20) than bits (16)")
	var modality *model.ModalityError
	if _, err := Train(t.Context(), ms, src, Options{Width: map[string]float64{"sound": 1}}); !errors.As(err,
		&modality) || !strings.Contains(err.Error(), "width") {
		t.Errorf("a width of another modality: %v", err)
	}
}
