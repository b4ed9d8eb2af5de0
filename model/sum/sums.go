package sum

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/aims"
	"github.com/fddhdb/fddhdb/model/internal/dense"
	"github.com/fddhdb/fddhdb/model/internal/parallel"
	"github.com/fddhdb/fddhdb/model/internal/random"
	"github.com/fddhdb/fddhdb/model/internal/wire"
	"gonum.org/v1/gonum/floats"
)

// What the passes of a training sum up. Each kind of sums here is of one pass over the items; tree.go
// says in which order they are added up, and pass.go how they travel.

// MomentSums are the moments of each modality, of the vectors as they are or of their features.
type MomentSums struct {
	Of []*model.Moments
	// by modality; nil: as they are. Moments of raw ones are left out, as they are known.
	features []*model.Features
}

func newMomentSums(modalities []model.Modality, prepared []*model.Features) *MomentSums {
	s := &MomentSums{features: prepared}
	for _, m := range modalities {
		s.Of = append(s.Of, model.NewMoments(m))
	}
	return s
}

func (s *MomentSums) add(b *Block) error {
	for t, m := range s.Of {
		if s.features != nil {
			if s.features[t].Kind == model.FeaturesRaw {
				continue
			}
			s.features[t].ApplyAll(b.X[t])
		}
		m.Add(b.X[t], parallel.Workers())
	}
	return nil
}

func (s *MomentSums) merge(o Sums) {
	for t, m := range s.Of {
		m.Merge(o.(*MomentSums).Of[t])
	}
}

func (s *MomentSums) reset() {
	for _, m := range s.Of {
		m.Reset()
	}
}

func (s *MomentSums) appendTo(w *wire.Writer) {
	for _, m := range s.Of {
		m.AppendTo(w)
	}
}

func (s *MomentSums) readFrom(r *wire.Reader) {
	for _, m := range s.Of {
		m.ReadFrom(r)
	}
}

// A Wanted is a copy of a vector that the driver of a training has asked for.
type Wanted struct {
	Item   uint32
	Labels []uint32     // of the item
	Vector model.Vector // in the form of the modality
}

// WantedSums are vectors of given items. They are no sums; they go along with them.
type WantedSums struct {
	modalities []model.Modality
	wanted     [][]uint32 // by modality: items, ascending
	Found      [][]Wanted // by modality: in the order of items
}

func newWantedSums(modalities []model.Modality, wanted [][]uint32) *WantedSums {
	return &WantedSums{modalities: modalities, wanted: wanted, Found: make([][]Wanted, len(modalities))}
}

func (s *WantedSums) add(b *Block) error {
	for t, wanted := range s.wanted {
		next, _ := slices.BinarySearch(wanted, uint32(b.First))
		for r, i := range b.At[t] {
			item := uint32(b.First + i)
			for next < len(wanted) && wanted[next] < item {
				next++
			}
			if next == len(wanted) {
				break
			}
			if wanted[next] == item {
				v := Wanted{Item: item, Labels: slices.Clone(b.Labels[i])}
				v.Vector.Set(s.modalities[t], b.X[t][r])
				s.Found[t] = append(s.Found[t], v)
			}
		}
	}
	return nil
}

func (s *WantedSums) merge(o Sums) {
	for t, found := range o.(*WantedSums).Found {
		s.Found[t] = append(s.Found[t], found...)
	}
}

func (s *WantedSums) reset() { clear(s.Found) }

func (s *WantedSums) appendTo(w *wire.Writer) {
	for _, found := range s.Found {
		w.U32(uint32(len(found)))
		for _, v := range found {
			w.U32(v.Item)
			w.Numbers(v.Labels)
			if v.Vector.IsSparse() {
				w.Numbers(v.Vector.Index)
			}
			w.F32s(v.Vector.Value)
		}
	}
}

func (s *WantedSums) readFrom(r *wire.Reader) {
	for t, mod := range s.modalities {
		s.Found[t] = nil
		for range r.Count("the number of vectors", 0, maxWanted) {
			v := Wanted{Item: r.U32("the item of a vector"), Labels: r.Numbers("labels", wire.MaxLabels)}
			if !mod.Sparse {
				v.Vector = model.Dense(r.F32s(mod.Dim, "a vector"))
			} else {
				index := r.Numbers("a vector", mod.Dim)
				v.Vector = model.Sparse(index, r.F32s(len(index), "a vector"))
			}
			if r.Err == nil && model.CheckVector(mod, v.Vector) != nil {
				r.Fail("a vector that does not fit modality %q", mod.Name)
			}
			if r.Err != nil {
				return
			}
			s.Found[t] = append(s.Found[t], v)
		}
	}
}

// ScanSums are what the first pass sums up where the driver does not see the items: their label
// sets, the moments, and the vectors of samples.
type ScanSums struct {
	Sets    *Sets
	Moments *MomentSums
	Wanted  *WantedSums

	seed  uint64
	signs func(codec.Code) // from the first item of these sums on; nil before it
	code  codec.Code       // scratch memory
}

func (s *ScanSums) add(b *Block) error {
	if s.signs == nil {
		s.signs, s.code = random.SignsFrom(s.seed, s.Sets.Bits, b.First), codec.NewCode(s.Sets.Bits)
	}
	for i := range b.N {
		s.signs(s.code)
		s.Sets.Add(b.Labels[i], s.code)
	}
	return cmp.Or(s.Wanted.add(b), s.Moments.add(b))
}

func (s *ScanSums) merge(o Sums) {
	other := o.(*ScanSums)
	s.Sets.merge(other.Sets)
	s.Moments.merge(other.Moments)
	s.Wanted.merge(other.Wanted)
}

func (s *ScanSums) reset() {
	s.Sets = NewSets(s.Sets.Bits, s.Sets.Limit, false)
	s.Moments.reset()
	s.Wanted.reset()
	s.signs = nil
}

func (s *ScanSums) appendTo(w *wire.Writer) {
	s.Sets.appendTo(w)
	s.Moments.appendTo(w)
	s.Wanted.appendTo(w)
}

func (s *ScanSums) readFrom(r *wire.Reader) {
	s.Sets.readFrom(r)
	s.Moments.readFrom(r)
	s.Wanted.readFrom(r)
}

// StatisticsSums are the statistics of a model.
type StatisticsSums struct {
	m     *model.Model
	Tally *model.Tally
	code  func(item int) codec.Code // the code of an item; nil: that of its labels
}

func (s *StatisticsSums) add(b *Block) error {
	for t := range b.At {
		rows := b.At[t]
		labels, codes := make([][]uint32, len(rows)), make([]codec.Code, 0, len(rows))
		for r, i := range rows {
			labels[r] = b.Labels[i]
			if s.code != nil {
				codes = append(codes, s.code(b.First+i))
			}
		}
		s.Tally.Add(t, b.Phi[t], labels, codes)
	}
	return nil
}

// merge adds the sums over other items. They are of the same pass, so they fit.
func (s *StatisticsSums) merge(o Sums) {
	if err := s.Tally.Statistics.Merge(o.(*StatisticsSums).Tally.Statistics); err != nil {
		panic(err)
	}
}

func (s *StatisticsSums) reset() { s.Tally.Reset() }

func (s *StatisticsSums) appendTo(w *wire.Writer) {
	b, _ := s.Tally.Statistics.MarshalBinary() // the error is always nil
	w.B = append(w.B, b...)
}

func (s *StatisticsSums) readFrom(r *wire.Reader) {
	b := r.Rest()
	if r.Err != nil {
		return
	}
	stats, err := model.UnmarshalStatistics(b)
	switch {
	case err != nil:
		r.Err = err
	case s.m.CheckStatistics(stats) != nil:
		r.Fail("statistics of another model")
	default:
		s.Tally.Statistics = stats
	}
}

// Sets collects label sets, and the product H0 Y' of the random start with them,
// label by label. The labels, and so the columns, are known only at the end.
type Sets struct {
	Bits   int
	Limit  int                  // largest number of labels
	keep   bool                 // keep the set of each item
	Items  int                  // items
	index  map[string]uint32    // labels as bytes -> number of the set
	Keys   [][]uint32           // labels of each set
	Counts []int                // items of each set
	Of     []uint32             // set of each item, if they are kept: 4 bytes an item
	Codes  map[uint32][]float64 // by label: the sum of the codes of its items
	key    []byte               // scratch memory
}

// NewSets returns a builder of the sets of no items, for codes of so many bits. keep says that
// it keeps the set of each item.
func NewSets(bits, limit int, keep bool) *Sets {
	return &Sets{Bits: bits, Limit: limit, keep: keep, index: map[string]uint32{},
		Codes: map[uint32][]float64{}}
}

// Add takes the labels and the starting code of the next item.
func (s *Sets) Add(labels []uint32, code []uint64) {
	// H0 Y' has, for each label, the sum of the random codes of the items that carry it. So
	// H0, a code an item, need not be kept.
	for _, l := range labels {
		sum, ok := s.Codes[l]
		if !ok {
			if len(s.Codes) < s.Limit { // above the limit finish refuses: only count
				sum = make([]float64, s.Bits)
			}
			s.Codes[l] = sum
		}
		if sum != nil {
			aims.AddSigns(sum, code, 1)
		}
	}
	set := s.Set(labels)
	s.Counts[set]++
	s.Items++
	if s.keep {
		s.Of = append(s.Of, set)
	}
}

// Set returns the number of a set, which it adds if it is new.
func (s *Sets) Set(labels []uint32) uint32 {
	s.key = s.key[:0]
	for _, l := range labels {
		s.key = binary.LittleEndian.AppendUint32(s.key, l)
	}
	set, ok := s.index[string(s.key)]
	if !ok {
		set = uint32(len(s.Keys))
		s.index[string(s.key)] = set
		s.Keys = append(s.Keys, slices.Clone(labels))
		s.Counts = append(s.Counts, 0)
	}
	return set
}

// AllLabels returns the labels of all sets, ascending.
func (s *Sets) AllLabels() []uint32 { return slices.Sorted(maps.Keys(s.Codes)) }

// merge adds the items of o, which come after those of s.
func (s *Sets) merge(o *Sets) {
	for set, labels := range o.Keys {
		mine := s.Set(labels)
		s.Counts[mine] += o.Counts[set]
	}
	for l, sum := range o.Codes {
		mine, ok := s.Codes[l]
		switch {
		case !ok && len(s.Codes) < s.Limit:
			s.Codes[l] = slices.Clone(sum)
		case !ok:
			s.Codes[l] = nil
		case mine != nil && sum != nil:
			floats.Add(mine, sum) // exact: they are counts
		}
	}
	s.Items += o.Items
}

func (s *Sets) appendTo(w *wire.Writer) {
	w.U64(uint64(s.Items))
	w.U32(uint32(len(s.Keys)))
	for set, labels := range s.Keys {
		w.Numbers(labels)
		w.U64(uint64(s.Counts[set]))
	}
	w.U32(uint32(len(s.Codes)))
	for _, l := range s.AllLabels() {
		w.U32(l)
		if sum := s.Codes[l]; sum == nil {
			w.U8(0)
		} else {
			w.U8(1)
			w.F64s(sum...)
		}
	}
}

func (s *Sets) readFrom(r *wire.Reader) {
	*s = *NewSets(s.Bits, s.Limit, false)
	s.Items = r.Number("the number of items")
	for range r.U32("the number of label sets") {
		labels := r.Numbers("a label set", wire.MaxLabels)
		count := r.Number("the items of a label set")
		if r.Err == nil && (len(labels) == 0 || !aims.Ascend(labels)) {
			r.Fail("a label set that does not ascend")
		}
		if r.Err != nil {
			return
		}
		s.Counts[s.Set(labels)] += count
	}
	for range r.U32("the number of labels") {
		l := r.U32("a label")
		var sum []float64
		if r.U8("whether a label has a sum") != 0 {
			sum = r.F64s(s.Bits, "the codes of a label")
		}
		if r.Err != nil {
			return
		}
		s.Codes[l] = sum
	}
}

// MaxEmbeddingDims bounds r, and so the time of the decompositions.
const MaxEmbeddingDims = 512

// embeddingWidth is the least number of dimensions of a sketch.
const embeddingWidth = 256

// Sketches sum up the features of the items of each label. A sketch is a random
// projection: with so many dimensions it keeps the distances of means well enough.
type Sketches struct {
	maps    []*model.Map             // by modality
	labels  []uint32                 // ascending
	Width   int                      // dimensions of a sketch
	Workers int                      // goroutines
	random  []*dense.Packed[float64] // by modality: width x k
	Sums    [][]float64              // by modality: c x width
	Counts  [][]float64              // by modality and label: number of items
	Total   [][]float64              // by modality: sum over all items
	Items   []float64                // by modality: number of items
	z       dense.Matrix[float64]    // scratch memory of add
	columns []int32                  // likewise
}

// sketchWidth returns the dimensions of a sketch for codes of so many bits.
func sketchWidth(bits int) int { return max(embeddingWidth, 2*min(bits, MaxEmbeddingDims)) }

// sketchDirections returns the random directions of sketches, by modality. They come from a stream of
// their own, so other choices do not depend on them.
func sketchDirections(maps []*model.Map, bits int, seed uint64) (packed []*dense.Packed[float64]) {
	width := sketchWidth(bits)
	rng := rand.New(rand.NewPCG(seed, random.Sketch))
	for _, f := range maps {
		random := dense.Of(width, f.Size(), make([]float64, width*f.Size()))
		for i := range random.Data {
			random.Data[i] = rng.NormFloat64()
		}
		packed = append(packed, dense.Pack(random))
	}
	return packed
}

// newSketches returns the sketches of no items, for the maps and the labels of a model.
func newSketches(m *model.Model, random []*dense.Packed[float64]) *Sketches {
	c, maps := len(m.Labels()), m.Maps()
	s := &Sketches{maps: maps, labels: m.Labels(), Width: sketchWidth(m.Bits()), Workers: parallel.Workers(),
		random: random}
	for range maps {
		s.Sums = append(s.Sums, make([]float64, c*s.Width))
		s.Counts = append(s.Counts, make([]float64, c))
		s.Total = append(s.Total, make([]float64, s.Width))
	}
	s.Items = make([]float64, len(maps))
	s.z = dense.Of(BlockItems, s.Width, make([]float64, BlockItems*s.Width))
	return s
}

// add projects the features of a block to random directions, and adds each item to its
// labels and to the total of each modality.
func (s *Sketches) add(b *Block) error {
	for t, f := range s.maps {
		rows := b.Rows(t)
		phi := dense.Of(rows, f.Size(), b.Phi[t])
		parallel.Chunks(s.Workers, rows, parallel.Rows, func(_, from, to int) {
			dense.MulNT(s.z.Slice(from, to), phi.Slice(from, to), s.random[t])
		})
		for r, i := range b.At[t] {
			z := s.z.Data[r*s.Width : (r+1)*s.Width]
			floats.Add(s.Total[t], z)
			s.columns = aims.Known(s.columns[:0], s.labels, b.Labels[i])
			for _, l := range s.columns {
				floats.Add(s.Sums[t][int(l)*s.Width:(int(l)+1)*s.Width], z)
				s.Counts[t][l]++
			}
		}
		s.Items[t] += float64(rows)
	}
	return nil
}

func (s *Sketches) merge(o Sums) {
	other := o.(*Sketches)
	for t := range s.Sums {
		floats.Add(s.Sums[t], other.Sums[t])
		floats.Add(s.Counts[t], other.Counts[t])
		floats.Add(s.Total[t], other.Total[t])
	}
	floats.Add(s.Items, other.Items)
}

func (s *Sketches) reset() {
	for t := range s.Sums {
		clear(s.Sums[t])
		clear(s.Counts[t])
		clear(s.Total[t])
	}
	clear(s.Items)
}

func (s *Sketches) appendTo(w *wire.Writer) {
	for t := range s.Sums {
		w.F64s(s.Sums[t]...)
		w.F64s(s.Counts[t]...)
		w.F64s(s.Total[t]...)
	}
	w.F64s(s.Items...)
}

func (s *Sketches) readFrom(r *wire.Reader) {
	for t := range s.Sums {
		s.Sums[t] = r.F64s(len(s.Sums[t]), "sketches")
		s.Counts[t] = r.F64s(len(s.Counts[t]), "the items of labels")
		s.Total[t] = r.F64s(len(s.Total[t]), "the sketch of all items")
	}
	s.Items = r.F64s(len(s.Items), "the number of items")
}
