package bulk

import (
	"encoding/binary"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// A blockStream packs entries, by ascending number, into blocks of 256 numbers, and writes
// each block when it is complete. A block that may be in the store already is written as an
// edit, which the store merges with it.
type blockStream struct {
	t     *store.Stream // gets the blocks
	key   []byte        // of the current block; its last four bytes are the number of the block
	width int           // bytes of an entry; -1: they vary
	fresh uint64        // a block whose first number is fresh or more has never been written

	edit  *codec.BlockEdit // entries of the current block; nil before the first, and after flush
	block uint32           // number of the current block
	room  []byte           // memory of its entries
}

// newBlockStream returns a stream of entries of width bytes, -1 if that varies. It takes
// over key, whose last four bytes are the number of a block. Blocks of numbers from fresh
// on have never been written.
func newBlockStream(t *store.Stream, key []byte, width int, fresh uint64) *blockStream {
	return &blockStream{t: t, key: key, width: width, fresh: fresh}
}

// set copies entry, the entry with number n, which is larger than the last. It writes the
// block before, if n begins another. After the last entry the caller calls flush.
func (b *blockStream) set(n uint32, entry []byte) error {
	if b.edit == nil || n/codec.BlockRows != b.block {
		if err := b.flush(); err != nil {
			return err
		}
		b.block, b.edit, b.room = n/codec.BlockRows, codec.NewBlockEdit(b.width), b.room[:0]
	}
	from := len(b.room)
	b.room = append(b.room, entry...)
	b.edit.Set(byte(n), b.room[from:])
	return nil
}

// flush writes the current block, if there is one.
func (b *blockStream) flush() error {
	if b.edit == nil {
		return nil
	}
	// The block of the last row that was given out may be in the store. Blocks behind it cannot be.
	fresh := uint64(b.block)*codec.BlockRows >= b.fresh
	binary.BigEndian.PutUint32(b.key[len(b.key)-4:], b.block)
	edit := b.edit
	b.edit = nil
	return b.t.Records.Block(b.key, edit, fresh)
}

// putLayer writes rows that are added to a set; fresh says that nothing is stored under key.
// Rows that come together often are neighbours without a gap: as a run they take a few
// bytes. It may change the form of layer.Added.
func putLayer(t *store.Stream, key []byte, layer codec.Layer, fresh bool) error {
	if rows := layer.Added; uint64(rows.Maximum()-rows.Minimum())+1 == rows.GetCardinality() {
		rows.RunOptimize()
	}
	return t.Records.Layer(key, layer, fresh)
}
