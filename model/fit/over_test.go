package fit

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/sum"
)

// scattered is an Engine over items in memory. It sends passes and sums in binary form, makes nodes of
// level span itself, in any order, and the nodes above them from those.
type scattered struct {
	items  []model.Example
	span   int
	cuts   []int // where not nil: the items are summed up in runs that end at these, in place of nodes
	rng    *rand.Rand
	passes []string
	damage func([]byte) []byte // of sums, may be nil
}

func (e *scattered) Survey(context.Context) (*sum.Survey, error) {
	return &sum.Survey{
		Items: len(e.items), Labelled: len(e.items[0].Labels) > 0,
		Has: func(t int) iter.Seq[int] {
			var has []int
			for i, ex := range e.items {
				if ex.Vectors[t].Present() {
					has = append(has, i)
				}
			}
			return slices.Values(has)
		},
	}, nil
}

func (e *scattered) Sum(ctx context.Context, p *sum.Pass) ([]byte, error) {
	e.passes = append(e.passes, p.Stage())
	b, err := p.MarshalBinary()
	if err != nil {
		return nil, err
	}
	if p, err = sum.UnmarshalPass(b); err != nil {
		return nil, err
	}
	if again, _ := p.MarshalBinary(); !bytes.Equal(again, b) {
		return nil, errors.New("the pass has other bytes when it is read and written")
	}
	if e.cuts != nil {
		return e.runs(ctx, p)
	}
	size := sum.LeafItems
	for range e.span {
		size *= sum.FanOut
	}
	nodes := make([][]byte, (len(e.items)+size-1)/size)
	for _, i := range e.rng.Perm(len(nodes)) {
		from, to := i*size, min((i+1)*size, len(e.items))
		nodes[i], err = p.Sum(ctx, from, without(e.items[from:to]))
		if err != nil {
			return nil, err
		}
	}
	for len(nodes) > 1 {
		parents := make([][]byte, (len(nodes)+sum.FanOut-1)/sum.FanOut)
		for _, i := range e.rng.Perm(len(parents)) {
			if parents[i], err = p.Merge(
				without(nodes[i*sum.FanOut : min((i+1)*sum.FanOut, len(nodes))])); err != nil {
				return nil, err
			}
		}
		nodes = parents
	}
	if e.damage != nil {
		return e.damage(nodes[0]), nil
	}
	return nodes[0], nil
}

// runs sums up runs of items, and these in their order.
func (e *scattered) runs(ctx context.Context, p *sum.Pass) ([]byte, error) {
	var sums [][]byte
	from := 0
	for _, to := range append(slices.Clone(e.cuts), len(e.items)) {
		sum, err := p.Sum(ctx, from, without(e.items[from:to]))
		if err != nil {
			return nil, err
		}
		sums, from = append(sums, sum), to
	}
	return p.Merge(without(sums))
}

// without yields values, and no error with them.
func without[T any](values []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range values {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// inMemory is a Source over examples.
type inMemory []model.Example

func (s inMemory) Examples(context.Context) iter.Seq2[model.Example, error] {
	return without(s)
}

// madeItems returns n items of two modalities, the second one sparse and missing in a seventh of them. With
// several labels an item has up to three of so many.
func madeItems(n, labels int, several bool) ([]model.Modality, []model.Example) {
	rng := rand.New(rand.NewPCG(7, uint64(n)))
	ms := []model.Modality{{Name: "image", Dim: 5}, {Name: "text", Dim: 60, Sparse: true}}
	items := make([]model.Example, n)
	for i := range items {
		set := []uint32{uint32(rng.IntN(labels))}
		for several && len(set) < 3 && rng.IntN(2) == 0 {
			if l := uint32(rng.IntN(labels)); !slices.Contains(set, l) {
				set = append(set, l)
			}
		}
		slices.Sort(set)
		x := make([]float32, 5)
		for j := range x {
			x[j] = 100*float32(j) + float32(rng.NormFloat64())/2
			for _, l := range set {
				x[j] += float32(int(l) * (j + 3) % 7)
			}
		}
		items[i] = model.Example{Vectors: []model.Vector{model.Dense(x), {}}, Labels: set}
		if rng.IntN(7) > 0 {
			index := []uint32{}
			for _, l := range set {
				index = append(index, l*2%60, (l*2+uint32(rng.IntN(3)))%60)
			}
			slices.Sort(index)
			index = slices.Compact(index)
			value := make([]float32, len(index))
			for j := range value {
				value[j] = 1 + rng.Float32()
			}
			items[i].Vectors[1] = model.Sparse(index, value)
		}
	}
	return ms, items
}

// Wherever the sums are made, the result is that of one process to the last bit.
func TestTrainOver(t *testing.T) {
	effort.Slow(t)
	effort.WithoutRace(t)
	for _, c := range []struct {
		name       string
		n, labels  int
		several    bool
		unlabelled bool
		opt        Options
		passes     string
	}{
		{"a leaf", 700, 6, true, false, Options{Bits: 16, Anchors: 30}, "scan moments statistics"},
		{"no choice", 2*sum.LeafItems + 1, 5, false, false, Options{Bits: 32, Anchors: 12,
			Features: map[string]model.FeatureKind{"image": model.FeaturesRaw, "text": model.FeaturesRaw},
			Map:      map[string]model.MapKind{"image": model.MapRBF, "text": model.MapLinear},
			Width:    map[string]float64{"image": 1}, Gamma: map[string]float64{"image": .01, "text": .01},
			Fusion: Fusion{Rule: FusionSum}, Start: 1},
			"scan statistics"},
		{"levels", 19*sum.LeafItems + 777, 5, true, false, Options{Bits: 16, Anchors: 8, Seed: 3,
			Features: map[string]model.FeatureKind{"image": model.FeaturesZScore, "text": model.FeaturesL2}},
			"scan moments statistics"},
		{"embedding", sum.LeafItems + 5, 40, true, false,
			Options{Bits: 16, Anchors: 20, LabelEmbedding: true, Seed: 9, Fusion: Fusion{Rule: FusionSum},
				Features: map[string]model.FeatureKind{"image": model.FeaturesZScore,
					"text": model.FeaturesL2}},
			"scan moments embedding statistics"},
		{"codes", sum.LeafItems + 1, 6, true, false, Options{Bits: 24, Anchors: 10, Aim: model.AimCodes,
			Fusion:   Fusion{Rule: FusionSum},
			Features: map[string]model.FeatureKind{"image": model.FeaturesZScore, "text": model.FeaturesL2}},
			"scan moments statistics"},
		{"cca", 70_000, 6, true, true, Options{Bits: 16, Method: model.MethodCCAITQ}, "scan"},
		{"few", 50, 6, true, true, Options{Bits: 16, Method: model.MethodCCAITQ}, "scan"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !effort.Long() && c.n > 200_000 {
				t.Skip("takes long")
			}
			ms, items := madeItems(c.n, c.labels, c.several)
			if c.unlabelled {
				for i := range items {
					items[i].Labels = nil
				}
			}
			want := need(Train(t.Context(), ms, inMemory(items), c.opt))(t)
			for _, span := range []int{2, 0}[:effort.Of(2, 1)] {
				e := &scattered{items: items, span: span, rng: rand.New(rand.NewPCG(uint64(span), 0))}
				got := need(TrainOver(t.Context(), ms, e, c.opt))(t)
				sameResult(t, got, want)
				if got := strings.Join(e.passes, " "); got != c.passes {
					t.Errorf("passes: %s", got)
				}
			}
		})
	}
}

// Items that are summed up in runs as they lie somewhere, of any length, give the same codes, and the same
// statistics but for rounding.
func TestTrainOverRuns(t *testing.T) {
	effort.Slow(t)
	for name, opt := range map[string]Options{
		"labels": {Bits: 24, Anchors: 30, Seed: 3}, "embedding": {Bits: 16, Anchors: 20,
			LabelEmbedding: true}, "codes": {Bits: 24, Anchors: 20, Aim: model.AimCodes},
		"cca-itq": {Bits: 16, Method: model.MethodCCAITQ},
	} {
		ms, items := madeItems(600, 12, true)
		want := need(Train(t.Context(), ms, inMemory(items), opt))(t)
		e := &scattered{items: items, cuts: []int{1, 2, 200, 200, 399, 511}, rng: rand.New(rand.NewPCG(1, 1))}
		got := need(TrainOver(t.Context(), ms, e, opt))(t, name)
		if want.Statistics != nil {
			fine(t, fingerprintOf(t, got.Statistics, want.Statistics).Same(want.Statistics, 1e-9), name)
		}
		ge, we := got.Model.NewEncoder(), want.Model.NewEncoder()
		gz, wz := make([]float64, opt.Bits), make([]float64, opt.Bits)
		for i, ex := range items {
			for m, x := range ex.Vectors {
				if !x.Present() {
					continue
				}
				gerr, werr := ge.ProjectVectors(gz, m, []model.Vector{x}),
					we.ProjectVectors(wz, m, []model.Vector{x})
				if gerr != nil || werr != nil {
					t.Fatal(gerr, werr)
				}
				for j := range gz {
					stopIf(t, gz[j] >= 0 != (wz[j] >= 0) || math.Abs(gz[j]-wz[j]) > 1e-6,
						"%s: item %d, bit %d: %v, want %v", name, i, j, gz[j], wz[j])
				}
			}
		}
	}
}

func TestTrainOverRefuses(t *testing.T) {
	ms, items := madeItems(300, 6, false)
	_, unlabelled := madeItems(300, 6, false)
	for i := range unlabelled {
		unlabelled[i].Labels = nil
	}
	damaged := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	for _, c := range []struct {
		what string
		e    *scattered
		opt  Options
		is   error
		says string
	}{
		{"a method of items", &scattered{items: items}, Options{Bits: 16, Method: model.MethodJoint},
			model.ErrOption, "train in one process"},
		{"no labels", &scattered{items: unlabelled}, Options{Bits: 16, Method: model.MethodLabels},
			model.ErrNoLabels, "no item has any"},
		{"few bits", &scattered{items: items[:4]}, Options{Bits: 7}, model.ErrOption, "bits"},
		{"a damaged sum", &scattered{items: items, damage: damaged}, Options{Bits: 16}, codec.ErrCorrupt,
			"checksum"},
		{"another sum", &scattered{items: items, damage: func([]byte) []byte {
			b := need(sum.SamplePass(ms, 0, make([][]uint32, len(ms))).Sum(t.Context(), 0,
				func(func(model.Example, error) bool) {}))(t)
			return b
		}}, Options{Bits: 16}, codec.ErrCorrupt, ""},
		{"one class", &scattered{items: []model.Example{items[0], items[0]}}, Options{Bits: 16},
			model.ErrOneClass, "training: "},
	} {
		c.e.rng = rand.New(rand.NewPCG(1, 1))
		_, err := TrainOver(t.Context(), ms, c.e, c.opt)
		failIf(t, !like(err, c.is, c.says), "%s: %v", c.what, err)
	}
}

// FuzzPass reads passes and sums of any bytes.
func FuzzPass(f *testing.F) {
	ms, items := madeItems(60, 4, true)
	for _, opt := range []Options{{Bits: 8, Anchors: 3}, {Bits: 8, Method: model.MethodCCAITQ}} {
		e := &seeds{scattered{items: items, rng: rand.New(rand.NewPCG(1, 1))}, f}
		need(TrainOver(f.Context(), ms, e, opt))(f)
	}
	f.Fuzz(func(t *testing.T, pass, part []byte) {
		p, err := sum.UnmarshalPass(pass)
		if err != nil {
			return
		}
		if len(pass) > 1<<15 { // a pass that is well formed may ask for gigabytes
			return
		}
		for _, m := range p.Modalities() {
			if m.Dim > 1<<16 {
				return
			}
		}
		if b, err := p.Merge(without([][]byte{part, part})); err == nil {
			need(p.Merge(without([][]byte{b})))(t, "a sum that was merged cannot be read")
		}
	})
}

// seeds is an engine that gives what it sends to a fuzzer.
type seeds struct {
	scattered
	f *testing.F
}

func (e *seeds) Sum(ctx context.Context, p *sum.Pass) ([]byte, error) {
	sum, err := e.scattered.Sum(ctx, p)
	if err == nil {
		b, _ := p.MarshalBinary()
		e.f.Add(b, sum)
	}
	return sum, err
}

// fingerprintOf returns statistics with the fingerprint of others: of maps that differ in their last bits.
func fingerprintOf(t *testing.T, s, other *model.Statistics) *model.Statistics {
	t.Helper()
	to, _ := s.MarshalBinary()
	from, _ := other.MarshalBinary()
	copy(to[8:16], from[8:16])
	body := to[:len(to)-4]
	binary.LittleEndian.PutUint32(to[len(body):], crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
	s = need(model.UnmarshalStatistics(to))(t)
	return s
}

// An update over items elsewhere is the online step with the same ones: those of the training as they are
// now, and those that have come since.
func TestUpdateOver(t *testing.T) {
	effort.Slow(t)
	for name, opt := range map[string]Options{
		"labels": {Bits: 24, Anchors: 30, Seed: 3}, "embedding": {Bits: 16, Anchors: 20,
			LabelEmbedding: true}, "codes": {Bits: 24, Anchors: 20, Aim: model.AimCodes},
	} {
		ms, all := madeItems(1500, 12, true)
		first, later := all[:900], all[900:]
		trained := need(Train(t.Context(), ms, inMemory(first), opt))(t, name)
		o := need(model.NewOnline(trained.Model, trained.Statistics.Clone()))(t, name)
		taught := need(o.Learn(t.Context(), later, model.TeacherLabels, 0))(t, name)
		gone := later[:200]
		must(t, o.Forget(t.Context(), gone, taught.Lessons[:200]), name)
		want := need(o.Revision())(t, name)
		now := slices.DeleteFunc(slices.Concat(first, later[200:]),
			func(ex model.Example) bool { return !trained.Model.Knows(ex.Labels) })
		e := &scattered{items: now, cuts: []int{1, 400, 777}, rng: rand.New(rand.NewPCG(1, 1))}
		got, s := need2(UpdateOver(t.Context(), trained.Model, e))(t, name)
		fine(t, s.Same(o.Statistics(), 1e-9), name)
		if grown, err := got.GrownSince(trained.Model); err != nil || len(grown) > 0 {
			t.Error(name, grown, err)
		}
		g, w := got.NewEncoder(), want.NewEncoder()
		z, codes := make([]float64, opt.Bits), [2]codec.Code{codec.NewCode(opt.Bits), codec.NewCode(opt.Bits)}
		for _, ex := range all {
			for m, x := range ex.Vectors {
				if !x.Present() {
					continue
				}
				for i, e := range []*model.Encoder{g, w} {
					must(t, e.ProjectVectors(z, m, []model.Vector{x}))
					codec.PackSigns(codes[i], z)
				}
				if !slices.Equal(codes[0], codes[1]) {
					t.Fatal(name, "an item has another code")
				}
			}
		}
	}
	ms, items := madeItems(300, 5, true)
	r := need(Train(t.Context(), ms, inMemory(items), Options{Bits: 16, Anchors: 20,
		Method: model.MethodJoint}))(t)
	errorIs(t, third(UpdateOver(t.Context(), r.Model, &scattered{items: items})), model.ErrMismatch)
}

// Follow takes over what was made elsewhere, with labels that have grown there.
func TestFollow(t *testing.T) {
	for _, aim := range []model.Aim{model.AimLabels, model.AimCodes} {
		ms, items := madeItems(800, 6, true)
		opt := Options{Bits: 24, Anchors: 30, Aim: aim}
		r := need(Train(t.Context(), ms, inMemory(items), opt))(t)
		m, s := r.Model, r.Statistics
		known := m.Labels()
		for _, label := range []uint32{known[len(known)-1] + 5, known[0] + 1_000, known[len(known)-1] + 1} {
			m, s = need2(m.Grow(s, label))(t)
		}
		grown, err := m.GrownSince(r.Model)
		if err != nil || len(grown) != 3 || !slices.IsSorted(grown) {
			t.Fatal(grown, err)
		}
		o := need(model.NewOnline(r.Model, r.Statistics.Clone()))(t)
		must(t, o.Follow(m))
		fine(t, o.Statistics().Same(s, 0))
		more := []model.Example{{Vectors: items[0].Vectors, Labels: []uint32{grown[0]}}}
		if taught, err := o.Learn(t.Context(), more, model.TeacherLabels, 0); err != nil ||
			taught.Labelled != 1 {
			t.Error(taught, err)
		}
		if next, err := o.Revision(); err != nil || next.Fingerprint() != m.Fingerprint() {
			t.Error(err)
		}
		other := need(Train(t.Context(), ms, inMemory(items[:400]), opt))(t)
		errorIs(t, o.Follow(other.Model), model.ErrMismatch)
		if err := o.Follow(r.Model); !errors.Is(err, model.ErrMismatch) { // which knows fewer labels
			t.Error(err)
		}
	}
}
