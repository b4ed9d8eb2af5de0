package db

import (
	"slices"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// A bulk holds new items of one collection column by column, so that millions of them
// fit into memory. What an item has besides key and code is there too, or is read when
// it is needed; see extraItems. A batch whose changes do not fit has them one by one.
type bulk struct {
	collection state.Collection
	n          int

	labels   *state.Labels     // registered, and then by first appearance
	codes    codec.Codes       // of a codes-only collection
	keys     []string          // empty where automatic, until they are stored; nil while all are
	firstKey uint64            // of an automatic key, where keys is nil and all are stored
	presence []*roaring.Bitmap // the items that have a modality, by modality
	more     []*record.Item    // nil where there is nothing but key and code; nil while that holds of all
	staged   extraItems        // in place of more
	columns  []*codeColumn     // of a learned collection, by space
	scratch  codec.Code

	// Where what is long and read once is kept meanwhile; nil: in memory.
	fs  vfs.FS
	dir string
}

// newBulk returns columns without items.
func newBulk(c state.Collection) *bulk { return &bulk{collection: c, labels: state.NewLabels()} }

// len returns the number of items.
func (k *bulk) len() int { return k.n }

// readFrom says that what the items have besides key and code is read from x, nil where that
// is nothing, and that there is a folder for files that are gone after the commit.
func (k *bulk) readFrom(x extraItems, fs vfs.FS, dir string) { k.staged, k.fs, k.dir = x, fs, dir }

// register numbers labels that are not known yet, in this order.
func (k *bulk) register(names []string) {
	for _, name := range names {
		k.labels.Add(name)
	}
}

// addPlain adds an item that has nothing but a key and a code, which it copies.
func (k *bulk) addPlain(key string, code []byte) {
	if k.scratch == nil {
		k.scratch = codec.NewCode(8 * len(code))
	}
	k.scratch.SetBytes(code)
	k.add(key, k.scratch)
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
		k.more = make([]*record.Item, k.n-1, 2*k.n)
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
			k.codes = codec.NewCodes(64*len(code), 1)
		}
		k.codes.Append(code)
	}
	if key != "" && k.keys == nil {
		k.keys = make([]string, k.n, 2*k.n+1)
	}
	if k.keys != nil {
		k.keys = append(k.keys, key)
	}
	k.n++
}

// item returns item i, where all that it has is in memory; it shares that.
func (k *bulk) item(i int) *record.Item {
	if k.more != nil && k.more[i] != nil {
		return k.more[i]
	}
	it := &record.Item{}
	k.keyAndCode(i, it)
	return it
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
