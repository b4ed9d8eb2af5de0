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

// keyCache holds keys of items in memory, by row, as searches find them: reading
// one from the store takes longer than finding ten codes. A row is given to one
// item only, once, so that what it says is true in every state of the database in
// which the row has an item; a block that lacks a row is read again. The zero
// value is not ready. Safe for concurrent use.
type keyCache struct {
	limit  int64
	Size   atomic.Int64
	Misses atomic.Uint64 // blocks that were read

	mu          sync.RWMutex
	Collections map[uint32]*cachedKeys
}

// cachedKeys holds the blocks of one collection, in a tree of two levels.
type cachedKeys struct {
	mu  sync.Mutex // to grow
	Top atomic.Pointer[[]*cachedBranch]
}

type cachedBranch [256]atomic.Pointer[cachedBlock]

// cachedBlock is the keys of 256 rows: that of row i from ends[i-1] to ends[i].
type cachedBlock struct {
	keys string
	ends [codec.BlockRows]uint32
}

func (b *cachedBlock) key(i uint32) string {
	from := uint32(0)
	if i > 0 {
		from = b.ends[i-1]
	}
	return b.keys[from:b.ends[i]]
}

func (b *cachedBlock) Bytes() int64 { return int64(len(b.keys)) + 4*codec.BlockRows + 32 }

func NewKeyCache(limit int64) *keyCache {
	return &keyCache{limit: limit, Collections: map[uint32]*cachedKeys{}}
}

// Get returns the key of the item in a row.
func (c *keyCache) Get(r pebble.Reader, collection, row uint32) (string, error) {
	c.mu.RLock()
	k := c.Collections[collection]
	c.mu.RUnlock()
	if k == nil {
		c.mu.Lock()
		if k = c.Collections[collection]; k == nil {
			k = new(cachedKeys)
			k.Top.Store(new([]*cachedBranch))
			c.Collections[collection] = k
		}
		c.mu.Unlock()
	}
	block := row / codec.BlockRows
	if slot := k.slot(block, false); slot != nil {
		if b := slot.Load(); b != nil {
			if key := b.key(row % codec.BlockRows); key != "" {
				return key, nil
			}
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
	if old := k.slot(block, true).Swap(b); old != nil {
		size -= old.Bytes()
	}
	c.Size.Add(size)
	return key, nil
}

// slot returns where a block belongs, nil if there is no room for it yet and none
// is to be made: a row that does not exist must not cost memory.
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

// Clear forgets everything. Blocks come back as fast as they are looked at, so
// that nothing cleverer pays.
func (c *keyCache) Clear() {
	c.mu.Lock()
	clear(c.Collections)
	c.Size.Store(0)
	c.mu.Unlock()
}

// readKeys reads the keys of a block of rows from the store.
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
