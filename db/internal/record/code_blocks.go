package record

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
)

// CodeBlocks reads the codes of one code set from their blocks in the store: by number (Read),
// or all of them (Each). A block of codec.BlockRows codes is decoded once for all numbers of
// it that are asked for in a row, so numbers should come in ascending order. It is for one
// goroutine. Close it.
type CodeBlocks struct {
	snap *pebble.Snapshot // the caller's, who keeps it open
	set  CodeKeys         // where the codes are

	key  []byte           // of the block that is looked for; scratch memory
	It   *pebble.Iterator // over the blocks; nil before it is needed. Exported for tests, which count what it reads
	code codec.Code       // that Read has returned; scratch memory

	// The block that It stands at, in memory of the iterator's: it is gone when It moves.
	block codec.Block
	at    uint32 // its number + 1; 0: none
}

// NewCodeBlocks returns a reader of the codes of a set as they are in a snapshot. It reads
// nothing yet.
func NewCodeBlocks(snap *pebble.Snapshot, set CodeKeys) CodeBlocks {
	return CodeBlocks{snap: snap, set: set, code: codec.NewCode(set.Bits)}
}

// Close closes the iterator. Codes that Read has returned stay what they are.
func (b *CodeBlocks) Close() error {
	if b.It == nil {
		return nil
	}
	return b.It.Close()
}

// iterator returns It, which it makes when it is needed first.
func (b *CodeBlocks) iterator() (*pebble.Iterator, error) {
	if b.It != nil {
		return b.It, nil
	}
	prefix := b.set.Prefix(codec.KindCodes)
	it, err := b.snap.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: codec.PrefixEnd(prefix)})
	if err != nil {
		return nil, fault.ReadError(err, "codes")
	}
	b.It = it
	return it, nil
}

// Read returns the code with number n, and the row that carries it, or codec.ManyRows where
// several do. The next call of Read or Each overwrites the code. A number that is not stored
// is an ErrCorrupt: the caller has it from a record that says that it is.
func (b *CodeBlocks) Read(n uint32) (codec.Code, uint32, error) {
	if block := n / codec.BlockRows; b.at != block+1 {
		it, err := b.iterator()
		if err != nil {
			return nil, 0, err
		}
		b.at = 0
		b.key = append(b.key[:0], b.set.Block(codec.KindCodes, n)...)
		// The limit ends the seek behind this key. It also keeps Pebble, where a seek
		// goes to a greater key than the one before, from trying the next keys first:
		// as a block is as large as one of Pebble's, that reads four blocks more.
		if it.SeekGEWithLimit(b.key, append(b.key, 0)) != pebble.IterValid || string(it.Key()) != string(b.key) {
			if err := it.Error(); err != nil {
				return nil, 0, fault.ReadError(err, "code number %d", n)
			}
			return nil, 0, fault.Corrupt(errors.New("missing"), "code number %d", n)
		}
		if err := b.decode(it); err != nil {
			return nil, 0, err
		}
	}
	entry, ok := b.block.Lookup(byte(n))
	if !ok {
		return nil, 0, fault.Corrupt(errors.New("missing"), "code number %d", n)
	}
	row, err := codec.DecodeCodeEntry(b.code, b.set.Bits, entry)
	if err != nil {
		return nil, 0, fault.Corrupt(err, "code number %d", n)
	}
	return b.code, row, nil
}

// decode makes block the one at which the iterator stands. It aliases memory of the iterator.
func (b *CodeBlocks) decode(it *pebble.Iterator) error {
	b.at = 0
	value, err := it.ValueAndErr()
	if err != nil {
		return fault.ReadError(err, "block %x", it.Key())
	}
	if err = codec.CheckKey(it.Key()); err == nil {
		b.block, err = codec.DecodeBlock(value)
	}
	if err != nil {
		return fault.Corrupt(err, "block %x", it.Key())
	}
	b.at = codec.LastNumber(it.Key()) + 1
	return nil
}

// Each calls f with all codes of the set and their numbers, ascending, a block at a time:
// codes are packed, codec.Words(bits) words each, in the order of numbers. Both slices are
// overwritten after f returns. An error of f ends the iteration and is returned.
func (b *CodeBlocks) Each(f func(numbers []uint32, codes []uint64) error) error {
	it, err := b.iterator()
	if err != nil {
		return err
	}
	q := b.set.Bits
	var numbers []uint32
	codes := codec.NewCodes(q, codec.BlockRows)
	for ok := it.First(); ok; ok = it.Next() {
		if err := b.decode(it); err != nil {
			return err
		}
		numbers, codes = numbers[:0], codes.Truncated()
		base := (b.at - 1) * codec.BlockRows
		for i := range b.block.Len() {
			n := base + uint32(b.block.Offset(i))
			if _, err := codec.DecodeCodeEntry(b.code, q, b.block.Entry(i)); err != nil {
				return fault.Corrupt(err, "code number %d", n)
			}
			numbers = append(numbers, n)
			codes.Append(b.code)
		}
		if err := f(numbers, codes.Slice(0, codes.Len())); err != nil {
			return err
		}
	}
	b.at = 0 // the iterator has left the last block, and taken back its memory
	return fault.ReadError(it.Error(), "codes")
}
