package bulk

import (
	"context"
	"errors"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/mih"
)

// A load stores new items of one collection in one commit, as a transaction does, but
// as sorted tables.
//
// Everything that the commit holds is in the tables: the items with all that is
// kept of their codes, new labels, the counters and the commit sequence. While the
// tables are made nothing changes in memory but the table of codes, which goes back
// to what it was where something fails: a full disk, say, costs the load and nothing
// else. The rest of the state follows when the store has taken the tables.
type load struct {
	c      *state.Committer
	s      *state.CollectionState
	b      *Items
	tables *store.Tables
	bytes  int64 // that these take, about

	firstRow uint32
	spaces   []*spaceCodes // by space
	nextKey  uint64
	counted  bool // the keys are the numbers from firstKey to nextKey
	firstKey uint64
	keys     []string      // by item
	order    []sortedKey   // the items by key
	keyed    chan struct{} // closed when these are known
	labels   labelNumbers
	presence []*roaring.Bitmap
}

// newLoad returns a load of b in the committer's state; nil where there is no
// room for it, which the ordinary way has the words for. bytes are those of the items.
func newLoad(c *state.Committer, b *Items, bytes int64) *load {
	s := c.States[b.Collection.ID]
	if s == nil || s.Counters.NextRow+uint64(b.n) > record.MaxRows {
		return nil
	}
	l := &load{
		c: c, s: s, b: b, tables: c.Tables(), bytes: bytes + int64(b.n)*int64(s.CodeBytes()),
		firstRow: uint32(s.Counters.NextRow), keyed: make(chan struct{}),
	}
	l.numberLabels()
	if uint64(l.labels.count()) > record.MaxRows {
		return nil
	}
	return l
}

// run stores the items and shows them.
func (l *load) run(ctx context.Context) (err error) {
	s := l.s
	for _, sp := range s.Spaces {
		if sp.Learned != nil && l.b.in(sp.Space) == nil { // space or revision are new
			if err := l.b.encodeFor(ctx, sp.Space, l.labelIDs, nil); err != nil {
				return err
			}
		}
	}
	l.collectPresence()
	first, tasks := []work.Task{l.assignKeys}, []work.Task{l.tables.Task(l.writeKeys)}
	for _, sp := range s.Spaces {
		var made itemCodes = broughtCodes{l.b.codes}
		if sp.Learned != nil {
			made = l.b.in(sp.Space)
		}
		codes := newSpaceCodes(s, sp, l.row, made)
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
		l.writeFeatures, l.writeItems, l.writeFields, l.writeSets, l.writeRowKeys, l.writePending, l.writeCounters,
	} {
		tasks = append(tasks, l.tables.Task(write))
	}
	err = l.c.CommitTables(ctx, l.tables, l.bytes, append(first, tasks...), l.applied)
	if errors.Is(err, mih.ErrFull) {
		return ErrNotBulk // the ordinary way has the words for it
	}
	return err
}

// applied brings the state in memory to what has been stored.
func (l *load) applied() {
	s := l.s
	n := l.counters()
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
	from, to := uint64(l.firstRow), s.Counters.NextRow
	s.Live.Edit().AddRange(from, to)
	if s.Changed != nil {
		s.Changed.AddRange(from, to)
	}
	for _, sp := range s.Spaces {
		if sp.Changed != nil {
			sp.Changed.AddRange(from, to)
		}
	}
	for t, rows := range l.presence {
		if !rows.IsEmpty() {
			s.Presence[t].Edit().Or(rows)
		}
	}
	s.FreshRow = to
	if l.b.firstKey = l.firstKey; l.b.staged == nil { // of an import nobody asks for keys
		l.b.keys = l.keys
	}
	l.c.Touch(s)
}

// counters returns the counters of the collection after the load.
func (l *load) counters() codec.Counters {
	n := l.s.Counters
	n.NextRow += uint64(l.b.n)
	n.Items += uint64(l.b.n)
	n.NextKey = l.nextKey
	for _, codes := range l.spaces {
		n.Spaces = append(n.Spaces, codes.counters())
	}
	return n
}

// labelNumbers numbers labels that the collection does not have yet, without telling
// anybody.
type labelNumbers struct {
	known *state.Labels
	next  int
	ids   map[string]uint32
	names []string
}

func (n *labelNumbers) count() int { return n.next + len(n.names) }

func (n *labelNumbers) add(name string) {
	if _, ok := n.id(name); !ok {
		n.ids[name] = uint32(n.count())
		n.names = append(n.names, name)
	}
}

func (n *labelNumbers) id(name string) (uint32, bool) {
	if id, ok := n.ids[name]; ok {
		return id, true
	}
	return n.known.ID(name)
}

func (l *load) numberLabels() {
	l.labels = labelNumbers{known: l.s.Labels, next: len(l.s.Labels.All()), ids: map[string]uint32{}}
	for _, name := range l.b.Labels.All() {
		l.labels.add(name)
	}
}

// labelIDs returns the ids of the labels of an item, ascending.
func (l *load) labelIDs(names []string) []uint32 {
	if len(names) == 0 {
		return nil
	}
	ids := make([]uint32, len(names))
	for j, name := range names {
		ids[j], _ = l.labels.id(name) // numberLabels has seen them all
	}
	slices.Sort(ids)
	return ids
}

// pending returns the rows that the online step of a space will look at.
func (l *load) pending(sp *state.SpaceState) *roaring.Bitmap {
	return record.UnionOf(l.presence, sp.Positions)
}

// collectPresence finds out which rows have which modality.
func (l *load) collectPresence() {
	for t := range l.s.Modalities {
		rows := roaring.New()
		if t < len(l.b.presence) {
			rows = roaring.AddOffset(l.b.presence[t], l.firstRow)
		}
		l.presence = append(l.presence, rows)
	}
}
