package model

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model/internal/aims"
	"github.com/fddhdb/fddhdb/model/internal/dense"
	"github.com/fddhdb/fddhdb/model/internal/parallel"
	"gonum.org/v1/gonum/floats"
)

// A Teacher chooses the code that the projections learn from an item without known labels.
type Teacher uint8

const (
	TeacherLabels   Teacher = iota // none: only labelled items teach
	TeacherModality                // the code of one modality's projection, for all modalities
	TeacherSelf                    // in each modality the code of its own projection, as in the paper
)

// MaxLesson is the number of items that Online takes as one chunk of the online step.
const MaxLesson = 512

// An Online goes on learning projections from items as they come (Liu, Wang, Cheung
// 2021, eqs. 22-24). For the features Phi of new items of a modality, and label vectors
// Y, or codes H, for them,
//
//	A += Phi Phi',  B += Y Phi',  W = B (A + gamma I)^-1,
//
// and projections follow from W (mixture). A labelled item teaches its labels, or with AimCodes and
// AimWeighted their code. For other items a Teacher says which projection gives the code. A projection
// changes with its lessons, so H = sgn(P Phi) is repeated until it no longer changes, at most 5 times. With
// AimLabels such a code counts as much as the mean C J D y, in root mean square.
//
// The code space does not change: earlier codes remain comparable with codes of later projections. With
// AimLabels the weights D of labels change: each revision has the weights of the items that have taught by
// then. If all items that have taught a modality are forgotten, the equation gives P = 0, by which no item
// would have a code. The modality then keeps its projection until something teaches it.
//
// One goroutine at a time may use an Online. It holds A, B, a Cholesky factor and W of
// each modality: 16 k (k+c) bytes with AimLabels, 16 k (k+c+q) once projections have taught,
// and 16 k (k+q) with the other aims. And it holds up to MaxLesson rows of features.
type Online struct {
	// Workers is the number of goroutines to compute on; 0 means GOMAXPROCS. Results
	// are the same, to the last bit, for any number. Set it before the first call.
	Workers int

	model *Model       // with the projections of the last Revision
	stats *Statistics  // owned by the Online
	parts []onlinePart // by modality
	scale float64      // of the mixture that unsolved projections have
}

// workers returns the number of goroutines to compute on.
func (o *Online) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return parallel.Workers()
}

// An onlinePart is the state of a modality besides its statistics.
type onlinePart struct {
	factor  dense.Matrix[float64] // Cholesky factor of A + gamma I
	updates int                   // updates of the factor since it was computed
	w       []float64             // the solution of the statistics, rows of k; see mixture
	state   onlineState           // whether factor and w belong to the statistics
	phi     []float32             // rows of features that wait to be added, fewer than MaxLesson
	waiting teaching              // the lessons of these rows
}

type onlineState uint8

const (
	stale    onlineState = iota // neither factor nor w belongs to the statistics
	unsolved                    // nor do they here, but the projection of the model does
	current                     // factor and w belong to the statistics
)

const (
	// onlineUpdates is the largest number of items by which a factor is updated one by
	// one. For more items a new factor is cheaper.
	onlineUpdates = 16
	// onlineRounding is the number of updates after which a factor is computed again.
	onlineRounding = 1000
	// onlineRounds bounds the rounds of search; the mean is 1.5.
	onlineRounds = 5
)

// NewOnline returns an Online of a model and its statistics. It changes the statistics from now on: pass a
// Clone to keep them. It assumes that the projections of the model follow from the statistics; if they do
// not, call Refit. The error wraps ErrMismatch if model and statistics do not belong together.
func NewOnline(m *Model, s *Statistics) (*Online, error) {
	if err := m.CheckStatistics(s); err != nil {
		return nil, err
	}
	o := &Online{model: m, stats: s, scale: m.mixture(s).scale}
	for t := range m.p {
		part := onlinePart{state: unsolved}
		if s.parts[t].n == 0 {
			part.state = stale
		}
		o.parts = append(o.parts, part)
	}
	return o, nil
}

// Refit drops the projections of the model if they do not follow from the statistics. They are solved from
// the statistics when they are next needed.
func (o *Online) Refit() {
	for t := range o.parts {
		o.parts[t].state = stale
	}
}

// Taught reports the work of Learn.
type Taught struct {
	Labelled   int // items that taught by their labels
	Unlabelled int // items that taught by a projection
	Skipped    int // all other items
	Rounds     int // rounds of the search for a fixed point, summed over its runs
	Runs       int // runs of that search

	// Lessons has the lesson of each item, for Relearn and Forget. It is nil for items
	// that were skipped, or not reached because of an error.
	Lessons []Lesson
}

// Learn adds items to the statistics; they may have no labels. lead is the modality that teaches with
// TeacherModality: items without known labels and without this modality teach nothing. Learn takes items in
// chunks of MaxLesson. If only labels teach, the statistics depend only on the sum of the items: not on their
// division into calls nor, but for rounding, on their order. If projections teach, a chunk learns from those
// before it.
//
// A chunk of m items costs m k (k/2 + c) multiplications a modality for c labels, or with codes q in place of
// c. If only labels teach, they are done later, for many chunks at once. If projections teach it also costs m
// k (k + 3q), and k^3/3 for a new factor, or 2 m k^2 for an update of the old one if m is 16 or less. So an
// item costs a few times less in chunks of a hundred than alone.
//
// Learn fails with an error that wraps ErrMismatch or ErrNotFinite, with a
// *DimensionError or a *SingularError, or when the context ends. Then the items of the
// chunk in hand and those after it have taught nothing.
func (o *Online) Learn(ctx context.Context, items []Example, teacher Teacher,
	lead int) (done Taught, err error) {
	defer parallel.Guard(&err, "in the online step")
	if teacher > TeacherSelf || (teacher == TeacherModality && (lead < 0 || lead >= len(o.parts))) {
		return done, fmt.Errorf("%w: teacher %d, modality %d of %d", ErrOption, teacher, lead, len(o.parts))
	}
	done.Lessons = make([]Lesson, len(items))
	for first := 0; first < len(items); first += MaxLesson {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		end := min(first+MaxLesson, len(items))
		c, err := o.newChunk(items[first:end])
		if err != nil {
			return done, err
		}
		if err := o.teach(c, teacher, lead, &done, done.Lessons[first:end]); err != nil {
			return done, err
		}
	}
	return done, nil
}

// A chunk is a run of items in the form in which Learn works on them.
type chunk struct {
	columns [][]int32   // by item: its known labels; nil if there are none
	known   []bool      // by item: it has a known label
	h       []float32   // by item: see teaching
	at      [][]int     // by modality: the items that have it
	phi     [][]float32 // by modality: the features of these items
}

// newChunk computes the aims of known labels and the features of items, and checks their vectors. It changes
// nothing, so an error leaves the Online unchanged.
func (o *Online) newChunk(items []Example) (*chunk, error) {
	m := o.model
	c := &chunk{known: make([]bool, len(items)), columns: make([][]int32, len(items)),
		h: make([]float32, len(items)*m.bits)}
	for i, item := range items {
		if err := m.checkVectors(item); err != nil {
			return nil, err
		}
		c.columns[i] = aims.Known(nil, m.labels, item.Labels)
		c.known[i] = len(c.columns[i]) > 0
		if c.known[i] {
			m.teachLabels(teaching{h: c.h[i*m.bits : (i+1)*m.bits]}, c.columns[i])
		}
	}
	for t := range m.maps {
		var at []int
		var xs []Vector
		for i, item := range items {
			if x := item.Vectors[t]; x.Present() {
				at, xs = append(at, i), append(xs, x)
			}
		}
		phi, err := o.features(t, xs)
		if err != nil {
			return nil, err
		}
		c.at, c.phi = append(c.at, at), append(c.phi, phi)
	}
	return c, nil
}

// teachLabels writes a row of the lesson of an item with these labels, as columns. x.y is nil, or like x.h a
// row of zeros.
func (m *Model) teachLabels(x teaching, columns []int32) {
	if m.aim == AimLabels {
		if x.y != nil {
			for _, l := range columns {
				x.y[l] = aims.Unit(len(columns))
			}
		}
		return
	}
	code := codec.NewCode(m.bits)
	m.codeOf(code, columns)
	m.teachCode(x.h, code, columns)
}

// teachCode writes the lesson of an item with these labels, as columns, and this code: +-1, times the weight
// of the labels.
func (m *Model) teachCode(h []float32, code codec.Code, columns []int32) {
	aims.Signs(h, code)
	if w := float32(m.weightOf(columns)); w != 1 {
		for j := range h {
			h[j] *= w
		}
	}
}

// features returns phi_t of vectors, a row each.
func (o *Online) features(t int, xs []Vector) ([]float32, error) {
	if err := o.model.checkInput(t, xs...); err != nil {
		return nil, err
	}
	f := o.model.maps[t]
	phi := make([]float32, len(xs)*f.Size())
	f.ApplyAll(phi, xs, make([]MapScratch, o.workers()))
	return phi, nil
}

// checkVectors refuses an item that does not have one Vector for each modality.
func (m *Model) checkVectors(item Example) error {
	if len(item.Vectors) != len(m.maps) {
		return fmt.Errorf("%w: %d vectors, but there are %d modalities: give an empty Vector for what an item lacks", ErrMismatch, len(item.Vectors), len(m.maps))
	}
	return nil
}

// teach lets a chunk teach, and writes the lessons.
func (o *Online) teach(c *chunk, teacher Teacher, lead int, done *Taught, lessons []Lesson) error {
	taught := slices.Clone(c.known)
	order := make([]int, len(o.parts))
	for t := range order {
		order[t] = t
	}
	if teacher == TeacherModality { // it goes first: the others learn its codes
		order[0], order[lead] = lead, 0
	}
	var x mixture // before the chunk, for all modalities
	if teacher != TeacherLabels {
		x = o.model.mixture(o.Statistics())
	}
	var added []*subject
	for _, t := range order {
		s := o.subject(t, c)
		added = append(added, s)
		searches := teacher == TeacherSelf || (teacher == TeacherModality && t == lead)
		if !searches {
			s.keep(taught)
		}
		rounds, err := o.add(t, s, x)
		if err != nil {
			// A chunk teaches all modalities or none: subtract the parts added before the error.
			for i, s := range added[:len(added)-1] {
				err = errors.Join(err, o.subtract(order[i], s))
			}
			return err
		}
		if rounds > 0 {
			done.Rounds += rounds
			done.Runs++
		}
		for r, i := range s.at {
			taught[i] = true
			if teacher == TeacherModality && t == lead {
				copy(c.h[i*o.model.bits:(i+1)*o.model.bits], s.h[r*o.model.bits:])
			}
		}
	}
	for i, known := range c.known {
		switch {
		case known && o.model.aim != AimCodes:
			lessons[i] = Lesson{Labels: o.model.labelsOf(c.columns[i])}
		case taught[i] && (known || teacher == TeacherModality):
			lessons[i] = Lesson{Codes: []codec.Code{packSigns(c.h[i*o.model.bits : (i+1)*o.model.bits])}}
		}
		switch {
		case known:
			done.Labelled++
		case taught[i]:
			done.Unlabelled++
		default:
			done.Skipped++
		}
	}
	if teacher == TeacherSelf {
		for i, s := range added { // in modality order
			s.ownLessons(i, len(added), c.known, lessons)
		}
	}
	return nil
}

// A subject is the part of a chunk in one modality: rows of features with their lessons, and the codes that
// are still to be found.
type subject struct {
	teaching
	at      []int // position of each row's item in the chunk
	q, k, c int   // c: of AimLabels, else 0
	phi     []float32
	open    []bool // by row: the code is still to be found
}

// newSubject returns a subject without rows in modality t.
func (o *Online) newSubject(t int) *subject {
	return &subject{q: o.model.bits, k: o.stats.parts[t].k, c: o.stats.labels}
}

// subject returns the rows of a chunk in modality t.
func (o *Online) subject(t int, c *chunk) *subject {
	s := o.newSubject(t)
	s.at, s.phi = slices.Clone(c.at[t]), c.phi[t]
	s.y = make([]float32, len(s.at)*s.c)
	for r, i := range s.at {
		s.h = append(s.h, c.h[i*s.q:(i+1)*s.q]...)
		s.open = append(s.open, !c.known[i])
		if c.known[i] && s.c > 0 {
			o.model.teachLabels(teaching{y: s.y[r*s.c : (r+1)*s.c]}, c.columns[i])
		}
	}
	return s
}

// keep drops the items that do not teach. The lessons of the others are known.
func (s *subject) keep(teaches []bool) {
	n := 0
	for r, i := range s.at {
		if teaches[i] {
			s.at[n] = i
			copy(s.phi[n*s.k:(n+1)*s.k], s.phi[r*s.k:])
			copy(s.h[n*s.q:(n+1)*s.q], s.h[r*s.q:])
			copy(s.y[n*s.c:(n+1)*s.c], s.y[r*s.c:])
			n++
		}
	}
	s.at, s.phi, s.h, s.y = s.at[:n], s.phi[:n*s.k], s.h[:n*s.q], s.y[:n*s.c]
	s.open = make([]bool, n)
}

// add adds a subject to modality t. It finds the open codes first, for which it needs the
// mixture x, and returns the rounds that this took. Rows without open codes wait for more
// rows: sums of many rows cost less.
func (o *Online) add(t int, s *subject, x mixture) (rounds int, err error) {
	p := &o.parts[t]
	if slices.Contains(s.open, true) {
		o.absorb(t)
		if o.stats.parts[t].n == 0 { // the projection that the modality keeps gives them
			s.take(o.kept(t, s))
			clear(s.open)
			rounds = 1
		}
	}
	if !slices.Contains(s.open, true) {
		p.phi = append(p.phi, s.phi...)
		p.waiting.y, p.waiting.h = append(p.waiting.y, s.y...), append(p.waiting.h, s.h...)
		if len(p.waiting.h) >= MaxLesson*s.q {
			o.absorb(t)
		}
		return rounds, nil
	}
	if p.state != current {
		if err := o.solve(t); err != nil {
			return 0, err
		}
	}
	n, workers := len(s.at), o.workers()
	stats, phi := &o.stats.parts[t], dense.Of(n, s.k, s.phi)
	// A comes before the codes are known: they follow from the projection that has learned
	// these features, and the rest comes last.
	dense.AddGram(dense.Of(s.k, s.k, stats.a), phi, workers)
	wide := widen(s.phi)
	if o.few(t, n) {
		o.update(t, wide)
	} else if err := o.factorise(t); err != nil {
		p.state = stale
		gone := make([]float64, s.k*s.k)
		dense.AddGram(dense.Of(s.k, s.k, gone), phi, workers)
		for i, v := range gone {
			stats.a[i] -= v
		}
		return 0, err
	}
	p.state = current
	if s.c > 0 {
		o.makeRoom(t)
	}
	v, g := o.change(t, phi, wide)
	rounds = s.search(o.model, x, v, g, dense.Of(n, s.k, wide))
	o.move(t, s.teaching, v, g)
	stats.addTaught(phi, s.teaching, s.q, s.c, workers)
	stats.n += int64(n)
	return rounds, nil
}

// makeRoom gives w of modality t rows for lessons of projections.
func (o *Online) makeRoom(t int) {
	stats, p := &o.stats.parts[t], &o.parts[t]
	stats.teach(o.model.bits)
	if p.state == current && len(p.w) == len(stats.b) {
		p.w = append(p.w, make([]float64, len(stats.taught))...)
	}
}

// kept returns the projections of a subject by the last revision of modality t.
func (o *Online) kept(t int, s *subject) []float64 {
	z := dense.Of(len(s.at), s.q, make([]float64, len(s.at)*s.q))
	dense.MulNT(z, dense.Of(len(s.at), s.k, s.phi), o.model.p[t])
	return z.Data
}

// absorb adds the waiting rows to the statistics of modality t.
func (o *Online) absorb(t int) {
	p := &o.parts[t]
	n := len(p.waiting.h) / o.model.bits
	if n == 0 {
		return
	}
	phi := dense.Of(n, o.stats.parts[t].k, p.phi)
	o.stats.add(t, phi, p.waiting, o.workers())
	if o.few(t, n) {
		if o.stats.parts[t].taught != nil {
			o.makeRoom(t)
		}
		wide := widen(p.phi)
		o.update(t, wide)
		v, g := o.change(t, phi, wide)
		o.move(t, p.waiting, v, g)
	} else {
		p.state = stale
	}
	p.phi, p.waiting = p.phi[:0], teaching{p.waiting.y[:0], p.waiting.h[:0]}
}

// few reports whether modality t has a factor, and n rows are so few that updating it
// costs less than computing a new one.
func (o *Online) few(t, n int) bool {
	p := &o.parts[t]
	return p.state == current && n <= onlineUpdates && p.updates+n <= onlineRounding
}

// update adds rows of features to the factor of modality t.
func (o *Online) update(t int, rows []float64) {
	k := o.stats.parts[t].k
	row := make([]float64, k)
	for at := range slices.Chunk(rows, k) {
		copy(row, at)
		dense.CholeskyUpdate(o.parts[t].factor, row)
		o.parts[t].updates++
	}
}

// factorise computes a new Cholesky factor of modality t.
func (o *Online) factorise(t int) error {
	part, p := &o.stats.parts[t], &o.parts[t]
	if p.factor.Data == nil {
		p.factor = dense.Of(part.k, part.k, make([]float64, part.k*part.k))
	}
	p.updates = 0
	return part.factorise(p.factor, o.model.gammas[t], o.workers())
}

// solve computes the projection of modality t from its statistics.
func (o *Online) solve(t int) error {
	part, p := &o.stats.parts[t], &o.parts[t]
	p.state = stale
	if err := o.factorise(t); err != nil {
		return err
	}
	w, err := part.solve(p.factor, o.model.gammas[t], o.workers())
	if err != nil {
		return err
	}
	p.w, p.state = w.Data, current
	return nil
}

// Statistics returns the current statistics. They belong to the Online: clone them to
// keep them.
func (o *Online) Statistics() *Statistics {
	for t := range o.parts {
		o.absorb(t)
	}
	return o.stats
}

// Revision returns the model with the projections of the current statistics. For each
// modality it costs k^3/3 + m k^2 multiplications if more than 16 items have taught since the
// last revision, else 3 k^2 + 2 k m an item. m is c with AimLabels, c + q once projections
// have taught, and q with the other aims. The weights and the mean aim of Fuse stay those from the training.
// The error is a *SingularError; then the Online is unchanged.
func (o *Online) Revision() (m *Model, err error) {
	defer parallel.Guard(&err, "making a revision")
	next := *o.model
	next.p = slices.Clone(o.model.p)
	x := next.mixture(o.Statistics())
	// Items of one modality change the weights, and so the projections of all of them. They also change the
	// scale, and so the projections that use taught codes.
	moved := !slices.Equal(x.weights, next.weights)
	rescaled := x.scale != o.scale
	next.weights = x.weights
	for t := range o.parts {
		p, k := &o.parts[t], o.stats.parts[t].k
		if o.stats.parts[t].n == 0 {
			continue // the modality keeps its projection
		}
		if p.state == unsolved && !moved && !(rescaled && o.stats.parts[t].unlabelled > 0) {
			continue // it has the projection of the model
		}
		if p.state != current {
			if err := o.solve(t); err != nil {
				return nil, err
			}
		}
		// A copy of w: the online step goes on changing it.
		next.p[t] = dense.Pack(next.mix(x, dense.Of(len(p.w)/k, k, p.w)))
	}
	o.model = &next
	return &next, nil
}

// Follow replaces the model by next, a revision of it that was made elsewhere. The Online then knows the
// labels of next. Its statistics stay as they are, and later revisions are solved from these. If next is no
// revision of the model, the error wraps ErrMismatch and the Online is unchanged.
func (o *Online) Follow(next *Model) error {
	grown, err := next.grownSince(o.model)
	if err != nil {
		return err
	}
	s := o.Statistics()
	for _, place := range grown { // ascending, so that each is where it stays
		s = s.grow(next, place)
	}
	*o.stats = *s
	o.model = next
	o.Refit()
	return nil
}

// The search for the codes of items without known labels: a code must equal the one that the projection gives
// after learning it.

// change returns v = W phi of new rows before modality t learns them, and g = Phi' (A + gamma I)^-1 with the
// new A. The new solution is W + (Y - W Phi) g, so B need not be multiplied. For with the old A and B, W (A +
// gamma I) = B; the new ones are A + Phi Phi' and B + Y Phi', and
//
//	B + Y Phi' = W (A + Phi Phi' + gamma I) + (Y - W Phi) Phi'.
//
// g has a row of k for each row of phi, and v a row of as many numbers as W has rows: the equations for label
// vectors Y hold for codes H, below them in W.
func (o *Online) change(t int, phi dense.Matrix[float32], wide []float64) (v, g dense.Matrix[float64]) {
	p, k := &o.parts[t], phi.Cols
	rows := len(p.w) / k
	v = dense.Of(phi.Rows, rows, make([]float64, phi.Rows*rows))
	dense.MulNT(v, phi, dense.Pack(dense.Of(rows, k, p.w)))
	g = dense.Of(phi.Rows, k, slices.Clone(wide))
	if phi.Rows > onlineUpdates {
		dense.CholeskySolve(g, p.factor, o.workers())
		return v, g
	}
	for row := range slices.Chunk(g.Data, k) {
		dense.CholeskySolveRow(row, p.factor)
	}
	return v, g
}

// move lets modality t learn x: it changes w.
func (o *Online) move(t int, x teaching, v, g dense.Matrix[float64]) {
	d := dense.Of(v.Rows, v.Cols, make([]float64, v.Rows*v.Cols))
	for r := range v.Rows {
		row := d.Data[r*d.Cols : (r+1)*d.Cols]
		x.row(row, r, o.model.bits, o.stats.labels)
		floats.Sub(row, v.Data[r*d.Cols:(r+1)*d.Cols])
	}
	dense.AddTN(dense.Of(v.Cols, g.Cols, o.parts[t].w), d, g, o.workers())
}

// row writes what row r teaches to dst: its label vector of c numbers, then its code if
// dst has room for it; or the code alone if c is 0.
func (x *teaching) row(dst []float64, r, q, c int) {
	for l := range c {
		dst[l] = float64(x.y[r*c+l])
	}
	for j := range dst[c:] {
		dst[c+j] = float64(x.h[r*q+j])
	}
}

// widen returns x as float64.
func widen(x []float32) []float64 {
	wide := make([]float64, len(x))
	for i, v := range x {
		wide[i] = float64(v)
	}
	return wide
}

// search looks for codes that equal the signs of the projection after learning them. It returns the number of
// rounds. v are the rows that W gives before learning.
func (s *subject) search(m *Model, x mixture, v, g, phi dense.Matrix[float64]) (rounds int) {
	n := v.Rows
	z := m.mixRows(x, v)
	difference := dense.Of(n, s.q, make([]float64, n*s.q))
	k := dense.Of(n, n, make([]float64, n*n)) // Phi' (A + gamma I)^-1 Phi
	dense.MulNT(k, phi, dense.Pack(g))
	now := z
	next := dense.Of(n, s.q, make([]float64, n*s.q))
	taught := dense.Of(n, v.Cols, make([]float64, n*v.Cols))
	for rounds < onlineRounds {
		rounds++
		if !s.take(now.Data) && rounds > 1 {
			return rounds
		}
		// By the comment of change, the projections of these n rows after learning Y are z + (Phi' (A + gamma
		// I)^-1 Phi) (C J D Y - z): n^2 q multiplications a round, for any number of features.
		for r := range n {
			s.row(taught.Data[r*v.Cols:(r+1)*v.Cols], r, s.q, s.c)
		}
		copy(difference.Data, m.mixRows(x, taught).Data)
		floats.Sub(difference.Data, z.Data)
		dense.MulNT(next, k, dense.PackTransposed(difference))
		floats.Add(next.Data, z.Data)
		now = next
	}
	return rounds
}

// take gives the open items the signs of z as codes, and reports whether any code
// changes.
func (s *subject) take(z []float64) (changed bool) {
	for r, open := range s.open {
		if !open {
			continue
		}
		h := s.h[r*s.q : (r+1)*s.q]
		for j, v := range z[r*s.q : (r+1)*s.q] {
			sign := float32(1)
			if v < 0 {
				sign = -1
			}
			if h[j] != sign {
				h[j], changed = sign, true
			}
		}
	}
	return changed
}
