package repair

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// A keyMender makes the two records of a key agree: that from the row to the key, and that from
// the key to the row. Either gives the other. It holds a hash of 8 bytes an item, not the keys.
type keyMender struct {
	*collectionMender
	seed      maphash.Seed           // of hash
	keys      record.ByBlock[uint64] // by row: the hash of its key; 0: it has none
	keyed     *roaring.Bitmap        // the items that have a key
	confirmed *roaring.Bitmap        // the items of keyed whose key leads back to them
	lostKeys  map[uint32]string      // by row: the keys of rows that have no item
}

// hash returns a hash of a key, never 0.
func (k *keyMender) hash(key []byte) uint64 { return maphash.Bytes(k.seed, key) | 1 }

// mendKeys makes sure that each item has one key and each key one item, and reports the items
// that are lost.
func (c *collectionMender) mendKeys() error {
	c.stage("keys")
	k := &keyMender{
		collectionMender: c, seed: maphash.MakeSeed(),
		keyed: roaring.New(), confirmed: roaring.New(), lostKeys: map[uint32]string{},
	}
	// The order: keys by row; rows by key, which confirm them or stand in for lost ones; the
	// missing way back; names for the items that are left without a key. Each step reads what the
	// one before has flushed.
	for _, step := range []func() error{k.readKeys, k.readRows, k.leadBack, k.nameRest} {
		if err := step(); err != nil {
			return err
		}
		if err := c.flush(); err != nil {
			return err
		}
	}
	return nil
}

// readKeys reads the records from rows to keys, and removes the ones of rows without an item.
func (k *keyMender) readKeys() error {
	return k.blocks(codec.CollectionKey(codec.KindRowKeys, k.ID), func(key []byte, first uint32, b codec.Block) error {
		var gone []byte
		for i := range b.Len() {
			row, entry := first+uint32(b.Offset(i)), b.Entry(i)
			if len(entry) == 0 || record.CheckKey(string(entry)) != nil {
				gone = append(gone, b.Offset(i))
				continue
			}
			if !k.items.Contains(row) {
				gone = append(gone, b.Offset(i))
				// The only name of an item that may be lost: readRows decides whether it is.
				k.lostKeys[row] = string(entry)
				continue
			}
			*k.keys.Put(row) = k.hash(entry)
			k.keyed.Add(row)
			k.countKey(entry)
		}
		return k.clearBlock(key, gone...)
	})
}

// giveKey stores a key as the key of a row. The record from the key to the row is up to the caller.
func (k *keyMender) giveKey(row uint32, key []byte) error {
	*k.keys.Put(row) = k.hash(key)
	k.keyed.Add(row)
	k.countKey(key)
	e := codec.NewBlockEdit(-1)
	e.Set(byte(row), key)
	return k.merge(codec.NumberKey(codec.KindRowKeys, k.ID, row/codec.BlockRows), e.Append(nil, false))
}

// readRows reads the records from keys to rows. An item without a key gets its key from there.
// Then it reports the lost items: the rows without an item that the live set has, or that two
// other records tell of. items.go has the rules.
func (k *keyMender) readRows() error {
	lost, others := map[uint32]string{}, map[uint32]string{}
	err := record.ForEach(k.store, codec.CollectionKey(codec.KindKey, k.ID), func(key, value []byte) error {
		text := key[5:]
		if len(value) != 4 || record.CheckKey(string(text)) != nil {
			return k.delete(key)
		}
		row := binary.BigEndian.Uint32(value)
		switch stored := k.keys.Get(row); {
		case !k.items.Contains(row): // the item is lost if a second record tells of it, or may have
			if other, both := k.lostKeys[row]; both && other == string(text) || k.damaged.Contains(row) || k.mayLive(row) {
				lost[row] = string(text)
			}
			return k.delete(key)
		case stored != nil && *stored == k.hash(text): // both records agree
			k.confirmed.Add(row)
			return nil
		case !k.keyed.Contains(row): // the record from the row to the key is lost
			k.confirmed.Add(row)
			return k.giveKey(row, text)
		}
		others[row] = string(text) // the row has another key
		return k.delete(key)
	})
	if err != nil {
		return err
	}
	// If the key of the row leads back to it, nothing is lost with the other key.
	for _, row := range slices.Sorted(maps.Keys(others)) {
		if !k.confirmed.Contains(row) {
			k.badItem(row, "the key %q leads to it, and it has another, which it keeps", others[row])
		}
	}
	// A key of a row alone may be the rest of a deletion; with a second record it is a loss.
	for row, key := range k.lostKeys {
		if k.live.Contains(row) || k.damaged.Contains(row) || k.lostAny(codec.NumberKey(codec.KindItem, k.ID, row)) {
			lost[row] = key
		}
	}
	for it := k.live.Iterator(); it.HasNext(); {
		row := it.Next()
		if _, known := lost[row]; !known && !k.items.Contains(row) && (!k.counted || uint64(row) < k.counters.NextRow) {
			lost[row] = ""
		}
	}
	for it := k.damaged.Iterator(); it.HasNext(); {
		if row := it.Next(); lost[row] == "" && row < record.MaxRows-1 {
			lost[row] = ""
		}
	}
	for _, row := range slices.Sorted(maps.Keys(lost)) {
		name := "its key is not known"
		if lost[row] != "" {
			name = fmt.Sprintf("its key is %q", lost[row])
		}
		k.badItem(row, "lost: its record is missing or damaged; %s", name)
	}
	return nil
}

// leadBack writes the missing records from keys to rows. If several items have one key, the item
// that the key leads to keeps it, else the one with the highest row, which is the latest. The
// others lose their key.
func (k *keyMender) leadBack() error {
	type keyedRow struct {
		hash uint64
		row  uint32
	}
	var rest []keyedRow // the items to which no key leads
	for it := k.keyed.Iterator(); it.HasNext(); {
		if row := it.Next(); !k.confirmed.Contains(row) {
			rest = append(rest, keyedRow{*k.keys.Get(row), row})
		}
	}
	slices.SortFunc(rest, func(a, b keyedRow) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(b.row, a.row)) })
	twice := map[uint32]bool{} // rows whose key a higher row has, too
	for i, x := range rest {
		if i > 0 && rest[i-1].hash == x.hash {
			twice[x.row] = true
		}
	}
	slices.SortFunc(rest, func(a, b keyedRow) int { return cmp.Compare(a.row, b.row) })
	for _, x := range rest {
		var key []byte
		block := codec.NumberKey(codec.KindRowKeys, k.ID, x.row/codec.BlockRows)
		err := record.BlockEntry(k.store, block, x.row, func(entry []byte) error {
			key = codec.ItemKey(k.ID, string(entry))
			return nil
		})
		if err != nil {
			return err
		}
		// The record is still there if the key leads to another item, whose key it is then.
		of, err := record.Get(k.store, key)
		if err != nil {
			return err
		}
		if twice[x.row] || len(of) == 4 && k.confirmed.Contains(binary.BigEndian.Uint32(of)) {
			k.badItem(x.row, "its key %q is that of another item", key[5:])
			k.keyed.Remove(x.row)
			// nameRest may drop the item. An entry of a row without an item is damage.
			if err := k.clearBlock(block, byte(x.row)); err != nil {
				return err
			}
			continue
		}
		k.confirmed.Add(x.row)
		if err := k.set(key, binary.BigEndian.AppendUint32(nil, x.row)); err != nil {
			return err
		}
	}
	return nil
}

// nameRest gives the items without a key one of the form "lost+found/ROW". An item that is in no
// live set either, where neither record can be lost, is the rest of a deletion, and is dropped.
func (k *keyMender) nameRest() error {
	for it := roaring.AndNot(k.items, k.keyed).Iterator(); it.HasNext(); {
		row := it.Next()
		if !k.mayLive(row) && !k.lostAny(codec.NumberKey(codec.KindRowKeys, k.ID, row/codec.BlockRows)) {
			k.badItem(row, "it has no key and is in no set: it is taken for the rest of one that was deleted, and left out")
			if err := k.dropItem(row); err != nil {
				return err
			}
			continue
		}
		name := fmt.Sprintf("lost+found/%d", row)
		// A user may have given another item this very key.
		for {
			of, err := record.Get(k.store, codec.ItemKey(k.ID, name))
			if err != nil {
				return err
			}
			if of == nil {
				break
			}
			name += "'"
		}
		k.badItem(row, "its key is lost: it gets the key %q", name)
		if err := k.giveKey(row, []byte(name)); err != nil {
			return err
		}
		if err := k.set(codec.ItemKey(k.ID, name), binary.BigEndian.AppendUint32(nil, row)); err != nil {
			return err
		}
	}
	return nil
}
