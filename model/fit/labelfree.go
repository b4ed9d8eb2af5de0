package fit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/dense"
	"github.com/fddhdb/fddhdb/model/internal/parallel"
	"github.com/fddhdb/fddhdb/model/internal/random"
	"github.com/fddhdb/fddhdb/model/internal/wire"
	"github.com/fddhdb/fddhdb/model/sum"
)

// A model can be learned without labels. Its codes are the signs of
//
//	z = W_t (x - mean_t),
//
// where x is a vector of modality t with its features (l2 by default, so that its direction counts
// alone), and mean_t their mean. Modalities whose vectors lie in one space (Options.Shared) have the
// same W, and means of their own: the mean of a modality is a constant offset in a space that
// several modalities share. Two methods make W:
//
//   - itq: the q principal axes of the vectors, turned so that z is near its signs (Gong and
//     Lazebnik, "Iterative quantization: a procrustean approach to learning binary codes", CVPR
//     2011).
//   - cca-itq: for vectors in spaces of their own, of items that have several of them: directions in
//     which the vectors of an item correlate, turned likewise (Gong, Lazebnik, Gordo and Perronnin,
//     IEEE TPAMI 2013).
//
// Where there are fewer axes than bits, the other bits come from the same axes, turned at random.
//
// Such a model knows no labels: LabelCode knows none, and items of any labels have the codes of
// their vectors. It has no statistics, and so neither revisions nor an Online.

// DefaultLabelFreeBits is the default of Options.Bits without labels. Longer codes keep more of the vectors;
// the time of a training grows with the cube of the bits.
const DefaultLabelFreeBits = 256

// checkLabelFree refuses options for training with labels.
func (o Options) checkLabelFree() error {
	for _, given := range []struct {
		what string
		is   bool
	}{
		{"anchors", o.Anchors != 0}, {"sweeps", o.Sweeps != 0}, {"start", o.Start != 0},
		{"label embedding", o.LabelEmbedding},
		{"aim", o.Aim != model.AimAuto}, {"prior", o.Prior != nil}, {"centre", o.Centre != nil},
		{"map", len(o.Map) > 0},
		{"width", len(o.Width) > 0}, {"gamma", len(o.Gamma) > 0}, {"mu", len(o.Mu) > 0},
		{"delta", o.Delta != 0},
		{"fusion", o.Fusion != Fusion{}},
	} {
		if given.is {
			return fmt.Errorf("%w: %s: it is for learning from labels, and method %v learns without them: leave it out", model.ErrOption, given.what, o.Method)
		}
	}
	return nil
}

// groups returns the modalities by the space of their vectors: the ones that shared names together, and each
// other one by itself, in the order of their first modality.
func groups(modalities []model.Modality, shared [][]string) ([][]int, error) {
	of := make([]int, len(modalities)) // by modality: the first one of its space
	for t := range of {
		of[t] = t
	}
	named := map[string]bool{}
	for _, names := range shared {
		first := -1
		for _, name := range names {
			t := slices.IndexFunc(modalities, func(m model.Modality) bool { return m.Name == name })
			switch {
			case named[name]:
				return nil, &model.ModalityError{Modality: name,
					Problem: "is named twice among those that share a space"}
			case t < 0:
				named[name] = true // it may be one that no item has
				continue
			}
			named[name] = true
			if first < 0 {
				first = t
			}
			if a, b := modalities[first], modalities[t]; a.Dim != b.Dim || a.Sparse != b.Sparse {
				return nil, &model.ModalityError{Modality: name,
					Problem: fmt.Sprintf("is said to share a space with %q, but they differ in dimension or form", a.Name)}
			}
			of[t] = first
		}
	}
	for t, first := range of {
		if first > t { // shared names them in another order
			for u := range of {
				if u != t && of[u] == first {
					of[u] = t
				}
			}
			of[t] = t
		}
	}
	var list [][]int
	for t, first := range of {
		if first != t {
			continue
		}
		var group []int
		for u := range of {
			if of[u] == t {
				group = append(group, u)
			}
		}
		list = append(list, group)
	}
	return list, nil
}

// farthest bounds a number minus its mean, so that sums over the dimensions stay finite in float32.
const farthest = 1e34

// boundedRow writes the centred features of v to dst, each at most farthest.
func boundedRow(f *model.Map, dst []float32, v model.Vector) {
	f.Prepare(dst, v)
	for j, x := range dst {
		dst[j] = min(max(x, -farthest), farthest)
	}
}

// A freeTrainer is a training without labels. It reads the source once, for a sample; the rest works on the
// sample. A phase takes what the phases before have returned; the trainer itself does not change.
type freeTrainer struct {
	opt        Options // with defaults filled in
	modalities []model.Modality
	groups     [][]int // modalities by the space of their vectors
}

// trainLabelFree is Train for methods without labels; with an engine and no source it is TrainOver.
func trainLabelFree(ctx context.Context, modalities []model.Modality, src sum.Source, engine sum.Engine,
	opt Options) (_ *Result, err error) {
	defer parallel.Guard(&err, "in the numerics")
	clock := newStopwatch()
	tr, err := newFreeTrainer(modalities, opt)
	if err != nil {
		return nil, err
	}
	sample, err := tr.read(ctx, src, engine)
	if err != nil {
		return nil, err
	}
	clock.phase("scan")
	memory, err := tr.checkMemory(len(sample.kept))
	if err != nil {
		return nil, err
	}
	centred, chosen, err := tr.centre(sample)
	if err != nil {
		return nil, err
	}
	m, err := tr.model(ctx, centred)
	if err != nil {
		return nil, err
	}
	clock.phase("solve")
	codes, err := itemCodes(m, centred.items)
	if err != nil {
		return nil, err
	}
	report := Report{Seed: opt.Seed, Bits: m.Bits(), Method: m.Method(), Chosen: chosen, TrainItems: sample.n,
		MemoryBytes: memory, Seconds: clock.seconds}
	report.judgeCodes(codes, m.Bits(), nil)
	return &Result{Model: m, Report: report}, nil
}

// newFreeTrainer refuses options that do not fit, and fills in defaults.
func newFreeTrainer(modalities []model.Modality, opt Options) (*freeTrainer, error) {
	if err := checkModalities(modalities); err != nil {
		return nil, err
	}
	groups, err := groups(modalities, opt.Shared)
	if err != nil {
		return nil, err
	}
	if err := opt.checkLabelFree(); err != nil {
		return nil, err
	}
	opt.Bits = cmp.Or(opt.Bits, DefaultLabelFreeBits)
	if err := codec.CheckBits(opt.Bits); err != nil {
		return nil, fmt.Errorf("%w: bits: %w", model.ErrOption, err)
	}
	if opt.Features, err = complete("feature map", modalities, opt.Features, model.FeaturesL2); err != nil {
		return nil, err
	}
	for _, m := range modalities {
		if k := opt.Features[m.Name]; k > model.FeaturesHellingerL2 {
			return nil, fmt.Errorf("%w: %v of modality %q: they are raw, zscore, hellinger, log, l2 or hellinger-l2", model.ErrOption, k, m.Name)
		}
		if m.Dim >= wire.MaxFeatures {
			return nil, fmt.Errorf("%w: modality %q has %d dimensions, and method %v takes at most %d: reduce its vectors first, or leave it out", model.ErrOption, m.Name, m.Dim, opt.Method, wire.MaxFeatures-1)
		}
	}
	first := modalities[groups[0][0]]
	switch several := len(groups) > 1; {
	case several && opt.Method != model.MethodCCAITQ:
		return nil, fmt.Errorf("%w: method %v compares vectors of one space, and those of %q and %q lie in spaces of their own: use cca-itq, which learns from items that have both", model.ErrOption, opt.Method, first.Name, modalities[groups[1][0]].Name)
	case !several && opt.Method == model.MethodCCAITQ:
		return nil, fmt.Errorf("%w: method %v learns from items with vectors in two spaces or more, and there is the one of %q: use itq", model.ErrOption, opt.Method, first.Name)
	}
	return &freeTrainer{opt: opt, modalities: modalities, groups: groups}, nil
}

// checkMemory refuses a training that needs more memory than the options allow, and returns what it needs.
// The sample itself, which is there by then, takes a quarter of it.
func (tr *freeTrainer) checkMemory(sampled int) (int64, error) {
	numbers, widest := 0, 0
	for _, m := range tr.modalities {
		numbers, widest = numbers+m.Dim, max(widest, m.Dim)
	}
	need := int64(16*sampled*numbers) + int64(24*min(tr.opt.Bits, widest)*widest)
	if limit := tr.opt.MemoryBytes; limit > 0 && limit < need {
		return 0, &MemoryError{Needed: need, Available: limit, Sampling: true}
	}
	return need, nil
}

// read samples the source, or lets an engine do that if there is one.
func (tr *freeTrainer) read(ctx context.Context, src sum.Source, engine sum.Engine) (*itemSample, error) {
	sample := newItemSample(tr.modalities, sampleSize(tr.modalities),
		rand.New(rand.NewPCG(tr.opt.Seed, random.Items)))
	var err error
	if engine != nil {
		err = sample.readElsewhere(ctx, engine, tr.opt.Seed)
	} else {
		err = sample.read(ctx, src, tr.opt.Progress)
	}
	if err == nil && sample.n == 0 {
		err = ErrNoItems
	}
	return sample, err
}

// A centredSample has the vectors of a sample, and the maps that give them their features and centre them.
type centredSample struct {
	*freeTrainer
	items [][]model.Vector // vectors by modality
	maps  []*model.Map     // by modality
}

// centre makes the features of each modality and their means, and says what they are.
func (tr *freeTrainer) centre(sample *itemSample) (*centredSample, map[string]Chosen, error) {
	s, chosen := &centredSample{freeTrainer: tr}, map[string]Chosen{}
	for _, k := range sample.kept {
		s.items = append(s.items, k.vectors)
	}
	for t, mod := range tr.modalities {
		xs, _ := vectorsOf(s.items, t)
		if len(xs) == 0 {
			return nil, nil, &model.ModalityError{Modality: mod.Name,
				Problem: "is in no training item, or in hardly any: train without it, or add vectors"}
		}
		kind := tr.opt.Features[mod.Name]
		var raw *model.Moments // of the vectors, for features that depend on them
		if kind != model.FeaturesRaw && kind != model.FeaturesL2 {
			raw = featureMoments(mod, nil, xs)
			if err := checkFit(kind, mod, raw); err != nil {
				return nil, nil, err
			}
		}
		f := model.NewFeatures(kind, raw)
		m := featureMoments(mod, f, xs)
		if _, constant := m.Sigma(); constant {
			return nil, nil, fmt.Errorf("%w: all %d sampled vectors of modality %q are equal, but for what features %v leave out: without labels there is nothing to learn of them", ErrOneVector, len(xs), mod.Name, kind)
		}
		s.maps = append(s.maps, model.NewLinearMap(mod, f, m.Mean))
		chosen[mod.Name] = Chosen{Map: model.MapLinear, FeatureMap: kind, Items: sample.items[t],
			Features: mod.Dim}
	}
	return s, chosen, nil
}

// model learns from the sample.
func (tr *freeTrainer) model(ctx context.Context, sample *centredSample) (*model.Model, error) {
	c, err := sample.directions(ctx)
	if err != nil {
		return nil, err
	}
	byGroup, err := c.itq(ctx, tr.opt.Bits, tr.random(random.Turn))
	if err != nil {
		return nil, err
	}
	T := len(tr.modalities)
	p := model.Parts{
		Bits: tr.opt.Bits, Method: tr.opt.Method, Seed: tr.opt.Seed,
		Modalities: tr.modalities, Maps: sample.maps,
		Gammas: make([]float64, T), Projections: make([][]float64, T), Fusion: slices.Repeat([]float64{1}, T),
	}
	for g, group := range tr.groups {
		for _, t := range group {
			p.Projections[t] = model.ZeroIntercept(byGroup[g].Data, p.Bits)
		}
	}
	return model.New(p)
}

// directions returns the directions of the codes.
func (s *centredSample) directions(ctx context.Context) (*canonical, error) {
	if s.opt.Method == model.MethodCCAITQ {
		if err := s.checkPairs(); err != nil {
			return nil, err
		}
		return s.correlate(ctx)
	}
	rows, _ := s.rows(s.groups[0])
	axes, _, err := principal(ctx, rows, min(s.opt.Bits, rows.Cols), s.random(random.Axes))
	if err != nil {
		return nil, err
	}
	return &canonical{[]dense.Matrix[float64]{axes}, projected(rows, axes)}, nil
}

// random returns the random numbers of a stream.
func (tr *freeTrainer) random(stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(tr.opt.Seed, stream))
}

// Reasons for which a training without labels cannot start.
var (
	// ErrNoItems says that no training item has a vector.
	ErrNoItems = errors.New("no items to learn from")
	// ErrOneVector says that all vectors of a modality are equal.
	ErrOneVector = errors.New("only one distinct vector")
	// ErrUnpaired says that too few items have vectors of several modalities.
	ErrUnpaired = errors.New("too few items with vectors of several modalities")
)

// itemCodes returns the codes that a model gives to items, one after the other, without regard to labels. An
// item whose projection is zero has the code of sgn(0) = +1 here.
func itemCodes(m *model.Model, items [][]model.Vector) ([]uint64, error) {
	words, q, T := codec.Words(m.Bits()), m.Bits(), len(m.Modalities())
	packed := make([]uint64, len(items)*words)
	workers := parallel.Workers()
	failed := make([]error, workers)
	encoders := make([]*model.Encoder, workers)
	parallel.Chunks(workers, len(items), parallel.Rows, func(worker, from, to int) {
		if encoders[worker] == nil {
			encoders[worker] = m.NewEncoder()
		}
		e, parts, fused := encoders[worker], make([][]float64, (to-from)*T), make([]float64, q)
		for t := range T {
			xs, of := vectorsOf(items[from:to], t)
			zs := make([]float64, len(xs)*q)
			if err := e.ProjectVectors(zs, t, xs); err != nil {
				failed[worker] = err
				return
			}
			for r, i := range of {
				parts[i*T+t] = zs[r*q : (r+1)*q]
			}
		}
		for i := range to - from {
			m.Fuse(fused, parts[i*T:(i+1)*T])
			codec.PackSigns(packed[(from+i)*words:(from+i+1)*words], fused)
		}
	})
	return packed, cmp.Or(failed...)
}

// Learning without labels uses a sample of the items: means, axes and rotations change little from some
// thousands of items on.
const (
	sampleItems   = 20_000
	sampleNumbers = 1 << 25 // most numbers of sampled vectors, at 4 bytes
	leastSample   = 100     // items of a sample, however long their vectors are
)

// An itemSample is a random sample of the offered items.
type itemSample struct {
	modalities []model.Modality
	place      func(i int) int
	n          int        // items so far that have a vector
	kept       []keptItem // by place; order puts them in order
	items      []int      // by modality: items so far that have it
}

// A keptItem is a copy of an item of the sample.
type keptItem struct {
	item    int // number among the items that have a vector
	vectors []model.Vector
}

// newItemSample returns an empty sample of at most size items.
func newItemSample(modalities []model.Modality, size int, rng *rand.Rand) *itemSample {
	return &itemSample{modalities: modalities, place: random.Reservoir(rng, size),
		items: make([]int, len(modalities))}
}

// sampleSize returns how many items of these modalities a sample has at most.
func sampleSize(modalities []model.Modality) int {
	d := 0
	for _, m := range modalities {
		d += m.Dim
	}
	return min(sampleItems, max(sampleNumbers/d, leastSample))
}

// read adds the items of a source, and checks their vectors.
func (s *itemSample) read(ctx context.Context, src sum.Source,
	progress func(stage string, done, total int64)) error {
	at := 0
	for ex, err := range src.Examples(ctx) {
		if err == nil {
			err = s.add(ex)
		}
		if err != nil {
			return fmt.Errorf("training item %d: %w", at, err)
		}
		if at++; at%sum.BlockItems == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if progress != nil {
				progress("scan", int64(at), 0)
			}
		}
	}
	s.order()
	return ctx.Err()
}

// order puts the items in their order.
func (s *itemSample) order() {
	slices.SortFunc(s.kept, func(a, b keptItem) int { return cmp.Compare(a.item, b.item) })
}

// add offers an item, which it copies if it keeps it.
func (s *itemSample) add(ex model.Example) error {
	if len(ex.Vectors) != len(s.modalities) {
		return fmt.Errorf("%w: %d vectors, but there are %d modalities: give the zero Vector for what an item lacks", model.ErrMismatch, len(ex.Vectors), len(s.modalities))
	}
	has := false
	for t, x := range ex.Vectors {
		if !x.Present() {
			continue
		}
		if err := model.CheckVector(s.modalities[t], x); err != nil {
			return err
		}
		has = true
		s.items[t]++
	}
	if !has {
		return nil
	}
	p := s.place(s.n)
	if p == len(s.kept) {
		s.kept = append(s.kept, keptItem{vectors: make([]model.Vector, len(s.modalities))})
	}
	if p >= 0 {
		k := &s.kept[p]
		k.item = s.n
		for t, x := range ex.Vectors {
			switch {
			case !x.Present():
				k.vectors[t] = model.Vector{}
			default:
				k.vectors[t].Set(s.modalities[t], x)
			}
		}
	}
	s.n++
	return nil
}

// vectorsOf returns the vectors of modality t, and the items that they are of.
func vectorsOf(items [][]model.Vector, t int) (xs []model.Vector, of []int) {
	for i, vectors := range items {
		if vectors[t].Present() {
			xs, of = append(xs, vectors[t]), append(of, i)
		}
	}
	return xs, of
}

// featureMoments returns the moments of the features of vectors, which stay as they are.
func featureMoments(mod model.Modality, f *model.Features, xs []model.Vector) *model.Moments {
	m := model.NewMoments(mod)
	block := make([]model.Vector, parallel.Rows)
	for len(xs) > 0 {
		n := min(len(xs), parallel.Rows)
		for i, x := range xs[:n] {
			block[i].Set(mod, x)
			if f != nil {
				f.Apply(block[i].Value, block[i])
			}
		}
		m.Add(block[:n], parallel.Workers())
		xs = xs[n:]
	}
	m.Settle()
	return m
}

// rows returns a row for each item that has a modality of the group: the mean of its vectors of
// these modalities, each with its features and centred. of has the item of each row.
func (s *centredSample) rows(group []int) (rows dense.Matrix[float32], of []int) {
	for i, vectors := range s.items {
		if slices.ContainsFunc(group, func(t int) bool { return vectors[t].Present() }) {
			of = append(of, i)
		}
	}
	d := s.modalities[group[0]].Dim
	rows = dense.Of(len(of), d, make([]float32, len(of)*d))
	parallel.Chunks(parallel.Workers(), len(of), parallel.Rows, func(_, from, to int) {
		one := make([]float32, d)
		for r := from; r < to; r++ {
			row, n := rows.Data[r*d:(r+1)*d], 0
			for _, t := range group {
				x := s.items[of[r]][t]
				if !x.Present() {
					continue
				}
				boundedRow(s.maps[t], one, x)
				for j, v := range one {
					row[j] += v
				}
				n++
			}
			for j := range row {
				row[j] /= float32(n)
			}
		}
	})
	return rows, of
}
