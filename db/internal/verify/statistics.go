package verify

import (
	"context"
	"fmt"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/model"
)

// The statistics of a modality are sums over the rows that have taught (model.Statistics). A checkpoint
// stores them now and then. Later changes are stored as lessons and retractions, so the sums can be made
// again from rows and retractions.

// checkStatistics compares the stored statistics, the checkpoint, with the lessons. In general
//
//	statistics = checkpoint
//	           + lessons of revisions after the checkpoint
//	           - retractions whose lessons are of revisions up to the checkpoint
//
// where the statistics are the sum of all lessons. So the checkpoint is the sum of the lessons of revisions
// up to it: of present rows, and of such retractions, for rows that have changed or gone since. Later lessons
// would come to both sides.
//
// It reads the features of all rows that have taught, and adds up in float64, in another order
// than the checkpoint: see statisticsTolerance.
func (s *spaceVerifier) checkStatistics() {
	s.begin("statistics")
	key := codec.ChunkKey(codec.KindStatistics, s.ID(), s.spaceID(), 0)
	// With one lesson, retraction or vector missing the sum would be wrong; the gap has been reported.
	if s.lostAny(s.prefix(codec.KindLessons)) || s.lostAny(s.prefix(codec.KindRetraction)) ||
		s.lostAny(codec.CollectionKey(codec.KindFeatures, s.ID())) ||
		s.lostAny(s.prefix(codec.KindStatistics)) {
		return
	}
	// An error means that there is no sum to compare with. It becomes the finding about the
	// statistics.
	sum, err := newStatisticsSum(s.Space)
	taught := 0
	teach := func(l codec.Lesson, vectors []model.Vector) {
		// A row costs as much as its features squared, and a record of lessons has 256 rows: walk
		// looks at the context too seldom here.
		if taught++; taught%lookEveryRows == 0 {
			s.look()
		}
		// Later lessons are not in the checkpoint. A later retraction took its lesson with it before
		// any checkpoint had that.
		if uint64(l.Revision) <= s.n.Checkpoint && err == nil {
			err = sum.add(s.ctx, l, vectors)
		}
	}
	s.entries(s.prefix(codec.KindLessons), s.about("lessons"), func(_ []byte, row uint32, entry []byte) {
		if l, lerr := codec.DecodeLesson(s.Bits(), entry); lerr != nil {
			err = lerr
		} else if it, ierr := s.vectors(row); ierr != nil {
			err = ierr
		} else {
			teach(l, it)
		}
	})
	s.walkPrefix(s.prefix(codec.KindRetraction), s.about("retractions"), func(_, value []byte) {
		d, derr := codec.DecodeRetraction(s.Bits(), value)
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
		err = sum.flush(s.ctx)
	}
	if s.err = s.ctx.Err(); s.err != nil {
		return
	}
	var stored []byte
	if err == nil {
		stored, err = record.ReadChunks(s.snap, s.prefix(codec.KindStatistics), 0, s.Statistics)
	}
	var statistics *model.Statistics
	if err == nil {
		statistics, err = model.UnmarshalStatistics(stored)
	}
	if err == nil {
		if err = sum.online.Statistics().Same(statistics, statisticsTolerance); err != nil {
			err = fmt.Errorf("they are not what rows have taught: %w", err)
		}
	}
	if err != nil {
		s.bad("statistics", key, "%s", fault.Problem(err))
	}
}

// statisticsTolerance is how far numbers of statistics may be off, as a part of the largest
// number of their matrix: items have come and gone in another order, and rounding differs.
const statisticsTolerance = 1e-9

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

// A statisticsSum adds up lessons. It gathers items and adds them together, which is faster than one by one.
// After the last add the caller calls flush.
type statisticsSum struct {
	space   *spaces.Space
	online  *model.Online // has the sum, without the items that are gathered
	items   []model.Example
	lessons []model.Lesson
}

// newStatisticsSum returns the sum of nothing, for the model of a space.
func newStatisticsSum(sp *spaces.Space) (*statisticsSum, error) {
	online, err := model.NewOnline(sp.Learned, model.NewStatistics(sp.Learned))
	return &statisticsSum{space: sp, online: online}, err
}

// add adds a lesson of an item with these vectors, which are by modality of the collection. It
// keeps them until the items are added.
func (a *statisticsSum) add(ctx context.Context, l codec.Lesson, vectors []model.Vector) error {
	item := a.space.Example(vectors, nil)
	lesson, err := a.space.Lesson(codec.Lesson{Revision: l.Revision, Taught: l.Clone()}, item)
	if err != nil {
		return err
	}
	a.items, a.lessons = append(a.items, item), append(a.lessons, lesson)
	if len(a.items) == model.MaxLesson {
		return a.flush(ctx)
	}
	return nil
}

// flush adds all gathered items.
func (a *statisticsSum) flush(ctx context.Context) error {
	err := a.online.Relearn(ctx, a.items, a.lessons)
	a.items, a.lessons = a.items[:0], a.lessons[:0]
	return err
}
