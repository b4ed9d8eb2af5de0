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
// into memory. What an item has besides key and code is there too, or is read when it is
// needed; see Extras. Not safe for concurrent use.
type Items struct {
	Collection state.Collection
	n          int

	Labels   *state.Labels     // registered, and then by first appearance
	codes    codec.Codes       // of a codes-only collection
	keys     []string          // empty where automatic, until they are stored; nil while all are
	firstKey uint64            // of an automatic key, where keys is nil and all are stored
	presence []*roaring.Bitmap // the items that have a modality, by modality
	more     []*record.Item    // nil where there is nothing but key and code; nil while that holds of all
	staged   Extras            // in place of more
	columns  []*codeColumn     // of a learned collection, by space
	scratch  codec.Code

	// Where what is long and read once is kept meanwhile; nil: in memory.
	fs  vfs.FS
	dir string
}

// New returns columns without items.
func New(c state.Collection) *Items {
	return &Items{Collection: c, Labels: state.NewLabels()}
}

// Len returns the number of items.
func (k *Items) Len() int { return k.n }

// ReadFrom says that what the items have besides key and code is read from x, nil where they
// have nothing else. Commit keeps long intermediate results in files of the folder dir, which
// it removes.
func (k *Items) ReadFrom(x Extras, fs vfs.FS, dir string) {
	k.staged, k.fs, k.dir = x, fs, dir
}

// Register numbers labels that are not known yet, in this order.
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

// keep keeps what the last item has besides key and code, nil where that is nothing.
func (k *Items) keep(more *record.Item) {
	if more != nil && k.more == nil {
		k.more = make([]*record.Item, k.n-1, 2*k.n)
	}
	if k.more != nil {
		k.more = append(k.more, more)
	}
}

// AddColumns adds the key, code, labels and modalities of an item; the rest comes from the
// Extras of ReadFrom.
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

// AddKey adds an item with a key, "" for an automatic one, and a code, nil where it brings
// none. It copies the code.
func (k *Items) AddKey(key string, code codec.Code) {
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

// Item returns item i, where the extras are in memory. It shares their memory and that of the
// columns.
func (k *Items) Item(i int) *record.Item {
	if k.more != nil && k.more[i] != nil {
		return k.more[i]
	}
	it := &record.Item{}
	k.SetKeyAndCode(i, it)
	return it
}

// SetKeyAndCode gives it the key and the code of item i. The code shares the memory of the
// columns.
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

// Keys returns the keys of all items after Commit has stored them. The slice is the caller's.
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
