package model

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// examples returns the items of d; it hides the labels of item i if hide(i).
func examples(d *synth.Data, hide func(i int) bool) []Example {
	var items []Example
	for i, labels := range d.Labels {
		ex := Example{Labels: labels}
		for _, rows := range d.Vectors {
			ex.Vectors = append(ex.Vectors, Dense(rows[i]))
		}
		if hide(i) {
			ex.Labels = nil
		}
		items = append(items, ex)
	}
	return items
}

func never(int) bool { return false }

// begun returns an Online trained on the first items of generated data, and the rest.
func begun(t testing.TB, first int) (*Online, *synth.Data) {
	t.Helper()
	return begunAt(t, first, AimLabels)
}

// begunAt is begun for an aim.
func begunAt(t testing.TB, first int, aim Aim) (*Online, *synth.Data) {
	t.Helper()
	dims := []int{9, 6, 5}
	data := synth.Pairs(synth.Config{Items: 700, Classes: 6, Dims: dims, Missing: .2, LabelsPerItem: 2})
	ms := modalitiesOf(dims)
	r := trained(t, data.Slice(0, first), settled(ms, Options{Bits: 24, Anchors: 90, Aim: aim}))
	o := need(NewOnline(r.Model, r.Statistics.Clone()))(t)
	return o, data.Slice(first, 700)
}

// sameStatistics compares relative to the largest number of each matrix.
func sameStatistics(t *testing.T, what string, got, want *Statistics) {
	t.Helper()
	for mod := range want.parts {
		g, w := &got.parts[mod], &want.parts[mod]
		failIf(t, g.n != w.n || g.unlabelled != w.unlabelled,
			"%s: %d items of modality %d, %d without labels, want %d and %d", what, g.n, mod, g.unlabelled,
			w.n, w.unlabelled)
		if !slices.Equal(g.pairs, w.pairs) || g.square != w.square { // these sums are exact
			t.Errorf("%s: the products of labels of modality %d are others", what, mod)
		}
		var off, scale float64
		for i := range w.k {
			for j := range i + 1 {
				off, scale = max(off, math.Abs(g.a[i*g.k+j]-w.a[i*w.k+j])), max(scale, math.Abs(w.a[i*w.k+j]))
			}
		}
		failIf(t, !(off <= 1e-9*scale), "%s: A of modality %d is off by %g of %g", what, mod, off, scale)
		off, scale = 0, 0
		for i, v := range w.b {
			off, scale = max(off, math.Abs(g.b[i]-v)), max(scale, math.Abs(v))
		}
		failIf(t, !(off <= 1e-9*scale), "%s: B of modality %d is off by %g of %g", what, mod, off, scale)
		if w.unlabelled == 0 {
			continue // rounding may be left where projections have taught
		}
		off, scale = 0, 0
		for i, v := range w.taught {
			off, scale = max(off, math.Abs(g.taught[i]-v)), max(scale, math.Abs(v))
		}
		failIf(t, !(off <= 1e-9*scale), "%s: what projections taught modality %d is off by %g of %g", what,
			mod, off, scale)
	}
}

// sameProjections compares, relative to the length of P.
func sameProjections(t *testing.T, what string, got, want *Model, tolerance float64) {
	t.Helper()
	for mod := range want.p {
		var off, scale float64
		g := got.p[mod].Unpack().Data
		for i, v := range want.p[mod].Unpack().Data {
			off += (g[i] - v) * (g[i] - v)
			scale += v * v
		}
		failIf(t, !(math.Sqrt(off/scale) <= tolerance), "%s: P of modality %d is off by %.3g", what, mod,
			math.Sqrt(off/scale))
	}
}

// Labelled items give the same statistics and projections in any chunks, with or
// without revisions between them: those of all items at once.
func TestOnlineLabels(t *testing.T) {
	effort.Slow(t)
	effort.LongWithRace(t)
	chunks := []int{1, 3, 16, 17, 100, 600}
	if effort.Race {
		chunks = []int{3, 100}
	}
	for _, aim := range []Aim{AimLabels, AimCodes} {
		for _, chunk := range chunks {
			for _, revise := range []bool{false, true} {
				o, rest := begunAt(t, 150, aim)
				if chunk == 1 {
					rest = rest.Slice(0, 60)
				}
				want := o.Statistics().Clone()
				must(t, want.Merge(shard(t, o.model, rest)))
				n := 0
				for items := range slices.Chunk(examples(rest, never), chunk) {
					done := need(o.Learn(t.Context(), items, TeacherLabels, 0))(t)
					n += done.Labelled
					if revise {
						need(o.Revision())(t)
					}
				}
				failIf(t, n != len(rest.Labels), "%v, chunks of %d: %d items have taught, of %d", aim, chunk,
					n, len(rest.Labels))
				sameStatistics(t, "streamed", o.Statistics(), want)
				got := need(o.Revision())(t)
				direct, _ := need2(got.Refit(want, nil))(t)
				sameProjections(t, "streamed", got, direct, 1e-9)
			}
		}
	}
}

// fixedPoint is the online step of one modality as the paper writes it: codes of the open
// items of a subject, from a projection that is solved anew each time. x is the mixture
// before the step. The subject then has these codes, and nothing open.
func fixedPoint(t *testing.T, m *Model, x mixture, s *Statistics, mod int, sub *subject) {
	t.Helper()
	q, k := m.bits, m.Features(mod)
	p := m.p[mod].Unpack().Data
	for range onlineRounds {
		before := slices.Clone(sub.h)
		for r, open := range sub.open {
			if !open {
				continue
			}
			for j := range q {
				var z float64
				for c := range k {
					z += p[j*k+c] * float64(sub.phi[r*k+c])
				}
				sub.h[r*q+j] = 1
				if z < 0 {
					sub.h[r*q+j] = -1
				}
			}
		}
		if slices.Equal(before, sub.h) {
			break
		}
		next := s.Clone()
		next.add(mod, dense.Of(len(sub.at), k, sub.phi), sub.teaching, 1)
		w, _ := need2(next.solve(mod, m.gammas[mod]))(t)
		p = m.mix(x, w).Data
	}
	clear(sub.open)
}

func TestOnlineFixedPoint(t *testing.T) {
	for _, aim := range []Aim{AimLabels, AimCodes} {
		for _, size := range []int{1, 10, 40} {
			o, rest := begunAt(t, 130, aim) // few, so that learning moves the projections
			items := examples(rest.Slice(0, size), func(i int) bool { return i%3 != 1 })
			m, before := o.model, o.Statistics().Clone()
			if size == 10 { // the factor is up to date
				need(o.Learn(t.Context(), items, TeacherLabels, 0))(t)
				m = need(o.Revision())(t)
				before = o.Statistics().Clone()
			}
			want := before.Clone()
			unlabelled := 0
			l := need(o.newChunk(items))(t)
			for mod := range m.maps {
				s := o.subject(mod, l)
				fixedPoint(t, m, m.mixture(before), before, mod, s)
				want.add(mod, dense.Of(len(s.at), s.k, s.phi), s.teaching, 1)
			}
			for i := range items {
				if !l.known[i] {
					unlabelled++
				}
			}
			done := need(o.Learn(t.Context(), items, TeacherSelf, 0))(t)
			failIf(t, done.Unlabelled != unlabelled || done.Labelled+done.Unlabelled != size ||
				done.Rounds < done.Runs, "%v, %d items: %+v", aim, size, done)
			sameStatistics(t, "self-taught", o.Statistics(), want)
			got := need(o.Revision())(t)
			direct, _ := need2(m.Refit(want, nil))(t)
			sameProjections(t, "self-taught", got, direct, 1e-8)
		}
	}
}

// One modality teaches the others its codes, and items without it are left out.
func TestOnlineModalityTeaches(t *testing.T) {
	for _, aim := range []Aim{AimLabels, AimCodes} {
		o, rest := begunAt(t, 150, aim)
		items := examples(rest.Slice(0, 90), func(i int) bool { return i%2 == 0 })
		const lead = 1
		m, before := o.model, o.Statistics().Clone()
		l := need(o.newChunk(items))(t)
		s := o.subject(lead, l)
		fixedPoint(t, m, m.mixture(before), before, lead, s)
		h := map[int][]float32{}
		for r, i := range s.at {
			h[i] = s.h[r*m.bits : (r+1)*m.bits]
		}
		want := before.Clone()
		skipped := 0
		for i := range items {
			if !l.known[i] && h[i] == nil {
				skipped++
			}
		}
		for mod := range m.maps {
			s := o.subject(mod, l)
			for r, i := range s.at {
				phi, code := s.phi[r*s.k:(r+1)*s.k], h[i]
				switch {
				case l.known[i] && aim == AimLabels:
					addRow(want, mod, phi, labelVector(m, items[i].Labels), nil)
					continue
				case l.known[i]:
					code = l.h[i*m.bits : (i+1)*m.bits]
				}
				if code != nil {
					addRow(want, mod, phi, nil, code)
				}
			}
		}
		done := need(o.Learn(t.Context(), items, TeacherModality, lead))(t)
		failIf(t, skipped == 0 || done.Skipped != skipped || done.Runs != 1, "%v: %+v, want %d skipped", aim,
			done, skipped)
		sameStatistics(t, "taught by a modality", o.Statistics(), want)
	}
}

func TestOnlineRefuses(t *testing.T) {
	o, rest := begun(t, 150)
	other, _ := begun(t, 140)
	errorIs(t, errOf(NewOnline(o.model, other.Statistics())), ErrMismatch)
	before := o.Statistics().Clone()
	items := examples(rest.Slice(0, 5), never)
	items[3].Vectors = []Vector{{}, Dense([]float32{1, 2}), {}}
	var dimension *DimensionError
	_, err := o.Learn(t.Context(), items, TeacherLabels, 0)
	failIf(t, !errors.As(err, &dimension), "a vector too short: %v", err)
	items[3].Vectors = nil
	errorIs(t, errOf(o.Learn(t.Context(), items, TeacherLabels, 0)), ErrMismatch)
	for _, lead := range []int{-1, 3} {
		_, err := o.Learn(t.Context(), items[:3], TeacherModality, lead)
		failIf(t, !like(err, ErrOption), "modality %d teaches: %v", lead, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	errorIs(t, errOf(o.Learn(ctx, items[:3], TeacherLabels, 0)), context.Canceled)
	sameStatistics(t, "refused", o.Statistics(), before)
}
