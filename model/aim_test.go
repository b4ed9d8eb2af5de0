package model

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// A ledger is everything that has taught, and the definition of what projections learn of
// it: an oracle that shares nothing with Statistics and Online but the feature maps.
type ledger struct {
	items   []Example
	lessons []Lesson
}

func (l *ledger) add(items []Example, lessons []Lesson) {
	l.items, l.lessons = append(l.items, items...), append(l.lessons, lessons...)
}

// cut takes out the entries from first on, and returns them.
func (l *ledger) cut(first int) (items []Example, lessons []Lesson) {
	items, lessons = slices.Clone(l.items[first:]), slices.Clone(l.lessons[first:])
	l.items, l.lessons = l.items[:first], l.lessons[:first]
	return items, lessons
}

// share is the number that the vector of an item with n labels has at each of them.
func share(n int) float64 { return math.Round(4096/math.Sqrt(float64(n))) / 4096 }

// each calls f with each item, each modality that it has taught, and the code that it has
// taught there, which is nil if it has taught its labels.
func (l *ledger) each(f func(i, mod int, code codec.Code)) {
	for i, item := range l.items {
		for mod, x := range item.Vectors {
			switch codes := l.lessons[i].Codes; {
			case !x.Present() || l.lessons[i].Empty():
			case len(codes) == 0:
				f(i, mod, nil)
			case len(codes) == 1:
				f(i, mod, codes[0])
			case codes[mod] != nil:
				f(i, mod, codes[mod])
			}
		}
	}
}

// weights is the definition of D for AimLabels.
func (l *ledger) weights(m *Model) []float64 {
	counts := make([]float64, len(m.labels))
	l.each(func(i, _ int, code codec.Code) {
		labels := l.lessons[i].Labels
		for _, label := range labels {
			counts[slices.Index(m.labels, label)] += share(len(labels)) * share(len(labels))
		}
	})
	sum, n := 0.0, 0.0
	for _, c := range counts {
		if c > 0 {
			sum, n = sum+c, n+1
		}
	}
	w := make([]float64, len(counts))
	for k, c := range counts {
		if w[k] = 1; c > 0 {
			w[k] = math.Pow(sum/n/max(c, 1), m.prior)
		}
	}
	return w
}

// signed returns a code as numbers of this size.
func signed(code codec.Code, q int, size float64) []float64 {
	g := make([]float64, q)
	for j := range g {
		g[j] = -size
		if code[j/64]>>(j%64)&1 == 1 {
			g[j] = size
		}
	}
	return g
}

// goalOf is the definition of what labels teach: C J D y, or their code, times its weight.
func goalOf(m *Model, weights []float64, labels []uint32) []float64 {
	if m.aim == AimLabels {
		g := make([]float64, m.bits)
		for _, label := range labels {
			at := slices.Index(m.labels, label)
			for j := range g {
				g[j] += share(len(labels)) * weights[at] * m.c[at*m.bits+j]
			}
		}
		return g
	}
	code, size := codec.NewCode(m.bits), 1.0
	m.LabelCode(code, labels)
	if m.aim == AimWeighted {
		size = 0
		for _, label := range labels {
			size += m.weights[slices.Index(m.labels, label)] / float64(len(labels))
		}
		size = math.Round(4096*size) / 4096
	}
	return signed(code, m.bits, size)
}

// goals returns what each item teaches in each modality, q numbers each, by item and
// modality; nil where it teaches nothing.
func (l *ledger) goals(m *Model) [][][]float64 {
	all := make([][][]float64, len(l.items))
	for i := range all {
		all[i] = make([][]float64, len(m.maps))
	}
	var w []float64
	if m.aim == AimLabels {
		w = l.weights(m)
	}
	squares, labelled := 0.0, 0.0
	l.each(func(i, mod int, code codec.Code) {
		if code != nil {
			return // its scale is below
		}
		all[i][mod] = goalOf(m, w, l.lessons[i].Labels)
		for _, v := range all[i][mod] {
			squares += v * v
		}
		labelled++
	})
	scale := 1.0
	if m.aim == AimLabels {
		scale = math.Sqrt(squares / labelled / float64(m.bits))
	}
	l.each(func(i, mod int, code codec.Code) {
		if code != nil {
			all[i][mod] = signed(code, m.bits, scale)
		}
	})
	return all
}

// check compares weights and projections of a model with those of the definition: P =
// G Phi' (Phi Phi' + gamma I)^-1, solved in one piece.
func (l *ledger) check(t *testing.T, what string, m *Model) {
	t.Helper()
	if m.aim == AimLabels {
		for k, w := range l.weights(m) {
			failIf(t, !approx(m.weights[k], w, 1e-12*w), "%s: label %d has the weight %g, want %g", what,
				m.labels[k], m.weights[k], w)
		}
	}
	goals, e := l.goals(m), m.NewEncoder()
	for mod := range m.maps {
		k := m.Features(mod)
		a, b := mat.NewSymDense(k, nil), mat.NewDense(k, m.bits, nil)
		for i := range k {
			a.SetSym(i, i, m.gammas[mod])
		}
		phi := make([]float32, k)
		for i, item := range l.items {
			g := goals[i][mod]
			if g == nil {
				continue
			}
			must(t, e.MapVector(phi, mod, Dense(item.Vectors[mod].Value)))
			row := mat.NewVecDense(k, widened(phi))
			a.SymRankOne(a, 1, row)
			b.RankOne(b, 1, row, mat.NewVecDense(m.bits, g))
		}
		var cholesky mat.Cholesky
		var want mat.Dense
		stopIf(t, !cholesky.Factorize(a), "%s: the oracle has no solution", what)
		must(t, cholesky.SolveTo(&want, b))
		off := relative(mat.NewDense(m.bits, k, m.p[mod].Unpack().Data), want.T())
		failIf(t, !(off <= 1e-9), "%s: P of modality %d is off by %.2g", what, mod, off)
	}
}

// allAims are settings for which what projections learn is defined differently.
var allAims = []struct {
	name string
	opt  Options
	data func() *synth.Data
}{
	{"one label", Options{Bits: 24}, func() *synth.Data { return aimPairs(6, 1) }},
	{"few labels", Options{Bits: 24}, func() *synth.Data { return aimPairs(3, 1) }},
	{"several labels", Options{Bits: 24}, func() *synth.Data { return aimPairs(6, 3) }},
	{"codes", Options{Bits: 24, Aim: AimCodes}, func() *synth.Data { return aimPairs(6, 2) }},
	{"weighted codes", Options{Bits: 16, LabelEmbedding: true}, func() *synth.Data {
		return synth.ManyLabels{Items: 500, Labels: 30, PerItem: 2, Zipf: true, Dims: []int{9, 6, 5}}.Make()
	}},
}

// aimPairs returns pairs of so many classes, of unequal sizes, whose labels leave room for
// others between them.
func aimPairs(classes, perItem int) *synth.Data {
	d := synth.Pairs(synth.Config{Items: 500, Classes: classes, Dims: []int{9, 6, 5}, Missing: .2,
		LabelsPerItem: perItem, Noise: 1})
	for i, labels := range d.Labels {
		for j, l := range labels {
			if perItem == 1 && l > 0 && i%(int(l)+1) > 0 {
				l = 0 // higher labels are rarer
			}
			labels[j] = 10 * l
		}
	}
	return d
}

// aimed trains on the first items of d. It returns an Online, the ledger of the training,
// and the other items.
func aimed(t *testing.T, d *synth.Data, opt Options, first int) (*Online, *ledger, []Example) {
	t.Helper()
	opt.Anchors, opt.Fusion = 50, "auto" // which subtracts the mean aim
	ms := modalitiesOf([]int{9, 6, 5})
	r := trained(t, d.Slice(0, first), settled(ms, opt))
	o := learner(t, r)
	l := new(ledger)
	items := examples(d, never)
	for i, item := range items[:first] {
		l.add(items[i:i+1], []Lesson{r.Lesson(i, item.Labels)})
	}
	l.check(t, "trained", r.Model)
	// The mean of what the training items teach; see Model.Fuse.
	mean, w := make([]float64, opt.Bits), r.Model.weights
	for _, item := range items[:first] {
		for j, v := range goalOf(r.Model, w, item.Labels) {
			mean[j] += v / float64(first)
		}
	}
	off := maxDifference(mean, r.Model.fusion.Mean)
	failIf(t, off > 1e-9, "the mean aim is off by %g", off)
	return o, l, items[first:]
}

// learn lets items teach, and enters their lessons.
func (l *ledger) learn(t *testing.T, o *Online, items []Example, teacher Teacher) {
	t.Helper()
	done := need(o.Learn(t.Context(), items, teacher, 0))(t)
	l.add(items, done.Lessons)
}

// revise makes a revision and checks it.
func (l *ledger) revise(t *testing.T, what string, o *Online) *Model {
	t.Helper()
	m := need(o.Revision())(t)
	l.check(t, what, m)
	return m
}

// aimChunks are sizes of calls. Up to 16 items update a factor, if there is one, and more
// make a new one.
var aimChunks = []int{1, 16, 3, 40, 17, 60, 2}

// TestStreamIsBatch: projections that a stream has learned are those that one solution of
// everything gives, whatever the order and the calls. What is forgotten leaves nothing
// behind.
func TestStreamIsBatch(t *testing.T) {
	effort.LongWithRace(t)
	for _, c := range allAims {
		if effort.Race && c.name != "several labels" {
			continue // numbers; the concurrent code is the same
		}
		for _, shuffled := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, shuffled), func(t *testing.T) {
				o, l, rest := aimed(t, c.data(), c.opt, 150)
				first, trained := o.model, len(l.items)
				if shuffled {
					rand.New(rand.NewPCG(1, 2)).Shuffle(len(rest),
						func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
				}
				for call := 0; len(rest) > 0; call++ {
					n := min(aimChunks[call%len(aimChunks)], len(rest))
					l.learn(t, o, rest[:n], TeacherLabels)
					rest = rest[n:]
					if call%4 == 2 {
						l.revise(t, fmt.Sprintf("after call %d", call), o)
					}
				}
				m := l.revise(t, "all", o)
				failIf(t, m.aim == AimLabels && slices.Equal(m.weights, first.weights) ||
					m.Fingerprint() != first.Fingerprint(), "weights %v, %v when trained", m.weights,
					first.weights)
				// Half of what was trained, in between the rest, and then everything since.
				items, lessons := l.cut(0)
				must(t, o.Forget(t.Context(), items[:trained/2], lessons[:trained/2]))
				l.add(items[trained/2:], lessons[trained/2:])
				l.revise(t, "half of the training forgotten", o)
				must(t, o.Relearn(t.Context(), items[:trained/2], lessons[:trained/2]))
				must(t, o.Forget(t.Context(), items[trained:], lessons[trained:]))
				l.items, l.lessons = items[:trained], lessons[:trained]
				m = l.revise(t, "all later ones forgotten", o)
				sameProjections(t, "brought back", m, first, 1e-9)
				failIf(t, !slices.Equal(m.weights, first.weights), "weights %v, %v when trained", m.weights,
					first.weights)
			})
		}
	}
}

// TestStreamOfUnlabelledIsBatch: the same with items whose codes projections have given,
// and labels that come later. Such a code counts as much as what labels teach, in root
// mean square.
func TestStreamOfUnlabelledIsBatch(t *testing.T) {
	effort.Slow(t)
	effort.LongWithRace(t)
	for _, c := range allAims {
		if effort.Race && c.name != "several labels" {
			continue // numbers; the concurrent code is the same
		}
		for _, teacher := range []Teacher{TeacherModality, TeacherSelf} {
			t.Run(fmt.Sprint(c.name, teacher), func(t *testing.T) {
				o, l, rest := aimed(t, c.data(), c.opt, 150)
				trained := len(l.items)
				for i := range rest[:200] {
					if i%3 > 0 {
						rest[i].Labels = nil
					}
				}
				for call := 0; len(rest) > 150; call++ {
					n := aimChunks[call%len(aimChunks)]
					l.learn(t, o, rest[:n], teacher)
					rest = rest[n:]
					if call%3 == 0 {
						l.revise(t, fmt.Sprintf("after call %d", call), o)
					}
				}
				m := l.revise(t, "taught by projections", o)
				if m.aim == AimLabels {
					// The definition of the scale, by what the items teach.
					goals, squares, n := l.goals(m), 0.0, 0.0
					l.each(func(i, mod int, code codec.Code) {
						if code == nil {
							squares += mat.Dot(mat.NewVecDense(m.bits, goals[i][mod]),
								mat.NewVecDense(m.bits, goals[i][mod]))
							n++
						}
					})
					got := m.mixture(o.Statistics()).scale
					failIf(t, !approx(got*got, squares/n/float64(m.bits), 1e-9),
						"a code counts %g in each bit, labels %g", got*got, squares/n/float64(m.bits))
				}
				if len(m.labels) < m.bits {
					// New labels before, between and after the others; few items update W in place.
					grown := len(l.items)
					for i, label := range []uint32{15, 3, 99} {
						must(t, o.Grow(label))
						m = l.revise(t, fmt.Sprintf("label %d grown", label), o)
						items := slices.Clone(rest[i*20 : i*20+[]int{5, 20, 9}[i]])
						for j := range items {
							items[j].Labels = slices.Sorted(slices.Values([]uint32{10, label}))[j%2:]
						}
						l.learn(t, o, items, teacher)
						m = l.revise(t, fmt.Sprintf("label %d learned", label), o)
					}
					items, lessons := l.cut(grown)
					must(t, o.Forget(t.Context(), items, lessons))
					m = l.revise(t, "new labels forgotten", o)
					at := slices.Index(m.labels, 3)
					failIf(t, m.aim == AimLabels && (m.weights[at] < 1 || math.IsInf(m.weights[at], 0)),
						"weights %v of labels %v", m.weights, m.labels)
				}
				items, lessons := l.cut(trained)
				slices.Reverse(items)
				slices.Reverse(lessons)
				must(t, o.Forget(t.Context(), items, lessons))
				m = l.revise(t, "forgotten", o)
				b := need(o.Statistics().MarshalBinary())(t)
				s := need(UnmarshalStatistics(b))(t)
				refit, _ := need2(m.Refit(s, nil))(t)
				l.check(t, "stored", refit)
			})
		}
	}
}

// TestNothingLabelledIsLeft: if all labelled items are forgotten, and only codes that
// projections gave are left, these are learned as they are, up to their scale.
func TestNothingLabelledIsLeft(t *testing.T) {
	o, l, rest := aimed(t, aimPairs(6, 1), Options{Bits: 24}, 150)
	items, lessons := l.cut(0)
	before := slices.Clone(o.model.weights)
	for i := range rest[:120] {
		rest[i].Labels = nil
	}
	l.learn(t, o, rest[:120], TeacherSelf)
	must(t, o.Forget(t.Context(), items, lessons))
	m := need(o.Revision())(t)
	failIf(t, !slices.Equal(m.weights, before), "weights %v, and %v before", m.weights, before)
	e, z := m.NewEncoder(), make([]float64, 24)
	right, bits := 0, 0
	for i, item := range l.items {
		for mod, x := range item.Vectors {
			if code := l.lessons[i].Codes[mod]; x.Present() {
				must(t, e.ProjectVectors(z, mod, []Vector{x}))
				right, bits = right+24-codec.Distance(code, codec.PackSigns(codec.NewCode(24), z)), bits+24
			}
		}
	}
	failIf(t, right < bits*9/10, "%d of %d bits are those that were learned", right, bits)
}

// TestWeightsFollowCounts: later items change the sizes of classes, and so the weights of
// all labels and the projections of all modalities, also of those that they lack.
func TestWeightsFollowCounts(t *testing.T) {
	for _, prior := range []float64{0, .25, 1} {
		o, l, rest := aimed(t, aimPairs(6, 1), Options{Bits: 24, Prior: &prior}, 150)
		trained := o.model
		var items []Example
		for _, item := range rest {
			if item.Labels[0] == 50 { // the rarest
				items = append(items, Example{Labels: item.Labels,
					Vectors: []Vector{item.Vectors[0], {}, {}}})
			}
		}
		items = slices.Concat(items, items, items)
		l.learn(t, o, items, TeacherLabels)
		m := l.revise(t, fmt.Sprintf("prior %g", prior), o)
		failIf(t, m.Prior() != prior || m.Aim() != AimLabels, "aim %v, prior %g", m.Aim(), m.Prior())
		at := slices.Index(m.labels, 50)
		was, is := trained.weights[at], m.weights[at]
		same := slices.Equal(m.p[1].Unpack().Data, trained.p[1].Unpack().Data)
		failIf(t, prior == 0 && (was != 1 || is != 1 || !same) || prior > 0 && (is >= was || same),
			"prior %g: the weight goes from %g to %g; projections of text are the same: %t", prior, was, is,
			same)
	}
}

// TestReopenedIsBatch: an Online of what another one has left goes on as that would have.
// Items of one modality change what codes count in all of them, with each prior.
func TestReopenedIsBatch(t *testing.T) {
	for _, prior := range []float64{0, .25} {
		o, l, rest := aimed(t, aimPairs(6, 3), Options{Bits: 24, Prior: &prior}, 150)
		unlabelled := slices.Clone(rest[:60])
		for i := range unlabelled {
			unlabelled[i].Labels = nil
		}
		l.learn(t, o, unlabelled, TeacherModality)
		m := l.revise(t, fmt.Sprintf("prior %g, taught by a projection", prior), o)
		again := need(NewOnline(m, o.Statistics()))(t)
		same := l.revise(t, fmt.Sprintf("prior %g, reopened", prior), again)
		for mod := range m.p {
			failIf(t, !slices.Equal(same.p[mod].Unpack().Data, m.p[mod].Unpack().Data),
				"prior %g: without new items modality %d has another projection", prior, mod)
		}
		var items []Example
		for _, item := range rest[60:] {
			items = append(items, Example{Labels: item.Labels, Vectors: []Vector{item.Vectors[0], {}, {}}})
		}
		l.learn(t, again, items, TeacherLabels)
		l.revise(t, fmt.Sprintf("prior %g, reopened, and taught one modality", prior), again)
	}
}

// TestAllLabels: an item that carries all labels has a code, even if the directions of
// these cancel out, and projections can learn of it.
func TestAllLabels(t *testing.T) {
	all := []uint32{0, 10, 20, 30, 40, 50}
	for _, perItem := range []int{1, 3} {
		o, l, rest := aimed(t, aimPairs(6, perItem), Options{Bits: 24}, 150)
		m := o.model
		code, again := codec.NewCode(24), codec.NewCode(24)
		stopIf(t, !m.LabelCode(code, all) || !m.LabelCode(again, append(slices.Clone(all), 60)) ||
			!slices.Equal(code, again), "%x and %x", code, again)
		ones := code[0] == 1<<24-1
		failIf(t, ones != (perItem == 1), "%d labels an item: the code of all labels is %x", perItem, code)
		g := make([]float64, 24)
		if !m.LabelAim(g, all) || !finite(g) ||
			slices.Equal(g, make([]float64, 24)) {
			t.Errorf("it teaches %v", g)
		}
		items := rest[:30]
		for i := range items {
			items[i].Labels = all
		}
		l.learn(t, o, items, TeacherLabels)
		l.revise(t, "all labels learned", o)
	}
	// The same in a training, where each item has one label or all.
	d := aimPairs(6, 1)
	for i := range d.Labels[:100] {
		d.Labels[i] = all
	}
	for _, opt := range []Options{{Bits: 24}, {Bits: 24, Aim: AimCodes}} {
		o, _, _ := aimed(t, d, opt, 300)
		code := codec.NewCode(24)
		z := make([]float64, 24)
		for c := range slices.Chunk(o.model.c, 24) {
			for j, v := range c {
				z[j] += v
			}
		}
		failIf(t, !o.model.LabelCode(code, all) || !slices.Equal(code, codec.PackSigns(codec.NewCode(24), z)),
			"code %x of %v", code, z)
		for _, v := range z {
			failIf(t, !(math.Abs(v) > 1e-6), "rounding decides about the code: %v", z)
		}
	}
}

// TestLabelAim: what projections learn of labels is C J D y; unknown labels do not count.
func TestLabelAim(t *testing.T) {
	for _, c := range allAims {
		o, l, rest := aimed(t, c.data(), c.opt, 150)
		m, g := o.model, make([]float64, o.model.bits)
		var w []float64
		if m.aim == AimLabels {
			w = l.weights(m)
		}
		for _, item := range rest[:50] {
			known := slices.DeleteFunc(slices.Clone(item.Labels),
				func(l uint32) bool { return !slices.Contains(m.labels, l) })
			if len(known) == 0 {
				continue
			}
			stopIf(t, !m.LabelAim(g, append(slices.Clone(item.Labels), 1000)), "labels unknown")
			for j, want := range goalOf(m, w, known) {
				stopIf(t, !approx(g[j], want, 1e-12), "%s: labels %v teach %g in bit %d, want %g", c.name,
					known, g[j], j, want)
			}
		}
		before, code := slices.Clone(g), codec.Code{77}
		for _, none := range [][]uint32{nil, {1000}} {
			failIf(t, m.LabelAim(g, none) || !slices.Equal(g, before) || m.LabelCode(code, none) ||
				code[0] != 77,
				"%s: labels %v teach something or have a code, or dst changed", c.name, none)
		}
	}
}

// TestWeightedCodes: with more labels than bits the weights are those of training, whose
// mean square over the items is 1.
func TestWeightedCodes(t *testing.T) {
	d := allAims[4].data()
	o, _, _ := aimed(t, d, allAims[4].opt, 400)
	m := o.model
	stopIf(t, m.Aim() != AimWeighted || m.Prior() != .125, "aim %v, prior %g", m.Aim(), m.Prior())
	counts := make([]float64, len(m.labels))
	for _, set := range d.Labels[:400] {
		for _, l := range set {
			counts[slices.Index(m.labels, l)] += share(len(set)) * share(len(set))
		}
	}
	mean := 0.0
	for _, c := range counts {
		mean += c / float64(len(counts))
	}
	square, w := 0.0, make([]float64, len(counts))
	for k, c := range counts {
		w[k] = math.Pow(mean/max(c, 1), .125)
	}
	for _, set := range d.Labels[:400] {
		x := 0.0
		for _, l := range set {
			x += w[slices.Index(m.labels, l)] / float64(len(set))
		}
		square += x * x / 400
	}
	for k, v := range m.weights {
		want := w[k] / math.Sqrt(square)
		failIf(t, !approx(v, want, 1e-3), "label %d: weight %g, want %g", m.labels[k], v, want)
	}
	lightest, heaviest := slices.Min(m.weights), slices.Max(m.weights)
	failIf(t, heaviest < 1.1*lightest, "weights from %g to %g", lightest, heaviest)
}

func TestNames(t *testing.T) {
	for _, a := range []Aim{AimAuto, AimLabels, AimCodes, AimWeighted} {
		b := need(json.Marshal(a))(t)
		var back Aim
		failIf(t, json.Unmarshal(b, &back) != nil || back != a, "%v: %s, %v", a, b, back)
	}
	_, err := ParseAim("weighted")
	errorIs(t, err, ErrOption, "auto, labels or codes")
	readsNames(t, ParseAim, AimAuto, AimLabels, AimCodes)
	readsNames(t, ParseMethod, MethodAuto, MethodLabels, MethodJoint, MethodPaper)
	readsNames(t, ParseMapKind, MapRBF, MapLinear, MapRBFLinear)
	readsNames(t, ParseFeatureKind, FeaturesRaw, FeaturesZScore, FeaturesHellinger, FeaturesLog, FeaturesL2,
		FeaturesHellingerL2)
}

// readsNames checks that a function reads the names of values, and refuses others.
func readsNames[T interface {
	comparable
	String() string
}](t *testing.T, parse func(string) (T, error), values ...T) {
	t.Helper()
	for _, v := range values {
		got, err := parse(v.String())
		failIf(t, err != nil || got != v, "%v: %v, %v", v, got, err)
	}
	for _, other := range []string{"", "cosine", "paper?"} {
		errorIs(t, errOf(parse(other)), ErrOption)
	}
}

// byClass returns the mAP of queries, of one label each, among items with labels, which have the codes of
// these, the mean over the modalities: over all queries, and averaged over classes.
func byClass(t *testing.T, m *Model, labels [][]uint32, queries *synth.Data) (all, class float64) {
	t.Helper()
	db, code := codec.NewCodes(m.bits, 0), codec.NewCode(m.bits)
	for _, l := range labels {
		m.LabelCode(code, l)
		db.Append(code)
	}
	e, z := m.NewEncoder(), make([]float64, m.bits)
	for mod, rows := range queries.Vectors {
		of := map[uint32]codec.Codes{}
		for i, l := range queries.Labels {
			must(t, e.Project(z, mod, rows[i]))
			codes, known := of[l[0]]
			if !known {
				codes = codec.NewCodes(m.bits, 0)
			}
			codes.Append(codec.PackSigns(code, z))
			of[l[0]] = codes
		}
		for l, codes := range of {
			asked := slices.Repeat([][]uint32{{l}}, codes.Len())
			found := need(MAPTie(t.Context(), db, labels, codes, asked))(t)
			all += found * float64(codes.Len()) / float64(len(queries.Labels)) / 2
			class += found / float64(len(of)) / 2
		}
	}
	return all, class
}

// TestWeightsFollowShiftingClasses: what was rare in the training is frequent later, and the
// other way round. The weights of labels follow, so classes are found better than with those
// of the training.
func TestWeightsFollowShiftingClasses(t *testing.T) {
	effort.WithoutRace(t)
	train, later := synth.Unbalanced(1, 400, false), synth.Unbalanced(2, 2400, true)
	prior := .375
	r := trained(t, train, settled(modalitiesOf([]int{64, 32}), Options{Prior: &prior}))
	o := learner(t, r)
	for e := range slices.Chunk(examples(later, never), 1) {
		need(o.Learn(t.Context(), e, TeacherLabels, 0))(t)
	}
	followed := need(o.Revision())(t)
	// The same statistics with the weights of the training.
	frozen := *followed
	frozen.p, frozen.weights = nil, r.Model.weights
	for mod := range frozen.maps {
		w, _ := need2(o.Statistics().solve(mod, frozen.gammas[mod]))(t)
		frozen.p = append(frozen.p, dense.Pack(frozen.mix(mixture{frozen.weights, 0}, w)))
	}
	labels, queries := slices.Concat(train.Labels, later.Labels), synth.Unbalanced(3, 1000, true)
	all, class := byClass(t, followed, labels, queries)
	frozenAll, frozenClass := byClass(t, &frozen, labels, queries)
	t.Logf("mAP %.3f, by class %.3f; with the weights of the training %.3f, %.3f", all, class, frozenAll,
		frozenClass)
	failIf(t, class < frozenClass+.02 || all < frozenAll-.02, "classes are found no better")
}
