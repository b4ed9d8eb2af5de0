package synth

import (
	"math/rand/v2"
	"slices"
)

// Config says what Pairs makes. Zero fields mean the defaults given here.
type Config struct {
	Items         int     // 100
	Classes       int     // 4
	Dims          []int   // dimension of each modality; {8, 5}
	LabelsPerItem int     // most labels of an item, at least one; 1
	Noise         float64 // standard deviation of the noise, where centres have 1; 0.3
	Missing       float64 // chance that an item lacks a modality; it keeps at least one
	Seed          uint64
}

// Data holds generated items in memory.
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

// Slice returns the items from from to to-1. The rows alias the data.
func (d *Data) Slice(from, to int) *Data {
	s := &Data{Labels: d.Labels[from:to]}
	for _, rows := range d.Vectors {
		s.Vectors = append(s.Vectors, rows[from:to])
	}
	return s
}

// Pairs makes the data; equal configurations give equal data. Each of the first Classes
// items has one label, and these labels differ. So every class occurs if there are
// enough items.
func Pairs(cfg Config) *Data {
	s := NewStream(cfg)
	cfg = s.cfg
	data := &Data{Vectors: make([][][]float32, len(cfg.Dims)), Labels: make([][]uint32, cfg.Items)}
	for t := range data.Vectors {
		data.Vectors[t] = make([][]float32, cfg.Items)
	}
	for i := range cfg.Items {
		var vectors [][]float32
		vectors, data.Labels[i] = s.Next()
		for t, x := range vectors {
			data.Vectors[t][i] = x
		}
	}
	return data
}

// A Stream makes the items of Pairs one by one, without an end. Goroutines must not
// share it.
type Stream struct {
	cfg     Config
	rng     *rand.Rand
	centres [][]float64 // [modality][class]
	next    int
}

// NewStream returns a stream at its first item. It ignores Config.Items.
func NewStream(cfg Config) *Stream {
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
	s := &Stream{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0x73796e7468))} // "synth"
	s.centres = make([][]float64, len(cfg.Dims))
	for t, d := range cfg.Dims {
		s.centres[t] = make([]float64, cfg.Classes*d)
		for i := range s.centres[t] {
			s.centres[t][i] = s.rng.NormFloat64()
		}
	}
	return s
}

// Next returns the next item: its vectors by modality, nil for those it lacks, and its
// sorted, distinct labels.
func (s *Stream) Next() (vectors [][]float32, labels []uint32) {
	labels = drawLabels(s.rng, s.cfg, s.next)
	s.next++
	vectors = make([][]float32, len(s.cfg.Dims))
	keep := s.rng.IntN(len(s.cfg.Dims))
	for t, d := range s.cfg.Dims {
		row := make([]float32, d)
		for j := range row {
			x := s.cfg.Noise * s.rng.NormFloat64()
			for _, l := range labels {
				x += s.centres[t][int(l)*d+j]
			}
			row[j] = float32(x)
		}
		if t == keep || s.rng.Float64() >= s.cfg.Missing {
			vectors[t] = row
		}
	}
	return vectors, labels
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
