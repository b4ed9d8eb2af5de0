package bulk

import (
	"slices"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// Items holds new items of one collection column by column, so that millions of them fit
// into memory: an item with nothing but an automatic key and a code takes no more bytes
// than its code. What an item has besides key and code is in memory too, or is read when it
// is needed; see Extras.
//
// An item has a number here, its position from 0. Commit gives the items rows in this
// order. Items are not safe for concurrent use; while Commit runs, its goroutines only
// read them.
type Items struct {
	Collection state.Collection // that the items are for
	n          int              // number of items

	Labels *state.Labels // of the items: those that were registered, then by first appearance
	codes  codec.Codes   // by item, in a collection of given codes; empty in others

	// keys has the key of each item, "" for an automatic one. It is nil while all are
	// automatic. Once Commit has stored the items it has all keys, or is nil and the keys
	// are the numbers from firstKey on; of an import, neither is used.
	keys     []string
	firstKey uint64

	presence  []*roaring.Bitmap // by modality: items that have it; shorter if no item has the last ones
	more      []*record.Item    // by item, nil if it has nothing but key and code; nil while that is so of all
	staged    Extras            // is read in place of more; nil: more counts
	columns   []*codeColumn     // codes that Commit has made, one for each space with a model; nil outside Commit
	encodedBy *state.Labels     // of the collection, whose names the columns were made by; nil outside Commit
	scratch   codec.Code        // of AddPlain

	// Projections wait in files of the folder dir until they are stored. A nil fs keeps
	// them in memory.
	fs  vfs.FS
	dir string
}

// New returns Items of a collection, without any item yet.
func New(c state.Collection) *Items {
	return &Items{Collection: c, Labels: state.NewLabels()}
}

// Len returns the number of items.
func (k *Items) Len() int { return k.n }

// ReadFrom says that the rest of the items, besides key and code, is read from x; nil means
// that there is no rest. Commit keeps projections in files of the folder dir of fs, and
// removes the files. The items have been added with AddColumns or AddKey.
func (k *Items) ReadFrom(x Extras, fs vfs.FS, dir string) {
	k.staged, k.fs, k.dir = x, fs, dir
}

// Register notes labels in this order, which decides on their numbers. Labels that were
// registered before stay where they are.
func (k *Items) Register(names []string) {
	for _, name := range names {
		k.Labels.Add(name)
	}
}

// AddPlain adds an item that has nothing but a key and a code, which it copies.
func (k *Items) AddPlain(key string, code []byte) {
	if k.scratch == nil {
		k.scratch = codec.NewCode(8 * len(code))
	}
	k.scratch.SetBytes(code)
	k.AddKey(key, k.scratch)
	k.keep(nil)
}

// Add adds an item, which it keeps and does not change.
func (k *Items) Add(it *record.Item) {
	k.AddColumns(it)
	if it.IsPlain() {
		it = nil
	}
	k.keep(it)
}

// keep keeps the last item for what it has besides key and code; nil if it has nothing
// else.
func (k *Items) keep(more *record.Item) {
	// The first item with more than key and code: those before it have nothing more.
	if more != nil && k.more == nil {
		k.more = make([]*record.Item, k.n-1, 2*k.n)
	}
	if k.more != nil {
		k.more = append(k.more, more)
	}
}

// AddColumns adds the key, code, labels and modalities of an item, and does not keep it.
// The rest comes from the Extras of ReadFrom.
func (k *Items) AddColumns(it *record.Item) {
	k.Register(it.Labels)
	for t, x := range it.Vectors {
		if x.Present() {
			k.SetPresent(t, k.n)
		}
	}
	k.AddKey(it.Key, it.Code)
}

// SetPresent notes that item i has features of modality t.
func (k *Items) SetPresent(t, i int) {
	for len(k.presence) <= t {
		k.presence = append(k.presence, roaring.New())
	}
	k.presence[t].Add(uint32(i))
}

// AddKey adds an item with a key, "" for an automatic one, and a code, nil if it brings
// none, and nothing else. It copies the code. All items of a collection bring codes, or
// none does.
func (k *Items) AddKey(key string, code codec.Code) {
	if code != nil {
		if k.codes.Bits() == 0 {
			k.codes = codec.NewCodes(64*len(code), 1)
		}
		k.codes.Append(code)
	}
	// The first key that an item brings: the items before it have automatic ones.
	if key != "" && k.keys == nil {
		k.keys = make([]string, k.n, 2*k.n+1)
	}
	if k.keys != nil {
		k.keys = append(k.keys, key)
	}
	k.n++
}

// Item returns item i, if the extras are in memory. It shares their memory and that of the
// columns: do not change it. Batch uses it when its items do not become a bulk load.
func (k *Items) Item(i int) *record.Item {
	if k.more != nil && k.more[i] != nil {
		return k.more[i]
	}
	it := &record.Item{}
	k.SetKeyAndCode(i, it)
	return it
}

// SetKeyAndCode sets the key and the code of it to those of item i, and leaves alone what
// item i does not have. The code shares the memory of the columns.
func (k *Items) SetKeyAndCode(i int, it *record.Item) {
	if k.keys != nil {
		it.Key = k.keys[i]
	}
	if k.codes.Len() > 0 {
		it.Code = k.codes.At(i)
	}
}

// key returns the key of item i, empty where it is automatic.
func (k *Items) key(i int) string {
	if k.keys == nil {
		return ""
	}
	return k.keys[i]
}

// Keys returns the keys of all items, by number, once Commit has stored them. The slice is
// the caller's. It is not for items that ReadFrom was called for.
func (k *Items) Keys() []string {
	if k.keys != nil {
		return slices.Clone(k.keys)
	}
	keys := make([]string, k.n)
	for i := range keys {
		keys[i] = strconv.FormatUint(k.firstKey+uint64(i), 10)
	}
	return keys
}
