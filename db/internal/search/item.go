package search

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/model"
)

// An Item is a stored item with its code, in the terms of its collection. The caller owns the memory that its
// slices point to; the next item read into it uses the slices themselves again.
type Item struct {
	Row uint32
	record.Item
	Code []byte // in the space of the view, bits/8 bytes; nil: no code
	From string // source of the code: "labels", "fused", "given", or a modality
}

// ReadItem reads the item of a row; key is its key.
func ReadItem(cv *state.CollectionView, r pebble.Reader, row uint32, key string) (*Item, error) {
	it := new(Item)
	return it, it.read(cv, r, storedParts{cv, r}, row, key)
}

// Item returns parts of the item of a hit: labels, fields and payload if rec is set, vectors if vectors is
// set. It returns no code.
func (s *Searcher) Item(h *Hit, rec, vectors bool) (*Item, error) {
	it := &Item{Row: h.Row, Item: record.Item{Key: h.Key,
		Vectors: make([]model.Vector, len(s.Cv.Modalities))}}
	parts := storedParts{s.Cv, s.V.Snap}
	if rec {
		if err := it.readRecord(s.Cv, parts); err != nil {
			return nil, err
		}
	}
	if vectors {
		if err := it.readVectors(s.Cv, parts); err != nil {
			return nil, err
		}
	}
	return it, nil
}

// itemSource reads the parts of items.
type itemSource interface {
	record(row uint32) (*codec.ItemRecord, error)

	// vector returns features that the caller owns.
	vector(row uint32, t int) (x model.Vector, found bool, err error)

	// rowCode returns the number and provenance of a row's code.
	rowCode(row uint32) (rc codec.RowCode, found bool, err error)
}

// storedParts reads each part by its own look-up.
type storedParts struct {
	cv *state.CollectionView
	r  pebble.Reader
}

func (p storedParts) record(row uint32) (*codec.ItemRecord, error) {
	return record.ReadItem(p.r, p.cv.ID, row)
}

func (p storedParts) vector(row uint32, t int) (model.Vector, bool, error) {
	return record.ReadVector(p.r, p.cv.ID, row, t, p.cv.Modalities[t])
}

func (p storedParts) rowCode(row uint32) (codec.RowCode, bool, error) {
	return p.cv.Codes.RowCode(p.r, row)
}

// read reads the item of a row into it.
func (it *Item) read(cv *state.CollectionView, r pebble.Reader, parts itemSource, row uint32,
	key string) error {
	if it.Vectors == nil {
		it.Vectors = make([]model.Vector, len(cv.Modalities))
	}
	it.Row, it.Key, it.Code, it.From = row, key, nil, ""
	if err := it.readRecord(cv, parts); err != nil {
		return err
	}
	if err := it.readVectors(cv, parts); err != nil {
		return err
	}
	if cv.Space == nil {
		return nil
	}
	rc, found, err := parts.rowCode(row)
	if err != nil || !found {
		return err
	}
	code, err := cv.Codes.CodeOf(r, rc.Code, row)
	if err != nil {
		return err
	}
	it.Code, it.From = code.AppendBytes(nil, cv.Codes.Bits), provenanceName(cv, rc.Provenance)
	return nil
}

// readRecord reads labels, fields and payload of the row.
func (it *Item) readRecord(cv *state.CollectionView, parts itemSource) error {
	rec, err := parts.record(it.Row)
	if err != nil {
		return err
	}
	it.Payload, it.Fields = rec.Payload, rec.Fields
	if it.Labels, err = labelNames(cv, rec.Labels); err != nil {
		return err
	}
	for _, f := range rec.Fields {
		if int(f.ID) >= len(cv.Fields) {
			return fault.Corrupt(fmt.Errorf("field %d of %d", f.ID, len(cv.Fields)), "item in row %d", it.Row)
		}
	}
	return nil
}

// readVectors reads the vectors of the row.
func (it *Item) readVectors(cv *state.CollectionView, parts itemSource) error {
	for t, m := range cv.Modalities {
		it.Vectors[t] = model.Vector{}
		if cv.IndexOnly || !cv.Presence[t].Contains(it.Row) {
			continue
		}
		x, found, err := parts.vector(it.Row, t)
		if err == nil && !found {
			err = fault.Corrupt(errors.New("missing"), "features %q of row %d", m.Name, it.Row)
		}
		if err != nil {
			return err
		}
		it.Vectors[t] = x
	}
	return nil
}

// provenanceName returns the value of Item.From.
func provenanceName(cv *state.CollectionView, p codec.Provenance) string {
	switch {
	case p == codec.ProvenanceLabels:
		return "labels"
	case p == codec.ProvenanceFused:
		return "fused"
	case p == codec.ProvenanceGiven:
		return "given"
	case p >= codec.ProvenanceModality && int(p-codec.ProvenanceModality) < len(cv.Modalities):
		return cv.Modalities[p-codec.ProvenanceModality].Name
	}
	return fmt.Sprintf("unknown (%d)", p)
}

// labelNames returns the names of stored label ids.
func labelNames(cv *state.CollectionView, ids []uint32) ([]string, error) {
	var out []string
	for _, id := range ids {
		name, ok := cv.Labels.Name(id)
		if !ok {
			return nil, fault.Corrupt(fmt.Errorf("id %d", id), "label")
		}
		out = append(out, name)
	}
	return out, nil
}

// EachKeyOf calls f with the rows and the keys of their items, in order. It reads each block of keys once.
func EachKeyOf(cv *state.CollectionView, r pebble.Reader, rows *roaring.Bitmap,
	f func(row uint32, key string) error) error {
	for it := rows.Iterator(); it.HasNext(); {
		block := it.PeekNext() / codec.BlockRows
		value, err := record.Get(r, codec.NumberKey(codec.KindRowKeys, cv.ID, block))
		if err != nil {
			return fault.ReadError(err, "keys of block %d", block)
		}
		var keys codec.Block // empty if the block is missing
		if value != nil {
			if keys, err = codec.DecodeBlock(value); err != nil {
				return fault.Corrupt(err, "keys of block %d", block)
			}
		}
		for it.HasNext() && it.PeekNext()/codec.BlockRows == block {
			row := it.Next()
			entry, ok := keys.Lookup(byte(row))
			if !ok {
				return fault.Corrupt(errors.New("no such row"), "key of row %d", row)
			}
			if err := f(row, string(entry)); err != nil {
				return err
			}
		}
	}
	return nil
}

// EachKey calls f with the keys that begin with prefix and the rows of their items, in the order of the keys.
// An error of f ends it.
func EachKey(ctx context.Context, cv *state.CollectionView, r pebble.Reader, prefix string,
	f func(row uint32, key string) error) error {
	from := len(codec.ItemKey(cv.ID, ""))
	return record.ForEach(r, codec.ItemKey(cv.ID, prefix), func(key, value []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(value) != 4 {
			return fault.Corrupt(fmt.Errorf("%d bytes", len(value)), "row of item %q", key[from:])
		}
		return f(binary.BigEndian.Uint32(value), string(key[from:]))
	})
}

// itemReader reads the items of rows in ascending order, in one pass over the store. Looking up each part
// would take several times as long. It is for one goroutine; close it.
type itemReader struct {
	cv       *state.CollectionView
	r        pebble.Reader
	records  *pebble.Iterator
	features *record.FeatureReader // nil without features
	vectors  []model.Vector
	read     uint32 // row of vectors, plus 1
	codes    rowBlock
}

// rowBlock is a block of codes of rows.
type rowBlock struct {
	block codec.Block
	at    uint32 // number of the block, plus 1
}

// EachItem calls f with the items that match an expression, in ascending order of rows; with all items if the
// expression is empty. args are the values of its placeholders. An item is valid until f returns.
func EachItem(ctx context.Context, cv *state.CollectionView, r pebble.Reader, expr string, args []any,
	f func(*Item) error) (err error) {
	rows, err := Matching(ctx, cv, r, expr, args)
	if err != nil {
		return err
	}
	from := uint32(0)
	if rows != nil {
		if rows.IsEmpty() {
			return nil
		}
		from = rows.Minimum()
	}
	items, err := newItemReader(r, cv, from)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := items.close(); err == nil {
			err = fault.ReadError(cerr, "items")
		}
	}()
	var it Item
	read := func(row uint32, key string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := it.read(cv, r, items, row, key); err != nil {
			return err
		}
		return f(&it)
	}
	if rows != nil {
		return EachKeyOf(cv, r, rows, read)
	}
	return record.ForEachEntry(r, codec.CollectionKey(codec.KindRowKeys, cv.ID),
		func(row uint32, key []byte) error {
			return read(row, string(key))
		})
}

// newItemReader returns a reader that is positioned before a row.
func newItemReader(r pebble.Reader, cv *state.CollectionView, from uint32) (*itemReader, error) {
	i := &itemReader{cv: cv, r: r, vectors: make([]model.Vector, len(cv.Modalities))}
	end := codec.PrefixEnd(codec.CollectionKey(codec.KindItem, cv.ID))
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: codec.NumberKey(codec.KindItem, cv.ID, from),
		UpperBound: end})
	if err != nil {
		return nil, fault.ReadError(err, "items")
	}
	i.records = it
	it.First()
	if len(cv.Modalities) > 0 && !cv.IndexOnly {
		if i.features, err = record.NewFeatureReader(r, cv.Descriptor, from); err != nil {
			return nil, errors.Join(err, it.Close())
		}
	}
	return i, nil
}

func (i *itemReader) close() error {
	err := i.records.Close()
	if i.features != nil {
		err = errors.Join(err, i.features.Close())
	}
	return err
}

// at returns the row of the current record. It is false at the end or after an error of the iterator, which
// at returns.
func (i *itemReader) at() (row uint32, ok bool, err error) {
	if !i.records.Valid() {
		return 0, false, fault.ReadError(i.records.Error(), "items")
	}
	if err := codec.CheckKey(i.records.Key()); err != nil {
		return 0, false, fault.Corrupt(err, "key")
	}
	return codec.LastNumber(i.records.Key()), true, nil
}

func (i *itemReader) record(row uint32) (*codec.ItemRecord, error) {
	at, ok, err := i.at()
	if ok && at < row { // the next record, or a later one
		i.records.Next()
		at, ok, err = i.at()
	}
	if ok && at < row {
		i.records.SeekGE(codec.NumberKey(codec.KindItem, i.cv.ID, row))
		at, ok, err = i.at()
	}
	if err == nil && (!ok || at != row) {
		err = fault.ErrMissing
	}
	var value []byte
	if err == nil {
		value, err = i.records.ValueAndErr()
	}
	if err != nil {
		return nil, fault.ReadError(err, "item in row %d", row)
	}
	rec, err := codec.DecodeItemRecord(value)
	if err != nil {
		return nil, fault.Corrupt(err, "item in row %d", row)
	}
	return rec, nil
}

func (i *itemReader) vector(row uint32, t int) (x model.Vector, found bool, err error) {
	if i.read != row+1 {
		if err := i.features.Seek(i.vectors, row); err != nil {
			return x, false, err
		}
		i.read = row + 1
	}
	i.features.Hand(t)
	x = i.vectors[t]
	return x, x.Present(), nil
}

func (i *itemReader) rowCode(row uint32) (rc codec.RowCode, found bool, err error) {
	b := &i.codes
	if number := row / codec.BlockRows; b.at != number+1 {
		key := i.cv.Codes.Block(codec.KindRowCodes, row)
		value, err := record.Get(i.r, key)
		if err != nil {
			return rc, false, fault.ReadError(err, "block %x", key)
		}
		b.block, b.at = codec.Block{}, number+1
		if value != nil {
			if b.block, err = codec.DecodeBlock(value); err != nil {
				return rc, false, fault.Corrupt(err, "block %x", key)
			}
		}
	}
	entry, found := b.block.Lookup(byte(row))
	if !found {
		return rc, false, nil
	}
	if rc, err = codec.DecodeRowCode(entry); err != nil {
		return rc, false, fault.Corrupt(err, "code of row %d", row)
	}
	return rc, true, nil
}

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
func (c *keyCache) appendKeys(dst []string, r pebble.Reader, collection uint32,
	places []place) ([]string, error) {
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

// EachOfSample calls f with n of the items that match an expression, or with all if there are fewer, in
// ascending order of rows, see EachItem. The seed decides the choice; every set of n items is equally likely.
func EachOfSample(ctx context.Context, cv *state.CollectionView, r pebble.Reader, n int, seed uint64,
	expr string, args []any, f func(*Item) error) error {
	rows, err := Matching(ctx, cv, r, expr, args)
	if err != nil {
		return err
	}
	if rows == nil {
		rows = cv.Live
	}
	if rows, err = sample(rows, n, seed); err != nil {
		return err
	}
	return EachKeyOf(cv, r, rows, func(row uint32, key string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		it, err := ReadItem(cv, r, row, key)
		if err != nil {
			return err
		}
		return f(it)
	})
}

// sample returns n of the rows, by Floyd's algorithm, which draws one number for each.
func sample(rows *roaring.Bitmap, n int, seed uint64) (*roaring.Bitmap, error) {
	all := rows.GetCardinality()
	if uint64(n) >= all {
		return rows, nil
	}
	random := rand.New(rand.NewPCG(seed, 0))
	places, out := roaring.New(), roaring.New()
	for last := all - uint64(n); last < all; last++ {
		at := uint32(random.Uint64N(last + 1))
		if !places.CheckedAdd(at) {
			at = uint32(last)
			places.Add(at)
		}
		row, err := rows.Select(at)
		if err != nil {
			return nil, fault.Corrupt(err, "row %d of %d", at, all)
		}
		out.Add(row)
	}
	return out, nil
}
