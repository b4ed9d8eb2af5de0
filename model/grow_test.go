package model

import (
	"math"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// Labels get directions of their own until none is left. No existing code changes, and
// new codes are far from all others.
func TestGrow(t *testing.T) {
	for _, c := range []struct {
		name  string
		opt   Options
		most  int // labels that fit
		least int // bits from the code of the first new label to those of others
	}{
		{"labels", Options{}, 16, 3},
		{"codes", Options{Aim: AimCodes}, 16, 5},
	} {
		t.Run(c.name, func(t *testing.T) { testGrow(t, c.opt, c.most, c.least) })
	}
}

func testGrow(t *testing.T, opt Options, most, least int) {
	opt.Bits, opt.Anchors = 16, 60
	dims := []int{9, 6}
	data := synth.Pairs(synth.Config{Items: 300, Classes: 5, Dims: dims, LabelsPerItem: 2, Seed: 4})
	ms := modalitiesOf(dims)
	r := trained(t, data, settled(ms, opt))
	m, s := r.Model, r.Statistics
	errorIs(t, third(m.Grow(s, m.labels[2])), ErrOption)
	errorIs(t, third(m.Grow(NewStatistics(&Model{bits: 16}), 99)), ErrMismatch)
	before, after := codec.NewCode(16), codec.NewCode(16)
	trained := m
	for label := uint32(100); len(m.labels) < most; label-- { // each one sorts before the last
		next, grown := need2(m.Grow(s, label))(t)
		again, _, err := m.Grow(s, label)
		failIf(t, err != nil || !slices.Equal(again.c, next.c), "growing twice gives two directions: %v", err)
		for i := range data.Labels {
			m.LabelCode(before, data.Labels[i])
			next.LabelCode(after, append(slices.Clone(data.Labels[i]), label+1000))
			stopIf(t, !slices.Equal(before, after), "the code of item %d has changed", i)
		}
		for a := range len(next.labels) {
			for b := range a + 1 {
				var dot float64
				for j := range 16 {
					dot += next.c[a*16+j] * next.c[b*16+j]
				}
				want := 0.0
				_, old := slices.BinarySearch(trained.labels, next.labels[a])
				_, both := slices.BinarySearch(trained.labels, next.labels[b])
				switch {
				case old && both: // as trained
					if c := trained.c; !slices.Equal(next.c[a*16:(a+1)*16], c[a*16:(a+1)*16]) {
						t.Fatalf("the direction of label %d has changed", next.labels[a])
					}
					continue
				case a == b:
					want = 1
				}
				stopIf(t, !approx(dot, want, 1e-9), "labels %d and %d: the product of their directions is %g",
					next.labels[a], next.labels[b], dot)
			}
		}
		failIf(t, next.Fingerprint() == m.Fingerprint(), "the fingerprint is the same")
		refit, _ := need2(next.Refit(grown, nil))(t)
		sameProjections(t, "grown", refit, m, 1e-9)
		read := need(Unmarshal(need(next.MarshalBinary())(t)))(t)
		failIf(t, !slices.Equal(read.Labels(), next.Labels()), "labels %v are read", read.Labels())
		if label == 100 && len(m.labels) == 5 {
			next.LabelCode(after, []uint32{label})
			for _, l := range m.labels {
				m.LabelCode(before, []uint32{l})
				d := codec.Distance(before, after)
				failIf(t, d < least, "the first new label is %d bits from label %d", d, l)
			}
		}
		m, s = next, grown
	}
	_, _, err := m.Grow(s, 7)
	failIf(t, !like(err, ErrNoDirection), "%d labels in 16 bits: %v", most+1, err)
}

// Queries find what the items of a new label teach.
func TestGrownLabelIsLearned(t *testing.T) {
	dims := []int{9, 6}
	data := synth.Pairs(synth.Config{Items: 800, Classes: 6, Dims: dims, Seed: 5})
	ms := modalitiesOf(dims)
	known, late := &synth.Data{Vectors: make([][][]float32, 2)}, []Example{}
	for i, ex := range examples(data, never) {
		switch {
		case i >= 700:
		case ex.Labels[0] == 3:
			late = append(late, ex)
		default:
			known.Labels = append(known.Labels, ex.Labels)
			for mod, x := range ex.Vectors {
				known.Vectors[mod] = append(known.Vectors[mod], x.Value)
			}
		}
	}
	r := trained(t, known, settled(ms, Options{Bits: 32, Anchors: 100}))
	m, s := need2(r.Model.Grow(r.Statistics, 3))(t)
	o := need(NewOnline(m, s))(t)
	need(o.Learn(t.Context(), late, TeacherLabels, 0))(t)
	m = need(o.Revision())(t)
	db, queries := codec.NewCodes(32, 0), codec.NewCodes(32, 0)
	code, z := codec.NewCode(32), make([]float64, 32)
	e := m.NewEncoder()
	for i, labels := range data.Labels {
		if i < 700 {
			m.LabelCode(code, labels)
			db.Append(code)
			continue
		}
		must(t, e.Project(z, 0, data.Vectors[0][i]))
		queries.Append(codec.PackSigns(code, z))
	}
	found := need(MAPTie(t.Context(), db, data.Labels[:700], queries, data.Labels[700:]))(t)
	failIf(t, found < .9, "mAP is %.3f", found)
}

// Growing in the middle of a stream gives the same result as growing at its beginning.
func TestOnlineGrow(t *testing.T) {
	early, rest := begun(t, 150)
	late, _ := begun(t, 150)
	items := examples(rest.Slice(0, 40), never)
	for i := range items[20:] {
		items[20+i].Labels = []uint32{2, 50}
	}
	for i, chunk := range [][]Example{items[:20], items[20:]} {
		must(t, early.Grow(50+uint32(i)))
		need(early.Learn(t.Context(), chunk, TeacherLabels, 0))(t)
	}
	s := late.stats
	need(late.Learn(t.Context(), items[:20], TeacherLabels, 0))(t)
	for l := uint32(50); l < 52; l++ {
		must(t, late.Grow(l))
	}
	need(late.Learn(t.Context(), items[20:], TeacherLabels, 0))(t)
	a := need(early.Revision())(t)
	b := need(late.Revision())(t)
	failIf(t, !slices.Equal(a.Labels(), []uint32{0, 1, 2, 3, 4, 5, 50, 51}) ||
		a.Fingerprint() != b.Fingerprint(), "labels %v and %v", a.Labels(), b.Labels())
	sameProjections(t, "grown late", b, a, 1e-9)
	sameStatistics(t, "grown late", late.Statistics(), early.Statistics())
	failIf(t, late.Statistics() != s || s.fingerprint != b.fingerprint,
		"the statistics are not those that were given")
	errorIs(t, late.Grow(50), ErrOption)
	m, err := late.Revision()
	failIf(t, err != nil || m.Fingerprint() != b.Fingerprint(), "refused, and yet another model: %v", err)
}

// The residual of items is that of the definition; of items that have taught, each counts as by a model that
// the others alone have taught.
func TestResidualOf(t *testing.T) {
	effort.LongWithRace(t)
	for _, aim := range []Aim{AimLabels, AimCodes} {
		t.Run(aim.String(), func(t *testing.T) { testResidualOf(t, aim) })
	}
}

func testResidualOf(t *testing.T, aim Aim) {
	o, rest := begunAt(t, 150, aim)
	rest = rest.Slice(0, 60)
	s := shard(t, o.model, rest)
	m, _ := need2(o.model.Refit(s, nil))(t)
	items := examples(rest, never)
	others := append(slices.Clone(items), Example{Vectors: items[0].Vectors},
		Example{Vectors: items[0].Vectors, Labels: []uint32{1000}})
	// by the projection of model of(i)
	want := func(mod int, of func(i int) *Model) (residual float64, n int) {
		g, z := make([]float64, m.Bits()), make([]float64, m.Bits())
		sum, total := 0., 0.
		for i, it := range items {
			if !it.Vectors[mod].Present() {
				continue
			}
			n++
			must(t, of(i).NewEncoder().ProjectVectors(z, mod, it.Vectors[mod:mod+1]))
			m.LabelAim(g, it.Labels)
			for j, v := range z {
				sum += (g[j] - v) * (g[j] - v)
				total += g[j] * g[j]
			}
		}
		return sum / total, n
	}
	// The weights of labels follow the items that have taught, and so what the others teach.
	near := map[Aim]float64{AimCodes: 1e-6, AimLabels: .02}[aim]
	without := make([]*Model, len(items))
	for i := range items {
		left := shard(t, o.model, rest.Slice(0, i))
		must(t, left.Merge(shard(t, o.model, rest.Slice(i+1, 60))))
		without[i], _ = need2(o.model.Refit(left, nil))(t)
	}
	for what, c := range map[string]struct {
		taught *Statistics
		items  []Example
		of     func(i int) *Model
		near   float64
	}{
		"new items":     {nil, others, func(int) *Model { return m }, 1e-9},
		"each left out": {s, items, func(i int) *Model { return without[i] }, near},
	} {
		got, n := need2(m.ResidualOf(c.items, c.taught))(t)
		for mod := range got {
			if r, of := want(mod, c.of); !(math.Abs(got[mod]-r) <= c.near*r) || n[mod] != of {
				t.Errorf("%s: modality %d: %g of %d items, want %g of %d", what, mod, got[mod], n[mod], r, of)
			}
		}
	}
	if got, n, err := m.ResidualOf(nil, nil); err != nil || !slices.Equal(got, []float64{1, 1, 1}) ||
		!slices.Equal(n, []int{0, 0, 0}) {
		t.Errorf("of no items: %v of %v, %v", got, n, err)
	}
	errorIs(t, third(m.ResidualOf(items, &Statistics{})), ErrMismatch)
	items[3].Vectors = items[3].Vectors[:1]
	errorIs(t, third(m.ResidualOf(items, nil)), ErrMismatch)
}
