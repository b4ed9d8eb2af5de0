package db

import (
	"errors"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
)

// deleteRange deletes the keys from lo up to and without hi.
func (m *mender) deleteRange(lo, hi []byte) error {
	return m.written(m.batch.DeleteRange(lo, hi, nil))
}

// learnable returns the items that have features that the model knows.
func (s *spaceMender) learnable() *roaring.Bitmap {
	rows := record.UnionOf(s.presence, s.space.Positions)
	rows.AndNot(s.uncodable)
	return rows
}

// readOnlineRows reads the sets of rows of the online step, as far as they can be.
func (s *spaceMender) readOnlineRows() error {
	return record.ForEach(s.store, s.prefix(codec.KindOnlineRows), func(key, value []byte) error {
		set, container := codec.OnlineRowsKeyParts(key)
		l, err := codec.DecodeLayer(value)
		switch {
		case err != nil:
			s.lost = s.lost.add(key, after(key))
		case set == codec.SetPending:
			addContainer(s.pending, l.Added, container)
		case set == codec.SetRecode:
			addContainer(s.recode, l.Added, container)
		}
		return nil
	})
}

// mendOnline mends what rows have taught: lessons, departures, statistics, and the rows
// that are still to teach. Where something of it is lost the statistics are made again of
// the lessons that there are, and rows without one are to teach again.
func (s *spaceMender) mendOnline() error {
	if s.IndexOnly {
		if err := s.dropLearning(); err != nil {
			return err
		}
		return s.writeOnlineRows()
	}
	lostLessons, err := s.mendLessons()
	if err != nil {
		return err
	}
	whole, err := s.mendOutbox()
	if err != nil {
		return err
	}
	learnable := s.learnable()
	if lostLessons || s.lostAny(s.prefix(codec.KindOnlineRows)) {
		s.pending.Or(learnable)
	}
	s.pending.And(learnable)
	s.pending.AndNot(s.taught)
	if err := s.writeOnlineRows(); err != nil {
		return err
	}
	s.n.Taught = s.taught.GetCardinality()
	if err := s.flush(); err != nil {
		return err
	}
	if whole && !lostLessons {
		sound, err := s.soundStatistics()
		if sound || err != nil {
			return err
		}
	}
	if lostLessons {
		s.bad("statistics", s.prefix(codec.KindStatistics), "what some rows had taught is lost: they are made again of what %d rows have taught, and others are to teach again", s.n.Taught)
	}
	return s.makeStatistics()
}

// writeOnlineRows writes the sets of rows of the online step.
func (s *spaceMender) writeOnlineRows() error {
	s.recode.And(s.items)
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

// mendLessons reads what rows have taught. It reports whether something of it is lost.
func (s *spaceMender) mendLessons() (lost bool, err error) {
	learnable := s.learnable()
	check := &spaceVerifier{Space: s.space, n: s.n}
	dropped := false
	prefix := s.prefix(codec.KindLessons)
	err = s.blocks(prefix, func(key []byte, first uint32, b codec.Block) error {
		var gone []byte
		for i := range b.Len() {
			row := first + uint32(b.Offset(i))
			l, err := codec.DecodeLesson(s.space.Bits, b.Entry(i))
			if err == nil {
				err = check.checkLesson(l)
			}
			if err != nil || !learnable.Contains(row) {
				gone = append(gone, b.Offset(i))
				dropped = dropped || s.items.Contains(row)
				continue
			}
			s.taught.Add(row)
		}
		if len(gone) == 0 {
			return nil
		}
		return s.clearBlock(key, -1, gone...)
	})
	return dropped || s.lostAny(prefix) || s.known && s.taught.GetCardinality() < s.n.Taught, err
}

// mendOutbox looks at departures, and reports whether all are there and can be read.
func (s *spaceMender) mendOutbox() (whole bool, err error) {
	prefix := s.prefix(codec.KindOutbox)
	whole = !s.lostAny(prefix) && s.known
	check := &spaceVerifier{collectionVerifier: &collectionVerifier{Descriptor: s.Descriptor}, Space: s.space, n: s.n}
	buffers := make([]model.Vector, len(s.Modalities))
	expected, any := uint64(0), false
	err = record.ForEach(s.store, prefix, func(key, value []byte) error {
		n := codec.OutboxNumber(key)
		if any && n != expected || s.known && n >= s.n.NextOutbox || check.checkDeparture(value, buffers) != nil {
			whole = false
		}
		if !s.known {
			s.n.NextOutbox = max(s.n.NextOutbox, n+1)
		}
		expected, any = n+1, true
		return nil
	})
	return whole && (!any || expected == s.n.NextOutbox), err
}

// soundStatistics reports whether the statistics that are stored are what rows have
// taught.
func (s *spaceMender) soundStatistics() (bool, error) {
	b, err := record.ReadChunks(s.store, s.prefix(codec.KindStatistics), 0, s.space.Statistics)
	if err == nil {
		var statistics *model.Statistics
		if statistics, err = model.UnmarshalStatistics(b); err == nil {
			err = model.NewStatistics(s.space.Learned).Merge(statistics)
		}
	}
	if err != nil || s.n.Checkpoint == 0 || s.n.Checkpoint > s.n.Revision {
		return false, nil
	}
	extra := false
	err = record.ForEach(s.store, s.prefix(codec.KindStatistics), func(key, _ []byte) error {
		extra = extra || codec.LastNumber(key) >= s.space.Statistics.Chunks
		return nil
	})
	if err != nil || extra {
		return false, err
	}
	v, done := s.verifier(func(report.Finding) error { return errUnsound })
	v.checkStatistics()
	err = errors.Join(v.err, done())
	if errors.Is(err, errUnsound) {
		return false, nil
	}
	return err == nil, err
}

// errUnsound ends a verification.
var errUnsound = errors.New("not sound")

// makeStatistics makes the statistics of all lessons. Then nothing has departed that
// they know.
func (s *spaceMender) makeStatistics() error {
	v, done := s.verifier(nil)
	sum := newStatisticsSum(s.space)
	err := record.ForEachEntry(s.store, s.prefix(codec.KindLessons), func(row uint32, entry []byte) error {
		if row%lookEvery == 0 && s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		l, err := codec.DecodeLesson(s.space.Bits, entry)
		if err != nil {
			return err
		}
		vectors, err := v.vectors(row)
		if err != nil {
			return err
		}
		return sum.add(l, vectors)
	})
	if err == nil {
		err = sum.flush()
	}
	if err = errors.Join(err, done()); err != nil {
		return err
	}
	b, err := sum.statistics.MarshalBinary()
	if err != nil {
		return err
	}
	if err := s.deleteAll(s.prefix(codec.KindOutbox)); err != nil {
		return err
	}
	if err := s.writeChunks(s.prefix(codec.KindStatistics), 0, b); err != nil {
		return err
	}
	s.n.Checkpoint = s.n.Revision
	if cut := record.ChunksOf(b); cut != s.space.Statistics {
		d := s.space.Stored
		d.Statistics = cut
		return s.writeSpace(d, s.report)
	}
	return nil
}
