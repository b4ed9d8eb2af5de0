package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// Statistics are the sums from which the projections of a model are solved: for each
// modality A_t = phi_t phi_t' (k x k), B_t = H phi_t' (q x k) and the number of items.
// They are sums over items. So the statistics of shards add up, the online step adds to
// them (eqs. 22-24), and the ridge gamma can change without the data. They take 8 k
// (k+q) bytes a modality. Goroutines may share them for reading only.
type Statistics struct {
	fingerprint uint64 // of the maps and the code space
	bits        int
	parts       []part // by modality
}

// part is the statistics of one modality.
type part struct {
	name string    // of the modality
	k    int       // features
	n    int64     // items
	a    []float64 // A, k x k; only the lower triangle is valid
	b    []float64 // B, q x k
}

// NewStatistics returns the statistics of no items, for the maps and the code space of
// m.
func NewStatistics(m *Model) *Statistics {
	s := &Statistics{fingerprint: m.fingerprint, bits: m.bits}
	for t, f := range m.maps {
		k := f.size()
		s.parts = append(s.parts, part{name: m.modalities[t].Name, k: k, a: make([]float64, k*k), b: make([]float64, m.bits*k)})
	}
	return s
}

// Items returns the number of items with modality t.
func (s *Statistics) Items(t int) int { return int(s.parts[t].n) }

// Trace returns the trace of A_t: the sum of the squared lengths of the features of its
// items. Only rounding can make it negative.
func (s *Statistics) Trace(t int) float64 {
	p := &s.parts[t]
	sum := 0.0
	for i := range p.k {
		sum += p.a[i*p.k+i]
	}
	return sum
}

// Add adds items that have modality t. Row i of phi is phi_t of item i, as Encoder.Map
// computes it, and row i of h is its code as +-1. Add reads rows*k and rows*Bits
// numbers and keeps neither slice. It costs rows*k*(k/2+Bits) multiplications, on
// GOMAXPROCS goroutines.
//
// Each number of A and B is summed in float64 in the order of the rows. So the sums are
// bitwise the same for any GOMAXPROCS, and however the items are cut into calls.
func (s *Statistics) Add(t, rows int, phi, h []float32) (err error) {
	defer guard(&err, "adding to statistics")
	return s.add(t, rows, phi, h, workerCount())
}

// add is Add on so many goroutines.
func (s *Statistics) add(t, rows int, phi, h []float32, workers int) error {
	p, err := s.rows(t, rows, phi, h)
	if err != nil {
		return err
	}
	x := dense.Of(rows, p.k, phi)
	dense.AddGram(dense.Of(p.k, p.k, p.a), x, workers)
	dense.AddTN(dense.Of(s.bits, p.k, p.b), dense.Of(rows, s.bits, h), x, workers)
	p.n += int64(rows)
	return nil
}

// rows returns the part of modality t, or an error if the rows do not fit it.
func (s *Statistics) rows(t, rows int, phi, h []float32) (*part, error) {
	if t < 0 || t >= len(s.parts) {
		return nil, fmt.Errorf("%w: the statistics have %d modalities, not number %d", ErrMismatch, len(s.parts), t)
	}
	p := &s.parts[t]
	if rows < 0 || len(phi) < rows*p.k || len(h) < rows*s.bits {
		return nil, fmt.Errorf("%w: %d rows of modality %q need %d features and %d signs, not %d and %d",
			ErrMismatch, rows, p.name, rows*p.k, rows*s.bits, len(phi), len(h))
	}
	return p, nil
}

// Subtract removes items that Add has added, with the same rows. The sums are then
// those of the remaining items, but for the rounding of the removed ones. It costs as
// much as Add, and k (k+q) additions and 8 k (k+q) bytes for a while.
func (s *Statistics) Subtract(t, rows int, phi, h []float32) (err error) {
	defer guard(&err, "subtracting from statistics")
	return s.subtract(t, rows, phi, h, workerCount())
}

// subtract is Subtract on so many goroutines.
func (s *Statistics) subtract(t, rows int, phi, h []float32, workers int) error {
	p, err := s.rows(t, rows, phi, h)
	if err != nil {
		return err
	}
	if p.n < int64(rows) {
		return fmt.Errorf("%w: %d rows are to be taken out of %d of modality %q", ErrMismatch, rows, p.n, p.name)
	}
	gone := &Statistics{bits: s.bits, parts: []part{{k: p.k, a: make([]float64, p.k*p.k), b: make([]float64, s.bits*p.k)}}}
	if err := gone.add(0, rows, phi, h, workers); err != nil {
		return err
	}
	for i, v := range gone.parts[0].a {
		p.a[i] -= v
	}
	for i, v := range gone.parts[0].b {
		p.b[i] -= v
	}
	p.n -= int64(rows)
	return nil
}

// Merge adds the statistics of other items with the same maps and code space. For
// others the error wraps ErrMismatch, and s is unchanged.
func (s *Statistics) Merge(other *Statistics) error {
	if !s.sameShape(other) {
		return fmt.Errorf("%w: the statistics belong to another model: merge only what was made with one model's maps", ErrMismatch)
	}
	for t := range s.parts {
		p, o := &s.parts[t], &other.parts[t]
		if p.n > math.MaxInt64-o.n {
			return fmt.Errorf("%w: modality %q: the number of items overflows", ErrMismatch, p.name)
		}
	}
	for t := range s.parts {
		p, o := &s.parts[t], &other.parts[t]
		for i, v := range o.a {
			p.a[i] += v
		}
		for i, v := range o.b {
			p.b[i] += v
		}
		p.n += o.n
	}
	return nil
}

// sameShape reports whether both are statistics of the same maps and code space.
func (s *Statistics) sameShape(other *Statistics) bool {
	return s.fingerprint == other.fingerprint && s.bits == other.bits &&
		slices.EqualFunc(s.parts, other.parts, func(p, o part) bool { return p.name == o.name && p.k == o.k })
}

// Clone returns a copy that shares nothing with s.
func (s *Statistics) Clone() *Statistics {
	c := *s
	c.parts = slices.Clone(s.parts)
	for t := range c.parts {
		c.parts[t].a = slices.Clone(c.parts[t].a)
		c.parts[t].b = slices.Clone(c.parts[t].b)
	}
	return &c
}

// Solve returns the projection of modality t for a ridge gamma,
//
//	P_t = B_t (A_t + gamma I)^-1,
//
// as q rows of k. It copies A and factors it by Cholesky: k^3/3 multiplications, and 2
// q k^2 for the rows, on GOMAXPROCS goroutines. The result is bitwise the same for any
// GOMAXPROCS. The error is a *SingularError if gamma is too small for A.
func (s *Statistics) Solve(t int, gamma float64) (p []float64, err error) {
	return s.solve(t, gamma, nil)
}

// solve is Solve. If condition is not nil it is set to an estimate of the condition
// number of A_t + gamma I.
func (s *Statistics) solve(t int, gamma float64, condition *float64) (p []float64, err error) {
	defer guard(&err, "solving for a projection")
	if t < 0 || t >= len(s.parts) {
		return nil, fmt.Errorf("%w: the statistics have %d modalities, not number %d", ErrMismatch, len(s.parts), t)
	}
	part := &s.parts[t]
	if err := checkWeight("gamma", part.name, gamma); err != nil {
		return nil, err
	}
	a := dense.Of(part.k, part.k, make([]float64, part.k*part.k))
	part.ridged(a, gamma)
	var norm float64
	if condition != nil {
		norm = gramNorm(a) // before Cholesky replaces a
	}
	if !dense.Cholesky(a, workerCount()) {
		return nil, part.singular(gamma)
	}
	if condition != nil {
		*condition = norm * inverseNorm(a, workerCount())
	}
	return part.solve(a, s.bits, gamma, workerCount())
}

// ridged writes the lower triangle of A + gamma I to a, k x k.
func (p *part) ridged(a dense.Matrix[float64], gamma float64) {
	k := p.k
	for i := range k {
		copy(a.Data[i*k:], p.a[i*k:i*k+i+1])
		a.Data[i*k+i] += gamma
	}
}

// factorise writes the Cholesky factor of A + gamma I to l, k x k.
func (p *part) factorise(l dense.Matrix[float64], gamma float64, workers int) error {
	p.ridged(l, gamma)
	if !dense.Cholesky(l, workers) {
		return p.singular(gamma)
	}
	return nil
}

// solve returns B (A + gamma I)^-1, given the Cholesky factor l of A + gamma I.
func (p *part) solve(l dense.Matrix[float64], bits int, gamma float64, workers int) ([]float64, error) {
	x := slices.Clone(p.b)
	dense.CholeskySolve(dense.Of(bits, p.k, x), l, workers)
	for _, v := range x {
		if v-v != 0 {
			return nil, p.singular(gamma)
		}
	}
	return x, nil
}

// singular returns the error for a gamma that is too small.
func (p *part) singular(gamma float64) error {
	var trace float64
	for i := range p.k {
		trace += p.a[i*p.k+i] / float64(p.k)
	}
	return &SingularError{Modality: p.name, Gamma: gamma, Enough: max(1e-6*trace, 10*gamma)}
}
