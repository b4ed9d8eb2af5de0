package fit

import (
	"math"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/aims"
	"gonum.org/v1/gonum/mat"
)

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
func orthonormal(rows mat.Matrix) bool { return isIdentity(product(rows, rows.T())) }

func isIdentity(m mat.Matrix) bool {
	n, _ := m.Dims()
	one := mat.NewDense(n, n, nil)
	for i := range n {
		one.Set(i, i, 1)
	}
	return mat.EqualApprox(m, one, 1e-9)
}
