package methods

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fddhdb/fddhdb/internal/synth"
)

// pairs makes items of so many classes, with one label each or up to several.
func pairs(items, classes, labels int, dims ...int) *Data {
	made := synth.Pairs(synth.Config{Items: items, Classes: classes, LabelsPerItem: labels, Dims: dims,
		Seed: 3, Noise: .8})
	d := &Data{Y: mat.NewDense(items, classes, nil)}
	for i, set := range made.Labels {
		for _, l := range set {
			d.Y.Set(i, int(l), 1)
		}
	}
	for t, vectors := range made.Vectors {
		x := mat.NewDense(items, dims[t], nil)
		x.Apply(func(i, j int, _ float64) float64 { return float64(vectors[i][j]) }, x)
		d.X = append(d.X, x)
	}
	return d
}

func fitted(t *testing.T, m *Method, d *Data, o Options) *Model {
	t.Helper()
	model, err := m.Fit(t.Context(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// Every method gives codes of +-1 and finite projections, the same for the same seed. Objectives do not rise.
// Three modalities work, or are refused.
func TestMethods(t *testing.T) {
	for _, m := range All {
		for name, d := range map[string]*Data{
			"two": pairs(150, 4, 1, 9, 6), "three": pairs(150, 4, 3, 9, 6, 5),
		} {
			if m.Modalities == 2 && len(d.X) == 3 {
				if _, err := m.Fit(t.Context(), d, Options{Bits: 16}); err == nil ||
					!strings.Contains(err.Error(), m.Name+": it takes exactly two modalities, and there are 3") {
					t.Errorf("%s, three modalities: %v", m.Name, err)
				}
				continue
			}
			targets := []bool{false, true}
			if !m.Target {
				targets = targets[:1]
			}
			var first *Model
			for _, target := range targets {
				o := Options{Bits: 16, Seed: 5, Target: target}
				a, b := fitted(t, m, d, o), fitted(t, m, d, o)
				for t2, x := range d.X {
					z := a.Project[t2](x)
					if !mat.Equal(a.Codes[t2], b.Codes[t2]) || !mat.Equal(z, b.Project[t2](x)) {
						t.Errorf("%s, %s: equal seeds, other models", m.Name, name)
					}
					if n, q := z.Dims(); n != 150 || q != 16 && m.Name != "CCQ" || math.IsNaN(mat.Sum(z)) {
						t.Errorf("%s, %s: projections %d x %d, sum %v", m.Name, name, n, q, mat.Sum(z))
					}
					if square(a.Codes[t2]) != 150*16 || !mat.Equal(signs(a.Codes[t2]), a.Codes[t2]) {
						t.Errorf("%s, %s: codes are not +-1", m.Name, name)
					}
					if target && !mat.Equal(first.Codes[t2], a.Codes[t2]) && m.Name != "FDDH-published" {
						t.Errorf("%s, %s: the target changes codes", m.Name, name)
					}
					if target && mat.Equal(first.Project[t2](x), z) {
						t.Errorf("%s, %s: the target changes nothing", m.Name, name)
					}
				}
				for i, f := range a.Objective {
					if i > 0 && f > a.Objective[i-1]*(1+1e-9) {
						t.Errorf("%s, %s: objective %v", m.Name, name, a.Objective)
						break
					}
				}
				if first == nil {
					first = a
				}
			}
			if other := fitted(t, m, d, Options{Bits: 16, Seed: 6}); m.Name != "SCM" &&
				mat.Equal(first.Project[0](d.X[0]), other.Project[0](d.X[0])) {
				t.Errorf("%s, %s: another seed, the same model", m.Name, name)
			}
		}
	}
}

// started returns a run before its first sweep, as Fit starts it.
func started(d *Data, o Options, of func(x *mat.Dense, r *rand.Rand) mapping) *run {
	s := &run{Data: d, Options: o, Model: &Model{}, ctx: context.Background(), q: o.Bits,
		r: rand.New(rand.NewPCG(o.Seed, 23))}
	s.n, _ = d.Y.Dims()
	s.mapped(of)
	return s
}

// near fails if matrices differ by more than rounding.
func near(t *testing.T, what string, got, want mat.Matrix) {
	t.Helper()
	if !mat.EqualApprox(got, want, 1e-6) {
		t.Errorf("%s differs", what)
	}
}

// A sweep of BATCH, with S and the n x n centring written down.
func TestStepOfBATCH(t *testing.T) {
	d, o := pairs(60, 3, 2, 7, 5), Options{Bits: 8, Seed: 2, Sweeps: 1}
	m, _ := ByName([]string{"batch"})
	got := fitted(t, m[0], d, o)
	s := started(d, o, rbf(1000, 2))
	n, q := 60., 8.
	j := mat.NewDense(60, 60, nil)
	j.Apply(func(a, b int, _ float64) float64 { return map[bool]float64{true: 1}[a == b] - 1/n }, j)
	v := scaled(math.Sqrt(n), polar(mul(j, normal(s.r, 60, 8))))
	b := signs(normal(s.r, 60, 8))
	g := unitRows(d.Y)
	sim := scaled(q, mul(g, g.T()))
	z := add(mul(sim, b), .01, b)
	for t, x := range append(s.phi, d.Y) {
		u := ridge(v, 0)(x)
		add(z, []float64{.05, .05, .9}[t], mul(x, u.T()))
	}
	v = scaled(math.Sqrt(n), polar(mul(j, z)))
	b = signs(add(mul(sim, v), .01, v))
	near(t, "B", got.Codes[0], b)
	near(t, "P", got.Project[1](d.X[1]), mul(s.phi[1], ridge(s.phi[1], .01)(b)))
	f := square(minus(sim, mul(b, v.T()))) + .01*square(minus(b, v))
	for t, x := range append(s.phi[:2:2], d.Y) {
		f += []float64{.05, .05, .9}[t] * square(minus(x, mul(v, ridge(v, 0)(x))))
	}
	if math.Abs(got.Objective[0]-f) > 1e-6*f {
		t.Errorf("objective %v, want %v", got.Objective[0], f)
	}
}

// The latent factors of CMFH and SCRATCH have no gradient left in V.
func TestStepOfLatentFactors(t *testing.T) {
	for _, alpha := range []float64{0, 500} {
		s := started(pairs(50, 3, 1, 7, 5), Options{Bits: 8, Seed: 2, Sweeps: 1}, linear)
		v0 := normal(rand.New(rand.NewPCG(2, 23)), 50, 8)
		v, p, _, b := s.factorize(1, 100, .5, alpha)
		gradient := scaled(.5, v)
		for t, x := range s.phi {
			u := solver(mul(v0.T(), v0), 1)(mul(v0.T(), x)) // .5 / lambda
			residual := minus(mul(v, u), x)
			add(add(gradient, .5, mul(residual, u.T())), 100, minus(v, mul(x, p[t])))
		}
		if alpha > 0 {
			r := polar(normal(skipped(2, 50*8), 8, 8))
			g := solver(mul(v0.T(), v0), .5/alpha)(mul(v0.T(), s.Y))
			add(gradient, alpha, mul(minus(mul(v, g), s.Y), g.T()))
			add(gradient, 1, mul(minus(mul(v, r), b), r.T()))
		}
		if norm := math.Sqrt(square(gradient)); norm > 1e-6 {
			t.Errorf("alpha %v: gradient %v", alpha, norm)
		}
	}
}

// skipped returns the random numbers of a run after some normal ones.
func skipped(seed uint64, n int) *rand.Rand {
	r := rand.New(rand.NewPCG(seed, 23))
	for range n {
		r.NormFloat64()
	}
	return r
}

// No single bit lowers the objective after cyclic descent, and steps of DPLM lower it.
func TestStepsOfCodes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	w := normal(r, 8, 3)
	a, q := mul(w, w.T()), normal(r, 20, 8)
	of := func(b *mat.Dense) float64 { return mat.Trace(mul(mul(b, a), b.T())) - 2*mat.Trace(mul(b.T(), q)) }
	start := signs(normal(r, 20, 8))
	b, by := mat.DenseCopyOf(start), mat.DenseCopyOf(start)
	cyclic(b, q, a)
	for i := range 20 {
		for k := range 8 {
			other := mat.DenseCopyOf(b)
			other.Set(i, k, -b.At(i, k))
			if of(other) < of(b)-1e-9 {
				t.Errorf("bit %d of item %d lowers %v to %v", k, i, of(b), of(other))
			}
		}
	}
	if proximal(by, q, a); of(by) >= of(start) {
		t.Errorf("DPLM: %v, before %v", of(by), of(start))
	}
}

// The bits of FSDH in closed form, and DLFH bit by bit over all pairs.
func TestStepsOfFSDHAndDLFH(t *testing.T) {
	d, o := pairs(60, 3, 2, 7, 5), Options{Bits: 8, Seed: 2, Sweeps: 1}
	m, _ := ByName([]string{"FSDH"})
	got := fitted(t, m[0], d, o)
	s := started(d, o, rbf(1000, 2))
	b := signs(normal(s.r, 60, 8))
	z := mul(d.Y, ridge(d.Y, 1)(b))
	for _, phi := range s.phi {
		add(z, 1e-5, mul(phi, ridge(phi, 1e-3)(b)))
	}
	near(t, "B of FSDH", got.Codes[0], signs(z))

	u, v := signs(normal(s.r, 60, 8)), signs(normal(s.r, 5, 8))
	labels := rowsOf(d.Y, []int{3, 1, 4, 15, 9})
	want := mat.DenseCopyOf(u)
	for k := range 8 {
		theta := mul(want, v.T()) // lambda / q = 1
		for i := range 60 {
			p := 5. / 4 * want.At(i, k)
			for j := range 5 {
				share := math.Min(mul(labels.Slice(j, j+1, 0, 3), d.Y.Slice(i, i+1, 0, 3).T()).At(0, 0), 1)
				p += (share - 1/(1+math.Exp(-theta.At(i, j)))) * v.At(j, k)
			}
			want.Set(i, k, math.Copysign(1, p))
		}
	}
	s.latentFactors(u, v, labels)
	near(t, "U of DLFH", u, want)
}

// The gradient of SePH against differences.
func TestGradientOfSePH(t *testing.T) {
	d := pairs(12, 3, 2, 7, 5)
	g := unitRows(d.Y)
	p := mul(g, g.T())
	for i := range 12 {
		p.Set(i, i, 0)
	}
	p.Scale(1/mat.Sum(p), p)
	h := normal(rand.New(rand.NewPCG(1, 1)), 12, 4)
	_, gradient := semantics(p, h)
	for i := range 12 {
		for k := range 4 {
			at := func(step float64) float64 {
				moved := mat.DenseCopyOf(h)
				moved.Set(i, k, h.At(i, k)+step)
				f, _ := semantics(p, moved)
				return f
			}
			if want := (at(1e-5) - at(-1e-5)) / 2e-5; math.Abs(gradient.At(i, k)-want) > 1e-7 {
				t.Errorf("%d, %d: %v, want %v", i, k, gradient.At(i, k), want)
			}
		}
	}
}

// What cannot be learned from is an error, not a panic.
func TestErrors(t *testing.T) {
	good := pairs(20, 3, 1, 4, 3)
	wide := mat.NewDense(19, 4, nil)
	nan := mat.DenseCopyOf(good.X[0])
	nan.Set(3, 2, math.NaN())
	for _, m := range All {
		for says, d := range map[string]*Data{
			"less than two labelled items":        {X: good.X},
			"modality 1 has no row for each":      {X: []*mat.Dense{good.X[0], wide}, Y: good.Y},
			"modality 0 has numbers that are not": {X: []*mat.Dense{nan, good.X[1]}, Y: good.Y},
			"modalities, and there are 1":         {X: good.X[:1], Y: good.Y},
		} {
			_, err := m.Fit(t.Context(), d, Options{Bits: 8})
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v, want %q", m.Name, err, says)
			}
		}
		if _, err := m.Fit(t.Context(), good, Options{}); err == nil {
			t.Errorf("%s: no bits", m.Name)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := m.Fit(ctx, good, Options{Bits: 8}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: cancelled: %v", m.Name, err)
		}
		// One class, and vectors that are all the same, teach nothing; but they are no fault.
		same := &Data{X: []*mat.Dense{mat.NewDense(20, 4, nil), mat.NewDense(20, 3, nil)},
			Y: mat.NewDense(20, 1, nil)}
		same.Y.Apply(func(_, _ int, _ float64) float64 { return 1 }, same.Y)
		if model, err := m.Fit(t.Context(), same, Options{Bits: 8}); err == nil {
			if z := mat.Sum(model.Project[0](same.X[0])); z-z != 0 {
				t.Errorf("%s: projections of one vector %v", m.Name, z)
			}
		}
		err := m.Check(100_000, 2)
		if (m.PairBytes > 0) != (err != nil && strings.Contains(err.Error(), "quadratic: the pairs of 100000 items need")) {
			t.Errorf("%s: 100,000 items: %v", m.Name, err)
		}
	}
	if _, err := ByName([]string{"batch", "magic"}); err == nil || !strings.Contains(err.Error(), "SCRATCH") {
		t.Error(err)
	}
}

// On wiki methods reach what their papers' programs reach.
func TestWiki(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "shared", "data", "wiki")
	l, err := newLab(dir, &options{seeds: 1, bits: []int{64}, top: 50, split: labelled})
	if err != nil {
		t.Skipf("the set wiki is not at hand: %v", err)
	}
	for name, want := range map[string][2]float64{
		"BATCH": {.392, .753}, "SCRATCH": {.386, .760}, "DCH": {.372, .720}, "CMFH": {.246, .239},
		"FDDH-published": {.365, .753}, "FDDH": {.423, .767},
	} {
		m, _ := ByName([]string{name})
		rows, err := l.measure(t.Context(), m[0], Options{Bits: 64}, labelled)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range rows {
			if math.Abs(r.MAP-want[i]) > .02 {
				t.Errorf("%s, %s: mAP %.3f, want %.3f", name, r.direction(), r.MAP, want[i])
			}
		}
	}
}
