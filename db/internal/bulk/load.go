package bulk

import (
	"context"
	"errors"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/mih"
)

// A load stores new items of one collection in one commit, as a transaction does, but as sorted tables. It
// lives for one request of the committer, and belongs to its goroutine, except for the fields that say
// otherwise.
//
// The tables hold the whole commit: the items with the records of their codes, new labels, the counters and
// the commit sequence. While the tables are made, only the tables of codes change in memory, and a failure
// reverts them: a full disk, for example, costs only the load. The rest of the state follows in applied, once
// the store has taken the tables.
type load struct {
	c      *state.Committer       // that runs the load
	s      *state.CollectionState // of the collection; tasks only read it
	batch  *Batch                 // the items to store; tasks only read it
	n      int                    // number of items
	tables *store.Tables          // the commit
	bytes  int64                  // estimate of the size of the tables

	firstRow uint32        // row of item 0; item i gets row firstRow+i
	spaces   []*spaceCodes // codes of the items, one for each space of s, in the same order

	// The task assignKeys sets these and then closes keyed. Other tasks wait for keyed
	// before they read them.
	nextKey uint64 // counter of automatic keys after the load
	// the keys are the numbers from firstKey to nextKey-1; keys, numbered and order are nil
	counted  bool
	firstKey uint64      // key of item 0; set if counted
	keys     []string    // by item
	numbered []bool      // by item: its key is from the counter
	order    []sortedKey // the items by key
	keyed    chan struct{}

	labels   labelNumbers      // numbers of labels; complete before the tasks begin
	presence []*roaring.Bitmap // by modality: new rows that have it; complete before the tasks begin
}

// each calls f with items from to to-1. The entry is valid until f returns.
func (l *load) each(from, to int, f func(i int, e *entry) error) error {
	first := l.batch.registered
	return l.batch.changes.each(first+from, first+to, func(i int, e *entry) error { return f(i-first, e) })
}

// newLoad returns a load of the items that a batch puts, and numbers its labels. It returns nil if there are
// too few rows or numbers of labels left, or if the collection is gone: storing the items one by one returns
// the error for that.
func newLoad(c *state.Committer, b *Batch) *load {
	s, n := c.States[b.collection], b.puts()
	if s == nil || s.Counters.NextRow+uint64(n) > record.MaxRows {
		return nil
	}
	l := &load{
		c: c, s: s, batch: b, n: n, tables: c.Tables(),
		bytes:    int64(b.Bytes) + int64(n)*int64(s.CodeBytes()),
		firstRow: uint32(s.Counters.NextRow), keyed: make(chan struct{}),
	}
	l.numberLabels()
	if uint64(l.labels.count()) > record.MaxRows {
		return nil
	}
	return l
}

// run stores the items and shows them to readers.
//
// Tasks that assign numbers come before the tasks that wait for numbers. Together starts tasks in order, so
// even with few workers a waiting task waits for one that runs or is done. Each of the others writes kinds of
// keys of its own, or a range of one kind, because tables must not overlap.
func (l *load) run(ctx context.Context) (err error) {
	s := l.s
	if l.batch.by != s.Labels { // a label has been renamed since prepare
		l.batch.encs, l.batch.by = nil, s.Labels
	}
	for _, sp := range s.Spaces {
		if l.batch.encodings(sp.Space) == nil { // the space or its revision has come since prepare
			if err := l.batch.encode(ctx, sp.Space, l.namedIDs); err != nil {
				return err
			}
		}
	}
	// From here on tasks only read the changes.
	if err := l.collectPresence(); err != nil {
		return err
	}
	first, tasks := []work.Task{l.assignKeys}, []work.Task{l.tables.Task(l.writeKeys)}
	for _, sp := range s.Spaces {
		var made itemCodes = givenCodes{l}
		if encs := l.batch.encodings(sp.Space); encs != nil {
			made = madeCodes(encs)
		}
		// A space that is being built gets codes, too: its builder leaves out rows that have some.
		codes := newSpaceCodes(s, sp, l.row, made)
		// Tables of codes are the one thing that a load changes before the store has its tables.
		defer func() {
			if err != nil {
				codes.rollback()
			}
		}()
		l.spaces = append(l.spaces, codes)
		number, write := codes.tasks(l.tables)
		first, tasks = append(first, number...), append(tasks, write...)
	}
	for _, write := range []func(*store.Stream) error{
		l.writeFeatures, l.writeItems, l.writeFields, l.writeWords, l.writeSets, l.writeRowKeys,
		l.writePending, l.writeCounters,
	} {
		tasks = append(tasks, l.tables.Task(write))
	}
	// The tasks end before CommitTables returns, with an error too: rollback finds no task at work.
	err = l.c.CommitTables(ctx, l.tables, l.bytes, append(first, tasks...), l.applied)
	if errors.Is(err, mih.ErrFull) {
		return errNotBulk // storing the items one by one returns the error for that
	}
	return fault.Annotate(err, "bulk load")
}

// applied updates the state in memory to the contents of the tables. The tables of codes are up to date
// already. It runs in the committer, between taking the tables and publishing, and cannot fail.
func (l *load) applied() {
	s := l.s
	n := l.counters() // the same as writeCounters has stored
	for i, sp := range s.Spaces {
		sp.TakeOver(n.Spaces[i])
		if rows := l.pending(sp); !rows.IsEmpty() {
			sp.Pending.Edit().Or(rows)
			sp.Written += int(rows.GetCardinality())
		}
	}
	s.Counters = n
	s.Counters.Spaces = nil
	for _, name := range l.labels.names {
		s.Labels.Add(name)
	}
	s.ForgetLabelsInUse()
	from, to := uint64(l.firstRow), s.Counters.NextRow
	s.Live.Edit().AddRange(from, to)
	// A running training, builder or updater has a view without these rows. Changed tells it that they have
	// changed since.
	if s.Changed != nil {
		s.Changed.AddRange(from, to)
	}
	for _, sp := range s.Spaces {
		if sp.Changed != nil {
			sp.Changed.AddRange(from, to)
		}
	}
	s.ForgetFrom(l.firstRow)
	for t, rows := range l.presence {
		if !rows.IsEmpty() {
			s.Presence[t].Edit().Or(rows)
		}
	}
	s.FreshRow = to
	l.batch.firstKey, l.batch.keys = l.firstKey, l.keys
	l.c.Touch(s)
}

// counters returns the counters of the collection after the load. The keys and the
// numbers of codes must be known.
func (l *load) counters() codec.Counters {
	n := l.s.Counters
	n.NextRow += uint64(l.n)
	n.Items += uint64(l.n)
	n.NextKey = l.nextKey
	for _, codes := range l.spaces {
		n.Spaces = append(n.Spaces, codes.counters())
	}
	return n
}

// labelNumbers gives numbers to labels that the collection does not have yet, without
// changing the collection: a load that fails leaves no label behind.
type labelNumbers struct {
	known *state.Labels     // of the collection; not written to
	next  int               // number of the first new label
	ids   map[string]uint32 // of the new labels, by name
	names []string          // new labels, in order of their numbers
	of    []uint32          // numbers of the names of the batch
}

// count returns the number of labels, the new ones included.
func (n *labelNumbers) count() int { return n.next + len(n.names) }

// add gives a label the next number, unless it has one.
func (n *labelNumbers) add(name string) {
	if _, ok := n.id(name); !ok {
		n.ids[name] = uint32(n.count())
		n.names = append(n.names, name)
	}
}

// id returns the number of a label, if it has one.
func (n *labelNumbers) id(name string) (uint32, bool) {
	if id, ok := n.ids[name]; ok {
		return id, true
	}
	return n.known.ID(name)
}

// numberLabels numbers all labels: the registered ones, then the labels of the items, in order.
func (l *load) numberLabels() {
	l.labels = labelNumbers{known: l.s.Labels, next: len(l.s.Labels.All()), ids: map[string]uint32{}}
	for _, name := range l.batch.changes.names {
		l.labels.add(name)
		id, _ := l.labels.id(name)
		l.labels.of = append(l.labels.of, id)
	}
}

// labelIDs appends the numbers of the labels of an item, ascending. Tasks call it at the same time.
func (l *load) labelIDs(dst []uint32, e *entry) []uint32 {
	dst = e.appendLabels(dst)
	for i, name := range dst {
		dst[i] = l.labels.of[name]
	}
	slices.Sort(dst)
	return dst
}

// namedIDs returns the numbers of labels, ascending. Several goroutines call it.
func (l *load) namedIDs(names []string) (ids []uint32) {
	for _, name := range names {
		id, _ := l.labels.id(name) // numberLabels has seen them all
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// pending returns the new rows that the updater of a space has to look at: rows with a modality of its model.
// The bitmap is the caller's.
func (l *load) pending(sp *state.SpaceState) *roaring.Bitmap {
	if !sp.HasStatistics() {
		return roaring.New()
	}
	return record.UnionOf(l.presence, sp.Positions)
}

// collectPresence finds the rows that have each modality, for all modalities of the collection, even unused
// ones.
func (l *load) collectPresence() error {
	for range l.s.Modalities {
		l.presence = append(l.presence, roaring.New())
	}
	if l.batch.changes.flags&hasVectors == 0 {
		return nil
	}
	return l.each(0, l.n, func(i int, e *entry) error {
		return e.eachVector(func(t int, _ []byte) error {
			l.presence[t].Add(l.row(i))
			return nil
		})
	})
}
