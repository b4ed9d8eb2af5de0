package db

import (
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// A row that has taught the projections of a space has a lesson there: the codes that
// it taught. When the row changes or goes, what it has taught becomes a departure in
// the outbox of the space, with the features that it taught with, for the online step
// to take it out of the statistics. Both happen in the commit of the write, so that the
// statistics never lose a row or count one twice.

// learn records that a row has taught. fresh says that nothing has been written to its
// block before.
func (tx *tx) learn(sp *spaceState, row uint32, l codec.Lesson, fresh bool) {
	tx.block(codec.LessonsKey(sp.in, sp.ID, row), -1, fresh).Set(byte(row), l.Append(nil))
	sp.numbers.Taught++
}

// depart puts what a row has taught into the outbox.
func (tx *tx) depart(sp *spaceState, d *codec.Departure) error {
	key := codec.OutboxKey(sp.in, sp.ID, sp.numbers.NextOutbox)
	sp.numbers.NextOutbox++
	return tx.batch.Set(key, d.Append(nil), nil)
}

// teaches reports whether the change is one of what projections learn from, or may be.
func (ch *change) teaches() bool {
	return ch.kind != mergeItem || ch.item.Vectors != nil || ch.item.Labels != nil
}

// recodes reports whether a row waits for another code in some space: whatever is
// written to it gives it that, and it has to teach again.
func (s *collectionState) recodes(row uint32) bool {
	return slices.ContainsFunc(s.spaces, func(sp *spaceState) bool { return sp.recode.b.Contains(row) })
}

// fetchTaught reads what a row has taught, unless the transaction knows it. It returns about
// how many bytes of the outbox that will be.
func (tx *tx) fetchTaught(s *collectionState, row uint32) (bytes int, err error) {
	for _, sp := range s.spaces {
		at := spaceRow{s.ID, sp.ID, row}
		d, known := tx.taught[at]
		if !known && sp.Learned != nil {
			l, found, err := record.ReadLesson(tx.c.store, s.ID, sp.ID, sp.Bits, row)
			if err != nil {
				return 0, err
			}
			if found {
				if d, err = record.Departure(tx.c.store, s.Descriptor, sp.Positions, row, l); err != nil {
					return 0, err
				}
			}
			tx.taught[at] = d
		}
		if d != nil {
			bytes += len(d.Codes)
			for _, f := range d.Features {
				bytes += len(f.Record)
			}
		}
	}
	return bytes, nil
}

// unlearn puts what a row has taught, which fetchTaught has read, into the outbox.
func (tx *tx) unlearn(sp *spaceState, row uint32) error {
	at := spaceRow{sp.in, sp.ID, row}
	d := tx.taught[at]
	if d == nil {
		return nil
	}
	tx.taught[at] = nil
	tx.block(codec.LessonsKey(sp.in, sp.ID, row), -1, false).Clear(byte(row))
	sp.numbers.Taught--
	return tx.depart(sp, d)
}

// setOnline adds a row to a set of the online step, or takes it out.
func (tx *tx) setOnline(sp *spaceState, set byte, row uint32, in bool) {
	into := sp.onlineRows(set)
	if into.b.Contains(row) == in {
		return
	}
	l := tx.layer(codec.OnlineRowsKey(sp.in, sp.ID, set, uint16(row>>16)))
	if in {
		into.edit().Add(row)
		l.Add(uint16(row))
	} else {
		into.edit().Remove(row)
		l.Delete(uint16(row))
	}
}
