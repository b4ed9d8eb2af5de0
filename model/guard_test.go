package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// guarded trains on the first items of d, holds back some of them, and lets a Guard
// learn the rest without their labels.
func guarded(t testing.TB, d *synth.Data, opt Options, first, hold int) (*Online, *Guard, []Example) {
	t.Helper()
	r := trained(t, d.Slice(0, first), opt)
	o := learner(t, r)
	held := examples(d.Slice(0, hold), never)
	var lessons []Lesson
	for i, item := range held {
		lessons = append(lessons, r.Lesson(i, item.Labels))
	}
	g := need(o.Guard(t.Context(), held, lessons))(t)
	rest := examples(d.Slice(first, d.Items()), func(int) bool { return true })
	must(t, g.Learn(t.Context(), rest))
	return o, g, rest
}

// Helpful updates are adopted and harmful ones are not, and the verdict says why.
func TestGuard(t *testing.T) {
	effort.Slow(t)
	effort.WithoutRace(t)
	// What the one gains, and the other loses, is about three standard errors.
	helps := synth.Pairs(synth.Config{Items: 1500, Classes: 24, Dims: []int{24, 16}, Noise: 1, Seed: 3})
	harms := synth.Pairs(synth.Config{Items: 1500, Classes: 24, Dims: []int{24, 16}, Noise: 2,
		LabelsPerItem: 3, Seed: 3})
	for _, c := range []struct {
		what    string
		data    *synth.Data
		hold    int
		adopt   bool
		says    string
		measure int // least number of items
	}{
		{"helps", helps, 120, true, "by +", 100},
		{"helps, but too few say so", helps, 30, false, fmt.Sprintf("takes %d", MinHeld), 1},
		{"nobody says so", helps, 0, false, "0 labelled items", 0},
		{"harms", harms, 120, false, "standard error", 100},
	} {
		t.Run(c.what, func(t *testing.T) {
			o, g, _ := guarded(t, c.data, Options{Bits: 64}, 300, c.hold)
			before := o.model
			v := need(g.Verdict())(t)
			t.Logf("%+v", v)
			failIf(t, v.Adopt != c.adopt || !strings.Contains(v.Reason, c.says) || v.Held < c.measure ||
				v.Held > c.hold, "%+v", v)
			// modality 0 has more dimensions with the same noise
			failIf(t, v.Lead != g.Lead() || c.hold > 0 && v.Lead != 0, "modality %d teaches", v.Lead)
			for mod := range 2 {
				d := v.After[mod] - v.Before[mod]
				failIf(t, c.adopt && d <= 0 || c.what == "harms" && d >= 0 || v.Before[mod] > 1,
					"modality %d: from %g to %g", mod, v.Before[mod], v.After[mod])
			}
			if again, err := g.Verdict(); err != nil || fmt.Sprint(again) != fmt.Sprint(v) {
				t.Errorf("another verdict the second time: %+v, %v", again, err)
			}
			m := need(o.Revision())(t)
			sameProjections(t, "the Online", m, before, 1e-12)
			n := o.Statistics().Items(0)
			failIf(t, n != 300, "the Online has %d items", n)
		})
	}
}

// The Guard has forgotten the items that it holds back, and nothing else.
func TestGuardForgets(t *testing.T) {
	o, rest := begun(t, 150)
	want := o.Statistics().Clone()
	items := examples(rest, never)
	done := need(o.Learn(t.Context(), items[:200], TeacherLabels, 0))(t)
	held, lessons := slices.Clone(items[:250]), slices.Clone(done.Lessons)
	for range 50 { // they have not taught
		lessons = append(lessons, Lesson{})
	}
	g := need(o.Guard(t.Context(), held, lessons))(t)
	sameStatistics(t, "the guard's", g.online.Statistics(), want)
	v := need(g.Verdict())(t)
	failIf(t, v.Adopt || v.Gain != 0 || v.StdErr != 0 || v.Held != 250, "of nothing: %+v", v)
	held[3].Vectors = []Vector{Dense([]float32{1}), {}, {}}
	lessons[3] = Lesson{}
	errorIs(t, errOf(o.Guard(t.Context(), held, lessons)), new(*DimensionError))
}

// Held items that no query can find, or without labels, are no reason to adopt
// anything.
func TestGuardOfOddItems(t *testing.T) {
	o, rest := begun(t, 150)
	items := examples(rest.Slice(0, 100), never)
	for i := range items {
		switch i % 4 {
		case 0:
			items[i].Labels = []uint32{1000} // unknown to the model
		case 1:
			items[i].Labels = nil
		case 2:
			items[i].Vectors = make([]Vector, 3)
		default:
			items[i].Vectors = []Vector{items[i].Vectors[0], {}, {}}
		}
	}
	g := need(o.Guard(t.Context(), items, make([]Lesson, len(items))))(t)
	failIf(t, g.Lead() != 0, "modality %d teaches, which no item has", g.Lead())
	v, err := g.Verdict()
	failIf(t, err != nil || v.Adopt || v.Held != 0 || v.Reason == "", "%+v, %v", v, err)
}

// A single modality is searched by itself.
func TestGuardOfOneModality(t *testing.T) {
	d := synth.Pairs(synth.Config{Items: 1200, Classes: 12, Dims: []int{24}, Noise: 1, Seed: 3})
	r := trained(t, d.Slice(0, 200), Options{Bits: 64, Anchors: 180,
		Gamma: map[string]float64{"image": 1e-4}})
	o := learner(t, r)
	held := examples(d.Slice(200, 300), never) // they have not taught
	g := need(o.Guard(t.Context(), held, make([]Lesson, len(held))))(t)
	must(t, g.Learn(t.Context(), examples(d.Slice(300, 1200), func(int) bool { return true })))
	v, err := g.Verdict()
	failIf(t, err != nil || !v.Adopt || v.Held != 100 || len(v.Before) != 1 || v.Lead != 0, "%+v, %v", v, err)
}
