package dbtest

import (
	"cmp"
	"fmt"
	"iter"
	"math/rand/v2"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// Pairs describes items of several modalities that share nothing but their labels, as a
// picture and its caption do: each label has a centre in each modality, and a vector is
// the sum of the centres of its labels plus Gaussian noise. Training finds them nearly
// perfectly where there is little noise. Zero fields mean the defaults given here; equal
// Pairs give equal items, on other processors but for rounding. Safe for concurrent use.
type Pairs struct {
	Modalities    []db.Modality // "image" of 16 dimensions and "text" of 8; of sparse ones about half of the numbers are 0
	Labels        int           // different labels, "label 0" and so on; 4
	LabelsPerItem int           // at most that many, at least one; 1
	Noise         float64       // standard deviation, that of the centres being 1; 0.3
	Missing       float64       // chance that an item lacks a modality; it keeps at least one
	Unlabelled    float64       // chance that an item comes without its labels
	Seed          uint64
}

func (p Pairs) modalities() []db.Modality {
	if p.Modalities != nil {
		return p.Modalities
	}
	return []db.Modality{{Name: "image", Dim: 16}, {Name: "text", Dim: 8}}
}

// Schema returns that of a collection for the items: the modalities, and an indexed field
// "number", which is that of the item.
func (p Pairs) Schema() db.Schema {
	return db.Schema{Modalities: p.modalities(), Fields: []db.Field{{Name: "number", Type: db.Int, Indexed: true}}}
}

// Items yields the items from to to-1, item i under the key "item i". Item i is the same
// whichever are asked for, so that those behind the last one stored are queries that a
// collection does not know. The first ones have one label each, all different, and come
// with it. It makes one at a time, those before the first included: the time is that of to
// items, the memory that of one.
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

// setVector gives an item a vector in the form of its modality, if there is one.
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
