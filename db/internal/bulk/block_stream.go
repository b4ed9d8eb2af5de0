package bulk

import (
	"encoding/binary"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// A blockStream packs entries, by ascending number, into the blocks of one kind.
type blockStream struct {
	t     *store.Stream // that the blocks go to
	key   []byte
	width int
	fresh uint64 // blocks of numbers from this on have never been written

	edit  *codec.BlockEdit
	block uint32
	room  []byte // of the entries of the block
	value []byte
}

// newBlockStream returns one that writes entries of so many bytes, -1 where that varies, under
// key, whose last four bytes are the number of a block. Blocks of numbers from fresh on have
// never been written.
func newBlockStream(t *store.Stream, key []byte, width int, fresh uint64) *blockStream {
	return &blockStream{t: t, key: key, width: width, fresh: fresh}
}

// set copies entry, as the one with number n, which is larger than the last.
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

// flush writes the block that has been collected.
func (b *blockStream) flush() error {
	if b.edit == nil {
		return nil
	}
	fresh := uint64(b.block)*codec.BlockRows >= b.fresh
	binary.BigEndian.PutUint32(b.key[len(b.key)-4:], b.block)
	b.value = b.edit.Append(b.value[:0], fresh)
	b.edit = nil
	return b.t.Put(b.key, b.value, fresh)
}

// putLayer writes rows that are added to a set; fresh says that nothing is stored under key.
// Neighbours, as rows that come together often are, take a few bytes as a run.
func putLayer(t *store.Stream, key []byte, layer codec.Layer, fresh bool) error {
	if rows := layer.Added; uint64(rows.Maximum()-rows.Minimum())+1 == rows.GetCardinality() {
		rows.RunOptimize()
	}
	value, err := layer.Append(nil, fresh)
	if err != nil {
		return err
	}
	return t.Put(key, value, fresh)
}
