package bulk

import (
	"context"

	"github.com/fddhdb/fddhdb/db/internal/record"
)

// Extras are what the items of a load have besides key and code. They come in blocks of
// consecutive items, because a block of an import is a piece of a file. Items in memory
// have one implementation here, staged imports of package db the other. Extras do not
// change while Commit runs, and several goroutines use them.
type Extras interface {
	Blocks() int // number of blocks; block 0 begins with item 0

	// BlockOf returns the number of the block that item i is in.
	BlockOf(i int) int

	// NewReader returns a reader for one goroutine. It need not be closed.
	NewReader() Reader
}

// A Reader reads blocks of Extras, for one goroutine.
type Reader interface {
	// Read reads some parts of a block. It returns the number of the block's first item, and
	// its items; an item that has none of the parts may be nil. Keys, codes and parts that
	// were not asked for may be missing. The items are valid until Read is called again, and
	// must not be changed.
	Read(block int, parts Parts) (from int, items []*record.Item, err error)
}

// Parts is a set of parts of items, a bit each. Readers leave the others out, if that
// saves reading.
type Parts int

// The parts of an item besides key and code.
const (
	RecordPart Parts = 1 << iota // labels, fields and payload
	VectorPart                   // features
)

// memoryItems implements Extras, and Reader, for items in memory: by number, nil for items
// without extras. Read returns whole items, which stay valid.
type memoryItems []*record.Item

// memoryBlock is the number of items in a block of memoryItems.
const memoryBlock = 1024

// These methods implement Extras.
func (m memoryItems) Blocks() int       { return (len(m) + memoryBlock - 1) / memoryBlock }
func (m memoryItems) BlockOf(i int) int { return i / memoryBlock }
func (m memoryItems) NewReader() Reader { return m }

// Read implements Reader. The items alias m.
func (m memoryItems) Read(block int, _ Parts) (from int, items []*record.Item, err error) {
	from = block * memoryBlock
	return from, m[from:min(from+memoryBlock, len(m))], nil
}

// extras returns what the items have besides key and code, nil if no item has anything.
func (k *Items) extras() Extras {
	switch {
	case k.staged != nil:
		return k.staged
	case k.more != nil:
		return memoryItems(k.more)
	}
	return nil
}

// Each calls f with the items from to to-1, in order, with at least these parts. Keys and
// codes may be missing. An item is valid until f returns, and must not be changed. An
// error of f ends it; so does the end of ctx, whose cause it returns. Several goroutines
// may call it at once.
func (k *Items) Each(ctx context.Context, parts Parts, from, to int, f func(i int, it *record.Item) error) error {
	x := k.extras()
	var reader Reader
	if x != nil {
		reader = x.NewReader()
	}
	for from < to {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		first, items := from, make([]*record.Item, 0)
		// Without extras there are no blocks: go in steps that look at ctx.
		end := min(to, from+memoryBlock)
		if x != nil {
			var err error
			if first, items, err = reader.Read(x.BlockOf(from), parts); err != nil {
				return err
			}
			end = min(to, first+len(items))
		}
		for ; from < end; from++ {
			it := &noExtras
			if x != nil && items[from-first] != nil {
				it = items[from-first]
			}
			if err := f(from, it); err != nil {
				return err
			}
		}
	}
	return nil
}

// noExtras is what Each hands on for an item without extras.
var noExtras record.Item
