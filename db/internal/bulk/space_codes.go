package bulk

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/mih"
)

// The codes of many rows change four kinds of records, and projections. A task of its own writes each kind,
// in the order of its keys. Before that one task gives numbers to the codes, because all four kinds need
// these.

// StoreCodes stores the codes of many rows in a space as one commit of sorted tables. The rows ascend, encs
// has their encodings, and none of them has a code in the space yet. n is the counters of the space before
// these codes, with the caller's other changes, such as how far a builder has got. StoreCodes updates the
// counts of codes.
//
// It runs in the committer, inside a request of Load, and makes the tables on so many workers. If it fails,
// nothing has changed, or the database has failed. rows and encs stay the caller's.
func StoreCodes(ctx context.Context, c *state.Committer, workers int, s *state.CollectionState,
	sp *state.SpaceState, n codec.SpaceCounters, rows []uint32, encs []spaces.Encoding) (err error) {
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
		// A builder may work in one space while others exist: their counters are stored again unchanged.
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

// spaceCodes writes the records of the codes of many rows in a space in which the rows have no codes yet.
// Tx.SetCodes would write the same, one row after the other. A load has one for each space, StoreCodes has
// one. But for records, nothing changes while tasks use it.
type spaceCodes struct {
	collection uint32
	space      *spaces.Space       // the revision that made the codes
	row        func(i int) uint32  // row of item i; ascending
	codes      itemCodes           // by item
	freshRow   uint64              // a block whose first row is freshRow or more has never been written
	numbers    codec.SpaceCounters // before these codes

	records codeRecords
}

// itemCodes are the codes of many items in one space, by number of the item. Several goroutines read them at
// once. Do not change the results.
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

// givenCodes are the codes that the items of a load bring, for a space without a model.
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

// newSpaceCodes begins to give rows their codes in a space, whose codes are in memory. It publishes the
// tables of codes, so that rollback can restore them. The caller calls rollback if the commit fails.
func newSpaceCodes(s *state.CollectionState, sp *state.SpaceState, row func(i int) uint32,
	codes itemCodes) *spaceCodes {
	b := &spaceCodes{
		collection: s.ID, space: sp.Space, row: row, codes: codes,
		freshRow: s.FreshRow, numbers: sp.Numbers,
	}
	set := sp.Codes
	b.records = codeRecords{
		CodeKeys: set.CodeKeys, of: b, table: set.Table, before: set.Table.Publish(),
		freshCode: set.FreshCode, firstCode: set.Table.Table().Next(), posted: uint32(set.Posted),
		numbered: make(chan struct{}),
	}
	return b
}

// rollback restores the table of codes that newSpaceCodes found. No task may run.
func (s *spaceCodes) rollback() { s.records.table.Rollback(s.records.before) }

// tasks returns the tasks that number codes, and the tasks that write tables. Start the numbering tasks
// first, because the others wait for them. Postings are split by substrings among the workers.
func (s *spaceCodes) tasks(t *store.Tables) (number, write []work.Task) {
	write = append(write, t.Task(s.writeProjections))
	k := &s.records
	m := record.Split(s.space.Bits).Len()
	parts := min(m, t.Workers)
	for p := range parts {
		write = append(write, t.Task(func(s *store.Stream) error {
			return k.writePostings(s, m*p/parts,
				m*(p+1)/parts)
		}))
	}
	return []work.Task{k.number}, append(write, t.Task(k.writeCodes), t.Task(k.writeRowCodes),
		t.Task(k.writeCodeRows))
}

// waitNumbered waits until the codes have numbers, or the load has ended.
func (s *spaceCodes) waitNumbered(t *store.Stream) error { return t.Wait(s.records.numbered) }

// counters returns the counters of the space with these rows. The numbers of all codes
// must be known; see waitNumbered.
func (s *spaceCodes) counters() codec.SpaceCounters {
	n := s.numbers
	n.Revision, n.CodeCounters = uint64(s.space.Revision), state.CountersOf(s.records.table)
	n.Posted = n.NextCode
	return n
}

// writeProjections writes the projection of each row, in blocks.
func (s *spaceCodes) writeProjections(t *store.Stream) error {
	width := s.space.ProjectionBytes()
	b := newBlockStream(t, s.space.Keys(s.collection).Block(codec.KindProjection, 0), width, s.freshRow)
	if width > 0 {
		err := s.codes.eachProjection(func(i int, projection []byte) error {
			return b.set(s.row(i),
				projection)
		})
		if err != nil {
			return err
		}
	}
	return b.flush()
}

// codeRecords is the part of spaceCodes for the codes, without projections. The task
// number changes the table of codes; the other tasks wait for it and only read.
type codeRecords struct {
	record.CodeKeys             // keys of the codes in the store
	of              *spaceCodes // that it is a part of

	table     *mih.Writer // of the code set; changed by number, and by rollback
	before    *mih.Table  // the state of table before, for rollback
	freshCode uint64      // a block whose first code number is freshCode or more has never been written
	firstCode uint32      // number of the first new code
	posted    uint32      // number of the first code without postings

	// number sets these and then closes numbered.
	numbers []uint32 // by item: number of its code, or noCode
	// code number << 32 | row: older codes that this one row carried before, and now others too; ascending
	singles  []uint64
	numbered chan struct{}
}

// noCode stands for the number of a code if an item has none. No code has this number.
const noCode = 1<<32 - 1

// number is the task that adds the rows to the table of codes, in memory, and keeps the
// number of each item's code. New codes get numbers in the order of the items, as a
// transaction would give them. The error is mih.ErrFull, or the end of ctx.
//
// The codes in singles change their form in the store: the row that stood beside the code
// moves to a layer, and codec.ManyRows takes its place.
func (k *codeRecords) number(ctx context.Context) error {
	t := k.table.Table()
	numbers := make([]uint32, k.of.codes.len())
	for i := range numbers {
		numbers[i] = noCode
	}
	err := k.of.codes.eachCode(func(i int, c codec.Code) error {
		if i%4096 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, isNew, err := k.table.Number(c)
		if err != nil {
			return err
		}
		// An older code of one row gets another row now: it becomes one of the singles. The second
		// time it has more rows, and is one already.
		if !isNew && n < k.firstCode && t.Cardinality(n) == 1 {
			for row := range t.Rows(n).All() {
				k.singles = append(k.singles, uint64(n)<<32|uint64(row))
			}
		}
		k.table.Add(n, k.of.row(i))
		numbers[i] = n
		return nil
	})
	if err != nil {
		return err
	}
	slices.Sort(k.singles)
	k.numbers = numbers
	close(k.numbered)
	return nil
}

// writeRowCodes writes the number of each row's code, in blocks by row.
func (k *codeRecords) writeRowCodes(t *store.Stream) error {
	if err := t.Wait(k.numbered); err != nil {
		return err
	}
	b := newBlockStream(t, k.Block(codec.KindRowCodes, 0), codec.RowCodeBytes, k.of.freshRow)
	var entry []byte
	for i, n := range k.numbers {
		if n == noCode {
			continue
		}
		from := k.of.codes.from(i)
		entry = codec.RowCode{Code: n, Provenance: from, Revision: k.of.space.Revision}.Append(entry[:0])
		if err := b.set(k.of.row(i), entry); err != nil {
			return err
		}
	}
	return b.flush()
}

// writeCodes writes the new codes, in blocks by number. Beside a code stands the row that
// carries it, or codec.ManyRows. It also writes the singles, which had their row there.
func (k *codeRecords) writeCodes(t *store.Stream) error {
	if err := t.Wait(k.numbered); err != nil {
		return err
	}
	q, table := k.Bits, k.table.Table()
	b := newBlockStream(t, k.Block(codec.KindCodes, 0), codec.CodeEntryBytes(q), k.freshCode)
	var entry []byte
	// Their numbers are below firstCode, so these blocks come first.
	for _, s := range k.singles {
		n := uint32(s >> 32)
		entry = codec.AppendCodeEntry(entry[:0], table.Code(n), q, codec.ManyRows)
		if err := b.set(n, entry); err != nil {
			return err
		}
	}
	for n := k.firstCode; n < table.Next(); n++ {
		row := uint32(codec.ManyRows)
		if rows := table.Rows(n); rows.Len() == 1 {
			for one := range rows.All() {
				row = one
			}
		}
		entry = codec.AppendCodeEntry(entry[:0], table.Code(n), q, row)
		if err := b.set(n, entry); err != nil {
			return err
		}
	}
	return b.flush()
}

// writeCodeRows writes the rows of the codes that several rows carry, a layer for each code
// and container: the new rows, and the first row of each of the singles, which has not been
// in a layer yet.
func (k *codeRecords) writeCodeRows(t *store.Stream) error {
	if err := t.Wait(k.numbered); err != nil {
		return err
	}
	table := k.table.Table()
	pairs := slices.Clone(k.singles) // code number << 32 | row
	for i, n := range k.numbers {
		if n != noCode && table.Cardinality(n) > 1 {
			pairs = append(pairs, uint64(n)<<32|uint64(k.of.row(i)))
		}
	}
	// Sorted pairs are in the order of the keys: by code number, and then by the container of
	// the row, which pair >> 16 has together.
	slices.Sort(pairs)
	for len(pairs) > 0 {
		layer, container := codec.NewLayer(), pairs[0]>>16
		for len(pairs) > 0 && pairs[0]>>16 == container {
			layer.Added.Add(uint32(uint16(pairs[0])))
			pairs = pairs[1:]
		}
		n := uint32(container >> 16)
		key := k.RowsKey(n, uint16(container))
		if err := putLayer(t, key, layer, n >= k.firstCode); err != nil {
			return err
		}
	}
	return nil
}

// writePostings writes the postings of all codes that have none yet, new and older ones, for the substrings
// with the numbers from to to-1.
func (k *codeRecords) writePostings(t *store.Stream, from, to int) error {
	if err := t.Wait(k.numbered); err != nil {
		return err
	}
	table := k.table.Table()
	return k.Postings(table, k.posted, table.Next(), from, to, func(key []byte, numbers []uint32) error {
		// If codes have postings already, this one may be there, and the two are merged.
		return t.Records.Posting(key, numbers, nil, k.posted == 0)
	})
}

// A blockStream packs entries, by ascending number, into blocks of 256 numbers, and writes
// each block when it is complete. A block that may be in the store already is written as an
// edit, which the store merges with it.
type blockStream struct {
	t     *store.Stream // gets the blocks
	key   []byte        // of the current block; its last four bytes are the number of the block
	width int           // bytes of an entry; -1: they vary
	fresh uint64        // a block whose first number is fresh or more has never been written

	edit  *codec.BlockEdit // entries of the current block; nil before the first, and after flush
	block uint32           // number of the current block
	room  []byte           // memory of its entries
}

// newBlockStream returns a stream of entries of width bytes, -1 if that varies. It takes
// over key, whose last four bytes are the number of a block. Blocks of numbers from fresh
// on have never been written.
func newBlockStream(t *store.Stream, key []byte, width int, fresh uint64) *blockStream {
	return &blockStream{t: t, key: key, width: width, fresh: fresh}
}

// set copies entry, the entry with number n, which is larger than the last. It writes the
// block before, if n begins another. After the last entry the caller calls flush.
func (b *blockStream) set(n uint32, entry []byte) error {
	if b.edit == nil || n/codec.BlockRows != b.block {
		if err := b.flush(); err != nil {
			return err
		}
		b.block, b.edit, b.room = n/codec.BlockRows, codec.NewBlockEdit(b.width), b.room[:0]
	}
	from := len(b.room)
	b.room = append(b.room, entry...)
	b.edit.Set(byte(n), b.room[from:])
	return nil
}

// flush writes the current block, if there is one.
func (b *blockStream) flush() error {
	if b.edit == nil {
		return nil
	}
	// The block of the last row that was given out may be in the store. Blocks behind it cannot be.
	fresh := uint64(b.block)*codec.BlockRows >= b.fresh
	binary.BigEndian.PutUint32(b.key[len(b.key)-4:], b.block)
	edit := b.edit
	b.edit = nil
	return b.t.Records.Block(b.key, edit, fresh)
}

// putLayer writes rows that are added to a set; fresh says that nothing is stored under key.
// Rows that come together often are neighbours without a gap: as a run they take a few
// bytes. It may change the form of layer.Added.
func putLayer(t *store.Stream, key []byte, layer codec.Layer, fresh bool) error {
	if rows := layer.Added; uint64(rows.Maximum()-rows.Minimum())+1 == rows.GetCardinality() {
		rows.RunOptimize()
	}
	return t.Records.Layer(key, layer, fresh)
}
