package fit

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/aims"
	"github.com/fddhdb/fddhdb/model/sum"
)

// problems are the shapes of every solver test.
var problems = []struct {
	name string
	cfg  synth.Config
}{
	{"two modalities", synth.Config{Items: 150, Classes: 4, Dims: []int{8, 5}}},
	{"one modality", synth.Config{Items: 90, Classes: 3, Dims: []int{6}}},
	{"three, several labels", synth.Config{Items: 130, Classes: 6, Dims: []int{7, 4, 9}, LabelsPerItem: 3}},
	{"missing", synth.Config{Items: 200, Classes: 5, Dims: []int{8, 5, 3}, LabelsPerItem: 2, Missing: .5}},
	{"several blocks", synth.Config{Items: sum.BlockItems + 40, Classes: 4, Dims: []int{5, 4}, Missing: .2}},
}

func heavyMu(dims []int) map[string]float64 { // makes features matter
	mu := map[string]float64{}
	for i, m := range modalitiesOf(dims) {
		mu[m.Name] = .3 + .4*float64(i)
	}
	return mu
}

// TestSolverAgainstLiteral: the streamed solver equals the literal one, to rounding, in
// every variable of every sweep, and in A, B and P.
func TestSolverAgainstLiteral(t *testing.T) {
	effort.LongWithRace(t)
	for _, problem := range problems {
		for _, method := range []model.Method{model.MethodJoint, model.MethodPaper} {
			for _, delta := range []float64{.5, 1e4, math.Inf(1)} {
				t.Run(fmt.Sprintf("%s/%v/%g", problem.name, method, delta), func(t *testing.T) {
					s := solveBoth(t, problem.cfg, Options{
						Bits: 16, Anchors: 25, Sweeps: 4, Method: method, Delta: delta, Seed: 5,
						Mu: heavyMu(problem.cfg.Dims),
					})
					for i := range s.c {
						s.literal.sweep(method)
						if e := relative(s.c[i], s.literal.cm); e > 1e-9 {
							t.Fatalf("sweep %d: C is off by %g", i+1, e)
						}
						if e := relative(s.y[i+1], s.literal.y); e > 1e-9 {
							t.Fatalf("sweep %d: Y is off by %g", i+1, e)
						}
						stopIf(t, !mat.Equal(s.h[i+1], s.literal.h), "sweep %d: another H", i+1)
						if f := s.result.Report.Objective[i]; !approx(f/s.literal.objective[i], 1, 1e-9) {
							t.Fatalf("sweep %d: objective %.12g, want %.12g", i+1, f, s.literal.objective[i])
						}
					}
					s.checkRidge(t)
				})
			}
		}
	}
}

// checkRidge compares A, B and P with their definitions.
func (s *solved) checkRidge(t *testing.T) {
	stats, m := s.result.Statistics, s.result.Model
	for i, phi := range s.literal.phi {
		k := m.Features(i)
		a := mat.NewDense(k, k, nil)
		sumsA, sumsB := sumsOf(t, stats, i)
		for row := range k {
			for col := range row + 1 {
				v := sumsA[row*(row+1)/2+col]
				a.Set(row, col, v)
				a.Set(col, row, v)
			}
		}
		if e := relative(a, product(phi, phi.T())); e > 1e-12 {
			t.Errorf("A of modality %d is off by %g", i, e)
		}
		want := product(s.h[len(s.h)-1], phi.T())
		if e := relative(mat.NewDense(m.Bits(), k, sumsB), want); e > 1e-12 {
			t.Errorf("B of modality %d is off by %g", i, e)
		}
		for j := range k {
			a.Set(j, j, a.At(j, j)+m.Gamma(i))
		}
		var p mat.Dense
		must(t, p.Solve(a, want.T()))
		if e := relative(mat.NewDense(m.Bits(), k, m.Parts().Projections[i]), p.T()); e > 1e-6 {
			t.Errorf("P of modality %d is off by %g", i, e)
		}
		n := 0
		for _, has := range s.literal.has[i] {
			if has {
				n++
			}
		}
		failIf(t, stats.Items(i) != n, "%d items with modality %d, want %d", stats.Items(i), i, n)
	}
}

// TestStepsAreOptimal: at each step, no feasible change of the variables that the step
// chose lowers the objective while the others stay.
func TestStepsAreOptimal(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	noise := func(m *mat.Dense, size float64) *mat.Dense {
		x := mat.DenseCopyOf(m)
		x.Apply(func(_, _ int, v float64) float64 { return v + size*rng.NormFloat64() }, x)
		return x
	}
	for _, problem := range problems[:4] {
		s := solveBoth(t, problem.cfg, Options{
			Bits: 16, Anchors: 25, Sweeps: 3, Method: model.MethodJoint, Delta: .5,
			Mu: heavyMu(problem.cfg.Dims),
		})
		d := s.literal
		for i, c := range s.c {
			rotations := func(c *mat.Dense, gs []*mat.Dense) (r []*mat.Dense) {
				for _, g := range gs {
					r = append(r, product(g, c.T()))
				}
				return r
			}
			for _, basis := range append(s.g[i], c) {
				failIf(t, !orthonormal(basis.T()), "%s, sweep %d: C or a G_t is not", problem.name, i+1)
			}
			h0, y0, h1, y1 := s.h[i], s.y[i], s.h[i+1], s.y[i+1]
			r := rotations(c, s.g[i])
			atC, atH, atY := d.value(c, r, h0, y0), d.value(c, r, h1, y0), d.value(c, r, h1, y1)
			failIf(t, atH > atC || atY > atH, "%s, sweep %d: steps raise the objective: %g, %g, %g",
				problem.name, i+1, atC, atH, atY)
			for range 20 {
				size := []float64{1e-3, .03, 1}[rng.IntN(3)]
				c2 := isometry(noise(c, size))
				var g2 []*mat.Dense
				for _, g := range s.g[i] {
					g2 = append(g2, isometry(noise(g, size)))
				}
				if f := d.value(c2, rotations(c2, g2), h0, y0); f < atC*(1-1e-12) {
					t.Fatalf("%s, sweep %d: another C and R give %g < %g", problem.name, i+1, f, atC)
				}
				h2 := mat.DenseCopyOf(h1)
				for range 5 {
					row, col := rng.IntN(d.q), rng.IntN(d.n)
					h2.Set(row, col, -h2.At(row, col))
				}
				if f := d.value(c, r, h2, y0); f < atH*(1-1e-12) {
					t.Fatalf("%s, sweep %d: another H gives %g < %g", problem.name, i+1, f, atH)
				}
				y2 := noise(y1, size)
				y2.Apply(func(l, i int, v float64) float64 {
					if d.label.At(l, i) == 1 {
						return max(v, 1)
					}
					return min(v, 0)
				}, y2)
				if f := d.value(c, r, h1, y2); f < atY*(1-1e-12) {
					t.Fatalf("%s, sweep %d: another Y gives %g < %g", problem.name, i+1, f, atY)
				}
			}
		}
	}
}

// TestMethodsAgreeAtLargeDelta: with one label an item, Y at the labels and features of
// little weight, the three solvers agree.
func TestMethodsAgreeAtLargeDelta(t *testing.T) {
	cfg := synth.Config{Items: 300, Classes: 5, Dims: []int{8, 5}, Seed: 3}
	var codes []codec.Codes
	for _, method := range []model.Method{model.MethodLabels, model.MethodJoint, model.MethodPaper} {
		s := solveBoth(t, cfg, Options{
			Bits: 32, Anchors: 40, Method: method, Delta: 1e8, Seed: 9,
			Mu: map[string]float64{"image": 1e-7, "text": 1e-7},
		})
		list := codec.NewCodes(32, 0)
		for i, labels := range s.data.Labels {
			code := codec.NewCode(32)
			s.result.Model.LabelCode(code, labels)
			list.Append(code)
			for j := range 32 {
				stopIf(t, code.Bit(j) != (s.h[len(s.h)-1].At(j, i) > 0),
					"%v: the label code of item %d is not its code in training", method, i)
			}
		}
		codes = append(codes, list)
	}
	for i := range codes[0].Len() {
		for m := 1; m < 3; m++ {
			stopIf(t, codec.Distance(codes[0].At(i), codes[m].At(i)) != 0,
				"item %d: labels %x, joint %x, paper %x", i, codes[0].At(i), codes[1].At(i), codes[2].At(i))
		}
	}
}

// TestInfiniteDelta: without relaxation Y is the labels. joint then has the codes of
// labels, whatever the features are, and an objective that differs by the part of the
// features.
func TestInfiniteDelta(t *testing.T) {
	for _, problem := range problems {
		solve := func(method model.Method) *solved {
			return solveBoth(t, problem.cfg, Options{
				Bits: 16, Anchors: 25, Sweeps: 5, Method: method, Delta: math.Inf(1), Seed: 2,
				Mu: heavyMu(problem.cfg.Dims),
			})
		}
		labels, joint, paper := solve(model.MethodLabels), solve(model.MethodJoint), solve(model.MethodPaper)
		for sweep := range joint.c {
			failIf(t, !mat.Equal(labels.h[sweep+1], joint.h[sweep+1]), "%s: other codes after sweep %d",
				problem.name, sweep+1)
			for _, s := range []*solved{joint, paper} {
				failIf(t, !mat.Equal(s.y[sweep+1], s.y[0]), "%s, %v: Y has left the labels in sweep %d",
					problem.name, s.opt.Method, sweep+1)
			}
			// G_t follows from the labels, so its part is the same in every sweep.
			features := joint.result.Report.Objective[sweep] - labels.result.Report.Objective[sweep]
			first := joint.result.Report.Objective[0] - labels.result.Report.Objective[0]
			failIf(t, !approx(features, first, 1e-7*first),
				"%s: features add %g to the objective of sweep %d, %g to the first", problem.name, features,
				sweep+1, first)
		}
	}
}

// TestDependentLabels: labels that only occur together, or a modality that tells
// nothing, lower the rank of the matrices whose polar factors are taken. C stays
// orthonormal, and the objective of joint still falls.
func TestDependentLabels(t *testing.T) {
	data := synth.Pairs(synth.Config{Items: 120, Classes: 3, Dims: []int{6, 4}})
	for i, labels := range data.Labels {
		if labels[0] == 0 {
			data.Labels[i] = []uint32{0, 10, 20}
		}
		data.Vectors[1][i] = []float32{1, 2, 3, 4}
	}
	for _, method := range []model.Method{model.MethodLabels, model.MethodJoint, model.MethodPaper} {
		opt := need(Options{Bits: 16, Anchors: 30, Sweeps: 6, Method: method, Delta: 1,
			Aim: model.AimCodes}.withDefaults(modalitiesOf([]int{6, 4})))(t)
		from := seeded(1, 16)
		from.seen = func(s *solver) {
			c := mat.NewDense(5, 16, s.cm)
			failIf(t, !orthonormal(c), "%v: C'C is not I", method)
		}
		r := need(train(t.Context(), modalitiesOf([]int{6, 4}), synthetic(data), nil, opt, from))(t)
		f := r.Report.Objective
		for i := 1; i < len(f); i++ {
			failIf(t, method != model.MethodPaper && f[i] > f[i-1]*(1+1e-12) || f[i] != f[i],
				"%v: the objective rises: %v", method, f)
		}
		failIf(t, r.Report.DistinctCodes < 2, "%v: %d distinct codes", method, r.Report.DistinctCodes)
	}
}

// sumsOf reads A, by rows of its lower triangle, and B of a modality from the stored form of statistics of
// codes.
func sumsOf(t *testing.T, s *model.Statistics, modality int) (a, b []float64) {
	t.Helper()
	stored := need(s.MarshalBinary())(t)
	q := int(binary.LittleEndian.Uint32(stored[16:]))
	r := stored[29:]
	numbers := func(n int) (x []float64) {
		for range n {
			x, r = append(x, math.Float64frombits(binary.LittleEndian.Uint64(r))), r[8:]
		}
		return x
	}
	for range modality + 1 {
		r = r[2+binary.LittleEndian.Uint16(r):]
		k := int(binary.LittleEndian.Uint32(r))
		r = r[12:]
		a, b = numbers(k*(k+1)/2), numbers(q*k)
	}
	return a, b
}

// literal is the paper written down literally, in its own shapes: items are columns,
// everything is held, R_t is formed, and only the features are shared with the solver.
// An item without a modality has a zero column in phi_t, and in the Y that phi_t is
// compared with.
type literal struct {
	q, c, n   int
	mu        []float64
	delta     float64
	label     *mat.Dense // c x n, 0 or 1
	has       [][]bool
	phi       []*mat.Dense // k x n
	r         []*mat.Dense // k x q
	cm, h, y  *mat.Dense   // q x c, q x n, c x n
	objective []float64
}

func product(a, b mat.Matrix) *mat.Dense {
	var x mat.Dense
	x.Mul(a, b)
	return &x
}

// isometry is U V' of the thin SVD, over the singular values that count.
func isometry(m mat.Matrix) *mat.Dense {
	var svd mat.SVD
	svd.Factorize(m, mat.SVDThin)
	var u, v mat.Dense
	svd.UTo(&u)
	svd.VTo(&v)
	s := svd.Values(nil)
	rank := 0
	for rank < len(s) && s[rank] > 1e-10*s[0] {
		rank++
	}
	rows, _ := u.Dims()
	cols, _ := v.Dims()
	return product(u.Slice(0, rows, 0, rank), v.Slice(0, cols, 0, rank).T())
}

// own returns Y with zero columns for the items without modality t.
func (d *literal) own(t int) *mat.Dense {
	y := mat.DenseCopyOf(d.y)
	for i, has := range d.has[t] {
		if !has {
			y.SetCol(i, make([]float64, d.c))
		}
	}
	return y
}

func (d *literal) sweep(method model.Method) {
	if method == model.MethodPaper {
		target := product(d.h, d.y.T())
		for t := range d.phi {
			part := product(d.r[t].T(), product(d.phi[t], d.own(t).T()))
			part.Scale(d.mu[t], part)
			target.Add(target, part)
		}
		d.cm = isometry(target)
		for t := range d.phi {
			d.r[t] = isometry(product(d.phi[t], product(d.cm, d.own(t)).T()))
		}
	} else {
		d.cm = isometry(product(d.h, d.y.T()))
		for t := range d.phi { // any R with R C = polar(phi Y') will do
			d.r[t] = product(isometry(product(d.phi[t], d.own(t).T())), d.cm.T())
		}
	}
	d.h = product(d.cm, d.y)
	d.h.Apply(func(_, _ int, v float64) float64 {
		if v >= 0 {
			return 1
		}
		return -1
	}, d.h)
	sum := mat.DenseCopyOf(d.h)
	weight := make([]float64, d.n)
	for i := range weight {
		weight[i] = 1 + d.delta
	}
	for t := range d.phi {
		part := product(d.r[t].T(), d.phi[t])
		part.Scale(d.mu[t], part)
		sum.Add(sum, part)
		for i, has := range d.has[t] {
			if has {
				weight[i] += d.mu[t]
			}
		}
	}
	d.y = product(d.cm.T(), sum)
	d.y.Apply(func(l, i int, v float64) float64 {
		v /= weight[i]
		if d.label.At(l, i) == 1 {
			return max(v, 1)
		}
		return min(v, 0)
	}, d.y)
	d.objective = append(d.objective, d.value(d.cm, d.r, d.h, d.y))
}

// value is the objective, term by term.
func (d *literal) value(c *mat.Dense, r []*mat.Dense, h, y *mat.Dense) float64 {
	square := func(a, b mat.Matrix) float64 {
		var x mat.Dense
		x.Sub(a, b)
		n := mat.Norm(&x, 2)
		return n * n
	}
	f := square(h, product(c, y))
	old := d.y
	d.y = y
	for t := range d.phi {
		f += d.mu[t] * square(d.phi[t], product(r[t], product(c, d.own(t))))
	}
	d.y = old
	if math.IsInf(d.delta, 1) {
		return f
	}
	n := mat.Norm(y, 2)
	return f + d.delta*n*n
}

// transposed returns row-major numbers as the paper's matrix.
func transposed(x []float64, rows, cols int) *mat.Dense {
	return mat.DenseCopyOf(mat.NewDense(rows, cols, x).T())
}

// solved has the solver's run and the literal one from the same start.
type solved struct {
	data    *synth.Data
	opt     Options
	result  *Result
	literal *literal
	h, y    []*mat.Dense // of the solver, before the first sweep and after each
	c       []*mat.Dense // after each sweep
	g       [][]*mat.Dense
}

// solveBoth runs the solver on generated data and prepares the literal start. The paper
// knows no aim but codes.
func solveBoth(t testing.TB, cfg synth.Config, opt Options) *solved {
	t.Helper()
	opt.Aim = model.AimCodes
	s := &solved{data: synth.Pairs(cfg)}
	modalities := modalitiesOf(cfg.Dims)
	s.opt = need(opt.withDefaults(modalities))(t)
	n, q, c := s.data.Items(), s.opt.Bits, cfg.Classes
	d := &literal{q: q, c: c, n: n, delta: s.opt.Delta}
	d.label = mat.NewDense(c, n, nil)
	for i, labels := range s.data.Labels {
		for _, l := range labels {
			d.label.Set(int(l), i, 1)
		}
	}
	d.y = mat.DenseCopyOf(d.label)
	d.h = mat.NewDense(q, n, nil)
	from := seeded(s.opt.Seed, q)
	from.ties = nil // the comparison starts from H0 Y0' as it is
	code := codec.NewCode(q)
	for i := range n {
		from.signs(code)
		col := make([]float64, q)
		aims.AddSigns(col, code, 1)
		d.h.SetCol(i, col)
	}
	s.h, s.y = append(s.h, d.h), append(s.y, d.y)
	from = seeded(s.opt.Seed, q)
	from.ties = nil // the comparison starts from H0 Y0' as it is
	rotation := from.rotation
	from.rotation = func(t, k int) []float64 {
		r := rotation(t, k)
		d.r = append(d.r, mat.NewDense(k, q, append([]float64(nil), r...)))
		return r
	}
	from.seen = func(run *solver) {
		h := mat.NewDense(q, n, nil)
		for i := range n {
			col := make([]float64, q)
			aims.AddSigns(col, run.code(i), 1)
			h.SetCol(i, col)
		}
		s.h = append(s.h, h)
		s.c = append(s.c, transposed(append([]float64(nil), run.cm...), c, q))
		if run.y != nil {
			s.y = append(s.y, transposed(run.y, n, c))
		}
		var g []*mat.Dense
		for t, f := range run.maps {
			g = append(g, transposed(run.g[t], c, f.Size()))
		}
		s.g = append(s.g, g)
	}
	s.result = need(train(t.Context(), modalities, synthetic(s.data), nil, s.opt, from))(t)
	e := s.result.Model.NewEncoder()
	for m, rows := range s.data.Vectors {
		k := s.result.Model.Features(m)
		phi := mat.NewDense(k, n, nil)
		has := make([]bool, n)
		for i, x := range rows {
			if x == nil {
				continue
			}
			has[i] = true
			row := make([]float32, k)
			must(t, e.MapVector(row, m, model.Dense(x)))
			for j, v := range row {
				phi.Set(j, i, float64(v))
			}
		}
		d.phi, d.has = append(d.phi, phi), append(d.has, has)
		d.mu = append(d.mu, s.opt.Mu[modalities[m].Name])
	}
	if d.r == nil {
		d.r = make([]*mat.Dense, len(d.phi))
	}
	s.literal = d
	return s
}

func relative(a, b mat.Matrix) float64 {
	var x mat.Dense
	x.Sub(a, b)
	return mat.Norm(&x, 2) / (1e-300 + mat.Norm(b, 2))
}

// orthonormal reports whether the rows of a matrix are.
func orthonormal(rows mat.Matrix) bool {
	n, _ := rows.Dims()
	one := mat.NewDense(n, n, nil)
	for i := range n {
		one.Set(i, i, 1)
	}
	return mat.EqualApprox(product(rows, rows.T()), one, 1e-9)
}
