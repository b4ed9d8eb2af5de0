package state

import (
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// A row that has taught the projections of a space has a lesson there: the codes that it
// taught. When the row changes or goes, what it has taught becomes a departure in the outbox
// of the space, with the features that it taught with, for the online step to take it out of
// the statistics. Both happen in the commit of the write, so that the statistics never lose a
// row or count one twice: at any commit they are those that are stored, with the lessons of
// later revisions, without the departures whose lessons they had. db/update_test.go holds it
// against statistics that are made anew, and so does a deep Verify.

// Learn records that a row has taught the lesson l in a space, in which it has none yet. fresh
// says that nothing has been written to its block before. The caller calls Touch.
func (tx *Tx) Learn(sp *SpaceState, row uint32, l codec.Lesson, fresh bool) {
	tx.Block(codec.LessonsKey(sp.collection, sp.ID, row), -1, fresh).Set(byte(row), l.Append(nil))
	sp.Numbers.Taught++
}

// Depart puts a departure into the outbox of a space, behind those that are there. Unlearn
// does that for a row whose lesson is stored; call this where it was never stored in the
// space. The caller calls Touch.
func (tx *Tx) Depart(sp *SpaceState, d *codec.Departure) error {
	key := codec.OutboxKey(sp.collection, sp.ID, sp.Numbers.NextOutbox)
	sp.Numbers.NextOutbox++
	return tx.Batch.Set(key, d.Append(nil), nil)
}

// teaches reports whether the change may change what projections learn from: vectors or labels.
func (ch *Change) teaches() bool {
	return ch.Kind != MergeItem || ch.Item.Vectors != nil || ch.Item.Labels != nil
}

// recodes reports whether a row waits for another code in some space (SpaceState.Recode). Any
// write to it gives it that code, and it has to teach again.
func (s *CollectionState) recodes(row uint32) bool {
	return slices.ContainsFunc(s.Spaces, func(sp *SpaceState) bool { return sp.Recode.B.Contains(row) })
}

// FetchTaught reads what a row has taught in each space, with the features that the store has
// of it, unless the transaction knows that already; Unlearn needs it. It belongs to resolving
// a request: it only reads. It returns about how many bytes of the outbox that may become.
func (tx *Tx) FetchTaught(s *CollectionState, row uint32) (bytes int, err error) {
	for _, sp := range s.Spaces {
		at := spaceRow{s.ID, sp.ID, row}
		d, known := tx.departures[at]
		if !known && sp.HasStatistics() {
			l, found, err := record.ReadLesson(tx.Committer.kv, s.ID, sp.ID, sp.Bits, row)
			if err != nil {
				return 0, err
			}
			if found {
				if d, err = record.Departure(tx.Committer.kv, s.Descriptor, sp.Positions, row, l); err != nil {
					return 0, err
				}
			}
			tx.departures[at] = d
		}
		if d != nil {
			bytes += len(d.Codes) + 5*len(d.Labels)
			for _, f := range d.Features {
				bytes += len(f.Record)
			}
		}
	}
	return bytes, nil
}

// Unlearn takes the lesson of a row in a space out, and puts it into the outbox as a
// departure. FetchTaught has read it before; a row that has taught nothing needs nothing. The
// caller calls Touch.
func (tx *Tx) Unlearn(sp *SpaceState, row uint32) error {
	at := spaceRow{sp.collection, sp.ID, row}
	d := tx.departures[at]
	if d == nil {
		return nil
	}
	tx.departures[at] = nil
	tx.Block(codec.LessonsKey(sp.collection, sp.ID, row), -1, false).Clear(byte(row))
	sp.Numbers.Taught--
	return tx.Depart(sp, d)
}

// SetOnline adds a row to a set of the online step of a space (codec.SetPending or
// codec.SetRecode), in memory and in the store, or takes it out. A row that is in it already,
// or is not, costs nothing. The caller calls Touch.
func (tx *Tx) SetOnline(sp *SpaceState, set byte, row uint32, in bool) {
	into := sp.onlineRows(set)
	if into.B.Contains(row) == in {
		return
	}
	l := tx.layer(codec.OnlineRowsKey(sp.collection, sp.ID, set, uint16(row>>16)))
	if in {
		into.Edit().Add(row)
		l.Add(uint16(row))
	} else {
		into.Edit().Remove(row)
		l.Delete(uint16(row))
	}
}
