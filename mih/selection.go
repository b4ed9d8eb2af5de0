package mih

import (
	"context"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
)

// A selection is a k-NN scan that looks at no rows. To look up how many rows a code has
// takes as long as reading a hundred codes. So the scan counts each code as one result.
// It weighs only the codes that are near enough in the end.
//
// Proof that nothing is missed. A scan finds every code within a distance B of its
// query, where the codes within B count k+spare or more. If at most spare of them have
// no row, their rows add up to k or more. Then the distance D of the answer is at most
// B, and every code within D bits has been found. A code without a row is dead: its
// rows went after its segment was built. The table knows the number of dead codes. With
// a smaller spare B may be too small. The rows of the codes then do not add up to k,
// and the scan runs again for the codes beyond B, with more to spare.
//
// # The bound of the scan
//
// A bound within which k codes are known to be falls slowly: a scan of n codes in random
// order meets k log(n/k) codes that are within the bound by then. To keep a code takes
// as long as reading fifty others. So the scan first reads a sample from all over the
// segment, and guesses the distance within which there are enough codes. It remembers
// the bound by which it has read each piece. At the end it knows B, and reads the
// pieces again whose bound was smaller.
type selection struct {
	need      int          // results that have to be within the bound
	bound     int          // distance within which the next codes are kept
	rise      int          // by so much the bound grows next
	histogram []int        // codes found by this scan, by distance
	within    int          // the number of these within bound
	earlier   []int        // results that the collector had counted before, by distance
	before    int          // the number of these within bound
	found     []codec.Near // codes that were kept, by position in a segment or the tail
	ordered   []codec.Near // codes within B by distance
	pieces    []piece      // that have been read
}

// The sample consists of a share of the codes, in runs from so many spots.
const (
	sampleSpots = 16
	sampleShare = 16 // one code in so many
	worthSample = 64 // results; with fewer a sample tells nothing
)

// A piece is a run of codes, and the distance within which all of them were kept.
type piece struct{ from, to, bound int }

// spare returns the number of dead codes for which a scan for the k nearest of so many
// codes is prepared. It is twice the mean, as dead codes may be near each other.
func spare(k, dead, codes int) int {
	return min(dead, 16+int(2*float64(k)*float64(dead)/float64(codes+1)))
}

// scanNearest takes the codes that may be among the nearest. The number of code i is
// numbers[i], or first+i if numbers is nil. The weights must be numbers of rows.
func (s *search) scanNearest(ctx context.Context, codes codec.Codes, numbers []uint32, first uint32) error {
	f, all := &s.selection, s.t.indexed()
	dead := all - s.t.used
	least := 0 // all codes that are nearer have been taken
	for spare := spare(s.k, dead, all); ; spare *= 8 {
		f.need = s.k + min(spare, dead)
		reach, err := s.selectNearest(ctx, codes, least)
		if err != nil {
			return err
		}
		// The nearest come first, so codes beyond the final bound are not weighed.
		for _, x := range f.ordered {
			n := first + x.Position()
			if numbers != nil {
				n = numbers[x.Position()]
			}
			s.found = append(s.found, codec.NearOf(x.Distance(), n))
		}
		s.take()
		if s.bound <= reach || spare >= dead {
			return nil
		}
		least = reach + 1
	}
}

// selectNearest writes the codes at a distance from least to reach to f.ordered, by
// distance. reach is the bound of the collector, or a smaller distance within which
// there are f.need results. Results that the collector has counted count too.
func (s *search) selectNearest(ctx context.Context, codes codec.Codes, least int) (reach int, err error) {
	f := &s.selection
	f.histogram = append(f.histogram[:0], make([]int, len(s.histogram))...)
	f.earlier, f.before = s.histogram, s.sum
	f.bound, f.within, f.rise = s.bound, 0, 1
	f.found, f.pieces = f.found[:0], f.pieces[:0]
	n, seen := codes.Len(), 0
	read := func(from, end int, sample bool) {
		// The first pieces are small. Few codes are kept before there is a bound.
		for from < end && err == nil {
			to := min(from+min(max(seen, scanBlock/64), scanBlock), end)
			if len(f.pieces)%64 == 0 {
				err = ctx.Err()
			}
			f.read(s.query, codes, piece{from, to, f.bound}, least)
			if seen += to - from; sample {
				f.guess(float64(seen)/float64(n), s.bound)
			} else {
				f.lower(1)
			}
			from = to
		}
	}
	// First a sample from everywhere, then the codes between in order, as memory is
	// read fastest in order. Pieces begin where a cache line does.
	part := (n/sampleSpots + 64) &^ 63
	size := part / sampleShare &^ 63
	if f.need < worthSample {
		size = 0
	}
	for from := 0; from < n; from += part {
		read(from, min(from+size, n), true)
	}
	for from := 0; from < n; from += part {
		read(min(from+size, n), min(from+part, n), false)
	}
	if err != nil {
		return 0, err
	}
	s.explain.Scanned += n
	// Now the bound becomes one that is known to be large enough. While pieces are read
	// again it may fall.
	for f.bound < s.bound && f.before+f.within < f.need {
		f.raise()
	}
	for _, p := range f.pieces {
		f.lower(1)
		if p.bound < f.bound {
			f.read(s.query, codes, piece{p.from, p.to, f.bound}, max(p.bound+1, least))
		}
	}
	f.lower(1)
	beyond := codec.NearOf(f.bound+1, 0)
	f.found = slices.DeleteFunc(f.found, func(x codec.Near) bool { return x >= beyond })
	f.ordered = appendByDistance(f.ordered[:0], f.found, s.t.bits)
	return f.bound, nil
}

// read keeps the codes of a piece within its bound that are not nearer than least.
func (f *selection) read(query codec.Code, codes codec.Codes, p piece, least int) {
	f.pieces = append(f.pieces, p)
	f.found = slices.Grow(f.found, p.to-p.from)
	room := f.found[len(f.found) : len(f.found)+p.to-p.from]
	room = room[:codec.Within(room, query, codes.Slice(p.from, p.to), p.bound, uint32(p.from))]
	if least > 0 {
		room = slices.DeleteFunc(room, func(x codec.Near) bool { return x.Distance() < least })
	}
	for _, x := range room {
		f.histogram[x.Distance()]++
	}
	f.found = f.found[:len(f.found)+len(room)]
	f.within += len(room)
}

// guess sets the bound for the next piece, after a share of the codes has been read. It
// is at most limit.
//
// The bound is the smallest one within which there seem to be enough results. If too
// few follow the bound grows again, faster and faster, as there may be no codes at all
// at the next distances.
func (f *selection) guess(share float64, limit int) {
	f.lower(share)
	if float64(f.within) >= share*float64(f.need-f.before) {
		f.rise = 1
		return
	}
	for range min(f.rise, limit-f.bound) {
		f.raise()
	}
	f.rise *= 2
}

// lower makes the bound the smallest one within which there are enough results, after a
// share of the codes has been read. It never makes the bound larger.
//
// This share of the results is not enough, as the codes that have been read may be
// nearer than the rest: a guess that is too small means to read everything again. Twice
// the share and five standard deviations fail in one scan of ten for a thousand codes
// in clusters, and hardly ever for less.
func (f *selection) lower(share float64) {
	for f.bound > 0 {
		within, before := f.within-f.histogram[f.bound], f.before-f.earlier[f.bound]
		missing := max(f.need-before, 0)
		expected := share * float64(missing)
		if within < min(missing, int(2*expected+5*math.Sqrt(expected)+8)) {
			return
		}
		f.within, f.before = within, before
		f.bound--
	}
}

// raise makes the bound larger by one.
func (f *selection) raise() {
	f.bound++
	f.within += f.histogram[f.bound]
	f.before += f.earlier[f.bound]
}
