package repair

import (
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
)

// In a codes-only collection nothing else tells the code of an item: there is no model that could
// make it again. Three kinds of records say which row has which code, and repeat each other.

// givenCodes are the codes that the items of a codes-only collection have brought. They are
// primary, but their numbers and postings are derived. So readGiven takes them into memory,
// mendGiven deletes their records, and storeGiven stores them again as new codes.
type givenCodes struct {
	rows  []uint32    // ascending
	codes codec.Codes // the code of each of rows
}

// readGiven reads the codes of a codes-only collection. The record of a row says which code
// number it has; if that is lost, the rows beside the code do (KindCodes, KindCodeRows). An item
// whose code is lost is lost, and reported. It holds all codes in memory.
func (c *collectionMender) readGiven() error {
	if !c.CodesOnly() {
		return nil
	}
	c.stage("codes")
	k := record.CodeKeys{Collection: c.ID, Space: 1, Bits: c.Bits}
	// The codes come first, as the two other passes name them by number. Then each pass replaces
	// what the one before said of a row, from the least to the most reliable.
	var of record.ByBlock[uint32] // by row: 1 + the index of its code in numbers; 0: none
	var numbers []uint32          // the numbers of all, ascending
	all, code := codec.NewCodes(c.Bits, 0), codec.NewCode(c.Bits)
	// The codes by their numbers. Beside a code that one row has stands that row.
	err := c.blocks(k.Prefix(codec.KindCodes), func(_ []byte, first uint32, b codec.Block) error {
		for i := range b.Len() {
			row, err := codec.DecodeCodeEntry(code, c.Bits, b.Entry(i))
			if err != nil {
				continue
			}
			numbers = append(numbers, first+uint32(b.Offset(i)))
			all.Append(code)
			if row != codec.ManyRows && c.items.Contains(row) {
				*of.Put(row) = uint32(len(numbers))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	// The rows of the codes that many rows have.
	err = record.ForEach(c.store, k.Prefix(codec.KindCodeRows), func(key, value []byte) error {
		number, container := codec.CodeRowsKeyParts(key)
		at, known := slices.BinarySearch(numbers, number)
		l, err := codec.DecodeLayer(value)
		if err != nil || !known {
			return nil
		}
		for it := l.Added.Iterator(); it.HasNext(); {
			if row := uint32(container)<<16 | it.Next(); c.items.Contains(row) {
				*of.Put(row) = uint32(at) + 1
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	// The codes of rows, which overrule the rows of codes.
	err = c.blocks(k.Prefix(codec.KindRowCodes), func(_ []byte, first uint32, b codec.Block) error {
		for i := range b.Len() {
			row := first + uint32(b.Offset(i))
			rc, err := codec.DecodeRowCode(b.Entry(i))
			if err != nil || !c.items.Contains(row) {
				continue
			}
			at, known := slices.BinarySearch(numbers, rc.Code)
			if !known {
				continue
			}
			if also := of.Get(row); also != nil && *also > 0 && *also != uint32(at)+1 {
				c.badItem(row, "it has code number %d, and number %d is to be that of the row: the first one counts", rc.Code, numbers[*also-1])
			}
			*of.Put(row) = uint32(at) + 1
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.given = &givenCodes{codes: codec.NewCodes(c.Bits, int(c.items.GetCardinality()))}
	// loseGiven removes rows from items, so iterate over a copy.
	for it := c.items.Clone().Iterator(); it.HasNext(); {
		row := it.Next()
		if at := of.Get(row); at != nil && *at > 0 {
			c.given.rows = append(c.given.rows, row)
			c.given.codes.Append(all.At(int(*at) - 1))
		} else if err := c.loseGiven(row); err != nil {
			return err
		}
	}
	return nil
}

// loseGiven drops an item with a lost code, and its keys, and reports it.
func (c *collectionMender) loseGiven(row uint32) error {
	block := codec.NumberKey(codec.KindRowKeys, c.ID, row/codec.BlockRows)
	key := ""
	err := record.BlockEntry(c.store, block, row, func(entry []byte) error {
		key = string(entry)
		return nil
	})
	if err != nil {
		return err
	}
	c.badItem(row, "lost: its code is; its key is %q", key)
	if err := c.dropItem(row); err != nil {
		return err
	}
	if err := c.delete(codec.ItemKey(c.ID, key)); err != nil {
		return err
	}
	return c.clearBlock(block, byte(row))
}

// mendGiven writes the one space that a codes-only collection has, as active and without codes.
func (c *collectionMender) mendGiven() error {
	d := spaces.SpaceDescriptor{ID: 1, Bits: c.Bits, Created: spaces.Now()}
	// A descriptor that can be read keeps the date of the space.
	if sp, err := spaces.Read(c.store, c.Descriptor, 1, 1); err == nil {
		d = sp.SpaceDescriptor
	}
	// The codes go with the space: storeGiven stores them again, from memory.
	if err := c.dropSpaces(nil); err != nil {
		return err
	}
	c.counters.ActiveSpace, c.counters.PreviousSpace = 1, 0
	c.counters.NextSpace = max(c.counters.NextSpace, 2)
	c.counters.Spaces = []codec.SpaceCounters{{ID: 1, Revision: 1}}
	return c.writeSpace(d, nil)
}
