package repair

import (
	"bytes"
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/big"
	"slices"
	"sort"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	walrecord "github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/wal"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
)

// A log-structured store has several versions of a key, in several files. Reading it gives the
// newest version. An edit (a merge) is added up with the older versions, down to the first that
// sets or deletes the key. A range deletion hides all older versions of its keys. Pebble does all
// this for a store that opens. salvage does it here for a store that does not, over all files at
// once, and leaves out what cannot be read.
//
// It differs in one point. If the newest version of a key is in a damaged block, an older one replaces it. So
// replaced or deleted data may come back. The steps that follow tell such remains from items by the other
// records of an item.

// A version is one entry of the storage engine: one write under a key.
type version struct {
	key []byte
	// newer versions have larger ones; 0 for an ingested table whose number is not known
	seq   uint64
	file  uint64                 // the number of its table, MaxUint64 in a log: orders versions of equal seq
	kind  pebble.InternalKeyKind // set, merge or delete
	value []byte
}

// compare orders versions by key, the newest of a key first.
func (a *version) compare(b *version) int {
	if c := bytes.Compare(a.key, b.key); c != 0 {
		return c
	}
	switch {
	case a.seq != b.seq:
		if a.seq > b.seq {
			return -1
		}
		return 1
	case a.file > b.file:
		return -1
	case a.file < b.file:
		return 1
	}
	return 0
}

// A source yields versions in the order of compare. It deals with damage itself; its errors
// are not damage, and end the repair.
type source interface {
	first() []byte  // a lower bound of its keys, known before open; nil: it has no versions
	open() error    // goes to the first version
	peek() *version // the present version, valid until next; nil: there are no more
	next() error    // goes to the next version
	close() error   // frees the file; it may be called without open
}

// sources is a heap (container/heap) of open sources that are not at their end, the one with
// the first version on top.
type sources []source

func (s sources) Len() int           { return len(s) }
func (s sources) Less(i, j int) bool { return s[i].peek().compare(s[j].peek()) < 0 }
func (s sources) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *sources) Push(x any)        { *s = append(*s, x.(source)) }
func (s *sources) Pop() any {
	last := len(*s) - 1
	x := (*s)[last]
	*s = (*s)[:last]
	return x
}

// A deletion is a range deletion: it deletes the versions of keys [lo, hi) that are older than
// seq.
type deletion struct {
	lo, hi []byte
	seq    uint64
}

// A salvage reads all readable data of a damaged store, once, by each.
type salvage struct {
	ctx   context.Context
	store *damagedStore
	found func(report.Finding) // called for all unreadable data

	lost      record.KeyRanges // ranges in which something could not be read
	deletions []deletion       // the range deletions of tables and logs; each uses them up
	newest    uint64           // the largest sequence number in a table
	records   int              // the number of keys so far, for progress
}

// each calls f with all keys that have a value, ascending, and their values: the last one that
// was set, with the later merges added up. key and value are valid until f returns. A damaged
// version is left out, so that an older one may stand in for it.
//
// It merges tables and logs with a heap. A table is open only from its first key to its last,
// as there may be thousands.
func (s *salvage) each(f func(key, value []byte) error) (err error) {
	var waiting []source
	var open sources
	defer func() {
		for _, x := range append(waiting, open...) {
			err = errors.Join(err, x.close())
		}
	}()
	for i := range s.store.tables {
		// Open each table once, to learn its first key and its range deletions: a deletion may apply
		// to keys of any other table.
		t := &tableSource{salvage: s, damagedTable: &s.store.tables[i]}
		if err := t.begin(); err != nil {
			return err
		}
		waiting = append(waiting, t)
	}
	// Logs come after the tables, as readBatch needs the largest sequence number of these.
	logs, err := s.readLogs()
	if err != nil {
		return err
	}
	waiting = append(waiting, logs...)
	waiting = slices.DeleteFunc(waiting, func(x source) bool { return x.first() == nil })
	slices.SortStableFunc(waiting, func(a, b source) int { return bytes.Compare(a.first(), b.first()) })
	slices.SortFunc(s.deletions, func(a, b deletion) int { return bytes.Compare(a.lo, b.lo) })
	var active []deletion // the deletions that begin before the present key and may reach it
	var key []byte
	for {
		// Open the sources that may have the next key.
		for len(waiting) > 0 && (len(open) == 0 || bytes.Compare(waiting[0].first(),
			open[0].peek().key) <= 0) {
			x := waiting[0]
			waiting = waiting[1:]
			if err := x.open(); err != nil {
				return errors.Join(err, x.close())
			}
			if x.peek() == nil {
				if err := x.close(); err != nil {
					return err
				}
				continue
			}
			heap.Push(&open, x)
		}
		if len(open) == 0 {
			return nil
		}
		if s.records++; s.records%salvageLooks == 0 {
			if err := s.ctx.Err(); err != nil {
				return err
			}
		}
		key = append(key[:0], open[0].peek().key...)
		for len(s.deletions) > 0 && bytes.Compare(s.deletions[0].lo, key) <= 0 {
			active, s.deletions = append(active, s.deletions[0]), s.deletions[1:]
		}
		active = slices.DeleteFunc(active, func(d deletion) bool { return bytes.Compare(d.hi, key) <= 0 })
		// Give the resolver all versions of the key, the newest first.
		r := resolver{key: key}
		for _, d := range active {
			r.deleted = max(r.deleted, d.seq)
		}
		for len(open) > 0 && bytes.Equal(open[0].peek().key, key) {
			x := open[0]
			r.older(x.peek())
			if err := x.next(); err != nil {
				return err
			}
			if x.peek() != nil {
				heap.Fix(&open, 0)
				continue
			}
			heap.Pop(&open)
			if err := x.close(); err != nil {
				return err
			}
		}
		value, err := r.value()
		if err != nil {
			s.found(report.Finding{Record: "record", Key: fmt.Sprintf("%x", key),
				Problem: fault.Problem(err)})
			s.lose(key, record.KeyAfter(key))
			continue
		}
		if value != nil {
			if err := f(key, value); err != nil {
				return err
			}
		}
	}
}

// salvageLooks is the number of keys between two looks at the context.
const salvageLooks = 1024

// lose records that some of the keys [lo, hi) could not be read.
func (s *salvage) lose(lo, hi []byte) { s.lost = s.lost.Add(lo, hi) }

// A resolver makes the value of a key from its versions, the newest first, as the storage
// engine would.
type resolver struct {
	key     []byte
	deleted uint64        // versions with smaller sequence numbers are deleted
	done    bool          // a set or a delete was seen: older versions do not count
	set     []byte        // the value, if it was set and nothing merged; nil: there is none
	merger  *codec.Merger // adds up merges; nil: there are none
	err     error         // the first error; the key is lost then
}

// older adds the next version, which is older than those before. It keeps nothing of v.
func (r *resolver) older(v *version) {
	if r.done || r.err != nil || v.seq < r.deleted {
		return
	}
	merge := func() {
		if r.merger == nil {
			r.merger, r.err = codec.NewMerger(r.key, v.value)
		} else {
			r.merger.Older(v.value)
		}
	}
	switch v.kind {
	case pebble.InternalKeyKindSet, pebble.InternalKeyKindSetWithDelete:
		// A set below merges is their oldest operand.
		if r.done = true; r.merger != nil {
			merge()
		} else {
			r.set = append([]byte{}, v.value...)
		}
	case pebble.InternalKeyKindMerge:
		merge()
	case pebble.InternalKeyKindDelete, pebble.InternalKeyKindDeleteSized, pebble.InternalKeyKindSingleDelete:
		r.done = true
	default:
		r.err = fmt.Errorf("%w: an entry of unknown kind %d", codec.ErrCorrupt, v.kind)
	}
}

// value returns the value of the key, nil if it has none.
func (r *resolver) value() ([]byte, error) {
	if r.err != nil || r.merger == nil {
		return r.set, r.err
	}
	return r.merger.Finish(true)
}

// A memorySource is a source of the versions of logs, in memory. Call sort before first.
type memorySource struct{ versions []version }

// first implements source.
func (m *memorySource) first() []byte {
	if len(m.versions) == 0 {
		return nil
	}
	return m.versions[0].key
}

// peek implements source.
func (m *memorySource) peek() *version {
	if len(m.versions) == 0 {
		return nil
	}
	return &m.versions[0]
}

// open and close implement source: there is no file.
func (m *memorySource) open() error  { return nil }
func (m *memorySource) close() error { return nil }

// next implements source.
func (m *memorySource) next() error {
	m.versions = m.versions[1:]
	return nil
}

// sort puts the versions in the order of a source.
func (m *memorySource) sort() {
	sort.SliceStable(m.versions, func(i, j int) bool { return m.versions[i].compare(&m.versions[j]) < 0 })
}

// unreadable reports whether an error is about the content of a file, or its absence. Another
// read then gives the same.
func unreadable(err error) bool {
	return pebble.IsCorruptionError(err) || errors.Is(err, codec.ErrCorrupt) || errors.Is(err, fs.ErrNotExist)
}

// Pebble's iterator ends at a block that it cannot read, and does not say where the next one
// begins. The index of the table, which is another block, may still be sound: nextBlock asks it,
// through estimates of sizes, where the damaged block ends, and reading goes on there. So one
// damaged block costs its own keys and no others: TestRepairOfABlock and TestRepairOfAFirstBlock
// of db.

// A tableSource is the source of the readable versions of a table. Behind a damaged block it
// goes on with the next block, and reports the keys between as lost.
type tableSource struct {
	*damagedTable
	salvage *salvage // gets findings, lost ranges and deletions

	r      *sstable.Reader  // nil: the table is closed, or cannot be opened
	it     sstable.Iterator // on r; nil: none could be made
	begins []byte           // the first readable key, found by begin; nil: there is none
	start  []byte           // where open has begun to read; nil: at the first key
	now    version          // the version at the iterator, if more; behind goes on behind its key
	more   bool             // now is valid
}

// begin finds the first key of the table, adds its range deletions to the salvage, and closes
// the table again. Call it once, before first.
func (t *tableSource) begin() (err error) {
	if err := t.open(); err != nil {
		return err
	}
	if t.r == nil {
		return nil
	}
	if t.more {
		t.begins = slices.Clone(t.now.key)
	}
	err = work.Safely(t.readDeletions)
	if err != nil && t.salvage.ctx.Err() == nil {
		t.salvage.found(report.Finding{Record: t.name(),
			Problem: "what it deletes cannot be read, and may come back: " + fault.Problem(err)})
		err = nil
	}
	return errors.Join(fault.Annotate(err, "read %s", t.path), t.close())
}

// first implements source.
func (t *tableSource) first() []byte { return t.begins }

// open opens the table and goes to its first readable version. A table that cannot be opened
// is reported as lost, and is empty. Errors are the error of ctx, and errors that are no damage
// (isDamage).
func (t *tableSource) open() error {
	err := t.openReader()
	if err != nil && !unreadable(err) {
		err = t.openReader() // a failed read may succeed the second time
	}
	if err != nil {
		if cerr := t.salvage.ctx.Err(); cerr != nil {
			return cerr
		}
		if !isDamage(err) {
			return fault.Annotate(err, "read %s", t.path)
		}
		t.lose(t.from, t.to, err)
		return nil
	}
	// begin has found the first readable key, and reported the damage before it: do not report it
	// twice.
	t.start, t.now.key = t.lo, t.now.key[:0]
	if t.begins != nil { // damage before it has been reported
		t.start = t.begins
	}
	return t.behind(t.at(t.start))
}

// openReader sets r. A panic of Pebble over damaged bytes becomes an error.
func (t *tableSource) openReader() error {
	return work.Safely(func() (err error) {
		t.r, err = store.OpenTable(t.salvage.ctx, t.salvage.store.fs, t.path, t.salvage.store.reader)
		return err
	})
}

// close implements source. A table can be opened again.
func (t *tableSource) close() error {
	if t.r == nil {
		return nil
	}
	if t.it != nil {
		_ = t.it.Close() // its error is one that reading has returned before
	}
	err := t.r.Close()
	t.r, t.it, t.more = nil, nil, false
	return fault.Annotate(err, "close %s", t.path)
}

// peek implements source.
func (t *tableSource) peek() *version {
	if !t.more {
		return nil
	}
	return &t.now
}

// next implements source.
func (t *tableSource) next() error {
	return t.behind(work.Safely(func() error {
		kv := t.it.Next()
		if kv == nil {
			return t.end()
		}
		value, _, err := kv.Value(nil)
		return t.take(kv.K, value, err)
	}))
}

// at goes to the first version at or behind a key. An error says that it cannot be read.
func (t *tableSource) at(from []byte) error {
	return work.Safely(func() (err error) {
		if t.it != nil {
			_ = t.it.Close() // its error is one that reading has returned before
		}
		t.it, err = t.r.NewIter(t.transforms, from, t.hi, sstable.AssertNoBlobHandles)
		if err != nil {
			t.it = nil
			return err
		}
		kv := t.it.First()
		if kv == nil {
			return t.end()
		}
		value, _, err := kv.Value(nil)
		return t.take(kv.K, value, err)
	})
}

// end notes that the iterator has nothing more, and returns the error if that is why.
func (t *tableSource) end() error {
	t.more = false
	return t.it.Error()
}

// take copies the version at the iterator to now. With err, its value could not be read, and
// now stays the version before.
func (t *tableSource) take(key pebble.InternalKey, value []byte, err error) error {
	if t.more = false; err != nil {
		return err
	}
	t.now = version{
		key: append(t.now.key[:0], key.UserKey...), value: append(t.now.value[:0], value...),
		seq: uint64(key.SeqNum()), kind: key.Kind(), file: t.number,
	}
	t.salvage.newest = max(t.salvage.newest, t.now.seq)
	t.more = true
	return nil
}

// behind goes on behind damage that err reports, until it finds a readable version or the end of
// the table. It reports the keys that it leaves out as lost. A nil err is a step that went
// well. It fails only when ctx ends.
func (t *tableSource) behind(err error) error {
	for err != nil {
		if t.salvage.ctx.Err() != nil {
			return t.salvage.ctx.Err()
		}
		from := t.start // the damage begins here, or behind the last version read
		if len(t.now.key) > 0 {
			from = record.KeyAfter(t.now.key) // which leaves out its older versions, too
		}
		cause := err
		if !unreadable(err) { // a failed read may succeed the second time
			if err = t.at(from); err == nil {
				return nil
			}
		}
		// The rest of the block is lost: its keys are unknown.
		to, ok := t.nextBlock(from)
		if !ok {
			t.lose(from, t.hi, cause)
			t.more = false
			return nil
		}
		t.lose(from, to, cause)
		t.now.key = append(t.now.key[:0], to...)
		err = t.at(to)
	}
	return nil
}

// lose reports the keys [lo, hi) as lost. A nil bound means the bound of the table by the
// manifest, if that is known.
func (t *tableSource) lose(lo, hi []byte, cause error) {
	if lo == nil {
		lo = t.from
	}
	if hi == nil {
		hi = t.to
	}
	t.salvage.lose(lo, hi)
	where := "all of it"
	switch {
	case lo != nil && hi != nil:
		where = fmt.Sprintf("the keys from %x up to %x", lo, hi)
	case lo != nil:
		where = fmt.Sprintf("the keys from %x on", lo)
	case hi != nil:
		where = fmt.Sprintf("the keys up to %x", hi)
	}
	why := strings.TrimPrefix(fault.Problem(cause), t.name()+": ")
	if errors.Is(cause, fs.ErrNotExist) {
		why = "the file is missing"
	}
	t.salvage.found(report.Finding{Record: t.name(), Problem: fmt.Sprintf("%s cannot be read: %s", where,
		why)})
}

// searchedBytes is the length of the keys among which nextBlock searches. Keys of rows and chunks
// have 17 bytes at most. Of longer keys with equal first bytes, nextBlock may skip some that could be
// read: those are names and keys of items, which descriptors and rows tell as well, and sets of rows
// by field, which are made again.
const searchedBytes = 24

// nextBlock returns the lowest key of searchedBytes bytes in a later block than from; ok is
// false if there is no later block. It asks only the index of the table, by estimates of the
// bytes from one key to another: these grow where a block ends. A bisection takes
// 8 searchedBytes estimates.
func (t *tableSource) nextBlock(from []byte) (to []byte, ok bool) {
	if from == nil {
		from = []byte{0}
	}
	// size estimates the bytes of the blocks from from up to a key.
	size := func(to []byte) uint64 {
		n := uint64(0)
		err := work.Safely(func() (err error) {
			n, err = t.r.EstimateDiskUsage(from, to, sstable.NoReadEnv)
			return err
		})
		if err != nil {
			return 0 // a damaged part of the index: search behind it
		}
		return n
	}
	// The size with the block of from. Up to a key of a later block it is larger.
	here := size(from)
	fixed := func(n *big.Int) []byte { return n.FillBytes(make([]byte, searchedBytes)) }
	lo := new(big.Int).SetBytes(append(slices.Clone(from), make([]byte, searchedBytes)...)[:searchedBytes])
	hi := new(big.Int).SetBytes(bytes.Repeat([]byte{0xff}, searchedBytes))
	if size(fixed(hi)) <= here || here == 0 {
		return nil, false
	}
	for one := big.NewInt(1); ; { // lo is in the block of from, hi is behind it
		middle := new(big.Int).Add(lo, hi)
		middle.Rsh(middle, 1)
		if new(big.Int).Sub(hi, lo).Cmp(one) <= 0 {
			break
		}
		if size(fixed(middle)) > here {
			hi = middle
		} else {
			lo = middle
		}
	}
	to = fixed(hi)
	return to, bytes.Compare(to, from) > 0
}

// readDeletions adds the range deletions of the table to the salvage, cut to lo and hi.
func (t *tableSource) readDeletions() error {
	transforms := sstable.FragmentIterTransforms{SyntheticSeqNum: t.transforms.SyntheticSeqNum}
	it, err := t.r.NewRawRangeDelIter(t.salvage.ctx, transforms, sstable.NoReadEnv)
	if it == nil || err != nil {
		return err
	}
	defer it.Close()
	span, err := it.First()
	for ; span != nil && err == nil; span, err = it.Next() {
		lo, hi := slices.Clone(span.Start), slices.Clone(span.End)
		// A virtual table is a part of a file, which may delete keys outside of that part.
		if t.lo != nil && bytes.Compare(lo, t.lo) < 0 {
			lo = t.lo
		}
		if t.hi != nil && bytes.Compare(hi, t.hi) > 0 {
			hi = t.hi
		}
		for _, k := range span.Keys {
			if k.Kind() == pebble.InternalKeyKindRangeDelete && bytes.Compare(lo, hi) < 0 {
				t.salvage.deletions = append(t.salvage.deletions, deletion{lo, hi, uint64(k.SeqNum())})
				t.salvage.newest = max(t.salvage.newest, uint64(k.SeqNum()))
			}
		}
	}
	return err
}

// The latest writes stand in logs alone, until a flush makes tables of them. A log is a sequence of batches,
// and a batch is a commit of Pebble: it counts as a whole, or not at all. Checksums show where the log is
// damaged.

// readLogs reads the versions that stand in the logs and in no table yet, into memory: as much
// as the memory tables of the store held. Behind damage the rest of a log is lost, and
// reported; the next log is read nevertheless. It returns a source of all versions, and one for
// each table that a log names as ingested. Call it when all tables have begun: it needs newest.
func (s *salvage) readLogs() ([]source, error) {
	m := &memorySource{}
	var out []source
	logs := s.store.logs
	for i, log := range logs {
		one, tables := &memorySource{}, []source(nil)
		read := func() error { return s.readLog(log, one, &tables) }
		// A panic over damaged bytes is an error, too. A second try begins with nothing, so that no
		// version counts twice.
		err := work.Safely(read)
		// a failed read may succeed the second time
		if err != nil && !errors.Is(err, errTorn) && !unreadable(err) {
			one, tables = &memorySource{}, nil
			err = work.Safely(read)
		}
		m.versions, out = append(m.versions, one.versions...), append(out, tables...)
		// A torn end of the last log is no damage: the process has ended in a write.
		if err == nil || errors.Is(err, errTorn) && i == len(logs)-1 {
			continue
		}
		if s.ctx.Err() != nil {
			return nil, s.ctx.Err()
		}
		s.found(report.Finding{Record: fmt.Sprintf("log %06d", uint64(log.Num)),
			Problem: "what follows in it cannot be read, and is lost: " + fault.Problem(err)})
	}
	m.sort()
	return append(out, m), nil
}

// errTorn says that a log ends in the middle of a write.
var errTorn = errors.New("it ends in the middle of a write")

// readLog reads one log: its versions into m, and a source into out for each table that it names as ingested.
// Versions that it has read before an error count.
func (s *salvage) readLog(log wal.LogicalLog, m *memorySource, out *[]source) error {
	r := log.OpenForRead()
	defer r.Close()
	for {
		record, _, err := r.NextRecord()
		var repr []byte
		if err == nil {
			repr, err = io.ReadAll(record)
		}
		switch {
		// Pebble returns EOF where a log ends as it should, ErrUnexpectedEOF where a write is cut
		// off.
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, walrecord.ErrUnexpectedEOF):
			return errTorn
		case err != nil:
			return err
		}
		if err := s.readBatch(repr, uint64(log.Num), m, out); err != nil {
			return err
		}
	}
}

// readBatch reads a batch of a log, in Pebble's form: all of it, or nothing. log is the number
// of the log. Entries are numbered from the sequence number of the batch on.
func (s *salvage) readBatch(repr []byte, log uint64, m *memorySource, out *[]source) error {
	header, ok := batchrepr.ReadHeader(repr)
	if !ok {
		return errors.New("a write without a header")
	}
	if !s.store.listed && uint64(header.SeqNum) <= s.newest {
		// It stands in the tables already. Ingested tables have no numbers without a
		// manifest, so that it would hide newer versions in these.
		return nil
	}
	seq := uint64(header.SeqNum)
	var versions []version
	var deletions []deletion
	var tables []*tableSource
	reader := batchrepr.Read(repr)
	for {
		kind, key, value, ok, err := reader.Next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		switch kind {
		case pebble.InternalKeyKindLogData:
			continue // it has no number
		case pebble.InternalKeyKindRangeDelete:
			deletions = append(deletions, deletion{slices.Clone(key), slices.Clone(value), seq})
		// The store was to take over a table. The manifest may not have it yet.
		case pebble.InternalKeyKindIngestSST:
			number, n := binary.Uvarint(key)
			if n <= 0 {
				return errors.New("a table without a number")
			}
			f := damagedTable{number: number, path: s.store.fs.PathJoin(s.store.dir,
				fmt.Sprintf("%06d.sst", number))}
			f.transforms.SyntheticSeqNum = sstable.SyntheticSeqNum(seq)
			tables = append(tables, &tableSource{salvage: s, damagedTable: &f})
		default:
			versions = append(versions, version{slices.Clone(key), seq, math.MaxUint64, kind,
				slices.Clone(value)})
		}
		seq++
	}
	// All entries could be read: now the batch counts, as a whole.
	m.versions = append(m.versions, versions...)
	s.deletions = append(s.deletions, deletions...)
	for _, t := range tables {
		if !s.store.listed {
			break // all tables in the folder are sources already
		}
		if err := t.begin(); err != nil {
			return err
		}
		*out = append(*out, t)
	}
	return nil
}
