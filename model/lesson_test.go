package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// as returns an Online for the model of o with other statistics.
func as(t testing.TB, o *Online, s *Statistics) *Online {
	t.Helper()
	return need(NewOnline(o.model, s.Clone()))(t)
}

// Lessons of items can be taught again without searching for codes, and forgotten,
// whatever gave the codes.
func TestLessons(t *testing.T) {
	for both := range 6 {
		teacher, aim := Teacher(both/2), []Aim{AimLabels, AimCodes}[both%2]
		t.Run(fmt.Sprint(teacher, aim), func(t *testing.T) {
			o, rest := begunAt(t, 150, aim)
			first := need(o.Revision())(t)
			before := o.Statistics().Clone()
			items := examples(rest, func(i int) bool { return i%3 == 0 })
			done := need(o.Learn(t.Context(), items, teacher, 1))(t)
			skipped := 0
			for i, l := range done.Lessons {
				want := 1
				switch {
				case len(items[i].Labels) > 0 && aim == AimLabels:
					want = 0
					stopIf(t, !slices.Equal(l.Labels, items[i].Labels), "item %d has taught %v", i, l.Labels)
				case len(items[i].Labels) > 0:
				case teacher == TeacherSelf:
					want = 3
				case teacher == TeacherLabels || !items[i].Vectors[1].Present():
					want = 0
					skipped++
				}
				stopIf(t, len(l.Codes) != want || want > 0 && l.Labels != nil,
					"item %d has taught %d codes, want %d, and labels %v", i, len(l.Codes), want, l.Labels)
				if want == 3 {
					for mod, x := range items[i].Vectors {
						stopIf(t, (l.Codes[mod] != nil) != x.Present(), "item %d: code of modality %d is %v",
							i, mod, l.Codes[mod])
					}
				}
			}
			failIf(t, skipped != done.Skipped, "%d items have no lesson, %d were skipped", skipped,
				done.Skipped)
			again := as(t, o, before)
			for i := range items {
				items[i].Labels = []uint32{77} // does not matter
			}
			must(t, again.Relearn(t.Context(), items, done.Lessons))
			sameStatistics(t, "relearned", again.Statistics(), o.Statistics())
			slices.Reverse(items)
			slices.Reverse(done.Lessons)
			must(t, o.Forget(t.Context(), items, done.Lessons))
			sameStatistics(t, "forgotten", o.Statistics(), before)
			last := need(o.Revision())(t)
			sameProjections(t, "forgotten", last, first, 1e-8)
		})
	}
}

// If everything that has taught is forgotten, the projections stay and teach items
// without labels. Later learning owes nothing to what was forgotten.
func TestEverythingForgotten(t *testing.T) {
	o, rest := begun(t, 150)
	trained := o.model
	items := examples(rest.Slice(0, 100), never)
	empty := as(t, o, NewStatistics(trained))
	done := need(empty.Learn(t.Context(), items, TeacherLabels, 0))(t)
	must(t, empty.Forget(t.Context(), items, done.Lessons))
	kept := need(empty.Revision())(t)
	sameProjections(t, "all forgotten", kept, trained, 0)
	done = need(empty.Learn(t.Context(), examples(rest.Slice(100, 101), func(int) bool { return true }),
		TeacherSelf, 0))(t)
	z := make([]float64, trained.bits)
	for mod, rows := range rest.Vectors {
		if x := Dense(rows[100]); x.Present() {
			must(t, trained.NewEncoder().ProjectVectors(z, mod, []Vector{x}))
			if want := codec.PackSigns(codec.NewCode(trained.bits), z); !slices.Equal(
				done.Lessons[0].Codes[mod], want) {
				t.Errorf("modality %d taught %v, its projection says %v", mod, done.Lessons[0].Codes[mod],
					want)
			}
		}
	}
	// Now something has taught again.
	learned := need(empty.Revision())(t)
	want, _ := need2(trained.Refit(empty.Statistics(), nil))(t)
	for mod, rows := range rest.Vectors {
		if rows[100] == nil {
			want.p[mod] = trained.p[mod]
		}
	}
	sameProjections(t, "one item", learned, want, 1e-9)
}

// Wrong lessons are refused, and their chunk changes nothing.
func TestLessonsRefused(t *testing.T) {
	o, rest := begun(t, 150)
	items := examples(rest.Slice(0, 9), never)
	done := need(o.Learn(t.Context(), items, TeacherLabels, 0))(t)
	before := o.Statistics().Clone()
	code := codec.NewCode(24)
	lacks := slices.IndexFunc(items, func(ex Example) bool { return !ex.Vectors[1].Present() })
	stopIf(t, lacks < 0, "all items are complete")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		what   string
		ctx    context.Context
		change func(items []Example, lessons []Lesson) ([]Example, []Lesson)
		want   error
		says   string
	}{
		{"one lesson fewer", nil, func(e []Example, l []Lesson) ([]Example, []Lesson) { return e, l[1:] },
			ErrMismatch, "9 items with 8 lessons"},
		{"two codes of three", nil, func(e []Example, l []Lesson) ([]Example, []Lesson) {
			l[4] = Lesson{Codes: []codec.Code{code, code}}
			return e, l
		}, ErrMismatch, "2 codes"},
		{"a code of nothing", nil, func(e []Example, l []Lesson) ([]Example, []Lesson) {
			l[4] = Lesson{Codes: []codec.Code{nil}}
			return e, l
		}, ErrMismatch, "0 words"},
		{"a code too long", nil, func(e []Example, l []Lesson) ([]Example, []Lesson) {
			l[4] = Lesson{Codes: []codec.Code{codec.NewCode(128)}}
			return e, l
		}, ErrMismatch, "2 words"},
		{"a modality that the item lacks", nil, func(e []Example, l []Lesson) ([]Example, []Lesson) {
			l[lacks] = Lesson{Codes: []codec.Code{nil, code, nil}}
			return e, l
		}, ErrMismatch, `"text"`},
		{"labels and a code", nil, func(e []Example, l []Lesson) ([]Example, []Lesson) {
			l[4] = Lesson{Labels: []uint32{1}, Codes: []codec.Code{code}}
			return e, l
		}, ErrMismatch, "a lesson of labels"},
		{"an unknown label", nil, func(e []Example, l []Lesson) ([]Example, []Lesson) {
			l[4] = Lesson{Labels: []uint32{1, 77}}
			return e, l
		}, ErrMismatch, "does not know"},
		{"a label twice", nil, func(e []Example, l []Lesson) ([]Example, []Lesson) {
			l[4] = Lesson{Labels: []uint32{1, 1}}
			return e, l
		}, ErrMismatch, "sorted and distinct"},
		{"labels in another order", nil, func(e []Example, l []Lesson) ([]Example, []Lesson) {
			l[4] = Lesson{Labels: []uint32{3, 1}}
			return e, l
		}, ErrMismatch, "sorted and distinct"},
		{"too few vectors", nil, func(e []Example, l []Lesson) ([]Example, []Lesson) {
			e[4].Vectors = e[4].Vectors[:2]
			return e, l
		}, ErrMismatch, "3 modalities"},
		{"a cancelled context", cancelled, func(e []Example, l []Lesson) ([]Example, []Lesson) {
			return e,
				l
		}, context.Canceled, ""},
	} {
		ctx := c.ctx
		if ctx == nil {
			ctx = t.Context()
		}
		e, l := c.change(slices.Clone(items), slices.Clone(done.Lessons))
		for name, f := range map[string]func(context.Context, []Example, []Lesson) error{"Relearn": o.Relearn,
			"Forget": o.Forget} {
			err := f(ctx, e, l)
			failIf(t, !like(err, c.want, c.says), "%s with %s: %v", name, c.what, err)
		}
		_, err := o.Guard(ctx, e, l)
		failIf(t, !like(err, c.want), "Guard with %s: %v", c.what, err)
	}
	many := slices.Repeat(items, 80) // the second chunk has more items than have taught
	errorIs(t, o.Forget(t.Context(), many, slices.Repeat(done.Lessons, 80)), ErrMismatch, "have taught")
	sameStatistics(t, "refused", o.Statistics(), before)
	codes, _ := begunAt(t, 150, AimCodes)
	errorIs(t, codes.Relearn(t.Context(), items[:1], done.Lessons[:1]), ErrMismatch, "aim codes")
}

// Results are the same, to the last bit, on any number of goroutines.
func TestOnlineWorkers(t *testing.T) {
	var want []byte
	var wantVerdict Verdict
	for _, workers := range []int{1, 2, 5, 0} {
		o, rest := begun(t, 150)
		o.Workers = workers
		items := examples(rest, func(i int) bool { return i%2 == 0 })
		done := need(o.Learn(t.Context(), items[:400], TeacherModality, 0))(t)
		must(t, o.Forget(t.Context(), items[:50], done.Lessons[:50]))
		g := need(o.Guard(t.Context(), items[100:400], done.Lessons[100:]))(t)
		must(t, g.Learn(t.Context(), items[400:]))
		verdict := need(g.Verdict())(t)
		m := need(o.Revision())(t)
		a, b := marshal(t, &Result{Model: m, Statistics: o.Statistics()})
		got := append(a, b...)
		if want == nil {
			want, wantVerdict = got, verdict
		}
		failIf(t, !bytes.Equal(got, want), "other bytes on %d goroutines", workers)
		failIf(t, fmt.Sprint(verdict) != fmt.Sprint(wantVerdict),
			"another verdict on %d goroutines: %+v, not %+v", workers, verdict, wantVerdict)
	}
}

// The lessons of training items are the terms of the statistics: without them nothing
// is left, whatever the method.
func TestTrainingLessons(t *testing.T) {
	effort.Slow(t)
	effort.LongWithRace(t)
	pairs := synth.Pairs(synth.Config{Items: 700, Classes: 6, Dims: []int{9, 5, 4}, LabelsPerItem: 3,
		Missing: .3, Noise: 1})
	many := synth.ManyLabels{Items: 700, Labels: 40, PerItem: 3, Dims: []int{9, 5, 4}}.Make()
	for name, c := range map[string]struct {
		data       *synth.Data
		opt        Options
		exceptions bool
	}{
		"labels":            {pairs, Options{Bits: 24}, false},
		"codes":             {pairs, Options{Bits: 24, Aim: AimCodes}, false},
		"chosen":            {pairs, Options{Bits: 24, Seed: 3}, false},
		"embedded":          {many, Options{Bits: 16, LabelEmbedding: true}, false},
		"joint":             {pairs, Options{Bits: 24, Method: MethodJoint}, false},
		"joint, delta .01":  {pairs, Options{Bits: 24, Method: MethodJoint, Delta: .01}, true},
		"paper, delta .01":  {pairs, Options{Bits: 24, Method: MethodPaper, Delta: .01}, true},
		"paper, ten sweeps": {pairs, Options{Bits: 24, Method: MethodPaper, Delta: 1, Sweeps: 10}, true},
	} {
		t.Run(name, func(t *testing.T) {
			ms := modalitiesOf([]int{9, 5, 4})
			opt := c.opt
			opt.Anchors = 60
			if name != "chosen" {
				opt = settled(ms, opt)
			}
			r := trained(t, c.data, opt)
			exceptions := 0 // items whose code is not that of their labels
			code := codec.NewCode(r.Model.Bits())
			items := examples(c.data, never)
			var lessons []Lesson
			for i, ex := range items {
				l := r.Lesson(i, ex.Labels)
				r.Model.LabelCode(code, ex.Labels)
				if r.Model.Aim() != AimCodes {
					failIf(t, !slices.Equal(l.Labels, ex.Labels) || l.Codes != nil, "item %d has taught %v",
						i, l)
				} else if !slices.Equal(code, l.Codes[0]) {
					exceptions++
				}
				lessons = append(lessons, l)
			}
			failIf(t, c.exceptions != (exceptions > 0), "%d exceptions", exceptions)
			whole := r.Statistics.Clone()
			o := learner(t, r)
			must(t, o.Forget(t.Context(), items, lessons))
			left := o.Statistics()
			for mod := range left.parts {
				failIf(t, left.parts[mod].n != 0, "%d items of modality %d are left", left.parts[mod].n, mod)
				if p := left.parts[mod]; p.square != 0 ||
					slices.ContainsFunc(p.pairs, func(v float64) bool { return v != 0 }) {
					t.Errorf("something of modality %d is left: square %g, pairs %v", mod, p.square, p.pairs)
				}
				left.parts[mod].square, left.parts[mod].pairs = whole.parts[mod].square,
					whole.parts[mod].pairs
				left.parts[mod].n = whole.parts[mod].n
				for i := range left.parts[mod].a {
					left.parts[mod].a[i] += whole.parts[mod].a[i]
				}
				for i := range left.parts[mod].b {
					left.parts[mod].b[i] += whole.parts[mod].b[i]
				}
			}
			sameStatistics(t, "what is left, and all", left, whole)
			failIf(t, !r.Lesson(10000, []uint32{10000}).Empty(), "a lesson of unknown labels")
		})
	}
}

// If one modality cannot be solved, the others have learned nothing of the chunk.
func TestLearnUndone(t *testing.T) {
	o, rest := begun(t, 150)
	m := *o.model
	m.gammas = []float64{.01, 0, .01}
	o = need(NewOnline(&m, NewStatistics(&m)))(t)
	items := examples(rest.Slice(0, 40), func(i int) bool { return i%2 == 0 })
	need(o.Learn(t.Context(), examples(rest.Slice(40, 45), never), TeacherLabels, 0))(t)
	before := o.Statistics().Clone()
	done, err := o.Learn(t.Context(), items, TeacherSelf, 0)
	var singular *SingularError
	stopIf(t, !errors.As(err, &singular) || singular.Modality != "text",
		"gamma 0 with fewer items than features: %v", err)
	sameStatistics(t, "undone", o.Statistics(), before)
	for i, l := range done.Lessons {
		failIf(t, !l.Empty(), "item %d has taught %v", i, l)
	}
}
