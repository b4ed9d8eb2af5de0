package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/effort"
)

// scattered is an Engine over items in memory. It sends passes and sums in binary form, makes nodes of
// level span itself, in any order, and the nodes above them from those.
type scattered struct {
	items  []Example
	span   int
	cuts   []int // where not nil: the items are summed up in runs that end at these, in place of nodes
	rng    *rand.Rand
	passes []string
	damage func([]byte) []byte // of sums, may be nil
}

func (e *scattered) Survey(context.Context) (*Survey, error) {
	return &Survey{
		Items: len(e.items), Labelled: len(e.items[0].Labels) > 0,
		Has: func(t int) iter.Seq[int] {
			return func(yield func(int) bool) {
				for i, ex := range e.items {
					if ex.Vectors[t].Present() && !yield(i) {
						return
					}
				}
			}
		},
	}, nil
}

func (e *scattered) Sum(ctx context.Context, p *Pass) ([]byte, error) {
	e.passes = append(e.passes, p.Stage())
	b, err := p.MarshalBinary()
	if err != nil {
		return nil, err
	}
	if p, err = UnmarshalPass(b); err != nil {
		return nil, err
	}
	if again, _ := p.MarshalBinary(); !bytes.Equal(again, b) {
		return nil, errors.New("the pass has other bytes when it is read and written")
	}
	if e.cuts != nil {
		return e.runs(ctx, p)
	}
	size := LeafItems
	for range e.span {
		size *= FanOut
	}
	nodes := make([][]byte, (len(e.items)+size-1)/size)
	for _, i := range e.rng.Perm(len(nodes)) {
		from, to := i*size, min((i+1)*size, len(e.items))
		nodes[i], err = p.Sum(ctx, from, func(yield func(Example, error) bool) {
			for _, ex := range e.items[from:to] {
				if !yield(ex, nil) {
					return
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	for len(nodes) > 1 {
		parents := make([][]byte, (len(nodes)+FanOut-1)/FanOut)
		for _, i := range e.rng.Perm(len(parents)) {
			if parents[i], err = p.Merge(children(nodes[i*FanOut : min((i+1)*FanOut, len(nodes))])); err != nil {
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
func (e *scattered) runs(ctx context.Context, p *Pass) ([]byte, error) {
	var sums [][]byte
	from := 0
	for _, to := range append(slices.Clone(e.cuts), len(e.items)) {
		first := from
		sum, err := p.Sum(ctx, first, func(yield func(Example, error) bool) {
			for _, ex := range e.items[first:to] {
				if !yield(ex, nil) {
					return
				}
			}
		})
		if err != nil {
			return nil, err
		}
		sums, from = append(sums, sum), to
	}
	return p.Merge(children(sums))
}

func children(nodes [][]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, b := range nodes {
			if !yield(b, nil) {
				return
			}
		}
	}
}

// inMemory is a Source over examples.
type inMemory []Example

func (s inMemory) Examples(context.Context) iter.Seq2[Example, error] {
	return func(yield func(Example, error) bool) {
		for _, ex := range s {
			if !yield(ex, nil) {
				return
			}
		}
	}
}

// madeItems returns n items of two modalities, the second one sparse and missing in a seventh of them. With
// several labels an item has up to three of so many.
func madeItems(n, labels int, several bool) ([]Modality, []Example) {
	rng := rand.New(rand.NewPCG(7, uint64(n)))
	ms := []Modality{{Name: "image", Dim: 5}, {Name: "text", Dim: 60, Sparse: true}}
	items := make([]Example, n)
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
		items[i] = Example{Vectors: []Vector{Dense(x), {}}, Labels: set}
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
			items[i].Vectors[1] = Sparse(index, value)
		}
	}
	return ms, items
}

// sameResult compares two results, but for times and memory.
func sameResult(t *testing.T, got, want *Result) {
	t.Helper()
	gm, _ := got.Model.MarshalBinary()
	wm, _ := want.Model.MarshalBinary()
	if !bytes.Equal(gm, wm) {
		t.Error("another model")
	}
	if (got.Statistics == nil) != (want.Statistics == nil) {
		t.Fatal("one has statistics")
	}
	if got.Statistics != nil {
		gs, _ := got.Statistics.MarshalBinary()
		ws, _ := want.Statistics.MarshalBinary()
		if !bytes.Equal(gs, ws) {
			t.Error("other statistics")
		}
	}
	names := make([]string, len(want.Model.Labels()))
	for i := range names {
		names[i] = fmt.Sprint("l", i)
	}
	var files [2][]byte
	for i, r := range []*Result{got, want} {
		f, err := NewFile(r.Model, names, &r.Report)
		if err != nil {
			t.Fatal(err)
		}
		files[i], _ = f.MarshalBinary()
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Errorf("other files:\n%+v\n%+v", got.Report, want.Report)
	}
}

// Wherever the sums are made, the result is that of one process to the last bit.
func TestTrainOver(t *testing.T) {
	withoutRace(t)
	for _, c := range []struct {
		name       string
		n, labels  int
		several    bool
		unlabelled bool
		opt        Options
		passes     string
	}{
		{"a leaf", 700, 6, true, false, Options{Bits: 16, Anchors: 30}, "scan moments statistics"},
		{"no choice", 2*LeafItems + 1, 5, false, false, Options{Bits: 32, Anchors: 12,
			Features: map[string]FeatureKind{"image": FeaturesRaw, "text": FeaturesRaw}, Map: map[string]MapKind{"image": MapRBF, "text": MapLinear},
			Width: map[string]float64{"image": 1}, Gamma: map[string]float64{"image": .01, "text": .01}, Fusion: Fusion{Rule: FusionSum}, Start: 1},
			"scan statistics"},
		{"levels", 19*LeafItems + 777, 5, true, false, Options{Bits: 16, Anchors: 8, Seed: 3,
			Features: map[string]FeatureKind{"image": FeaturesZScore, "text": FeaturesL2}}, "scan moments statistics"},
		{"embedding", LeafItems + 5, 40, true, false, Options{Bits: 16, Anchors: 20, LabelEmbedding: true, Seed: 9, Fusion: Fusion{Rule: FusionSum},
			Features: map[string]FeatureKind{"image": FeaturesZScore, "text": FeaturesL2}}, "scan moments embedding statistics"},
		{"codes", LeafItems + 1, 6, true, false, Options{Bits: 24, Anchors: 10, Aim: AimCodes, Fusion: Fusion{Rule: FusionSum},
			Features: map[string]FeatureKind{"image": FeaturesZScore, "text": FeaturesL2}}, "scan moments statistics"},
		{"cca", 70_000, 6, true, true, Options{Bits: 16, Method: MethodCCAITQ}, "scan"},
		{"few", 50, 6, true, true, Options{Bits: 16, Method: MethodCCAITQ}, "scan"},
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
			want, err := Train(t.Context(), ms, inMemory(items), c.opt)
			if err != nil {
				t.Fatal(err)
			}
			for _, span := range []int{2, 0}[:effort.Of(2, 1)] {
				e := &scattered{items: items, span: span, rng: rand.New(rand.NewPCG(uint64(span), 0))}
				got, err := TrainOver(t.Context(), ms, e, c.opt)
				if err != nil {
					t.Fatal(err)
				}
				sameResult(t, got, want)
				if got := strings.Join(e.passes, " "); got != c.passes {
					t.Errorf("passes: %s", got)
				}
			}
		})
	}
}

// The codes of labelled items are those of the solver, in the statistics as well.
func TestStatisticsAreThoseOfTheSolversCodes(t *testing.T) {
	ms, items := madeItems(500, 6, true)
	r, err := Train(t.Context(), ms, inMemory(items), Options{Bits: 16, Aim: AimCodes})
	if err != nil {
		t.Fatal(err)
	}
	s := newStatisticsSums(r.Model, func(item int) codec.Code {
		code := codec.NewCode(16)
		r.Model.LabelCode(code, items[item].Labels)
		return code
	})
	p := &Pass{kind: passStatistics, modalities: ms, bits: 16, m: r.Model, code: s.code}
	sum, err := (&reader{modalities: ms, src: inMemory(items), items: -1}).sum(t.Context(), "", p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Statistics.Same(sum.(*statisticsSums).stats, 0); err != nil {
		t.Error(err)
	}
}

// Items that are summed up in runs as they lie somewhere, of any length, give the same codes, and the same
// statistics but for rounding.
func TestTrainOverRuns(t *testing.T) {
	effort.Slow(t)
	for name, opt := range map[string]Options{
		"labels": {Bits: 24, Anchors: 30, Seed: 3}, "embedding": {Bits: 16, Anchors: 20, LabelEmbedding: true}, "codes": {Bits: 24, Anchors: 20, Aim: AimCodes},
		"cca-itq": {Bits: 16, Method: MethodCCAITQ},
	} {
		ms, items := madeItems(600, 12, true)
		want, err := Train(t.Context(), ms, inMemory(items), opt)
		if err != nil {
			t.Fatal(err)
		}
		e := &scattered{items: items, cuts: []int{1, 2, 200, 200, 399, 511}, rng: rand.New(rand.NewPCG(1, 1))}
		got, err := TrainOver(t.Context(), ms, e, opt)
		if err != nil {
			t.Fatal(name, err)
		}
		if want.Statistics != nil {
			got.Statistics.fingerprint = want.Statistics.fingerprint // of maps that differ in their last bits
			if err := got.Statistics.Same(want.Statistics, 1e-9); err != nil {
				t.Error(name, err)
			}
		}
		ge, we := got.Model.NewEncoder(), want.Model.NewEncoder()
		gz, wz := make([]float64, opt.Bits), make([]float64, opt.Bits)
		for i, ex := range items {
			for m, x := range ex.Vectors {
				if !x.Present() {
					continue
				}
				gerr, werr := ge.ProjectVectors(gz, m, []Vector{x}), we.ProjectVectors(wz, m, []Vector{x})
				if gerr != nil || werr != nil {
					t.Fatal(gerr, werr)
				}
				for j := range gz {
					if gz[j] >= 0 != (wz[j] >= 0) || math.Abs(gz[j]-wz[j]) > 1e-6 {
						t.Fatalf("%s: item %d, bit %d: %v, want %v", name, i, j, gz[j], wz[j])
					}
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
		{"a method of items", &scattered{items: items}, Options{Bits: 16, Method: MethodJoint}, ErrOption, "train in one process"},
		{"no labels", &scattered{items: unlabelled}, Options{Bits: 16, Method: MethodLabels}, ErrNoLabels, "no item has any"},
		{"few bits", &scattered{items: items[:4]}, Options{Bits: 7}, ErrOption, "bits"},
		{"a damaged sum", &scattered{items: items, damage: damaged}, Options{Bits: 16}, codec.ErrCorrupt, "checksum"},
		{"another sum", &scattered{items: items, damage: func([]byte) []byte {
			p := &Pass{kind: passSample, modalities: ms}
			return p.marshal(p.sums())
		}}, Options{Bits: 16}, codec.ErrCorrupt, ""},
		{"one class", &scattered{items: []Example{items[0], items[0]}}, Options{Bits: 16}, ErrOneClass, "training: "},
	} {
		c.e.rng = rand.New(rand.NewPCG(1, 1))
		_, err := TrainOver(t.Context(), ms, c.e, c.opt)
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

// The tree is the one that LeafItems describes: sums of strings that say what was added to what.
func TestTree(t *testing.T) {
	for _, leaves := range []int{1, 2, 15, 16, 17, 32, 33, 255, 256, 257, 300, 4096, 4097} {
		tr := &tree{}
		for i := range leaves {
			tr.add(0, &terms{fmt.Sprint(i)})
		}
		nodes := make([]string, leaves)
		for i := range nodes {
			nodes[i] = fmt.Sprint(i)
		}
		up := 0
		for ; len(nodes) > 1; up++ {
			var parents []string
			for c := range slices.Chunk(nodes, FanOut) {
				sum := c[0]
				for _, s := range c[1:] {
					sum = "(" + sum + "+" + s + ")"
				}
				parents = append(parents, sum)
			}
			nodes = parents
		}
		if got := tr.root().(*terms).text; got != nodes[0] {
			t.Errorf("%d leaves: another tree", leaves)
		}
		if got := levels(leaves * LeafItems); got != up {
			t.Errorf("%d leaves: %d levels, not %d", leaves, got, up)
		}
	}
}

// terms are sums that are text.
type terms struct{ text string }

func (s *terms) add(*block) error     { return nil }
func (s *terms) merge(o sums)         { s.text = "(" + s.text + "+" + o.(*terms).text + ")" }
func (s *terms) reset()               {}
func (s *terms) appendTo(*wireWriter) {}
func (s *terms) readFrom(*wireReader) {}

// Moments in parts are those of the whole, whatever the parts.
func TestMomentsMerge(t *testing.T) {
	ms, items := madeItems(999, 5, true)
	for mod := range ms {
		var xs []Vector
		for _, ex := range items {
			if ex.Vectors[mod].Present() {
				xs = append(xs, ex.Vectors[mod])
			}
		}
		whole := newMoments(ms[mod])
		whole.add(xs, 1)
		parts := newMoments(ms[mod])
		for part := range slices.Chunk(xs, 100) {
			p := newMoments(ms[mod])
			p.add(part, 1)
			parts.merge(p)
			parts.merge(newMoments(ms[mod]))
		}
		whole.settle()
		parts.settle()
		for j := range whole.mean {
			if d := whole.mean[j] - parts.mean[j]; d*d > 1e-18*(1+whole.mean[j]*whole.mean[j]) {
				t.Fatalf("mean %g, not %g", parts.mean[j], whole.mean[j])
			}
			if d := whole.m2[j] - parts.m2[j]; d*d > 1e-18*(1+whole.m2[j]*whole.m2[j]) {
				t.Fatalf("squares %g, not %g", parts.m2[j], whole.m2[j])
			}
			if whole.low[j] != parts.low[j] {
				t.Fatalf("least %g, not %g", parts.low[j], whole.low[j])
			}
		}
	}
}

// FuzzPass reads passes and sums of any bytes.
func FuzzPass(f *testing.F) {
	ms, items := madeItems(60, 4, true)
	for _, opt := range []Options{{Bits: 8, Anchors: 3}, {Bits: 8, Method: MethodCCAITQ}} {
		e := &seeds{scattered{items: items, rng: rand.New(rand.NewPCG(1, 1))}, f}
		if _, err := TrainOver(f.Context(), ms, e, opt); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, pass, sum []byte) {
		p, err := UnmarshalPass(pass)
		if err != nil {
			return
		}
		if p.m != nil { // a pass that is well formed may ask for gigabytes
			for _, m := range p.m.maps {
				if m.size()+len(p.m.labels) > 500 {
					return
				}
			}
		}
		for _, m := range p.modalities {
			if m.Dim > 1<<16 {
				return
			}
		}
		if b, err := p.Merge(children([][]byte{sum, sum})); err == nil {
			if _, err := p.unmarshal(b); err != nil {
				t.Fatalf("a sum that was merged cannot be read: %v", err)
			}
		}
	})
}

// seeds is an engine that gives what it sends to a fuzzer.
type seeds struct {
	scattered
	f *testing.F
}

func (e *seeds) Sum(ctx context.Context, p *Pass) ([]byte, error) {
	sum, err := e.scattered.Sum(ctx, p)
	if err == nil {
		b, _ := p.MarshalBinary()
		e.f.Add(b, sum)
	}
	return sum, err
}

// BenchmarkDraw is what the driver does for each item and modality, to find out which ones samples keep.
func BenchmarkDraw(b *testing.B) {
	has := func(yield func(int) bool) {
		for i := range b.N {
			if !yield(i) {
				return
			}
		}
	}
	anchors := newSample(reservoir(rand.New(rand.NewPCG(1, 2)), 800))
	choice := newChoiceSample(rand.New(rand.NewPCG(1, 3)), Modality{Dim: 128})
	anchors.draw(has)
	choice.draw(has)
}
