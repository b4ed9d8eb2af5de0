package repair

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/model"
)

// Lessons, and the features of their rows, are primary: they are copied. Statistics are their
// sum, and are added up again. So departures are not needed, and the outbox is empty.

// mendLessons reads the lessons of the space, and sets taught, pending and recode. It removes
// lessons that are damaged or of rows without features. If any is lost, all rows with features
// and without a lesson become pending, to teach again.
func (s *spaceMender) mendLessons() error {
	if err := s.readOnlineRows(); err != nil {
		return err
	}
	learnable, prefix, lost := roaring.New(), s.prefix(codec.KindLessons), false
	if s.space.HasStatistics() {
		learnable = record.UnionOf(s.presence, s.space.Positions)
	}
	err := s.blocks(prefix, func(key []byte, first uint32, b codec.Block) error {
		var gone []byte
		for i := range b.Len() {
			row := first + uint32(b.Offset(i))
			l, err := codec.DecodeLesson(s.space.Bits, b.Entry(i))
			if err == nil {
				err = s.space.CheckLesson(l, s.n.Revision)
			}
			if err == nil && learnable.Contains(row) {
				s.taught.Add(row)
				continue
			}
			gone = append(gone, b.Offset(i))
			// Without its item a lesson is no loss: it would not be in the statistics any more.
			lost = lost || s.items.Contains(row)
		}
		return s.clearBlock(key, gone...)
	})
	if err != nil {
		return err
	}
	// Which lessons are lost is not known, so all rows that could have had one teach again.
	if lost || s.lostAny(prefix) || s.known && s.taught.GetCardinality() < s.n.Taught {
		s.bad("statistics", s.prefix(codec.KindStatistics), "what some rows had taught is lost: they are made again of what %d rows have taught, and others are to teach again", s.taught.GetCardinality())
		s.pending.Or(learnable)
	} else if s.lostAny(s.prefix(codec.KindOnlineRows)) {
		s.pending.Or(learnable)
	}
	// Invariants of the sets: a pending row has features that the model knows, and no lesson; a row
	// to recode has an item.
	s.pending.And(learnable)
	s.pending.AndNot(s.taught)
	s.recode.And(s.items)
	s.n.Taught = s.taught.GetCardinality()
	return s.writeOnlineRows()
}

// readOnlineRows reads the pending rows and the rows to recode. It adds sets that cannot be read
// to the lost ranges.
func (s *spaceMender) readOnlineRows() error {
	sets := map[byte]*roaring.Bitmap{codec.SetPending: s.pending, codec.SetRecode: s.recode}
	return record.ForEach(s.store, s.prefix(codec.KindOnlineRows), func(key, value []byte) error {
		set, container := codec.OnlineRowsKeyParts(key)
		if rows := sets[set]; rows != nil && record.AddRows(rows, key, value, container) != nil {
			s.lost = s.lost.Add(key, record.KeyAfter(key))
		}
		return nil
	})
}

// writeOnlineRows writes the pending rows and the rows to recode. The latter get their new code
// from the builder, as all rows do. They stay in the set because the lesson of their earlier
// code has to depart yet, as recoding in db/internal/learn does.
func (s *spaceMender) writeOnlineRows() error {
	if err := s.deleteAll(s.prefix(codec.KindOnlineRows)); err != nil {
		return err
	}
	for set, rows := range map[byte]*roaring.Bitmap{codec.SetPending: s.pending, codec.SetRecode: s.recode} {
		err := record.ByContainer(rows, func(container uint16, l codec.Layer) error {
			return s.writeLayer(codec.OnlineRowsKey(s.ID, s.id(), set, container), l)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// writeLayer stores a container of a row set.
func (m *mender) writeLayer(key []byte, l codec.Layer) error {
	b, err := l.Append(nil, true)
	if err != nil {
		return err
	}
	return m.set(key, b)
}

// makeStatistics sums the statistics from all lessons, stores them, and stores the descriptor of
// the space, which has their size and checksum. The sum costs as much as model.Online.Relearn,
// on all processors. A model that was learned without labels has none.
func (s *spaceMender) makeStatistics() error {
	if !s.space.HasStatistics() {
		s.n.Checkpoint = 0
		d := s.first.SpaceDescriptor
		d.Statistics = record.Chunked{}
		return s.writeSpace(d, s.report)
	}
	m := s.space.Learned
	// Beginning with nothing: the stored statistics are derived, and have not been copied.
	online, err := model.NewOnline(m, model.NewStatistics(m))
	if err != nil {
		return err
	}
	online.Workers = work.All()
	done := 0
	err = s.space.ForEachLesson(s.ctx, s.store, s.Descriptor, nil, func(rows []uint32, items []model.Example, lessons []model.Lesson) error {
		s.at(done, "collection %s: statistics of space %d", s.Name, s.id())
		done += len(rows)
		return online.Relearn(s.ctx, items, lessons)
	})
	if err != nil {
		return err
	}
	b, err := online.Statistics().MarshalBinary()
	if err != nil {
		return err
	}
	if err := s.written(record.WriteChunks(s.batch, s.prefix(codec.KindStatistics), 0, b)); err != nil {
		return err
	}
	// All lessons are in these statistics, and there is no outbox: the sum needs nothing else.
	s.n.Checkpoint = s.n.Revision
	d := s.first.SpaceDescriptor
	d.Statistics = record.ChunksOf(b)
	return s.writeSpace(d, s.report)
}
