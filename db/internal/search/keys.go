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

// A keyCache holds keys of items in memory, by row. Every hit needs a key, and reading one from the store
// takes longer than finding ten codes.
//
// Nothing invalidates the cache. A row belongs to one item only, and its key never changes. So a cached key
// is right in every view in which the row has an item, snapshots included. A cached block may lack a row that
// was not yet there, or gone, when the block was read. Then the block is read again, from the view of the
// search, and replaced. Readers of old and new views may replace each other's blocks; each gets its keys.
//
// It is safe for concurrent use: a hit takes a read lock and follows two atomic pointers. Use newKeyCache;
// the zero value is not ready.
type keyCache struct {
	limit  int64         // bound of the bytes of blocks
	Size   atomic.Int64  // bytes of the blocks, roughly; see Clear
	Misses atomic.Uint64 // blocks read from the store

	mu          sync.RWMutex           // guards the map, not its values
	Collections map[uint32]*cachedKeys // by number of the collection
}

// cachedKeys has the blocks of one collection, in a tree of two levels. Branch i has the blocks i*256 to
// i*256+255, 65,536 rows. The top grows with the highest row read.
type cachedKeys struct {
	mu  sync.Mutex                      // held while the top is replaced
	Top atomic.Pointer[[]*cachedBranch] // by branch, nil if not read; the slice never changes
}

// A cachedBranch has 256 blocks, nil if not cached.
type cachedBranch [256]atomic.Pointer[cachedBlock]

// A cachedBlock has the keys of 256 rows. It never changes. The key of row i is keys[ends[i-1]:ends[i]], for
// row 0 from 0; it is empty if the row has no item. Hits share the memory of keys.
type cachedBlock struct {
	keys string
	ends [codec.BlockRows]uint32
}

// key returns the key of row i of the block, "" if the row has no item.
func (b *cachedBlock) key(i uint32) string {
	from, to := b.at(i)
	return b.keys[from:to]
}

// at returns the range of row i's key in keys.
func (b *cachedBlock) at(i uint32) (from, to uint32) {
	if i > 0 {
		from = b.ends[i-1]
	}
	return from, b.ends[i]
}

// Bytes returns roughly the memory of the block.
func (b *cachedBlock) Bytes() int64 { return int64(len(b.keys)) + 4*codec.BlockRows + 32 }

// newKeyCache returns an empty cache of at most limit bytes, or a little more while several goroutines fill
// it. The limit excludes the tree, 2 KiB for 65,536 rows.
func newKeyCache(limit int64) *keyCache {
	return &keyCache{limit: limit, Collections: map[uint32]*cachedKeys{}}
}

// Get returns the key of the item in a row. The state that r reads must have the item: a row without one is
// fault.ErrCorrupt. If the key is not cached, Get reads its block from r. It clears a full cache first.
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

// appendKeys appends the keys of the items in some places to dst, up to the first one that cannot be read.
// Cached keys come first, in loops so short that the processor waits for several keys at once.
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

// of returns the cached keys of a collection.
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

// slot returns the place of a block. If its branch is missing, slot makes it if grow is set, and else returns
// nil. Get grows the tree only after it has found the row in the store, so a damaged posting that names a
// row that does not exist costs no memory.
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
		top = append(top, nil) // branches not read
	}
	if top[i] == nil {
		top[i] = new(cachedBranch)
		k.Top.Store(&top)
	}
	return &top[i][block%256]
}

// Clear forgets all blocks. Package db calls it when a collection is dropped, to free its keys; numbers of
// collections are not reused. Searches soon read the blocks again, so nothing cleverer pays. A concurrent Get
// may put its block into the old tree: the block is lost, and Size counts it until the next Clear.
func (c *keyCache) Clear() {
	c.mu.Lock()
	clear(c.Collections)
	c.Size.Store(0)
	c.mu.Unlock()
}

// readKeys reads the keys of a block of rows from the store. A missing block has no keys.
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
