package db

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// bulkItems is the number of items from which on a batch that only puts new items
// into one collection is stored as sorted tables, which the store takes over, instead
// of through its log and memory. With so many both take about as long: a dozen files
// have to be made durable, one for each kind of key, which costs as much as some
// thousand items cost the ordinary way. (Tests have less.)
var bulkItems = 8192

// A bulk holds new items of one collection column by column, so that millions of them
// fit into memory. What an item has besides key and code is there too, or is read when
// it is needed; see extraItems. A batch whose changes do not fit has them one by one.
type bulk struct {
	collection *Collection
	n          int

	registrations int               // of labels, before the first item
	labels        *state.Labels     // registered, and then by first appearance
	codes         codec.Codes       // of a codes-only collection
	keys          []string          // empty where automatic, until they are stored; nil while all are
	firstKey      uint64            // of an automatic key, where keys is nil and all are stored
	presence      []*roaring.Bitmap // the items that have a modality, by modality
	more          []*record.Item    // nil where there is nothing but key and code; nil while that holds of all
	staged        extraItems        // in place of more
	columns       []*codeColumn     // of a learned collection, by space
	scratch       codec.Code

	// temp, if not nil, makes a file for what is long and read once.
	temp func() (*tempFile, error)
}

// addBulk puts an item among the columns of the batch. It reports whether that is
// where the item belongs.
func (b *Batch) addBulk(c *Collection, kind state.ChangeKind, item *Item) (bool, error) {
	if b.bulk == nil {
		if b.single || len(b.changes) != bulkItems-1 {
			return false, nil
		}
		if b.bulk = bulkOf(c, b.changes); b.bulk == nil {
			b.single = true
			return false, nil
		}
		b.changes = nil
	}
	if kind != state.PutItem || c.id != b.bulk.collection.id {
		b.spill()
		return false, nil
	}
	return true, c.read(func(_ *state.View, cv *state.CollectionView) error {
		k := b.bulk
		if isPlain(cv.Descriptor, item) {
			k.addPlain(item)
			b.bytes += record.ItemBytes + len(item.Key) + 8*len(k.scratch)
			return nil
		}
		it, err := checkItem(cv.Descriptor, item, false)
		if err == nil {
			k.addChecked(it)
			b.bytes += it.Bytes()
		}
		return err
	})
}

// isPlain reports whether an item has nothing but a code, which suits the collection,
// and a key that can be one.
func isPlain(d *record.Descriptor, item *Item) bool {
	return item.isEmpty() && d.CodesOnly() && len(item.Code) == codec.Bytes(d.Bits) && record.CheckKey(item.Key) == nil
}

func newBulk(c *Collection) *bulk { return &bulk{collection: c, labels: state.NewLabels()} }

// bulkOf returns the changes as columns, nil where they do not fit.
func bulkOf(c *Collection, changes []*state.Change) *bulk {
	k := newBulk(c)
	for _, ch := range changes {
		switch {
		case ch.Collection != c.id:
			return nil
		case ch.Kind == state.AddLabels && k.n == 0:
			k.register(ch.Item.Labels)
			k.registrations++
		case ch.Kind == state.PutItem:
			k.addChecked(ch.Item)
		default:
			return nil
		}
	}
	if k.n == 0 {
		return nil // only labels: it is not many items
	}
	return k
}

// register numbers labels that are not known yet, in this order.
func (k *bulk) register(names []string) {
	for _, name := range names {
		k.labels.Add(name)
	}
}

// addPlain adds an item that has nothing but a key and a code, see isPlain.
func (k *bulk) addPlain(item *Item) {
	if k.scratch == nil {
		k.scratch = codec.NewCode(8 * len(item.Code))
	}
	k.scratch.SetBytes(item.Code)
	k.add(item.Key, k.scratch)
	k.keep(nil)
}

// addChecked adds an item, which is kept.
func (k *bulk) addChecked(it *record.Item) {
	k.addColumns(it)
	if it.IsPlain() {
		it = nil
	}
	k.keep(it)
}

// keep keeps what the last item has besides key and code, nil where that is nothing.
func (k *bulk) keep(more *record.Item) {
	if more != nil && k.more == nil {
		k.more = make([]*record.Item, k.n-1, max(2*k.n, 2*bulkItems))
	}
	if k.more != nil {
		k.more = append(k.more, more)
	}
}

// addColumns adds what the columns have of an item.
func (k *bulk) addColumns(it *record.Item) {
	k.register(it.Labels)
	for t, x := range it.Vectors {
		if x.Present() {
			k.has(t, k.n)
		}
	}
	k.add(it.Key, it.Code)
}

// has notes that item i has modality t.
func (k *bulk) has(t, i int) {
	for len(k.presence) <= t {
		k.presence = append(k.presence, roaring.New())
	}
	k.presence[t].Add(uint32(i))
}

// add adds key and code of an item.
func (k *bulk) add(key string, code codec.Code) {
	if code != nil {
		if k.codes.Bits() == 0 {
			k.codes = codec.NewCodes(64*len(code), 2*bulkItems)
		}
		k.codes.Append(code)
	}
	if key != "" && k.keys == nil {
		k.keys = make([]string, k.n, max(2*k.n, 2*bulkItems))
	}
	if k.keys != nil {
		k.keys = append(k.keys, key)
	}
	k.n++
}

// spill makes changes of the columns.
func (b *Batch) spill() {
	k := b.bulk
	b.bulk, b.single = nil, true
	if names := k.labels.All(); k.registrations > 0 {
		b.changes = append(b.changes, &state.Change{Collection: k.collection.id, Kind: state.AddLabels, Item: &record.Item{Labels: names}})
	}
	b.changes = slices.Grow(b.changes, k.n)
	for i := range k.n {
		it := &record.Item{}
		if k.more != nil && k.more[i] != nil {
			it = k.more[i]
		} else {
			k.keyAndCode(i, it)
		}
		b.changes = append(b.changes, &state.Change{Collection: k.collection.id, Kind: state.PutItem, Item: it})
	}
}

// keyAndCode sets those of item i, in the memory of the columns.
func (k *bulk) keyAndCode(i int, it *record.Item) {
	if k.keys != nil {
		it.Key = k.keys[i]
	}
	if k.codes.Len() > 0 {
		it.Code = k.codes.At(i)
	}
}

// key returns the key of item i, empty where it is automatic.
func (k *bulk) key(i int) string {
	if k.keys == nil {
		return ""
	}
	return k.keys[i]
}

// allKeys returns the keys of all items, when they are stored.
func (k *bulk) allKeys() []string {
	if k.keys != nil {
		return slices.Clone(k.keys)
	}
	keys := make([]string, k.n)
	for i := range keys {
		keys[i] = strconv.FormatUint(k.firstKey+uint64(i), 10)
	}
	return keys
}

// commit stores the items in one commit; pledge, if not nil, is that of Tables. It
// gives errNotBulk where that has to be done one by one, because some of the items are
// there already, say; nothing has happened then. bytes are about those of the items.
func (k *bulk) commit(ctx context.Context, bytes int64, pledge *pledge, progress event.Progress) error {
	d := k.collection.db
	ctx, op := d.state.Signals.Begin(ctx, event.OpBulkLoad, k.collection.name)
	defer op.Abandon()
	err := k.load(ctx, bytes, pledge, op.Telling(progress))
	if errors.Is(err, errNotBulk) {
		op.End(nil, event.Event{Level: slog.LevelDebug, Attrs: []slog.Attr{slog.String("outcome", "one by one")}})
		return err
	}
	op.End(err, event.Event{Items: int64(k.n), Bytes: bytes})
	if err == nil {
		d.state.Committer.Figures.Put.Add(uint64(k.n))
	}
	return err
}

func (k *bulk) load(ctx context.Context, bytes int64, pledge *pledge, progress event.Progress) error {
	d := k.collection.db
	if err := k.collection.inside().Loaded(ctx); err != nil {
		return err
	}
	if err := d.state.Engine.Admit(bytes, false); err != nil { // before all that work
		return err
	}
	defer k.dropColumns()
	if err := k.encode(ctx, progress); err != nil {
		return err
	}
	progress("storing", 0, 0)
	return d.state.Committer.Load(ctx, func(tx *state.Tx) error {
		l := newBulkLoad(tx.Committer, k, bytes)
		if l == nil {
			return errNotBulk
		}
		if pledge != nil {
			l.tables.Promise = func(commit uint64) error { return pledge.give(commit, tx.Committer.Log) }
			l.tables.Withdraw = func() { pledge.takeBack(tx.Committer.Log) }
		}
		return l.run(ctx)
	})
}

// errNotBulk says that items have to be stored one by one.
var errNotBulk = errors.New("not a bulk load")
