package bulk

import (
	"context"

	"github.com/fddhdb/fddhdb/db/internal/record"
)

// Extras are the items of a bulk with what they have besides key and code: in memory,
// or where they are read from. They come in blocks.
type Extras interface {
	Blocks() int // how many there are

	// BlockOf returns the block that item i is in.
	BlockOf(i int) int

	// NewReader returns a reader for one goroutine.
	NewReader() Reader
}

// A Reader reads blocks of Extras.
type Reader interface {
	// Read reads some parts of a block, and returns its first item and its items, without
	// keys and codes, nil where there is nothing. They are valid until it is called again.
	Read(block int, parts Parts) (from int, items []*record.Item, err error)
}

// Parts are parts of items, as a set of bits.
type Parts int

// The parts of an item besides key and code.
const (
	RecordPart Parts = 1 << iota // labels, fields and payload
	VectorPart                   // features
)

// memoryItems are Extras in memory.
type memoryItems []*record.Item

// memoryBlock is how many of them are a block.
const memoryBlock = 1024

func (m memoryItems) Blocks() int       { return (len(m) + memoryBlock - 1) / memoryBlock }
func (m memoryItems) BlockOf(i int) int { return i / memoryBlock }
func (m memoryItems) NewReader() Reader { return m }

func (m memoryItems) Read(block int, _ Parts) (from int, items []*record.Item, err error) {
	from = block * memoryBlock
	return from, m[from:min(from+memoryBlock, len(m))], nil
}

// extras returns what the items have besides key and code, nil where that is nothing.
func (k *Items) extras() Extras {
	switch {
	case k.staged != nil:
		return k.staged
	case k.more != nil:
		return memoryItems(k.more)
	}
	return nil
}

// Each calls f with the items from to to-1, of which it has the parts, without keys and
// codes. They are valid until f returns.
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

// noExtras is an item that has nothing but key and code; it is not to be changed.
var noExtras record.Item
