package search

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
)

// A keyCache holds keys of items in memory, by row. Reading one from the store takes
// longer than finding ten codes, and every hit needs one.
//
// Nothing invalidates it. A row is given to one item only, once, and keeps its key as
// long as it has an item. So a key that is cached is right in every view in which the row
// has an item, in snapshots too. A cached block may lack a row, because it was read when
// the row was not there yet, or was gone: then it is read again, from the view of the
// search, and replaces the block. Readers of old and new views may replace each other's
// blocks; each gets the keys that it asks for.
//
// It is safe for concurrent use: a hit takes a read lock and follows two atomic pointers.
// newKeyCache makes one; the zero value is not ready.
type keyCache struct {
	limit  int64         // bytes that blocks may take
	Size   atomic.Int64  // bytes of the blocks, roughly; see Clear
	Misses atomic.Uint64 // blocks that were read from the store

	mu          sync.RWMutex           // guards the map, not what is in it
	Collections map[uint32]*cachedKeys // by number of the collection
}

// cachedKeys has the blocks of one collection, in a tree of two levels: branch i has the
// blocks i*256 to i*256+255, that is 65,536 rows. The top grows with the highest row that
// was looked at.
type cachedKeys struct {
	mu  sync.Mutex                      // held while the top is replaced
	Top atomic.Pointer[[]*cachedBranch] // by branch, nil where nothing was looked at; the slice never changes
}

// A cachedBranch is 256 blocks, nil where none is cached.
type cachedBranch [256]atomic.Pointer[cachedBlock]

// A cachedBlock has the keys of 256 rows. It never changes. The key of row i goes from
// ends[i-1] to ends[i], of row 0 from 0; it is empty if the row has no item. Hits share
// the memory of keys.
type cachedBlock struct {
	keys string
	ends [codec.BlockRows]uint32
}

// key returns the key of row i of the block, "" if that has no item.
func (b *cachedBlock) key(i uint32) string {
	from, to := b.at(i)
	return b.keys[from:to]
}

// at returns where in keys the key of row i is.
func (b *cachedBlock) at(i uint32) (from, to uint32) {
	if i > 0 {
		from = b.ends[i-1]
	}
	return from, b.ends[i]
}

// Bytes returns about how much memory the block takes.
func (b *cachedBlock) Bytes() int64 { return int64(len(b.keys)) + 4*codec.BlockRows + 32 }

// newKeyCache returns an empty cache of at most limit bytes, or a little more while
// several goroutines fill it. It does not count the tree, 2 KiB for 65,536 rows.
func newKeyCache(limit int64) *keyCache {
	return &keyCache{limit: limit, Collections: map[uint32]*cachedKeys{}}
}

// Get returns the key of the item in a row, which has one in the state that r reads; a
// row without an item is fault.ErrCorrupt. What is not cached it reads from r, with the
// keys of the other rows of the block. When the cache is full it is cleared first.
func (c *keyCache) Get(r pebble.Reader, collection, row uint32) (string, error) {
	block := row / codec.BlockRows
	if b := c.of(collection).block(block); b != nil {
		if key := b.key(row % codec.BlockRows); key != "" {
			return key, nil
		}
	}
	c.Misses.Add(1)
	b, err := readKeys(r, collection, block)
	if err != nil {
		return "", err
	}
	key := b.key(row % codec.BlockRows)
	if key == "" {
		return "", fault.Corrupt(errors.New("no such row"), "key of row %d", row)
	}
	if c.Size.Load()+b.Bytes() > c.limit {
		c.Clear()
	}
	size := b.Bytes()
	if old := c.of(collection).slot(block, true).Swap(b); old != nil {
		size -= old.Bytes()
	}
	c.Size.Add(size)
	return key, nil
}

// appendKeys appends the keys of the items in some places to dst, as far as they can be read.
// What is cached comes first, in loops so short that the processor waits for several keys at once.
func (c *keyCache) appendKeys(dst []string, r pebble.Reader, collection uint32, places []place) ([]string, error) {
	n := len(dst)
	k := c.of(collection)
	dst = slices.Grow(dst, len(places))
	var blocks [BetweenLooks]*cachedBlock
	var from, to [BetweenLooks]uint32
	for part := range slices.Chunk(places, len(blocks)) {
		for i := range part {
			if blocks[i] = k.block(part[i].row.row / codec.BlockRows); blocks[i] != nil {
				from[i], to[i] = blocks[i].at(part[i].row.row % codec.BlockRows)
			}
		}
		for i, b := range blocks[:len(part)] {
			key := ""
			if b != nil {
				key = b.keys[from[i]:to[i]]
			}
			dst = append(dst, key)
		}
	}
	for i, key := range dst[n:] {
		if key != "" {
			continue
		}
		var err error
		if dst[n+i], err = c.Get(r, collection, places[i].row.row); err != nil {
			return dst[:n+i], err
		}
	}
	return dst, nil
}

// block returns a block, nil if it is not cached.
func (k *cachedKeys) block(n uint32) *cachedBlock {
	if slot := k.slot(n, false); slot != nil {
		return slot.Load()
	}
	return nil
}

// of returns the keys of a collection that are cached.
func (c *keyCache) of(collection uint32) *cachedKeys {
	c.mu.RLock()
	k := c.Collections[collection]
	c.mu.RUnlock()
	if k != nil {
		return k
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if k = c.Collections[collection]; k == nil {
		k = new(cachedKeys)
		k.Top.Store(new([]*cachedBranch))
		c.Collections[collection] = k
	}
	return k
}

// slot returns the place of a block. If its branch is not there slot makes it, if grow is
// set, or returns nil. Get grows the tree only after it has found the row in the store,
// so that a damaged posting, which names a row that does not exist, costs no memory.
func (k *cachedKeys) slot(block uint32, grow bool) *atomic.Pointer[cachedBlock] {
	i := int(block / 256)
	if top := *k.Top.Load(); i < len(top) && top[i] != nil {
		return &top[i][block%256]
	}
	if !grow {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	top := slices.Clone(*k.Top.Load())
	for i >= len(top) {
		top = append(top, nil) // of rows that nobody has looked at
	}
	if top[i] == nil {
		top[i] = new(cachedBranch)
		k.Top.Store(&top)
	}
	return &top[i][block%256]
}

// Clear forgets all blocks. Package db calls it when a collection is dropped, to free its
// keys; numbers of collections are not used again. Blocks come back as fast as they are
// looked at, so nothing cleverer pays. Another Get that has begun before may
// put its block into the old tree, where it is lost and still counted in Size until the next
// Clear.
func (c *keyCache) Clear() {
	c.mu.Lock()
	clear(c.Collections)
	c.Size.Store(0)
	c.mu.Unlock()
}

// readKeys reads the keys of a block of rows from the store. A block that is not there
// has no keys.
func readKeys(r pebble.Reader, collection, block uint32) (*cachedBlock, error) {
	key := codec.NumberKey(codec.KindRowKeys, collection, block)
	value, closer, err := r.Get(key)
	if errors.Is(err, fault.ErrMissing) {
		return new(cachedBlock), nil
	}
	if err != nil {
		return nil, fault.ReadError(err, "block %x", key)
	}
	defer closer.Close()
	stored, err := codec.DecodeBlock(value)
	if err != nil {
		return nil, fault.Corrupt(err, "block %x", key)
	}
	b := new(cachedBlock)
	var keys []byte
	at := 0
	for i := range uint32(codec.BlockRows) {
		if at < stored.Len() && uint32(stored.Offset(at)) == i {
			keys = append(keys, stored.Entry(at)...)
			at++
		}
		b.ends[i] = uint32(len(keys))
	}
	b.keys = string(keys)
	return b, nil
}
