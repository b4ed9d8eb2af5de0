package sum

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/aims"
	"github.com/fddhdb/fddhdb/model/internal/dense"
	"github.com/fddhdb/fddhdb/model/internal/parallel"
	"github.com/fddhdb/fddhdb/model/internal/wire"
)

// passKind says what a pass sums up.
type passKind uint8

const (
	passScan       passKind = 1 + iota // label sets, moments, and vectors of samples
	passSample                         // vectors of a sample alone
	passMoments                        // moments of features
	passEmbedding                      // sketches of the features of labels
	passStatistics                     // statistics
)

var passStages = []string{"", "scan", "scan", "moments", "embedding", "statistics"}

// A Pass is one pass of a training over all items, as [TrainOver] hands it to an [Engine]: what is to
// be summed up, with all that it takes. It goes to other processes by MarshalBinary.
//
// The sum over items is made in a fixed tree; see [LeafItems]. Sum gives a node of it, and Merge a node
// from its children. An Engine is free to choose who makes which node, and when.
//
// A Pass is immutable and safe for concurrent use.
type Pass struct {
	kind       passKind
	modalities []model.Modality
	bits       int
	seed       uint64
	limit      int // passScan: labels whose codes are summed
	// passScan and passSample: by modality, items whose vectors are wanted, ascending
	wanted   [][]uint32
	features []*model.Features        // passMoments, by modality
	m        *model.Model             // passEmbedding and passStatistics: maps, labels and what they teach
	random   []*dense.Packed[float64] // passEmbedding: directions of sketches, by modality

	code func(item int) codec.Code // see StatisticsPass
}

// ScanPass returns the pass that learns label sets, of which the codes of so many labels are summed, and
// moments, and copies the vectors of wanted items, by modality and ascending.
func ScanPass(modalities []model.Modality, bits int, seed uint64, limit int, wanted [][]uint32) *Pass {
	return &Pass{kind: passScan, modalities: modalities, bits: bits, seed: seed, limit: limit, wanted: wanted}
}

// SamplePass returns the pass that copies the vectors of wanted items, by modality and ascending.
func SamplePass(modalities []model.Modality, seed uint64, wanted [][]uint32) *Pass {
	return &Pass{kind: passSample, modalities: modalities, seed: seed, wanted: wanted}
}

// MomentsPass returns the pass that sums up the moments of features; of vectors as they are if these are nil.
func MomentsPass(modalities []model.Modality, bits int, seed uint64, prepared []*model.Features) *Pass {
	return &Pass{kind: passMoments, modalities: modalities, bits: bits, seed: seed, features: prepared}
}

// EmbeddingPass returns the pass that sums up sketches of the features of the labels of m.
func EmbeddingPass(m *model.Model) *Pass {
	return &Pass{
		kind: passEmbedding, modalities: m.Modalities(), bits: m.Bits(), seed: m.Seed(), m: m,
		random: sketchDirections(m.Maps(), m.Bits(), m.Seed()),
	}
}

// StatisticsPass returns the pass that sums up the statistics of m. code gives the code of an item, for
// methods other than labels; it does not travel.
func StatisticsPass(m *model.Model, code func(item int) codec.Code) *Pass {
	return &Pass{kind: passStatistics, modalities: m.Modalities(), bits: m.Bits(), seed: m.Seed(), m: m,
		code: code}
}

// Stage returns what the progress of a training calls the pass: scan, moments, embedding or statistics.
func (p *Pass) Stage() string {
	if p.kind == passMoments && p.features == nil {
		return passStages[passScan]
	}
	return passStages[p.kind]
}

// Modalities returns the modalities of the training: their positions are those of Example.Vectors.
func (p *Pass) Modalities() []model.Modality { return slices.Clone(p.modalities) }

// Sum returns the sum over items that follow one another, in binary form. first is the number of the
// first one. Where they are those of a node of the tree, with first a multiple of LeafItems times a power
// of FanOut, and so many items, or fewer at the end of all items, TrainOver is Train to the last bit. Any
// other run of items may be summed up as well, as it lies somewhere: then floating-point numbers are
// added in another order, and statistics differ by some 1e-12 of themselves.
//
// It holds two blocks of 512 items and up to a few sums at a time: those of the statistics take 8 k (k + c)
// bytes for a map of k features, with c labels, or q bits if labels are embedded. It runs on GOMAXPROCS
// goroutines. The errors are those of Train about an item.
func (p *Pass) Sum(ctx context.Context, first int,
	items iter.Seq2[model.Example, error]) (sum []byte, err error) {
	defer parallel.Guard(&err, "in the numerics")
	if first < 0 || first > math.MaxInt32 {
		return nil, fmt.Errorf("%w: a sum that begins with item %d", model.ErrOption, first)
	}
	r := &Reader{
		Modalities: p.modalities, Source: sequence(items), first: first,
		unlabelled: p.kind == passSample,
	}
	s, err := r.Sum(ctx, p, nil)
	if err != nil {
		return nil, err
	}
	return p.marshal(s), nil
}

// Merge returns the sum of a node of the tree from those of its children, in their order. The children
// have bytes of any origin: an error wraps codec.ErrCorrupt, or is that of the sequence.
func (p *Pass) Merge(children iter.Seq2[[]byte, error]) (sum []byte, err error) {
	defer parallel.Guard(&err, "adding up sums")
	var all Sums
	n := 0
	for b, err := range children {
		if err != nil {
			return nil, err
		}
		s, err := p.unmarshal(b)
		if err != nil {
			return nil, err
		}
		if n++; n == 1 {
			all = s
			continue
		}
		all.merge(s)
	}
	if n == 0 {
		return nil, fmt.Errorf("%w: a sum of nothing", model.ErrOption)
	}
	return p.marshal(all), nil
}

// A sequence is a Source of items that are read once.
type sequence iter.Seq2[model.Example, error]

func (s sequence) Examples(context.Context) iter.Seq2[model.Example, error] {
	return iter.Seq2[model.Example, error](s)
}

// maps returns the maps whose features the pass needs, nil if it needs none.
func (p *Pass) maps() []*model.Map {
	if p.m == nil {
		return nil
	}
	return p.m.Maps()
}

// sums returns the sums of no items.
func (p *Pass) sums() Sums {
	switch p.kind {
	case passScan:
		return &ScanSums{
			Sets: NewSets(p.bits, p.limit, false), Moments: newMomentSums(p.modalities, nil),
			Wanted: newWantedSums(p.modalities, p.wanted), seed: p.seed,
		}
	case passSample:
		return newWantedSums(p.modalities, p.wanted)
	case passMoments:
		return newMomentSums(p.modalities, p.features)
	case passEmbedding:
		return newSketches(p.m, p.random)
	}
	return &StatisticsSums{m: p.m, Tally: model.NewTally(p.m), code: p.code}
}

// The body of a sum (magic "FDHP", version 0) is what AppendTo of its kind writes. It lives as long as
// a training, and is read by the release that wrote it.
const sumMagic = "FDHP"

// marshal returns sums in binary form.
func (p *Pass) marshal(s Sums) []byte {
	w := wire.NewWriter(sumMagic)
	s.appendTo(w)
	return w.Finish()
}

// unmarshal reads sums of this pass from bytes of any origin, and keeps none of them.
func (p *Pass) unmarshal(b []byte) (Sums, error) {
	r, err := wire.Open(b, "sum of a training", sumMagic)
	if err != nil {
		return nil, err
	}
	s := p.sums()
	if s.readFrom(r); r.Err != nil {
		return nil, r.Err
	}
	return s, r.Close()
}

// The body of a pass (magic "FDHQ", version 2: in older ones modalities would have no forms), with the
// numbers of marshal.go:
//
//	1         uint8 kind: 1 scan, 2 sample, 3 moments, 4 embedding, 5 statistics
//	8         uint64 seed
//	4         uint32 q: bits, 0 for sample
//	4         uint32 the most labels, for scan, else 0
//	          embedding and statistics only:
//	n         a model in its frame, to the end, whose projections are zeros
//	          all others:
//	4         uint32 T: modalities, and T times: name, dimension and form, as in a model
//	          scan and sample only, T times:
//	4+4n      uint32 n, and n numbers: items, ascending
//	          moments only, T times:
//	1         uint8 features, and their numbers, as in a model
const passMagic = "FDHQ"

// maxWanted bounds the vectors of a modality that a pass is asked for.
const maxWanted = 1 << 17

// MarshalBinary returns the pass in binary form, for UnmarshalPass of the same release. The error is always
// nil.
func (p *Pass) MarshalBinary() ([]byte, error) {
	w := wire.NewWriter(passMagic)
	w.U8(uint8(p.kind))
	w.U64(p.seed)
	w.U32(uint32(p.bits))
	w.U32(uint32(p.limit))
	if p.m != nil {
		parts := p.m.Parts()
		parts.Projections, parts.Mean = nil, nil // the statistics have yet to give them
		bare, err := model.New(parts)
		if err != nil {
			return nil, err
		}
		b, _ := bare.MarshalBinary() // the error is always nil
		w.B = append(w.B, b...)
		return w.Finish(), nil
	}
	w.U32(uint32(len(p.modalities)))
	for t, m := range p.modalities {
		model.WriteModality(w, m)
		switch p.kind {
		case passScan, passSample:
			w.Numbers(p.wanted[t])
		case passMoments:
			f := p.features[t]
			w.U8(uint8(f.Kind))
			w.F64s(f.Shift...)
			w.F64s(f.Scale...)
		}
	}
	return w.Finish(), nil
}

// UnmarshalPass reads a pass from bytes of any origin, and keeps none of them. Errors are as those of
// Unmarshal.
func UnmarshalPass(b []byte) (*Pass, error) {
	r, err := wire.Open(b, "pass of a training", passMagic)
	if err != nil {
		return nil, err
	}
	p := &Pass{kind: passKind(r.U8("kind")), seed: r.U64("seed")}
	if r.Err == nil && (p.kind < passScan || p.kind > passStatistics) {
		r.Fail("a pass of kind %d", p.kind)
	}
	p.bits = r.Count("the number of bits", 0, codec.MaxBits)
	p.limit = r.Count("the most labels", 0, wire.MaxLabels)
	if r.Err == nil && p.kind != passSample && codec.CheckBits(p.bits) != nil {
		r.Fail("%d bits", p.bits)
	}
	if r.Err == nil && p.kind >= passEmbedding {
		return readPassModel(r, p)
	}
	names := map[string]bool{}
	for range r.Count("the number of modalities", 1, wire.MaxModalities) {
		mod := model.ReadModality(r, names)
		if r.Err != nil {
			return nil, r.Err
		}
		p.modalities = append(p.modalities, mod)
		if p.kind == passMoments {
			p.features = append(p.features, model.ReadFeatures(r, mod, model.FeatureKind(r.U8("features"))))
			continue
		}
		wanted := r.Numbers("wanted items", maxWanted)
		if r.Err == nil && !aims.Ascend(wanted) {
			r.Fail("items that do not ascend")
		}
		p.wanted = append(p.wanted, wanted)
	}
	if err := r.Close(); err != nil {
		return nil, err
	}
	return p, nil
}

// passModel reads the end of a pass that has a model.
func readPassModel(r *wire.Reader, p *Pass) (*Pass, error) {
	b := r.Rest()
	if r.Err != nil {
		return nil, r.Err
	}
	m, err := model.Unmarshal(b)
	switch {
	case err != nil:
		return nil, err
	case m.LabelFree() || m.Method() != model.MethodLabels || m.Bits() != p.bits:
		return nil, wire.Corrupt("a pass with a model of method %v and %d bits", m.Method(), m.Bits())
	}
	p.m, p.modalities = m, m.Modalities()
	if p.kind == passEmbedding {
		p.random = sketchDirections(m.Maps(), p.bits, p.seed)
	}
	return p, nil
}

// An Engine has the items of a training in many places, and does the passes over them there.
// TrainOver calls its methods from one goroutine.
type Engine interface {
	// Survey says which items there are.
	Survey(ctx context.Context) (*Survey, error)

	// Sum returns the sum of a pass over all items, in binary form: the root of the tree that LeafItems
	// describes, from Pass.Sum and Pass.Merge.
	Sum(ctx context.Context, p *Pass) ([]byte, error)
}

// A Survey describes the items of a training. They have numbers from 0 on, those of a Source in the order of
// Examples.
type Survey struct {
	Items    int  // at most 2^31-1
	Labelled bool // they have labels, each of them; else labels do not matter

	// Has yields the items that have a vector of modality t, ascending. It is called a few times.
	Has func(t int) iter.Seq[int]
}
