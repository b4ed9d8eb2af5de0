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

// A version is one of the things that were written under a key.
type version struct {
	key   []byte
	seq   uint64 // newer ones are larger; 0: older than any other number
	file  uint64 // that it stands in; where seq is the same, newer ones are larger
	kind  pebble.InternalKeyKind
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

// A source has versions in that order.
type source interface {
	first() []byte  // a key that none of its keys is before; nil: it has none
	open() error    // to be called before peek; an error that is not damage
	peek() *version // nil: there are no more; valid until next
	next() error
	close() error
}

// sources is a heap of sources that are open and not at their end.
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

// A deletion is a range of keys of which everything older is gone.
type deletion struct {
	lo, hi []byte
	seq    uint64
}

// A salvage reads what can be read of a damaged store.
type salvage struct {
	ctx   context.Context
	store *damagedStore
	found func(report.Finding) // of what cannot be read

	lost      record.KeyRanges // keys of which something could not be read
	deletions []deletion
	newest    uint64 // sequence number in any table
	records   int
}

// each calls f with all keys that have a value, ascending, and with what it is: what
// was written last, or the sum of what is merged. Where something is damaged what was
// written before stands in for it.
func (s *salvage) each(f func(key, value []byte) error) (err error) {
	var waiting []source
	var open sources
	defer func() {
		for _, x := range append(waiting, open...) {
			err = errors.Join(err, x.close())
		}
	}()
	for i := range s.store.tables {
		t := &tableSource{salvage: s, damagedTable: &s.store.tables[i]}
		if err := t.begin(); err != nil {
			return err
		}
		waiting = append(waiting, t)
	}
	logs, err := s.readLogs()
	if err != nil {
		return err
	}
	waiting = append(waiting, logs...)
	waiting = slices.DeleteFunc(waiting, func(x source) bool { return x.first() == nil })
	slices.SortStableFunc(waiting, func(a, b source) int { return bytes.Compare(a.first(), b.first()) })
	slices.SortFunc(s.deletions, func(a, b deletion) int { return bytes.Compare(a.lo, b.lo) })
	var active []deletion // of those, what may concern the present key
	var key []byte
	for {
		// Tables are open only while they are needed: there may be thousands.
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

// salvageLooks is after how many records a salvage looks at the context.
const salvageLooks = 1024

// lose records that something of the keys from lo up to and without hi is not known.
func (s *salvage) lose(lo, hi []byte) { s.lost = s.lost.Add(lo, hi) }

// A resolver adds up the versions of a key, the newest first.
type resolver struct {
	key     []byte
	deleted uint64 // everything older is gone
	done    bool   // what is older does not count
	set     []byte // nil: there is none
	merger  *codec.Merger
	err     error
}

// older takes the next version, which is older than those before.
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

// value returns what stands under the key, nil where nothing does.
func (r *resolver) value() ([]byte, error) {
	if r.err != nil || r.merger == nil {
		return r.set, r.err
	}
	return r.merger.Finish(true)
}

// A memorySource has versions in memory.
type memorySource struct{ versions []version }

func (m *memorySource) first() []byte {
	if len(m.versions) == 0 {
		return nil
	}
	return m.versions[0].key
}

func (m *memorySource) peek() *version {
	if len(m.versions) == 0 {
		return nil
	}
	return &m.versions[0]
}

func (m *memorySource) open() error  { return nil }
func (m *memorySource) close() error { return nil }

func (m *memorySource) next() error {
	m.versions = m.versions[1:]
	return nil
}

func (m *memorySource) sort() {
	sort.SliceStable(m.versions, func(i, j int) bool { return m.versions[i].compare(&m.versions[j]) < 0 })
}

// unreadable reports whether an error is about what stands in a file, which is damage,
// and not about reading it.
func unreadable(err error) bool {
	return pebble.IsCorruptionError(err) || errors.Is(err, codec.ErrCorrupt) || errors.Is(err, fs.ErrNotExist)
}

// about returns a finding as one about a key.
func about(key []byte, f report.Finding) report.Finding {
	f.Key = fmt.Sprintf("%x", key)
	return f
}
