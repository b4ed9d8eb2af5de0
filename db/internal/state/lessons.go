package state

import (
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// A row that has taught the projections of a space has a lesson there: the codes that it taught. When the row
// changes or goes, the lesson becomes a retraction in the retraction queue (outbox) of the space, with the
// features that taught. The online step then subtracts it from the statistics. Both records are in the commit
// of the write, so the statistics never lose a row or count one twice: at any commit they are the stored
// statistics, plus the lessons of later revisions, minus the queued retractions of lessons that they include.
// db/update_test.go and a deep Verify compare them with statistics computed from scratch.

// Learn records that a row has taught the lesson l in a space where it has none yet. fresh says that its
// block has never been written. The caller calls Touch.
func (tx *Tx) Learn(sp *SpaceState, row uint32, l codec.Lesson, fresh bool) {
	tx.Block(codec.LessonsKey(sp.collection, sp.ID, row), -1, fresh).Set(byte(row), l.Append(nil))
	sp.Numbers.Taught++
}

// Depart appends a retraction to the retraction queue of a space. Unlearn does that for a row with a stored
// lesson; call Depart if the space never stored the lesson. The caller calls Touch.
func (tx *Tx) Depart(sp *SpaceState, d *codec.Departure) error {
	key := codec.OutboxKey(sp.collection, sp.ID, sp.Numbers.NextOutbox)
	sp.Numbers.NextOutbox++
	return tx.Batch.Set(key, d.Append(nil), nil)
}

// teaches reports whether the change may affect learning, as it has vectors or labels.
func (ch *Change) teaches() bool {
	return ch.Kind != MergeItem || ch.Item.Vectors != nil || ch.Item.Labels != nil
}

// recodes reports whether a row waits for another code in some space (SpaceState.Recode). The next write of
// the row makes that code, and the row has to teach again.
func (s *CollectionState) recodes(row uint32) bool {
	return slices.ContainsFunc(s.Spaces, func(sp *SpaceState) bool { return sp.Recode.B.Contains(row) })
}

// FetchTaught reads the lesson of a row in each space, with its stored features, for Unlearn, unless the
// transaction knows it. It is part of resolving a request: it only reads. It returns about how many bytes the
// retractions may take.
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

// Unlearn removes the lesson of a row in a space and queues a retraction. FetchTaught has read the lesson;
// without one Unlearn does nothing. The caller calls Touch.
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

// SetOnline adds a row to a set of the online step of a space (codec.SetPending or codec.SetRecode), in
// memory and in the store, or takes it out. If nothing changes, it costs nothing. The caller calls Touch.
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
