package methods

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"
)

// A Method is a way to learn codes.
type Method struct {
	Name, Paper string
	Labels      bool // it learns from labels
	Target      bool // Options.Target changes what its projections learn
	Modalities  int  // the number of modalities that it takes; 0: any from two
	Separate    bool // each modality of an item has a code of its own; else an item has one
	PairBytes   int  // what it holds for each pair of items; 0: it compares no pairs
	fit         func(s *run)
}

// All are the methods in the order of tables.
var All = []*Method{
	{Name: "ITQ", Paper: "Gong et al., TPAMI 2013", fit: fitITQ},
	{Name: "CCA-ITQ", Paper: "Gong et al., TPAMI 2013", Separate: true, fit: fitCCAITQ},
	{Name: "IMH", Paper: "Song et al., SIGMOD 2013", Separate: true, PairBytes: 24, fit: fitIMH},
	{Name: "CMFH", Paper: "Ding et al., CVPR 2014", Separate: true, fit: fitCMFH},
	{Name: "CCQ", Paper: "Long et al., SIGIR 2016", fit: fitCCQ},
	{Name: "SCM", Paper: "Zhang and Li, AAAI 2014", Labels: true, Modalities: 2, Separate: true, fit: fitSCM},
	{Name: "SePH", Paper: "Lin et al., CVPR 2015", Labels: true, Target: true, PairBytes: 16, fit: fitSePH},
	{Name: "GSePH", Paper: "Mandal et al., CVPR 2017", Labels: true, Target: true, fit: fitGSePH},
	{Name: "DCMH", Paper: "Jiang and Li, CVPR 2017", Labels: true, Modalities: 2, Separate: true, PairBytes: 8,
		fit: fitDCMH},
	{Name: "DCH", Paper: "Xu et al., TIP 2017", Labels: true, Target: true, fit: fitDCH},
	{Name: "FSDH", Paper: "Gui et al., TPAMI 2018", Labels: true, Target: true, fit: fitFSDH},
	{Name: "SRLCH", Paper: "Shen et al., TKDE 2020", Labels: true, Target: true, fit: fitSRLCH},
	{Name: "DLFH", Paper: "Jiang and Li, TIP 2019", Labels: true, Target: true, Modalities: 2, Separate: true,
		fit: fitDLFH},
	{Name: "SCRATCH", Paper: "Li et al., ACM MM 2018", Labels: true, Target: true, fit: fitSCRATCH},
	{Name: "BATCH", Paper: "Wang et al., TKDE 2020", Labels: true, Target: true, fit: fitBATCH},
	{Name: "FSDH-M", Paper: "Liu et al., TNNLS 2021", Labels: true, Target: true, fit: fitFSDHM},
	{Name: "DPLM-M", Paper: "Liu et al., TNNLS 2021", Labels: true, Target: true, fit: fitDPLMM},
	{Name: "FDDH-DPLM", Paper: "Liu et al., TNNLS 2021", Labels: true, Target: true, fit: fitFDDHDPLM},
	{Name: "FDDH-published", Paper: "Liu et al., TNNLS 2021", Labels: true, Target: true, fit: fitPublished},
	{Name: "FDDH", Paper: "the defaults of fddhdb train", Labels: true, fit: fitDefaults},
}

// names returns the names of all methods.
func names() (all []string) {
	for _, m := range All {
		all = append(all, m.Name)
	}
	return all
}

// ByName returns the methods of these names, in any case.
func ByName(wanted []string) (found []*Method, err error) {
	for _, name := range wanted {
		i := slices.IndexFunc(All, func(m *Method) bool { return strings.EqualFold(m.Name, name) })
		if i < 0 {
			return nil, fmt.Errorf("--methods %s: there is no such method, but %s", name, strings.Join(names(), ", "))
		}
		found = append(found, All[i])
	}
	return found, nil
}

// Data are training items: vectors of each modality and labels, a row an item.
type Data struct {
	X     []*mat.Dense
	Y     *mat.Dense
	Names []string // of the modalities, for errors; nil: their numbers
}

// name returns the name of a modality.
func (d *Data) name(t int) string {
	if t < len(d.Names) {
		return d.Names[t]
	}
	return fmt.Sprint(t)
}

// Options are the settings that all methods share.
type Options struct {
	Bits   int
	Seed   uint64
	Sweeps int  // rounds of a method that alternates; 0: as its authors
	Target bool // projections learn the target of this project in place of codes; see run.aim
}

// A Model is what a method has learned.
type Model struct {
	Codes     []*mat.Dense                        // of the training items, by modality, +-1
	Project   []func(x *mat.Dense) (z *mat.Dense) // by modality, m x d to m x q
	Fuse      func(z []*mat.Dense) *mat.Dense     // of all modalities of items, by default their sum
	Encode    func(z *mat.Dense) *mat.Dense       // to codes, by default signs
	Objective []float64                           // after each sweep, if the method has one that falls
}

// Check returns an error if the method cannot learn from n items with so many modalities.
func (m *Method) Check(n, modalities int) error {
	if modalities < 2 || m.Modalities > 0 && modalities != m.Modalities {
		return fmt.Errorf("it takes %s modalities, and there are %d: leave the method out",
			map[bool]string{true: "two or more", false: "exactly two"}[m.Modalities == 0], modalities)
	}
	if gib := float64(m.PairBytes) * float64(n) * float64(n) / (1 << 30); gib > 4 {
		return fmt.Errorf("it is quadratic: the pairs of %d items need %.1f GiB, and 4 are allowed: leave the method out, or take fewer items", n, gib)
	}
	return nil
}

// Fit learns a model. It does not change the data.
func (m *Method) Fit(ctx context.Context, d *Data, o Options) (*Model, error) {
	s := &run{Data: d, Options: o, ctx: ctx, q: o.Bits, r: rand.New(rand.NewPCG(o.Seed, 23))}
	s.Model = &Model{Fuse: sum, Encode: signs}
	if s.err = d.check(o); s.err == nil {
		s.n, _ = d.Y.Dims()
		if s.err = m.Check(s.n, len(d.X)); s.err == nil {
			m.fit(s)
			s.err = errors.Join(s.err, ctx.Err())
		}
	}
	if s.err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, s.err)
	}
	return s.Model, nil
}

// check checks numbers, and shapes, as gonum panics about them.
func (d *Data) check(o Options) error {
	if o.Bits < 1 || o.Sweeps < 0 {
		return fmt.Errorf("%d bits, %d sweeps: give at least one bit, and sweeps from 0", o.Bits, o.Sweeps)
	}
	if d.Y == nil || d.Y.IsEmpty() || d.Y.RawMatrix().Rows < 2 {
		return errors.New("there are less than two labelled items: give more")
	}
	for t, x := range d.X {
		if x == nil || x.IsEmpty() || x.RawMatrix().Rows != d.Y.RawMatrix().Rows {
			return fmt.Errorf("modality %d has no row for each of the %d items: give as many", t, d.Y.RawMatrix().Rows)
		}
		if v := mat.Sum(x); v-v != 0 {
			return fmt.Errorf("modality %d has numbers that are not finite, or too large to add up: remove them", t)
		}
	}
	return nil
}

// A run is one training: what every method starts with.
type run struct {
	*Data
	Options
	*Model // what it learns
	ctx    context.Context
	n, q   int
	r      *rand.Rand
	maps   []mapping    // by modality
	phi    []*mat.Dense // the training items, mapped
	done   int          // sweeps
	err    error
}

// mapped maps the items of every modality; of makes the map of one.
func (s *run) mapped(of func(x *mat.Dense, r *rand.Rand) mapping) {
	for _, x := range s.X {
		f := of(x, s.r)
		s.maps, s.phi = append(s.maps, f), append(s.phi, f(x))
	}
}

// sweep reports whether to begin another sweep. The authors make so many.
func (s *run) sweep(authors int) bool {
	if s.Sweeps > 0 {
		authors = s.Sweeps
	}
	s.done++
	return s.done <= authors && (s.done == 1 || s.ctx.Err() == nil) // what follows needs one
}

// after records the objective after a sweep.
func (s *run) after(f float64) { s.Objective = append(s.Objective, f) }

// aim returns what projections learn: the codes b, or with Options.Target
//
//	Y D J C',  C = polar(B'Y),  D = diag((mean count / n_k)^.25),  J = I - 11'/c.
//
// C is the orthonormal basis nearest to the codes of the labels. A Hamming distance cannot use what all
// labels share, which J removes, and D favours rare labels. If items have several labels rows of Y have the
// length 1, and J and D are the identity.
func (s *run) aim(b *mat.Dense) *mat.Dense {
	if !s.Target {
		return b
	}
	y := mat.DenseCopyOf(s.Y)
	if n, c := y.Dims(); mat.Sum(y) == float64(n) { // one label each
		count := columnMeans(y)
		y.Apply(func(_, k int, v float64) float64 {
			return v * math.Pow(max(count[k], 1e-300)*float64(c), -.25)
		}, y)
		y = minus(y, mul(y, mat.NewDense(c, c, slices.Repeat([]float64{1 / float64(c)}, c*c))))
	} else {
		y = unitRows(y)
	}
	return mul(y, polar(mul(b.T(), s.Y)).T())
}

// regressions returns, for each modality, b -> (phi_t'phi_t + gamma I)^-1 phi_t'b.
func (s *run) regressions(gamma float64) (all []func(b *mat.Dense) *mat.Dense) {
	for _, phi := range s.phi {
		all = append(all, ridge(phi, gamma))
	}
	return all
}

// finish ends a training with codes, one matrix for all modalities or one for each. Projections are the ridge
// regressions P_t = (phi_t'phi_t + gamma I)^-1 phi_t' aim(B_t).
func (s *run) finish(gamma float64, b ...*mat.Dense) {
	for t, regress := range s.regressions(gamma) {
		s.learned(b[min(t, len(b)-1)], regress(s.aim(b[min(t, len(b)-1)])), nil)
	}
}

// learned adds the codes of the next modality, and its projection z = phi_t(x) p - means. Without codes it
// takes the signs of z.
func (s *run) learned(b, p *mat.Dense, means []float64) {
	t := len(s.Project)
	s.Project = append(s.Project, func(x *mat.Dense) *mat.Dense {
		return centred(mul(s.maps[t](x), p), means)
	})
	if b == nil {
		b = signs(s.Project[t](s.X[t]))
	}
	s.Codes = append(s.Codes, b)
}
