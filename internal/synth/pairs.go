package synth

import (
	"math"
	"math/bits"
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

// A stream is a sequence of random words: SplitMix64 (Steele, Lea and Flood, OOPSLA
// 2014). Its state is one word, so every item can have its own stream for every
// purpose. Codes draw integers, and use only floating-point operations that are exact
// or rounded once, so that all machines make the same codes. NUSWide also draws
// floating-point numbers; these are the same on one architecture.
type stream uint64

const golden = 0x9e3779b97f4a7c15

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (s *stream) next() uint64 {
	*s += golden
	return mix(uint64(*s))
}

// split returns the i-th stream for a purpose.
func (s stream) split(purpose, i uint64) stream {
	return stream(mix(mix(uint64(s)+purpose*golden) ^ i*golden))
}

// below returns a number from 0 to n-1.
func (s *stream) below(n int) int {
	hi, _ := bits.Mul64(s.next(), uint64(n))
	return int(hi)
}

// uniform returns a number in [0, 1).
func (s *stream) uniform() float64 { return float64(s.next()>>11) / (1 << 53) }

// normal returns one of 4,096 quantiles of the normal distribution, drawn at random.
func (s *stream) normal() float64 { return normals[s.next()>>52] }

// normals are quantiles of the normal distribution, deviations quantiles of the
// exponential distribution.
var normals, deviations = func() (normals [4096]float64, deviations [4096]float32) {
	for i := range normals {
		u := (float64(i) + .5) / 4096
		normals[i] = math.Sqrt2 * math.Erfinv(2*u-1)
		deviations[i] = float32(-math.Log(u))
	}
	return normals, deviations
}()

// A chance is a probability in 65,536ths.
type chance uint16

const (
	threePercent chance = 1966
	fivePercent  chance = 3277
	oneFifth     chance = 13107
)

// happens returns true with probability p.
func (s *stream) happens(p chance) bool { return s.next()>>48 < uint64(p) }

// coins returns 64 bits, each of which is independently 1 with probability p. Write p
// in binary as .b1 b2 ... From the last digit to the first, a bit is ORed with a fair
// coin if the digit is 1, and ANDed with one if it is 0. Then it is 1 with probability
// p.
func (s *stream) coins(p chance) uint64 {
	var w uint64
	for i := bits.TrailingZeros16(uint16(p)); i < 16; i++ {
		if p>>i&1 == 1 {
			w |= s.next()
		} else {
			w &= s.next()
		}
	}
	return w
}

// byteSum returns the sum of eight uniform numbers from -127.5 to 127.5. It is close to
// a Gaussian with mean 0 and standard deviation 209, and never exceeds 1,020 in size.
func (s *stream) byteSum() int32 {
	const odd = 0x00ff00ff00ff00ff
	w := s.next()
	sums := w&odd + w>>8&odd                                   // four sums of two bytes each
	return int32(sums*0x0001000100010001>>48) - int32(8*255/2) // the product adds them up in its top 16 bits
}
