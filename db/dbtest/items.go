package dbtest

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// Pairs describes items of several modalities that share only their labels, like a
// picture and its caption. Each label has a centre in each modality. A vector is the
// sum of the centres of its labels, plus Gaussian noise. With little noise training
// finds them nearly perfectly. Zero fields mean the defaults given here. Equal Pairs
// give equal items, on other processors up to rounding. It is safe for concurrent use.
type Pairs struct {
	// default: "image" of 16 dimensions and "text" of 8; in sparse ones about half of the numbers are 0
	Modalities    []db.Modality
	Labels        int     // number of labels, "label 0" and so on; default 4
	LabelsPerItem int     // an item has 1 to that many; default 1
	Noise         float64 // standard deviation; that of the centres is 1; default 0.3
	Missing       float64 // probability that an item lacks a modality; it keeps at least one
	Unlabelled    float64 // probability that an item comes without its labels
	Seed          uint64
}

func (p Pairs) modalities() []db.Modality {
	if p.Modalities != nil {
		return p.Modalities
	}
	return []db.Modality{{Name: "image", Dim: 16}, {Name: "text", Dim: 8}}
}

// Schema returns the schema of a collection for the items: the modalities, and an
// indexed field "number" with the number of the item.
func (p Pairs) Schema() db.Schema {
	return db.Schema{Modalities: p.modalities(),
		Fields: []db.Field{{Name: "number", Type: db.Int, Indexed: true}}}
}

// Items yields the items from to to-1: item i with the key "item i". Item i does not
// depend on from and to, so items after the last stored one are queries that a
// collection does not know. The first items have one label each, all different, and
// keep it. Items makes one item at a time, also those before from: it takes the time of
// to items and the memory of one.
func (p Pairs) Items(from, to int) iter.Seq[*db.Item] {
	return func(yield func(*db.Item) bool) {
		cfg := synth.Config{Classes: cmp.Or(p.Labels, 4), LabelsPerItem: p.LabelsPerItem, Noise: p.Noise,
			Missing: p.Missing, Seed: p.Seed}
		modalities := p.modalities()
		for _, m := range modalities {
			cfg.Dims = append(cfg.Dims, m.Dim)
		}
		stream := synth.NewStream(cfg)
		for i := range to {
			vectors, labels := stream.Next()
			if i < from {
				continue
			}
			it := &db.Item{Key: fmt.Sprint("item ", i), Fields: map[string]any{"number": int64(i)}}
			for t, m := range modalities {
				setVector(it, m, vectors[t])
			}
			if i < cfg.Classes || rand.New(rand.NewPCG(p.Seed, uint64(i))).Float64() >= p.Unlabelled {
				for _, l := range labels {
					it.Labels = append(it.Labels, fmt.Sprint("label ", l))
				}
			}
			if !yield(it) {
				return
			}
		}
	}
}

// setVector gives an item a vector in the form of its modality, unless x is nil.
func setVector(it *db.Item, m db.Modality, x []float32) {
	switch {
	case x == nil:
	case m.Sparse:
		var s db.Sparse
		for j, v := range x {
			if v > 0 {
				s.Index, s.Value = append(s.Index, uint32(j)), append(s.Value, v)
			}
		}
		if it.Sparse == nil {
			it.Sparse = map[string]db.Sparse{}
		}
		it.Sparse[m.Name] = s
	default:
		if it.Vectors == nil {
			it.Vectors = map[string][]float32{}
		}
		it.Vectors[m.Name] = x
	}
}

// Codes describes items of a codes-only collection. Their codes gather around centres,
// like perceptual hashes of pictures and of their copies. Zero fields mean the defaults
// given here. Equal Codes give equal items, on every machine. It is safe for concurrent
// use.
type Codes struct {
	Bits    int     // a multiple of 8 from 8 to 4096; default 64
	Centres int     // default 100
	Flip    float64 // probability that a bit of an item differs from its centre; default 0.05
	Seed    uint64
}

// Schema returns the schema of a collection for the items: the bits, and an indexed
// field "number" with the number of the item.
func (c Codes) Schema() db.Schema {
	return db.Schema{Bits: cmp.Or(c.Bits, 64),
		Fields: []db.Field{{Name: "number", Type: db.Int, Indexed: true}}}
}

// Items yields the items from to to-1: item i with the key "item i" and the label of
// its centre, "centre 0" and so on. Item i does not depend on from and to. It makes one
// item at a time, and none before from.
func (c Codes) Items(from, to int) iter.Seq[*db.Item] {
	return func(yield func(*db.Item) bool) {
		for i := from; i < to; i++ {
			if !yield(c.item(i)) {
				return
			}
		}
	}
}

func (c Codes) item(i int) *db.Item {
	own := rand.New(rand.NewPCG(c.Seed, uint64(i)))
	centre := own.Uint64N(uint64(cmp.Or(c.Centres, 100)))
	bits := rand.New(rand.NewPCG(^c.Seed, centre))
	code := make([]byte, cmp.Or(c.Bits, 64)/8)
	for j := range code {
		code[j] = byte(bits.Uint32())
		for b := range 8 {
			if own.Float64() < cmp.Or(c.Flip, .05) {
				code[j] ^= 1 << b
			}
		}
	}
	return &db.Item{
		Key: fmt.Sprint("item ", i), Code: code, Labels: []string{fmt.Sprint("centre ", centre)},
		Fields: map[string]any{"number": int64(i)}}
}

// Batches cuts items into slices of size items, the last one possibly shorter, as from
// a stream that arrives in parts. The slices belong to the receiver.
func Batches(items iter.Seq[*db.Item], size int) iter.Seq[[]*db.Item] {
	return func(yield func([]*db.Item) bool) {
		var some []*db.Item
		for it := range items {
			if some = append(some, it); len(some) >= size {
				if !yield(some) {
					return
				}
				some = nil
			}
		}
		if len(some) > 0 {
			yield(some)
		}
	}
}

// Load puts items into a collection of d, 10,000 in a commit. After an error the items
// of earlier commits are there.
func Load(ctx context.Context, d *db.DB, c *db.Collection, items iter.Seq[*db.Item]) error {
	for some := range Batches(items, 10_000) {
		b := d.NewBatch()
		for _, it := range some {
			if err := b.Put(c, it); err != nil {
				return err
			}
		}
		if err := b.Commit(ctx); err != nil {
			return err
		}
	}
	return nil
}
