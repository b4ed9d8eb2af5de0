package verify

import (
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/model"
)

// What the updater keeps of each row: whether it has yet to teach (pending), whether its code is
// outdated (recode), what it has taught (a lesson), and what it had taught before it changed (a
// departure). A row is pending or has a lesson, and never both. It may have neither: it has no
// features that the model knows, or a restored revision has forgotten it.

// checkOnline reads the sets of rows that the updater works from, pending and recode, and
// checks that their rows have items, and pending ones features that the model knows.
func (s *spaceVerifier) checkOnline() {
	s.begin("what rows have taught")
	// Pending rows have changed since the updater looked at them last. Rows to be coded again
	// have codes that are not those of their labels yet.
	names := [...]string{codec.SetPending: "rows that the online step has not seen", codec.SetRecode: "rows to be coded again"}
	sets := [...]*roaring.Bitmap{codec.SetPending: s.pending, codec.SetRecode: s.recode}
	s.walkPrefix(s.prefix(codec.KindOnlineRows), s.about("rows of the online step"), func(key, value []byte) {
		set, container := codec.OnlineRowsKeyParts(key)
		if int(set) >= len(sets) {
			s.bad(fmt.Sprintf("rows of set %d", set), key, "there is no such set")
			return
		}
		l, err := codec.DecodeLayer(value)
		if err != nil {
			s.bad(names[set], key, "%s", fault.Problem(err))
			s.lose(key)
			return
		}
		addContainer(sets[set], l.Added, container)
	})
	for set, rows := range sets {
		for it := rows.Iterator(); it.HasNext() && s.err == nil; {
			row := it.Next()
			key := codec.OnlineRowsKey(s.ID(), s.spaceID(), byte(set), uint16(row>>16))
			switch {
			case s.CodesOnly():
				s.bad(names[set], key, "row %d is in it, and there is no model", row)
			case s.dead(row):
				s.bad(names[set], key, "row %d is in it, and has no item", row)
			case set == codec.SetPending && s.Trained != nil && !s.HasStatistics():
				s.bad(names[set], key, "row %d is in it, and the model was learned without labels: no row teaches it", row)
			case set == codec.SetPending && s.Trained != nil && !s.learnsFromRow(row):
				s.bad(names[set], key, "row %d is in it, and has no features to learn from", row)
			}
		}
	}
}

// checkLessons reads what rows have taught, and checks that each lesson is possible, and is of
// a row that has features and has been looked at by the updater. pending must be known.
func (s *spaceVerifier) checkLessons() {
	prefix := s.prefix(codec.KindLessons)
	complete := s.entries(prefix, s.about("lessons"), func(key []byte, row uint32, entry []byte) {
		what := fmt.Sprintf("lesson of row %d", row)
		s.taught.Add(row)
		l, err := codec.DecodeLesson(s.Bits(), entry)
		if err == nil {
			err = s.CheckLesson(l, s.n.Revision)
		}
		switch {
		case err != nil:
			s.bad(what, key, "%s", fault.Problem(err))
			s.lose(key) // nor do the statistics follow from it
		case s.CodesOnly():
			s.bad(what, key, "there is no model")
		case s.dead(row):
			s.bad(what, key, "the row has no item")
		case s.Trained != nil && !s.learnsFromRow(row):
			s.bad(what, key, "the row has no features to teach with")
		case s.pending.Contains(row):
			s.bad(what, key, "the row is among those that the online step has not seen")
		}
	})
	if complete && s.n.Taught != s.taught.GetCardinality() {
		s.badCounters("%d rows have taught, it says %d", s.taught.GetCardinality(), s.n.Taught)
	}
}

// Bits returns the length of the codes of the space. Both descriptors that are embedded have a
// field of that name.
func (s *spaceVerifier) Bits() int { return s.Space.Bits }

// checkOutbox looks at departures, which are numbered without gaps up to the next one. The
// first ones may be gone, as a checkpoint deletes those that it has taken in.
func (s *spaceVerifier) checkOutbox() {
	prefix := s.prefix(codec.KindOutbox)
	expected, any := uint64(0), false
	buffers := make([]model.Vector, len(s.Modalities))
	complete := s.walkPrefix(prefix, s.about("departures"), func(key, value []byte) {
		n := codec.OutboxNumber(key)
		what := fmt.Sprintf("departure %d", n)
		if any && n != expected {
			s.missing(fmt.Sprintf("departure %d", expected), codec.OutboxKey(s.ID(), s.spaceID(), expected), "missing, and there is a departure %d", n)
		}
		if n >= s.n.NextOutbox {
			s.bad(what, key, "the next one is %d", s.n.NextOutbox)
		}
		expected, any = n+1, true
		if err := s.checkDeparture(value, buffers); err != nil {
			s.bad(what, key, "%s", fault.Problem(err))
			s.lose(key)
		}
	})
	if complete && any && expected < s.n.NextOutbox {
		s.missing(fmt.Sprintf("departure %d", expected), codec.OutboxKey(s.ID(), s.spaceID(), expected), "missing, the next one is %d", s.n.NextOutbox)
	}
}

// checkDeparture decodes a departure, and its features into buffers, by modality.
func (s *spaceVerifier) checkDeparture(value []byte, buffers []model.Vector) error {
	d, err := codec.DecodeDeparture(s.Bits(), value)
	if err == nil {
		err = s.CheckLesson(d.Lesson, s.n.Revision)
	}
	if err != nil {
		return err
	}
	for _, f := range d.Features {
		if int(f.Modality) >= len(s.Modalities) {
			return fmt.Errorf("it has features of modality %d of %d", f.Modality, len(s.Modalities))
		}
		if err := s.Modalities[f.Modality].DecodeVector(&buffers[f.Modality], f.Record); err != nil {
			return fmt.Errorf("features %q: %w", s.Modalities[f.Modality].Name, err)
		}
	}
	return nil
}
