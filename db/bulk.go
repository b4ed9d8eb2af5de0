package db

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model"
)

// bulkItems is the number of items from which on a batch that only puts new items
// into one collection is stored as sorted tables, which the store takes over, instead
// of through its log and memory. With so many both take about as long: a dozen files
// have to be made durable, one for each kind of key, which costs as much as some
// thousand items cost the ordinary way.
const bulkItems = 8192

// A bulk holds the puts of a batch column by column, so that millions of items fit
// into memory: all are into one collection, and labels are registered only before
// the first. A batch whose changes do not fit has them one by one.
type bulk struct {
	collection *Collection
	labels     []string // registered before the first item
	n          int

	registrations int         // of labels
	codes         codec.Codes // of a codes-only collection
	keys          []string    // empty where automatic; nil while all are
	more          []*checked  // nil where there is nothing but key and code; nil while that holds of all
	encs          []columnOf  // of a learned collection, by space
	scratch       codec.Code
}

// addBulk puts an item among the columns of the batch. It reports whether that is
// where the item belongs.
func (b *Batch) addBulk(c *Collection, kind changeKind, item *Item) (bool, error) {
	if b.bulk == nil {
		if b.single || len(b.changes) != bulkItems-1 {
			return false, nil
		}
		if b.bulk = newBulk(c, b.changes); b.bulk == nil {
			b.single = true
			return false, nil
		}
		b.changes = nil
	}
	if kind != putItem || c.id != b.bulk.collection.id {
		b.spill()
		return false, nil
	}
	return true, c.read(func(_ *view, cv *collectionView) error {
		k := b.bulk
		if plain := len(item.Vectors)+len(item.Sparse)+len(item.Labels)+len(item.Fields)+len(item.Payload) == 0; plain &&
			cv.codesOnly() && len(item.Code) == codec.Bytes(cv.Bits) && checkKey(item.Key) == nil {
			k.scratch.SetBytes(item.Code)
			k.add(item.Key, k.scratch, nil)
			b.bytes += itemBytes + len(item.Key) + 8*len(k.scratch)
			return nil
		}
		it, err := cv.check(item, false)
		if err == nil {
			k.addChecked(it)
			b.bytes += it.bytes()
		}
		return err
	})
}

// newBulk returns the changes as columns, nil where they do not fit.
func newBulk(c *Collection, changes []*change) *bulk {
	k := &bulk{collection: c}
	for _, ch := range changes {
		switch {
		case ch.collection != c.id:
			return nil
		case ch.kind == addLabels && k.n == 0:
			k.labels = append(k.labels, ch.item.labels...)
			k.registrations++
		case ch.kind == putItem:
			k.addChecked(ch.item)
		default:
			return nil
		}
	}
	if k.n == 0 {
		return nil // only labels: it is not many items
	}
	return k
}

// addChecked adds an item.
func (k *bulk) addChecked(it *checked) {
	more := it
	if it.vectors == nil && len(it.labels)+len(it.fields)+len(it.payload) == 0 {
		more = nil
	}
	k.add(it.key, it.code, more)
}

func (k *bulk) add(key string, code codec.Code, more *checked) {
	if code != nil {
		if k.codes.Bits() == 0 {
			k.codes = codec.NewCodes(64*len(code), 2*bulkItems)
			k.scratch = make(codec.Code, len(code))
		}
		k.codes.Append(code)
	}
	if key != "" && k.keys == nil {
		k.keys = make([]string, k.n, max(2*k.n, 2*bulkItems))
	}
	if k.keys != nil {
		k.keys = append(k.keys, key)
	}
	if more != nil && k.more == nil {
		k.more = make([]*checked, k.n, max(2*k.n, 2*bulkItems))
	}
	if k.more != nil {
		k.more = append(k.more, more)
	}
	k.n++
}

// at returns item i, in memory of its own where it has nothing but key and code.
func (k *bulk) at(i int) *checked {
	if k.more != nil && k.more[i] != nil {
		return k.more[i]
	}
	it := &checked{}
	if k.keys != nil {
		it.key = k.keys[i]
	}
	if k.codes.Len() > 0 {
		it.code = k.codes.At(i)
	}
	return it
}

// extras returns what item i has besides key and code.
func (k *bulk) extras(i int) *checked {
	if k.more != nil && k.more[i] != nil {
		return k.more[i]
	}
	return &noExtras
}

var noExtras checked

// spill makes changes of the columns.
func (b *Batch) spill() {
	k := b.bulk
	b.bulk, b.single = nil, true
	if len(k.labels) > 0 {
		b.changes = append(b.changes, &change{collection: k.collection.id, kind: addLabels, item: &checked{labels: k.labels}})
	}
	b.changes = slices.Grow(b.changes, k.n)
	for i := range k.n {
		ch := &change{collection: k.collection.id, kind: putItem, item: k.at(i)}
		for _, column := range k.encs {
			ch.encs = append(ch.encs, column.encs[i])
		}
		b.changes = append(b.changes, ch)
	}
}

// commitBulk stores the columns of the batch. It gives errNotBulk where that has to
// be done one by one, because some of the items are there already, say; nothing has
// happened then.
func (b *Batch) commitBulk(ctx context.Context) error {
	k := b.bulk
	if err := k.collection.loaded(ctx); err != nil {
		return err
	}
	if err := b.db.admit(int64(b.bytes), false); err != nil { // before all that work
		return err
	}
	if err := k.encode(ctx); err != nil {
		return err
	}
	return b.db.committer.submit(ctx, &request{quiet: true, exclusive: func(g *group) error {
		l := newBulkLoad(b.db, g.c, k, b.bytes)
		if l == nil {
			return errNotBulk
		}
		return l.run(ctx)
	}})
}

// errNotBulk says that items have to be stored one by one.
var errNotBulk = errors.New("not a bulk load")

// encode is Batch.encode for the columns. A codes-only collection has nothing to
// encode.
func (k *bulk) encode(ctx context.Context) error {
	return k.collection.read(func(_ *view, cv *collectionView) error {
		if cv.codesOnly() {
			return nil
		}
		for _, sp := range cv.spaces {
			err := k.encodeFor(ctx, sp.space, func(i int) []uint32 { return cv.labels.lookup(k.extras(i).labels) })
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// A columnOf holds the codes of the items of a bulk in one space.
type columnOf struct {
	space *space
	encs  []encoding
}

// in returns the codes of the items in a space, nil where there are none yet.
func (k *bulk) in(s *space) []encoding {
	for _, column := range k.encs {
		if column.space == s {
			return column.encs
		}
	}
	return nil
}

// encodeFor makes the codes of the items in a space.
func (k *bulk) encodeFor(ctx context.Context, s *space, labelIDs func(i int) []uint32) error {
	encs := make([]encoding, k.n)
	err := s.encodeAll(ctx, allWorkers(), encs,
		func(i int) ([]model.Vector, []uint32) { return k.extras(i).vectors, labelIDs(i) },
		func(i int, err error) error {
			return itemError(k.extras(i).key, fmt.Errorf("fddhdb: encode: %w", err))
		})
	k.encs = append(k.encs, columnOf{s, encs})
	return err
}
