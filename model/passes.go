package model

import (
	"cmp"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// What the passes of a training sum up. Each kind of sums here is of one pass over the items; tree.go
// says in which order they are added up, and pass.go how they travel.

// momentSums are the moments of each modality, of the vectors as they are or of their features.
type momentSums struct {
	of       []*moments
	features []*features // by modality; nil: as they are. Moments of raw ones are left out, as they are known.
}

func newMomentSums(modalities []Modality, prepared []*features) *momentSums {
	s := &momentSums{features: prepared}
	for _, m := range modalities {
		s.of = append(s.of, newMoments(m))
	}
	return s
}

func (s *momentSums) add(b *block) error {
	for t, m := range s.of {
		if s.features != nil {
			if s.features[t].kind == FeaturesRaw {
				continue
			}
			s.features[t].applyAll(b.x[t])
		}
		m.add(b.x[t], workerCount())
	}
	return nil
}

func (s *momentSums) merge(o sums) {
	for t, m := range s.of {
		m.merge(o.(*momentSums).of[t])
	}
}

func (s *momentSums) reset() {
	for _, m := range s.of {
		m.reset()
	}
}

func (s *momentSums) appendTo(w *wireWriter) {
	for _, m := range s.of {
		m.appendTo(w)
	}
}

func (s *momentSums) readFrom(r *wireReader) {
	for _, m := range s.of {
		m.readFrom(r)
	}
}

// A wantedVector is a copy of a vector that the driver of a training has asked for.
type wantedVector struct {
	item   uint32
	labels []uint32 // of the item
	x      Vector   // in the form of the modality
}

// wantedSums are vectors of given items. They are no sums; they go along with them.
type wantedSums struct {
	modalities []Modality
	wanted     [][]uint32       // by modality: items, ascending
	found      [][]wantedVector // by modality: in the order of items
}

func newWantedSums(modalities []Modality, wanted [][]uint32) *wantedSums {
	return &wantedSums{modalities: modalities, wanted: wanted, found: make([][]wantedVector, len(modalities))}
}

func (s *wantedSums) add(b *block) error {
	for t, wanted := range s.wanted {
		next, _ := slices.BinarySearch(wanted, uint32(b.first))
		for r, i := range b.at[t] {
			item := uint32(b.first + i)
			for next < len(wanted) && wanted[next] < item {
				next++
			}
			if next == len(wanted) {
				break
			}
			if wanted[next] == item {
				v := wantedVector{item: item, labels: slices.Clone(b.labels[i])}
				v.x.set(s.modalities[t], b.x[t][r])
				s.found[t] = append(s.found[t], v)
			}
		}
	}
	return nil
}

func (s *wantedSums) merge(o sums) {
	for t, found := range o.(*wantedSums).found {
		s.found[t] = append(s.found[t], found...)
	}
}

func (s *wantedSums) reset() { clear(s.found) }

func (s *wantedSums) appendTo(w *wireWriter) {
	for _, found := range s.found {
		w.u32(uint32(len(found)))
		for _, v := range found {
			w.u32(v.item)
			w.numbers(v.labels)
			if v.x.IsSparse() {
				w.numbers(v.x.Index)
			}
			w.f32s(v.x.Value)
		}
	}
}

func (s *wantedSums) readFrom(r *wireReader) {
	for t, mod := range s.modalities {
		s.found[t] = nil
		for range r.count("the number of vectors", 0, maxWanted) {
			v := wantedVector{item: r.u32("the item of a vector"), labels: r.numbers("labels", maxLabels)}
			if !mod.Sparse {
				v.x = Dense(r.f32s(mod.Dim, "a vector"))
			} else {
				index := r.numbers("a vector", mod.Dim)
				v.x = Sparse(index, r.f32s(len(index), "a vector"))
			}
			if r.err == nil && checkVector(mod, v.x) != nil {
				r.fail("a vector that does not fit modality %q", mod.Name)
			}
			if r.err != nil {
				return
			}
			s.found[t] = append(s.found[t], v)
		}
	}
}

// scanSums are what the first pass sums up where the driver does not see the items: their label
// sets, the moments, and the vectors of samples.
type scanSums struct {
	sets    *setBuilder
	moments *momentSums
	wanted  *wantedSums

	seed  uint64
	signs func(codec.Code) // from the first item of these sums on; nil before it
	code  codec.Code       // scratch memory
}

func (s *scanSums) add(b *block) error {
	if s.signs == nil {
		s.signs, s.code = signsFrom(s.seed, s.sets.bits, b.first), codec.NewCode(s.sets.bits)
	}
	for i := range b.n {
		s.signs(s.code)
		s.sets.add(b.labels[i], s.code)
	}
	return cmp.Or(s.wanted.add(b), s.moments.add(b))
}

func (s *scanSums) merge(o sums) {
	other := o.(*scanSums)
	s.sets.merge(other.sets)
	s.moments.merge(other.moments)
	s.wanted.merge(other.wanted)
}

func (s *scanSums) reset() {
	s.sets = newSetBuilder(s.sets.bits, s.sets.limit, false)
	s.moments.reset()
	s.wanted.reset()
	s.signs = nil
}

func (s *scanSums) appendTo(w *wireWriter) {
	s.sets.appendTo(w)
	s.moments.appendTo(w)
	s.wanted.appendTo(w)
}

func (s *scanSums) readFrom(r *wireReader) {
	s.sets.readFrom(r)
	s.moments.readFrom(r)
	s.wanted.readFrom(r)
}

// statisticsSums are the statistics of a model.
type statisticsSums struct {
	m     *Model
	stats *Statistics
	code  func(item int) codec.Code // the code of an item; nil: that of its labels

	room    teaching // scratch memory
	scratch codec.Code
	columns []int32
}

func newStatisticsSums(m *Model, code func(item int) codec.Code) *statisticsSums {
	s := &statisticsSums{m: m, stats: NewStatistics(m), code: code, scratch: codec.NewCode(m.bits)}
	s.room = teaching{make([]float32, blockItems*s.stats.labels), make([]float32, blockItems*m.bits)}
	return s
}

func (s *statisticsSums) add(b *block) error {
	q, c := s.m.bits, s.stats.labels
	for t, f := range s.m.maps {
		for r, i := range b.at[t] {
			row := teaching{s.room.y[r*c : (r+1)*c], s.room.h[r*q : (r+1)*q]}
			s.columns = appendKnown(s.columns[:0], s.m.labels, b.labels[i])
			if s.m.aim == AimLabels {
				clear(row.y)
				s.m.teachLabels(row, s.columns)
				continue
			}
			code := s.scratch
			if s.code != nil {
				code = s.code(b.first + i)
			} else {
				s.m.codeOf(code, s.columns)
			}
			signs(row.h, code)
			if w := float32(s.m.weightOf(s.columns)); w != 1 {
				for j := range row.h {
					row.h[j] *= w
				}
			}
		}
		rows := b.rows(t)
		s.stats.add(t, dense.Of(rows, f.size(), b.phi[t]), teaching{s.room.y[:rows*c], s.room.h[:rows*q]}, workerCount())
	}
	return nil
}

func (s *statisticsSums) merge(o sums) {
	for t := range s.stats.parts {
		s.stats.parts[t].merge(&o.(*statisticsSums).stats.parts[t], s.stats.bits, 1)
	}
}

func (s *statisticsSums) reset() {
	for t := range s.stats.parts {
		p := &s.stats.parts[t]
		clear(p.a)
		clear(p.b)
		clear(p.pairs)
		p.n, p.square = 0, 0
	}
}

func (s *statisticsSums) appendTo(w *wireWriter) {
	b, _ := s.stats.MarshalBinary() // the error is always nil
	w.b = append(w.b, b...)
}

func (s *statisticsSums) readFrom(r *wireReader) {
	b := r.rest()
	if r.err != nil {
		return
	}
	stats, err := UnmarshalStatistics(b)
	switch {
	case err != nil:
		r.err = err
	case !s.stats.sameShape(stats):
		r.fail("statistics of another model")
	default:
		s.stats = stats
	}
}

// merge adds the items of o, which come after those of s.
func (s *setBuilder) merge(o *setBuilder) {
	for set, labels := range o.keys {
		mine := s.set(labels)
		s.counts[mine] += o.counts[set]
	}
	for l, sum := range o.hy {
		mine, ok := s.hy[l]
		switch {
		case !ok && len(s.hy) < s.limit:
			s.hy[l] = slices.Clone(sum)
		case !ok:
			s.hy[l] = nil
		case mine != nil && sum != nil:
			floats.Add(mine, sum) // exact: they are counts
		}
	}
	s.n += o.n
}

func (s *setBuilder) appendTo(w *wireWriter) {
	w.u64(uint64(s.n))
	w.u32(uint32(len(s.keys)))
	for set, labels := range s.keys {
		w.numbers(labels)
		w.u64(uint64(s.counts[set]))
	}
	w.u32(uint32(len(s.hy)))
	for _, l := range s.labels() {
		w.u32(l)
		if sum := s.hy[l]; sum == nil {
			w.u8(0)
		} else {
			w.u8(1)
			w.f64s(sum...)
		}
	}
}

func (s *setBuilder) readFrom(r *wireReader) {
	*s = *newSetBuilder(s.bits, s.limit, false)
	s.n = r.number("the number of items")
	for range r.u32("the number of label sets") {
		labels := r.numbers("a label set", maxLabels)
		count := r.number("the items of a label set")
		if r.err == nil && (len(labels) == 0 || !ascend(labels)) {
			r.fail("a label set that does not ascend")
		}
		if r.err != nil {
			return
		}
		s.counts[s.set(labels)] += count
	}
	for range r.u32("the number of labels") {
		l := r.u32("a label")
		var sum []float64
		if r.u8("whether a label has a sum") != 0 {
			sum = r.f64s(s.bits, "the codes of a label")
		}
		if r.err != nil {
			return
		}
		s.hy[l] = sum
	}
}
