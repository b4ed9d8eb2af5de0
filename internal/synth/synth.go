// Package synth makes labelled, paired, multi-modal data for the tests of every
// other package: small, seeded, and the same on every machine.
//
// Each class has one centre in each modality. An item draws its labels, and
// each of its vectors is the sum of its labels' centres plus Gaussian noise, so
// the modalities share nothing but the labels, as a picture and its caption do.
// With little noise the classes separate and retrieval is nearly perfect; with
// much it fails gracefully.
package synth

import (
	"math/rand/v2"
	"slices"
)

// Config says what Pairs makes. Zero fields mean the defaults given here.
type Config struct {
	Items         int     // 100
	Classes       int     // 4
	Dims          []int   // the dimension of each modality; {8, 5}
	LabelsPerItem int     // at most that many, at least one; 1
	Noise         float64 // standard deviation of the noise, centres have 1; 0.3
	Missing       float64 // chance that an item lacks a modality; it keeps at least one
	Seed          uint64
}

// Data is what Pairs makes.
type Data struct {
	// Vectors holds a row for each modality and item: Vectors[t][i] is nil
	// where item i lacks modality t.
	Vectors [][][]float32
	// Labels holds the sorted, distinct labels of each item, 0 to Classes-1.
	Labels [][]uint32
}

// Items returns the number of items.
func (d *Data) Items() int { return len(d.Labels) }

// Item returns the vectors of item i by modality. The rows alias the data.
func (d *Data) Item(i int) [][]float32 {
	v := make([][]float32, len(d.Vectors))
	for t := range v {
		v[t] = d.Vectors[t][i]
	}
	return v
}

// Slice returns the items from to to-1; the rows alias the data.
func (d *Data) Slice(from, to int) *Data {
	s := &Data{Labels: d.Labels[from:to]}
	for _, rows := range d.Vectors {
		s.Vectors = append(s.Vectors, rows[from:to])
	}
	return s
}

// Pairs makes the data; equal configurations give equal data. The first
// Classes items have one label each, all different, so that every class occurs
// when there are enough items.
func Pairs(cfg Config) *Data {
	if cfg.Items == 0 {
		cfg.Items = 100
	}
	if cfg.Classes == 0 {
		cfg.Classes = 4
	}
	if cfg.Dims == nil {
		cfg.Dims = []int{8, 5}
	}
	if cfg.LabelsPerItem == 0 {
		cfg.LabelsPerItem = 1
	}
	if cfg.Noise == 0 {
		cfg.Noise = 0.3
	}
	rng := rand.New(rand.NewPCG(cfg.Seed, 0x73796e7468)) // "synth"

	centres := make([][]float64, len(cfg.Dims))
	for t, d := range cfg.Dims {
		centres[t] = make([]float64, cfg.Classes*d)
		for i := range centres[t] {
			centres[t][i] = rng.NormFloat64()
		}
	}
	data := &Data{Vectors: make([][][]float32, len(cfg.Dims)), Labels: make([][]uint32, cfg.Items)}
	for t := range data.Vectors {
		data.Vectors[t] = make([][]float32, cfg.Items)
	}
	for i := range cfg.Items {
		data.Labels[i] = drawLabels(rng, cfg, i)
		keep := rng.IntN(len(cfg.Dims))
		for t, d := range cfg.Dims {
			row := make([]float32, d)
			for j := range row {
				x := cfg.Noise * rng.NormFloat64()
				for _, l := range data.Labels[i] {
					x += centres[t][int(l)*d+j]
				}
				row[j] = float32(x)
			}
			if t == keep || rng.Float64() >= cfg.Missing {
				data.Vectors[t][i] = row
			}
		}
	}
	return data
}

func drawLabels(rng *rand.Rand, cfg Config, item int) []uint32 {
	if item < cfg.Classes {
		return []uint32{uint32(item)}
	}
	labels := make([]uint32, 1+rng.IntN(cfg.LabelsPerItem))
	for i := range labels {
		labels[i] = uint32(rng.IntN(cfg.Classes))
	}
	slices.Sort(labels)
	return slices.Compact(labels)
}
