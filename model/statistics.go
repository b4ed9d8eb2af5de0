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

// gramNorm returns the 1-norm of the symmetric matrix with lower triangle a: the
// largest sum of absolute values of a column.
func gramNorm(a dense.Matrix[float64]) float64 {
	sums := make([]float64, a.Cols)
	for i := range a.Rows {
		row := a.Data[i*a.Stride : i*a.Stride+i+1]
		for j, v := range row {
			v = math.Abs(v)
			sums[j] += v
			if j < i {
				sums[i] += v
			}
		}
	}
	return floats.Max(sums)
}

// inverseNorm estimates the 1-norm of (L L')^-1 from the Cholesky factor L, by the
// method of Hager and Higham (Higham, "FORTRAN codes for estimating the one-norm of a
// real or complex matrix", ACM TOMS 1988; LAPACK's dpocon). The estimate is a lower
// bound, seldom below a third of the norm. It costs a handful of solutions of k^2
// multiplications each.
func inverseNorm(l dense.Matrix[float64], workers int) float64 {
	k := l.Cols
	solve := func(x []float64) { dense.CholeskySolve(dense.Of(1, k, x), l, workers) }
	x := make([]float64, k)
	for i := range x {
		x[i] = 1 / float64(k)
	}
	solve(x)
	estimate := floats.Norm(x, 1)
	if k == 1 {
		return estimate
	}
	last := -1
	sign := make([]float64, k)
	for range 4 {
		// The gradient of |A^-1 x| is A^-1 sgn(A^-1 x). It points to the column to try
		// next.
		for i, v := range x {
			sign[i] = math.Copysign(1, v)
		}
		solve(sign)
		column := 0
		for i, v := range sign {
			if math.Abs(v) > math.Abs(sign[column]) {
				column = i
			}
		}
		if column == last {
			break
		}
		last = column
		clear(x)
		x[column] = 1
		solve(x)
		norm := floats.Norm(x, 1)
		if norm <= estimate {
			break
		}
		estimate = norm
	}
	// This vector catches cases that the steps above can miss by cancellation.
	for i := range x {
		x[i] = 1 + float64(i)/float64(k-1)
		if i%2 == 1 {
			x[i] = -x[i]
		}
	}
	solve(x)
	return max(estimate, 2*floats.Norm(x, 1)/(3*float64(k)))
}

// Statistics are the sums from which the projections of a model are solved. For each
// modality they are A_t = phi_t phi_t' (k x k), the number of items, and
//
//   - B_t = Y phi_t' (c x k), for AimLabels, where y is the vector of the item's labels, of
//     length 1; Y Y' (c x c), whose diagonal counts the items of each label; and, once
//     projections have taught, H phi_t' (q x k) of the items that these gave a code;
//   - B_t = H phi_t' (q x k), for the other aims.
//
// They are sums over items. So the statistics of shards add up, the online step adds to
// them (eqs. 22-24), and gamma, prior and weights can change without the data. They take
// 8 (k^2 + k c + c^2) bytes a modality and 8 q k once projections have taught, or 8 k (k+q).
// Goroutines may share them for reading only.
type Statistics struct {
	fingerprint uint64 // of the maps and the code space
	bits        int
	labels      int    // c for AimLabels, else 0
	weighted    bool   // AimWeighted
	parts       []part // by modality
}

// part is the statistics of one modality.
type part struct {
	name string    // of the modality
	k    int       // features
	n    int64     // items
	a    []float64 // A, k x k; only the lower triangle is valid
	b    []float64 // B, c x k for AimLabels, else q x k

	// For AimLabels.
	pairs      []float64 // Y Y', c x c; only the lower triangle is valid
	taught     []float64 // H phi', q x k, of the items that projections have taught; nil: none
	unlabelled int64     // number of these items

	// For the other aims: the sum of the squared weights of the items, which is their
	// number for AimCodes.
	square float64
}

// newPart returns empty sums.
func newPart(name string, k, bits, labels int) part {
	p := part{name: name, k: k, a: make([]float64, k*k)}
	if labels > 0 {
		p.b, p.pairs = make([]float64, labels*k), make([]float64, labels*labels)
	} else {
		p.b = make([]float64, bits*k)
	}
	return p
}

// NewStatistics returns empty statistics for the maps and the code space of m.
func NewStatistics(m *Model) *Statistics {
	s := &Statistics{fingerprint: m.fingerprint, bits: m.bits, labels: m.summedLabels(),
		weighted: m.aim == AimWeighted}
	for t, f := range m.maps {
		s.parts = append(s.parts, newPart(m.modalities[t].Name, f.Size(), m.bits, s.labels))
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

// A teaching has the lessons of rows of features. A row has either labels or a code.
type teaching struct {
	y []float32 // AimLabels: label vectors, rows of c; zeros where a code teaches
	h []float32 // codes as +-1, times the weight of the item, rows of q; zeros where labels teach
}

// add adds rows of features of modality t, with their lessons, on workers goroutines. It costs rows k (k/2 +
// c) multiplications, and rows k q where codes teach.
//
// Each number is summed in float64 in the order of the rows. So the sums are bitwise the same for any number
// of goroutines, and for any division of the items into calls.
func (s *Statistics) add(t int, phi dense.Matrix[float32], x teaching, workers int) {
	p := &s.parts[t]
	dense.AddGram(dense.Of(p.k, p.k, p.a), phi, workers)
	p.addTaught(phi, x, s.bits, s.labels, workers)
	p.n += int64(phi.Rows)
}

// addTaught adds the lessons of rows to all sums but A and the number of items.
func (p *part) addTaught(phi dense.Matrix[float32], x teaching, q, c, workers int) {
	n := phi.Rows
	h := dense.Of(n, q, x.h)
	if c == 0 {
		dense.AddTN(dense.Of(q, p.k, p.b), h, phi, workers)
		for r := range n {
			w := float64(x.h[r*q])
			p.square += w * w
		}
		return
	}
	coded := 0
	for r := range n {
		if x.h[r*q] != 0 {
			coded++
			continue
		}
		addPairs(p.pairs, x.y[r*c:(r+1)*c])
	}
	if coded < n {
		dense.AddTN(dense.Of(c, p.k, p.b), dense.Of(n, c, x.y), phi, workers)
	}
	if coded > 0 {
		p.teach(q)
		dense.AddTN(dense.Of(q, p.k, p.taught), h, phi, workers)
		p.unlabelled += int64(coded)
	}
}

// teach makes room for lessons of projections.
func (p *part) teach(q int) {
	if p.taught == nil {
		p.taught = make([]float64, q*p.k)
	}
}

// addPairs adds y y' to the lower triangle of pairs.
func addPairs(pairs []float64, y []float32) {
	c := len(y)
	for l, v := range y {
		if v == 0 {
			continue
		}
		row := pairs[l*c:]
		for k, w := range y[:l+1] {
			if w != 0 {
				row[k] += float64(v) * float64(w)
			}
		}
	}
}

// subtract removes rows that add has added, with their teaching. The sums then equal sums of the remaining
// items, but for the rounding of the removed ones. It costs as much as add, and as many additions as there
// are sums, and their memory for a while.
func (s *Statistics) subtract(t int, phi dense.Matrix[float32], x teaching, workers int) error {
	p := &s.parts[t]
	if p.n < int64(phi.Rows) {
		return fmt.Errorf("%w: %d rows are to be taken out of %d of modality %q", ErrMismatch, phi.Rows, p.n,
			p.name)
	}
	gone := &Statistics{bits: s.bits, labels: s.labels, parts: []part{newPart("", p.k, s.bits, s.labels)}}
	gone.add(0, phi, x, workers)
	if g := &gone.parts[0]; g.unlabelled > p.unlabelled {
		return fmt.Errorf("%w: %d rows that projections have taught are to be taken out of %d of modality %q",
			ErrMismatch, g.unlabelled, p.unlabelled, p.name)
	}
	p.merge(&gone.parts[0], s.bits, -1)
	return nil
}

// merge adds the sums of o, times sign.
func (p *part) merge(o *part, q int, sign float64) {
	if o.taught != nil {
		p.teach(q)
		floats.AddScaled(p.taught, sign, o.taught)
	}
	floats.AddScaled(p.a, sign, o.a)
	floats.AddScaled(p.b, sign, o.b)
	if o.pairs != nil {
		floats.AddScaled(p.pairs, sign, o.pairs)
	}
	p.square += sign * o.square
	p.n += int64(sign) * o.n
	if p.unlabelled += int64(sign) * o.unlabelled; p.unlabelled == 0 {
		p.taught = nil // only rounding errors are left
	}
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
		s.parts[t].merge(&other.parts[t], s.bits, 1)
	}
	return nil
}

// sameShape reports whether both statistics have the same maps and code space.
func (s *Statistics) sameShape(other *Statistics) bool {
	return s.fingerprint == other.fingerprint && s.bits == other.bits && s.labels == other.labels &&
		slices.EqualFunc(s.parts, other.parts, func(p, o part) bool { return p.name == o.name && p.k == o.k })
}

// Same returns nil if s and other are the same sums but for rounding: if no number of a
// matrix differs by more than tolerance times the largest one in it. Else the error says
// where they differ.
func (s *Statistics) Same(other *Statistics, tolerance float64) error {
	if !s.sameShape(other) {
		return fmt.Errorf("%w: they are of another model, or of other labels", ErrMismatch)
	}
	for t := range s.parts {
		p, o := &s.parts[t], &other.parts[t]
		if p.n != o.n || p.unlabelled != o.unlabelled {
			return fmt.Errorf("%w: modality %q: they are of %d items, %d of these taught by projections, not of %d and %d",
				ErrMismatch, p.name, p.n, p.unlabelled, o.n, o.unlabelled)
		}
		// Matrices by rows; of A the lower triangle.
		a := [2][][]float64{}
		for i := range p.k {
			a[0], a[1] = append(a[0], p.a[i*p.k:i*p.k+i+1]), append(a[1], o.a[i*p.k:i*p.k+i+1])
		}
		matrices := [][2][][]float64{a, {{p.b}, {o.b}}, {{p.pairs}, {o.pairs}}, {{{p.square}}, {{o.square}}}}
		if p.unlabelled > 0 {
			matrices = append(matrices, [2][][]float64{{p.taught}, {o.taught}})
		}
		for _, m := range matrices {
			off, scale := 0.0, 0.0
			for i, row := range m[0] {
				for j, v := range row {
					w := m[1][i][j]
					off, scale = max(off, math.Abs(v-w)), max(scale, math.Abs(v), math.Abs(w))
				}
			}
			if off > tolerance*scale {
				return fmt.Errorf("%w: modality %q: they are off by %.2g of up to %.2g", ErrMismatch, p.name,
					off, scale)
			}
		}
	}
	return nil
}

// Clone returns a copy that shares nothing with s.
func (s *Statistics) Clone() *Statistics {
	c := *s
	c.parts = slices.Clone(s.parts)
	for t := range c.parts {
		p := &c.parts[t]
		p.a, p.b, p.pairs, p.taught = slices.Clone(p.a), slices.Clone(p.b), slices.Clone(p.pairs),
			slices.Clone(p.taught)
	}
	return &c
}

// solve returns B_t (A_t + gamma I)^-1, from which mix makes the projection of modality
// t: a row of k for each label, and one for each bit if projections have taught; for
// codes a row for each bit.
//
// It copies A and factors it by Cholesky: k^3/3 multiplications, and k^2 for each row, on
// GOMAXPROCS goroutines. The result is bitwise the same for any GOMAXPROCS. condition
// is an estimate of the condition number of A_t + gamma I. The error
// is a *SingularError if gamma is too small for A.
func (s *Statistics) solve(t int, gamma float64) (w dense.Matrix[float64], condition float64, err error) {
	defer parallel.Guard(&err, "solving for a projection")
	part := &s.parts[t]
	if !(gamma >= 0) || math.IsInf(gamma, 0) {
		return w, 0, fmt.Errorf("%w: gamma of modality %q: %g: it is a finite number, zero or more",
			ErrOption, part.name, gamma)
	}
	a := dense.Of(part.k, part.k, make([]float64, part.k*part.k))
	part.ridged(a, gamma)
	norm := gramNorm(a) // before Cholesky replaces a
	if !dense.Cholesky(a, parallel.Workers()) {
		return w, 0, part.singular(gamma)
	}
	condition = norm * inverseNorm(a, parallel.Workers())
	w, err = part.solve(a, gamma, parallel.Workers())
	return w, condition, err
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

// solve returns B (A + gamma I)^-1, given the Cholesky factor l of A + gamma I, with the
// rows of taught at its end.
func (p *part) solve(l dense.Matrix[float64], gamma float64,
	workers int) (w dense.Matrix[float64], err error) {
	x := slices.Concat(p.b, p.taught)
	w = dense.Of(len(x)/p.k, p.k, x)
	dense.CholeskySolve(w, l, workers)
	for _, v := range x {
		if v-v != 0 {
			return w, p.singular(gamma)
		}
	}
	return w, nil
}

// singular returns the error for a gamma that is too small.
func (p *part) singular(gamma float64) error {
	var trace float64
	for i := range p.k {
		trace += p.a[i*p.k+i] / float64(p.k)
	}
	return &SingularError{Modality: p.name, Gamma: gamma, Enough: max(1e-6*trace, 10*gamma)}
}

// A Tally adds items to statistics, by their features. One goroutine at a time may use it.
type Tally struct {
	Statistics *Statistics

	m       *Model
	y, h    []float32 // scratch memory: see teaching
	columns []int32
	code    codec.Code
}

// NewTally returns an empty tally for the maps and the code space of m.
func NewTally(m *Model) *Tally {
	return &Tally{Statistics: NewStatistics(m), m: m, code: codec.NewCode(m.bits)}
}

// Add adds items that have modality t: phi has a row of features for each, and labels its labels. Unless the
// aim is AimLabels, codes may replace the code of the labels of each. It runs on GOMAXPROCS goroutines.
func (a *Tally) Add(t int, phi []float32, labels [][]uint32, codes []codec.Code) {
	n, q, c := len(labels), a.m.bits, a.Statistics.labels
	a.y, a.h = slices.Grow(a.y[:0], n*c)[:n*c], slices.Grow(a.h[:0], n*q)[:n*q]
	clear(a.y)
	clear(a.h)
	for r, l := range labels {
		a.columns = aims.Known(a.columns[:0], a.m.labels, l)
		row := teaching{a.y[r*c : (r+1)*c], a.h[r*q : (r+1)*q]}
		switch {
		case c > 0:
			a.m.teachLabels(row, a.columns)
		case len(codes) > 0:
			a.m.teachCode(row.h, codes[r], a.columns)
		default:
			a.m.codeOf(a.code, a.columns)
			a.m.teachCode(row.h, a.code, a.columns)
		}
	}
	a.Statistics.add(t, dense.Of(n, a.m.maps[t].Size(), phi), teaching{a.y, a.h}, parallel.Workers())
}

// Reset forgets all items, but keeps the memory.
func (a *Tally) Reset() {
	for t := range a.Statistics.parts {
		p := &a.Statistics.parts[t]
		clear(p.a)
		clear(p.b)
		clear(p.pairs)
		p.n, p.square = 0, 0
	}
}
