package synth

import (
	"math"
	"math/rand/v2"
	"slices"
)

// ManyLabels describes data with many labels. Labels come in families, and those of one
// family look alike. Labels and families are drawn independently of the items. Zero
// fields mean the defaults given here.
type ManyLabels struct {
	Items, Labels int
	Dims          []int   // dimension of each modality; {48, 24}
	PerItem       int     // most labels of an item, mostly of one family; an item has one to so many; 1
	Zipf          bool    // label l has a share of 1/(l+1) instead of an equal one
	Noise         float64 // standard deviation of the noise, where the labels have 1; 1.4
	Seed          uint64
}

// familySize is the number of labels in a family.
const familySize = 12

// Make makes the data; equal descriptions give equal data. Every label is the first
// label of one of the first items, if there are enough items.
func (cfg ManyLabels) Make() *Data {
	if cfg.Dims == nil {
		cfg.Dims = []int{48, 24}
	}
	if cfg.Noise == 0 {
		cfg.Noise = 1.4
	}
	cfg.PerItem = max(cfg.PerItem, 1)
	rng := rand.New(rand.NewPCG(cfg.Seed, 0x6d616e79)) // "many"
	families := max(1, (cfg.Labels+familySize/2)/familySize)
	centres := make([][]float64, len(cfg.Dims))
	for t, d := range cfg.Dims {
		family := make([]float64, families*d)
		for i := range family {
			family[i] = rng.NormFloat64()
		}
		centres[t] = make([]float64, cfg.Labels*d)
		for i := range centres[t] {
			l, j := i/d, i%d
			centres[t][i] = math.Sqrt2 / 2 * (family[l%families*d+j] + rng.NormFloat64())
		}
	}
	total, upTo := 0.0, make([]float64, cfg.Labels)
	for l := range upTo {
		share := 1.0
		if cfg.Zipf {
			share = 1 / float64(l+1)
		}
		total += share
		upTo[l] = total
	}
	draw := func() int {
		l, _ := slices.BinarySearch(upTo, rng.Float64()*total)
		return min(l, cfg.Labels-1)
	}
	data := &Data{Vectors: make([][][]float32, len(cfg.Dims))}
	for i := range cfg.Items {
		first := draw()
		if i < cfg.Labels {
			first = i
		}
		labels := []uint32{uint32(first)}
		for range rng.IntN(cfg.PerItem) {
			l := draw()
			if rng.Float64() < .8 { // a label of the same family
				l = first%families + families*rng.IntN((cfg.Labels-1-first%families)/families+1)
			}
			labels = append(labels, uint32(l))
		}
		slices.Sort(labels)
		labels = slices.Compact(labels)
		data.Labels = append(data.Labels, labels)
		for t, d := range cfg.Dims {
			x := make([]float32, d)
			for j := range x {
				v := cfg.Noise * rng.NormFloat64()
				for _, l := range labels {
					v += centres[t][int(l)*d+j] / math.Sqrt(float64(len(labels)))
				}
				x[j] = float32(v)
			}
			data.Vectors[t] = append(data.Vectors[t], x)
		}
	}
	return data
}
