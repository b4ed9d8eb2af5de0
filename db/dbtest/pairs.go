package dbtest

import (
	"cmp"
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
	Modalities    []db.Modality // default: "image" of 16 dimensions and "text" of 8; in sparse ones about half of the numbers are 0
	Labels        int           // number of labels, "label 0" and so on; default 4
	LabelsPerItem int           // an item has 1 to that many; default 1
	Noise         float64       // standard deviation; that of the centres is 1; default 0.3
	Missing       float64       // probability that an item lacks a modality; it keeps at least one
	Unlabelled    float64       // probability that an item comes without its labels
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
	return db.Schema{Modalities: p.modalities(), Fields: []db.Field{{Name: "number", Type: db.Int, Indexed: true}}}
}

// Items yields the items from to to-1: item i with the key "item i". Item i does not
// depend on from and to, so items after the last stored one are queries that a
// collection does not know. The first items have one label each, all different, and
// keep it. Items makes one item at a time, also those before from: it takes the time of
// to items and the memory of one.
func (p Pairs) Items(from, to int) iter.Seq[*db.Item] {
	return func(yield func(*db.Item) bool) {
		cfg := synth.Config{Classes: cmp.Or(p.Labels, 4), LabelsPerItem: p.LabelsPerItem, Noise: p.Noise, Missing: p.Missing, Seed: p.Seed}
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
