package bulk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/signal"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/model"
)

// LoadItems is the number of items from which on a batch that only puts new items into one collection is
// stored as sorted tables, which the store takes over, bypassing its log and memtables. At this number both
// ways take about as long: tables need a dozen files to be made durable, one for each kind of key, which
// costs as much as some thousand items cost the ordinary way. (Tests have less.)
var LoadItems = 8192

// loadBytes is the size from which on such a batch is stored as tables, even with few items: the log and
// memtables would write it twice.
const loadBytes = 16 << 20

// A Batch has changes to commit together, all or none, with marks.
type Batch struct {
	Marks []record.Mark // of several under one name the last counts
	Bytes int           // estimate of the size of the items in the store

	changes    packed
	registered int  // number of first changes that only register labels
	mixed      bool // it has changes other than these and items to put, or of several collections
	keyed      bool // an item to put brings a key
	collection uint32

	encs []made        // of a load: the codes of the items to put, in each space that Prepare saw
	by   *state.Labels // the names by which encs were made; others may have other ids

	// Set by Commit, for Keys and Found.
	one      []*state.Change // the changes, if they were not stored as a load
	keys     []string        // of the items of a load, unless they are the numbers from firstKey on
	firstKey uint64          // of a load without keys
}

// made are the encodings of the items of a load in a space.
type made struct {
	space *spaces.Space
	encs  []spaces.Encoding
}

// Add adds a change, and keeps nothing of it.
func (b *Batch) Add(ch *state.Change) error {
	if b.changes.n == 0 {
		b.collection = ch.Collection
	}
	switch {
	case ch.Collection == b.collection && ch.Kind == state.AddLabels && b.changes.n == b.registered:
		b.registered++
	case ch.Collection == b.collection && ch.Kind == state.PutItem:
		b.keyed = b.keyed || ch.Item.Key != ""
	default:
		b.mixed = true
	}
	b.Bytes += ch.Item.Bytes()
	if ch.Old != nil {
		b.Bytes += ch.Old.Bytes()
	}
	return b.changes.add(ch)
}

// Len returns the number of changes.
func (b *Batch) Len() int { return b.changes.n }

// Memory returns the memory that the changes take, in bytes, about.
func (b *Batch) Memory() int { return b.changes.bytes }

// Held returns the number of items of the collection of the first change.
func (b *Batch) Held(d *state.Database) int {
	cv, ok := d.Current.Load().Collections.Get(b.collection)
	if !ok {
		return 0
	}
	return cv.Items
}

// puts returns the number of items to put, if the batch can be a load.
func (b *Batch) puts() int { return b.changes.n - b.registered }

// isLoad reports whether the batch can be a load: it puts many or large items into one collection, and before
// that only registers labels there.
func (b *Batch) isLoad() bool {
	return !b.mixed && b.puts() > 0 && (b.puts() >= LoadItems || b.Bytes >= loadBytes)
}

// unpack makes the changes for the committer, with the encodings that exist already.
func (b *Batch) unpack() error {
	b.one = make([]*state.Change, 0, b.changes.n)
	return b.changes.each(0, b.changes.n, func(i int, e *entry) error {
		ch, err := e.change()
		if err != nil {
			return err
		}
		for _, m := range b.encs {
			if i >= b.registered {
				ch.Encs, ch.EncodedBy = append(ch.Encs, m.encs[i-b.registered]), b.by
			}
		}
		b.one = append(b.one, ch)
		return nil
	})
}

// Commit stores a batch: as sorted tables if it only has many new items of one collection, else through the
// committer. When it returns nil the batch is durable and visible; after an error other than fault.ErrFailed
// none of its changes is stored. The caller has entered the Guard.
func (b *Batch) Commit(ctx context.Context, d *state.Database) error {
	most := record.MaxBulkBytes
	if !b.isLoad() {
		most = record.MaxBatchBytes
	}
	if b.Bytes > most {
		return fault.Invalid("a batch of %d bytes, at most %d are possible: split it", b.Bytes, most)
	}
	if !b.isLoad() {
		if b.changes.n == 0 && len(b.Marks) == 0 {
			return cmp.Or(ctx.Err(), d.Engine.Log.Err())
		}
		if err := b.unpack(); err != nil {
			return err
		}
		b.changes = packed{n: b.changes.n}
		return d.Write(ctx, b.one, b.Marks)
	}
	call := signal.NewCall()
	err := b.load(ctx, d)
	if errors.Is(err, errNotBulk) {
		if err = nil; b.Bytes > record.MaxBatchBytes {
			err = fault.Invalid("a batch of %d bytes that does not only put new items into one collection, at most %d are possible: split it",
				b.Bytes, record.MaxBatchBytes)
		} else if err = b.unpack(); err == nil {
			err = d.Committer.Submit(ctx, &state.Request{Changes: b.one, Marks: b.Marks})
		}
	}
	d.Wrote(call, err)
	b.changes, b.encs = packed{n: b.changes.n}, nil
	return err
}

// Keys returns the keys of the items that a batch has put and merged, once it is committed.
func (b *Batch) Keys() (keys []string) {
	if b.one == nil && b.keys == nil {
		for i := range b.puts() {
			keys = append(keys, strconv.FormatUint(b.firstKey+uint64(i), 10))
		}
		return keys
	}
	for _, ch := range b.one {
		if ch.Kind == state.PutItem || ch.Kind == state.MergeItem {
			keys = append(keys, ch.Item.Key)
		}
	}
	return append(keys, b.keys...)
}

// Found returns how many of the items of the changes existed before the commit. Call it after Commit.
func (b *Batch) Found() (n int) {
	for _, ch := range b.one {
		if ch.Found {
			n++
		}
	}
	return n
}

// prepare waits until the codes of the collection are in memory, and makes the codes of the items by the
// present models, on all cores. If a model changes before the commit, the committer makes them again.
func (b *Batch) prepare(ctx context.Context, d *state.Database) error {
	var waits []*state.Loading
	err := d.Read(func(v *state.View) error {
		if cv, ok := v.Collections.Get(b.collection); ok {
			waits = cv.AppendLoading(waits)
		}
		return nil
	})
	if err == nil {
		err = state.WaitForAll(ctx, waits)
	}
	if err != nil {
		return err
	}
	return d.Read(func(v *state.View) error {
		cv, ok := v.Collections.Get(b.collection)
		if !ok || cv.CodesOnly() { // if the collection has gone, the committer says so
			return nil
		}
		b.by = cv.Labels
		for _, sp := range cv.Spaces {
			if err := b.encode(ctx, sp.Space, cv.Labels.Lookup); err != nil {
				return err
			}
		}
		return nil
	})
}

// encode adds the codes of the items in a space to encs. labelIDs returns the ids of labels;
// several goroutines call it.
func (b *Batch) encode(ctx context.Context, s *spaces.Space, labelIDs func(names []string) []uint32) error {
	if s.Learned == nil {
		return nil
	}
	m := made{s, make([]spaces.Encoding, b.puts())}
	err := s.EncodeAll(ctx, work.All(), m.encs,
		func(i int) ([]model.Vector, []uint32) {
			e := b.changes.at(b.registered + i)
			return e.decodeVectors(), labelIDs(e.labelNames())
		},
		func(i int, err error) error {
			e := b.changes.at(b.registered + i)
			return fault.OfItem(string(e.key), fmt.Errorf("fddhdb: encode: %w", err))
		})
	if err == nil {
		b.encs = append(b.encs, m)
	}
	return err
}

// encodings returns the codes of the items in a space, nil if encs has none.
func (b *Batch) encodings(s *spaces.Space) []spaces.Encoding {
	for _, m := range b.encs {
		if m.space == s {
			return m.encs
		}
	}
	return nil
}

// load stores the batch as tables, and encodes the items before that. It returns errNotBulk if the items have
// to be stored one by one, for example because some of them exist already; then the database is unchanged,
// and the items are encoded. After another error the database is unchanged, or has failed (fault.ErrFailed).
//
// The committer is busy, and other writers wait, while the tables are made.
func (b *Batch) load(ctx context.Context, d *state.Database) error {
	// CommitTables asks again, but encoding takes long.
	if err := d.Engine.Admit(int64(b.Bytes), false); err != nil {
		return err
	}
	if err := b.prepare(ctx, d); err != nil {
		return err
	}
	name := ""
	if cv, ok := d.Current.Load().Collections.Get(b.collection); ok {
		name = cv.Name
	}
	op := d.Signals.Begin(ctx, event.OpBulkLoad, name)
	defer op.Abandon()
	err := d.Committer.Load(ctx, func(tx *state.Tx) error {
		// From here on this is the committer's goroutine, and no other request runs.
		l := newLoad(tx.Committer, b)
		if l == nil {
			return errNotBulk
		}
		return l.run(ctx)
	})
	if errors.Is(err, errNotBulk) {
		op.End(nil, event.Event{Level: slog.LevelDebug,
			Attrs: []slog.Attr{slog.String("outcome", "one by one")}})
		return err
	}
	op.End(err, event.Event{Items: int64(b.puts()), Bytes: int64(b.Bytes)})
	if err == nil {
		d.Committer.Figures.Put.Add(uint64(b.puts()))
	}
	return err
}

// errNotBulk says that a batch cannot be stored as a load, and its items have to be stored one
// by one.
var errNotBulk = errors.New("not a bulk load")
