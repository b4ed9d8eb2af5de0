package model

import (
	"cmp"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
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
	tally *Tally
	code  func(item int) codec.Code // the code of an item; nil: that of its labels
}

func (s *statisticsSums) add(b *block) error {
	for t := range b.at {
		rows := b.at[t]
		labels, codes := make([][]uint32, len(rows)), make([]codec.Code, 0, len(rows))
		for r, i := range rows {
			labels[r] = b.labels[i]
			if s.code != nil {
				codes = append(codes, s.code(b.first+i))
			}
		}
		s.tally.Add(t, b.phi[t], labels, codes)
	}
	return nil
}

// merge adds the sums over other items. They are of the same pass, so they fit.
func (s *statisticsSums) merge(o sums) {
	if err := s.tally.Statistics.Merge(o.(*statisticsSums).tally.Statistics); err != nil {
		panic(err)
	}
}

func (s *statisticsSums) reset() { s.tally.Reset() }

func (s *statisticsSums) appendTo(w *wireWriter) {
	b, _ := s.tally.Statistics.MarshalBinary() // the error is always nil
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
	case s.m.CheckStatistics(stats) != nil:
		r.fail("statistics of another model")
	default:
		s.tally.Statistics = stats
	}
}
