package bulk

import (
	"context"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// The codes of many rows touch four kinds of records, and projections. Each kind is written by a task
// of its own, in the order of its keys. Before that one task gives numbers to the codes, as all four
// kinds need these.

// StoreCodes stores the codes of many rows in a space as one commit of sorted tables. The
// rows ascend, encs has their encodings, and none of them has a code in the space yet. n is
// what the counters of the space are before these codes, with what else the caller wants to
// change, such as how far a builder has got; the counters of codes follow from the codes.
//
// It runs in the committer, inside a request of Load, and makes the tables on so many
// workers. If it fails nothing has changed, or the database has failed. rows and encs stay
// the caller's.
func StoreCodes(ctx context.Context, c *state.Committer, workers int, s *state.CollectionState, sp *state.SpaceState, n codec.SpaceCounters, rows []uint32, encs []spaces.Encoding) (err error) {
	t := c.Tables()
	t.Workers = workers
	codes := newSpaceCodes(s, sp, func(i int) uint32 { return rows[i] }, madeCodes(encs))
	codes.numbers = n
	defer func() {
		if err != nil {
			codes.rollback()
		}
	}()
	first, tasks := codes.tasks(t)
	tasks = append(tasks, t.Task(func(stream *store.Stream) error {
		if err := codes.waitNumbered(stream); err != nil {
			return err
		}
		if err := t.WriteSequence(stream); err != nil {
			return err
		}
		// A builder may work in one space while others are there: their counters are stored again as
		// they are.
		all := s.AllCounters()
		for i, other := range s.Spaces {
			if other == sp {
				all.Spaces[i] = codes.counters()
			}
		}
		return stream.Records.Counters(s.ID, all)
	}))
	bytes := int64(len(rows)) * int64(state.CodesBytes(sp.Bits, true))
	err = c.CommitTables(ctx, t, bytes, append(first, tasks...), func() {
		sp.TakeOver(codes.counters())
		sp.ForgetDirections(rows[0])
		c.Touch(s)
	})
	return fault.Annotate(err, "codes of space %d", sp.ID)
}

// spaceCodes writes the records of the codes of many rows in a space in which none of the rows
// has a code yet. Tx.SetCodes would write the same, one row after the other. A load has one
// for each space, StoreCodes has one. But for records, nothing changes while tasks use it.
type spaceCodes struct {
	collection uint32
	space      *spaces.Space       // revision that the codes are of
	row        func(i int) uint32  // row of item i; ascending
	codes      itemCodes           // by item
	freshRow   uint64              // a block whose first row is freshRow or more has never been written
	numbers    codec.SpaceCounters // before these codes

	records codeRecords
}

// itemCodes are the codes of many items in one space, by number of the item. Several
// goroutines read them at once; what they return is not to be changed.
type itemCodes interface {
	len() int                    // number of items
	from(i int) codec.Provenance // of the code of item i

	// eachCode calls f with the items that have a code, ascending, and the code, which f must not
	// keep. An error of f ends it.
	eachCode(f func(i int, c codec.Code) error) error

	// eachProjection calls f with the items that have a projection, ascending, and the
	// stored form of it, which f must not keep. An error of f ends it.
	eachProjection(f func(i int, projection []byte) error) error
}

// givenCodes are those that the items of a load bring, for a space without a model.
type givenCodes struct{ l *load }

func (c givenCodes) len() int                                         { return c.l.n }
func (c givenCodes) from(int) codec.Provenance                        { return codec.ProvenanceGiven }
func (c givenCodes) eachProjection(func(i int, p []byte) error) error { return nil }

func (c givenCodes) eachCode(f func(i int, c codec.Code) error) error {
	var code codec.Code
	return c.l.each(0, c.l.n, func(i int, e *entry) error {
		if code = e.appendCode(code[:0]); len(code) == 0 {
			return nil
		}
		return f(i, code)
	})
}

// madeCodes are the encodings of the items of a load, or of a block of a builder.
type madeCodes []spaces.Encoding

func (c madeCodes) len() int                    { return len(c) }
func (c madeCodes) from(i int) codec.Provenance { return c[i].From }

func (c madeCodes) eachCode(f func(i int, c codec.Code) error) error {
	for i, enc := range c {
		if enc.Code != nil {
			if err := f(i, enc.Code); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c madeCodes) eachProjection(f func(i int, projection []byte) error) error {
	for i, enc := range c {
		if enc.Projection != nil {
			if err := f(i, enc.Projection); err != nil {
				return err
			}
		}
	}
	return nil
}

// newSpaceCodes begins to give rows their codes in a space, whose codes are in memory. It
// publishes the tables of codes, so that rollback has something to go back to. The caller
// calls rollback if the commit fails.
func newSpaceCodes(s *state.CollectionState, sp *state.SpaceState, row func(i int) uint32, codes itemCodes) *spaceCodes {
	b := &spaceCodes{
		collection: s.ID, space: sp.Space, row: row, codes: codes,
		freshRow: s.FreshRow, numbers: sp.Numbers,
	}
	set := sp.Codes
	b.records = codeRecords{
		CodeKeys: set.CodeKeys, of: b, table: set.Table, before: set.Table.Publish(),
		freshCode: set.FreshCode, firstCode: set.Table.Table().Next(), numbered: make(chan struct{}),
	}
	return b
}

// rollback brings the table of codes back to what newSpaceCodes found. No task may run.
func (s *spaceCodes) rollback() { s.records.table.Rollback(s.records.before) }

// tasks returns the tasks that number codes, and those that write tables. The latter wait
// for the former, which therefore have to be started first. Postings are split by
// substrings among the workers.
func (s *spaceCodes) tasks(t *store.Tables) (number, write []work.Task) {
	write = append(write, t.Task(s.writeProjections))
	k := &s.records
	m := record.Split(s.space.Bits).Len()
	parts := min(m, t.Workers)
	for p := range parts {
		write = append(write, t.Task(func(s *store.Stream) error { return k.writePostings(s, m*p/parts, m*(p+1)/parts) }))
	}
	return []work.Task{k.number}, append(write, t.Task(k.writeCodes), t.Task(k.writeRowCodes), t.Task(k.writeCodeRows))
}

// waitNumbered waits until the codes have numbers, or the load has ended.
func (s *spaceCodes) waitNumbered(t *store.Stream) error { return t.Wait(s.records.numbered) }

// counters returns the counters of the space with these rows. The numbers of all codes
// must be known; see waitNumbered.
func (s *spaceCodes) counters() codec.SpaceCounters {
	n := s.numbers
	n.Revision, n.CodeCounters = uint64(s.space.Revision), state.CountersOf(s.records.table)
	return n
}

// writeProjections writes the projection of each row, in blocks.
func (s *spaceCodes) writeProjections(t *store.Stream) error {
	width := s.space.ProjectionBytes()
	b := newBlockStream(t, s.space.Keys(s.collection).Block(codec.KindProjection, 0), width, s.freshRow)
	if width > 0 {
		err := s.codes.eachProjection(func(i int, projection []byte) error { return b.set(s.row(i), projection) })
		if err != nil {
			return err
		}
	}
	return b.flush()
}
