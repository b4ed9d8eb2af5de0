package verify

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// checkKeys compares the key of each row with the row of each key. It keeps a hash of the key
// of each row, 8 bytes, and clears it when the key leads back to the row: so two keys that
// lead to one row are found too. A collision of hashes, which have a random seed, could hide
// a wrong key with a probability of 2^-63.
func (c *collectionVerifier) checkKeys() {
	c.begin("keys")
	seed := maphash.MakeSeed()
	hash := func(key []byte) uint64 { return maphash.Bytes(seed, key) | 1 }
	// Three passes: hash the key that each row names; clear the hash where a key names that row,
	// and report keys that do not match; report rows that still have a hash, as no key leads to them.
	var keys record.ByBlock[uint64] // by row: hash of its key; 0: it has none, or the key has led back
	keyed := roaring.New()
	c.entries(codec.CollectionKey(codec.KindRowKeys, c.ID), c.about("keys of rows"), func(key []byte, row uint32, entry []byte) {
		what := fmt.Sprintf("key of row %d", row)
		if !c.live.Contains(row) {
			c.missing(what, codec.RowsKey(c.ID, codec.SetLive, 0, uint16(row>>16)), "it is %q, and the row is not in the live set", entry)
		}
		if uint64(row) >= c.nextRow {
			c.bad(what, key, "the next row is %d", c.nextRow)
		}
		if len(entry) == 0 {
			c.bad(what, key, "it is empty")
		}
		*keys.Put(row) = hash(entry)
		keyed.Add(row)
	})
	for row := range c.strayRows(c.live, keyed) {
		c.missing(fmt.Sprintf("key of row %d", row), codec.NumberKey(codec.KindRowKeys, c.ID, row/codec.BlockRows), "missing, and the row is in the live set")
	}
	c.walkPrefix(codec.CollectionKey(codec.KindKey, c.ID), c.about("rows of keys"), func(key, value []byte) {
		what := fmt.Sprintf("row of key %q", key[5:])
		if len(value) != 4 {
			c.bad(what, key, "%d bytes, not 4", len(value))
			c.lose(key)
			return
		}
		row := binary.BigEndian.Uint32(value)
		stored := keys.Get(row)
		if stored == nil || *stored != hash(key[5:]) {
			c.missing(what, codec.NumberKey(codec.KindRowKeys, c.ID, row/codec.BlockRows), "it is row %d, which does not have this key", row)
			return
		}
		*stored = 0
	})
	keys.Each(func(row uint32, left *uint64) {
		if *left == 0 || c.err != nil {
			return
		}
		block := codec.NumberKey(codec.KindRowKeys, c.ID, row/codec.BlockRows)
		err := record.BlockEntry(c.snap, block, row, func(entry []byte) error {
			key := codec.ItemKey(c.ID, string(entry))
			c.missing(fmt.Sprintf("row of key %q", entry), key, "it does not lead to row %d, which has the key", row)
			return nil
		})
		if err != nil { // it could be read before
			c.bad(fmt.Sprintf("key of row %d", row), block, "%s", fault.Problem(err))
		}
	})
}
