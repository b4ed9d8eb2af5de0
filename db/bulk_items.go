package db

import (
	"context"

	"github.com/fddhdb/fddhdb/db/internal/record"
)

// extraItems are the items of a bulk with what they have besides key and code: in memory,
// or where they are read from. They come in blocks.
type extraItems interface {
	blocks() int

	// blockOf returns the block that item i is in.
	blockOf(i int) int

	// newReader returns a reader for one goroutine.
	newReader() extrasReader
}

// An extrasReader reads blocks of extraItems.
type extrasReader interface {
	// read reads some parts of a block, and returns its first item and its items, without
	// keys and codes, nil where there is nothing. They are valid until it is called again.
	read(block int, parts itemParts) (from int, items []*record.Item, err error)
}

// itemParts are parts of items.
type itemParts int

const (
	recordPart itemParts = 1 << iota // labels, fields and payload
	vectorPart
)

// memoryItems are extraItems in memory.
type memoryItems []*record.Item

// memoryBlock is how many of them are a block.
const memoryBlock = 1024

func (m memoryItems) blocks() int             { return (len(m) + memoryBlock - 1) / memoryBlock }
func (m memoryItems) blockOf(i int) int       { return i / memoryBlock }
func (m memoryItems) newReader() extrasReader { return m }

func (m memoryItems) read(block int, _ itemParts) (from int, items []*record.Item, err error) {
	from = block * memoryBlock
	return from, m[from:min(from+memoryBlock, len(m))], nil
}

// extras returns what the items have besides key and code, nil where that is nothing.
func (k *bulk) extras() extraItems {
	switch {
	case k.staged != nil:
		return k.staged
	case k.more != nil:
		return memoryItems(k.more)
	}
	return nil
}

// each calls f with the items from to to-1, of which it has the parts, without keys and
// codes. They are valid until f returns.
func (k *bulk) each(ctx context.Context, parts itemParts, from, to int, f func(i int, it *record.Item) error) error {
	x := k.extras()
	var reader extrasReader
	if x != nil {
		reader = x.newReader()
	}
	for from < to {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		first, items := from, make([]*record.Item, 0)
		end := min(to, from+memoryBlock)
		if x != nil {
			var err error
			if first, items, err = reader.read(x.blockOf(from), parts); err != nil {
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

// noExtras is an item that has nothing but key and code; it is not to be changed.
var noExtras record.Item
