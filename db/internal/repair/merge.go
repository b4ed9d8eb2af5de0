package repair

import (
	"bytes"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sort"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/report"
)

// A log-structured store has several versions of a key, in several files. Reading it gives the
// newest version. An edit (a merge) is added up with the older versions, down to the first that
// sets or deletes the key. A range deletion hides all older versions of its keys. Pebble does all
// this for a store that opens. salvage does it here for a store that does not, over all files at
// once, and leaves out what cannot be read.
//
// It differs in one point. If the newest version of a key is in a damaged block, an older one
// stands in for it. So what was replaced or deleted may come back. The steps that follow tell such
// rests from items by the other records of an item.

// A version is one entry of the storage engine: something that was written under a key.
type version struct {
	key   []byte
	seq   uint64                 // newer versions have larger ones; 0 for an ingested table whose number is not known
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

// A salvage reads all that can be read of a damaged store, once, by each.
type salvage struct {
	ctx   context.Context
	store *damagedStore
	found func(report.Finding) // called for all that cannot be read

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
		for len(waiting) > 0 && (len(open) == 0 || bytes.Compare(waiting[0].first(), open[0].peek().key) <= 0) {
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
			s.found(about(key, report.Finding{Record: "record", Problem: fault.Problem(err)}))
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

// lose records that something under the keys [lo, hi) could not be read.
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

// about returns a finding with its key, in hexadecimal.
func about(key []byte, f report.Finding) report.Finding {
	f.Key = fmt.Sprintf("%x", key)
	return f
}
