package verify

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/model"
)

// The statistics of a modality are the sums A = Phi Phi' and B = H Phi' over the rows that have
// taught: Phi are features, k numbers a row, and H codes as +-1, q numbers a row (eqs. 22-24 of the
// paper; model.Statistics). They are stored now and then. What has changed since is stored as
// lessons and departures, so the sums can be made again from rows and outbox.

// checkStatistics compares the stored statistics, the checkpoint, with what rows have taught.
// In general
//
//	statistics = checkpoint
//	           + lessons of revisions after the checkpoint
//	           - departures whose lessons are of revisions up to the checkpoint
//
// where the statistics are those of all lessons. So the checkpoint is the sum of the lessons
// of revisions up to it, of rows that are there, and of such departures, of rows that have
// changed or gone since. Later lessons would come to both sides.
//
// It reads the features of all rows that have taught, and adds up in float64, in another order
// than the checkpoint: see statisticsTolerance.
func (s *spaceVerifier) checkStatistics() {
	s.begin("statistics")
	key := codec.ChunkKey(codec.KindStatistics, s.ID(), s.spaceID(), 0)
	// With one lesson, departure or vector missing the sum would be wrong, and that has been
	// reported.
	if s.lostAny(s.prefix(codec.KindLessons)) || s.lostAny(s.prefix(codec.KindOutbox)) ||
		s.lostAny(codec.CollectionKey(codec.KindFeatures, s.ID())) || s.lostAny(s.prefix(codec.KindStatistics)) {
		return
	}
	sum := newStatisticsSum(s.Space)
	var err error
	taught := 0
	teach := func(l codec.Lesson, vectors []model.Vector) {
		// A row costs as much as its features squared, and a record of lessons has 256 rows: walk
		// looks at the context too seldom here.
		if taught++; taught%lookEveryRows == 0 {
			s.look()
		}
		// Later lessons are not in the checkpoint. A later departure took its lesson with it before
		// any checkpoint had that.
		if uint64(l.Revision) <= s.n.Checkpoint && err == nil {
			err = sum.add(l, vectors)
		}
	}
	// An error means that there is no sum to compare with. It becomes the finding about the
	// statistics.
	s.entries(s.prefix(codec.KindLessons), s.about("lessons"), func(_ []byte, row uint32, entry []byte) {
		if l, lerr := codec.DecodeLesson(s.Bits(), entry); lerr != nil {
			err = lerr
		} else if it, ierr := s.vectors(row); ierr != nil {
			err = ierr
		} else {
			teach(l, it)
		}
	})
	s.walkPrefix(s.prefix(codec.KindOutbox), s.about("departures"), func(_, value []byte) {
		d, derr := codec.DecodeDeparture(s.Bits(), value)
		if derr != nil {
			err = derr
			return
		}
		vectors := make([]model.Vector, len(s.Modalities))
		for _, f := range d.Features {
			if derr = s.Modalities[f.Modality].DecodeVector(&vectors[f.Modality], f.Record); derr != nil {
				err = derr
				return
			}
		}
		teach(d.Lesson, vectors)
	})
	if s.err != nil {
		return
	}
	if err == nil {
		err = sum.flush()
	}
	var want, stored []byte
	if err == nil {
		want, err = sum.statistics.MarshalBinary()
	}
	if err == nil {
		stored, err = record.ReadChunks(s.snap, s.prefix(codec.KindStatistics), 0, s.Statistics)
	}
	if err == nil {
		err = sameStatistics(stored, want)
	}
	if err != nil {
		s.bad("statistics", key, "%s", fault.Problem(err))
	}
}

// lookEveryRows is the number of rows that are added up between two looks at the context.
const lookEveryRows = 16

// vectors reads the features of a row that the model knows, by modality of the collection.
func (s *spaceVerifier) vectors(row uint32) ([]model.Vector, error) {
	vectors := make([]model.Vector, len(s.Modalities))
	for _, t := range s.Positions {
		if !s.presence[t].Contains(row) {
			continue
		}
		x, found, err := record.ReadVector(s.snap, s.ID(), row, t, s.Modalities[t])
		if err == nil && !found {
			err = fmt.Errorf("features %q of row %d are missing", s.Modalities[t].Name, row)
		}
		if err != nil {
			return nil, err
		}
		s.done.Records++
		vectors[t] = x
	}
	return vectors, nil
}

// A statisticsSum adds up what rows have taught. It gathers rows of each modality and adds
// them together, which is faster than one by one. After the last add the caller calls flush.
type statisticsSum struct {
	space      *spaces.Space
	statistics *model.Statistics // the sum, without the rows that are gathered
	encoder    *model.Encoder    // scratch memory

	// By modality of the model: the gathered rows. phi has their features after the map, h the
	// codes that they teach as +-1, row after row; nil before the first row.
	phi, h [][]float32
	rows   []int // rows in phi and h, less than summedRows
}

// summedRows is the number of rows that are gathered.
const summedRows = 256

// newStatisticsSum returns the sum of nothing, for the model of a space.
func newStatisticsSum(sp *spaces.Space) *statisticsSum {
	n := len(sp.Positions)
	return &statisticsSum{
		space: sp, statistics: model.NewStatistics(sp.Learned), encoder: sp.Learned.NewEncoder(),
		phi: make([][]float32, n), h: make([][]float32, n), rows: make([]int, n),
	}
}

// add adds a lesson of an item with these vectors, which are by modality of the collection. It
// does not keep them.
func (a *statisticsSum) add(l codec.Lesson, vectors []model.Vector) error {
	item := a.space.Example(vectors, nil)
	lesson, err := a.space.Lesson(l, item)
	if err != nil {
		return err
	}
	for t, x := range item.Vectors {
		// One code for all modalities, or one for each (model.Lesson).
		code := lesson[0]
		if len(lesson) > 1 {
			code = lesson[t]
		}
		if code == nil || !x.Present() {
			continue
		}
		k, q := a.space.Learned.Features(t), a.space.Bits
		if a.phi[t] == nil {
			a.phi[t], a.h[t] = make([]float32, summedRows*k), make([]float32, summedRows*q)
		}
		r := a.rows[t]
		if err := a.encoder.MapVector(a.phi[t][r*k:(r+1)*k], t, x); err != nil {
			return err
		}
		for j := range q {
			a.h[t][r*q+j] = -1
			if code.Bit(j) {
				a.h[t][r*q+j] = 1
			}
		}
		if a.rows[t]++; a.rows[t] == summedRows {
			if err := a.flushOne(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// flushOne adds the gathered rows of a modality to the statistics.
func (a *statisticsSum) flushOne(t int) error {
	n := a.rows[t]
	a.rows[t] = 0
	return a.statistics.Add(t, n, a.phi[t], a.h[t])
}

// flush adds all gathered rows to the statistics.
func (a *statisticsSum) flush() error {
	for t := range a.rows {
		if a.rows[t] > 0 {
			if err := a.flushOne(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// statisticsTolerance is how far numbers of statistics may be off, as a part of the largest
// number of their matrix: items have come and gone in another order, and rounding differs.
const statisticsTolerance = 1e-9

// sameStatistics compares statistics in their binary form; see Statistics.MarshalBinary of
// package model. checkChunks has decoded the stored ones, and found that they belong to the
// model that want was made with: so what stands before the numbers is the same in both.
func sameStatistics(stored, want []byte) error {
	// For each modality: its name, the length k of its features, the number of rows that have
	// taught, and two matrices of float64: features by features, of which a triangle is
	// stored, and code bits by features.
	le := binary.LittleEndian
	if len(stored) != len(want) {
		return fmt.Errorf("%d bytes, not %d", len(stored), len(want))
	}
	const frame = 8 + 8 // header, fingerprint
	stored, want = stored[frame:len(stored)-4], want[frame:len(want)-4]
	q, modalities := int(le.Uint32(want)), int(le.Uint32(want[4:]))
	stored, want = stored[8:], want[8:]
	for range modalities {
		name := 2 + int(le.Uint16(want))
		k := int(le.Uint32(want[name:]))
		what := string(want[2:name])
		if a, b := le.Uint64(stored[name+4:]), le.Uint64(want[name+4:]); a != b {
			return fmt.Errorf("modality %q: of %d items, and %d have taught", what, a, b)
		}
		stored, want = stored[name+12:], want[name+12:]
		for _, n := range []int{k * (k + 1) / 2, q * k} {
			off, scale := 0.0, 0.0
			for i := range n {
				a, b := math.Float64frombits(le.Uint64(stored[8*i:])), math.Float64frombits(le.Uint64(want[8*i:]))
				off, scale = max(off, math.Abs(a-b)), max(scale, math.Abs(a), math.Abs(b))
			}
			if off > statisticsTolerance*scale {
				return fmt.Errorf("modality %q: they are not what rows have taught, but off by %.2g of up to %.2g", what, off, scale)
			}
			stored, want = stored[8*n:], want[8*n:]
		}
	}
	if len(stored) > 0 {
		return errors.New("bytes are left")
	}
	return nil
}
