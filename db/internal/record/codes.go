package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/mih"
)

// CodeKeys tells where the store has the codes of a space: blocks from row to code number, blocks from code
// number to code, the rows of codes that several carry, and postings of substrings. It is a value of 16
// bytes, free to copy and to compare.
type CodeKeys struct {
	Collection, Space uint32 // ids
	Bits              int    // of a code
}

// Prefix returns the prefix of all keys of a kind that belong to the space.
func (k CodeKeys) Prefix(kind byte) []byte {
	return codec.NumberKey(kind, k.Collection, k.Space)
}

// Block returns the key of the block that holds number n: a row where the kind is
// codec.KindRowCodes or codec.KindProjection, a code number where it is codec.KindCodes.
func (k CodeKeys) Block(kind byte, n uint32) []byte {
	return codec.SpaceBlockKey(kind, k.Collection, k.Space, n/codec.BlockRows)
}

// RowsKey returns the key of a layer: the rows of a container (row >> 16) that carry code
// number n. Only codes that several rows carry have such layers; else the row stands beside
// the code.
func (k CodeKeys) RowsKey(n uint32, container uint16) []byte {
	return codec.CodeRowsKey(k.Collection, k.Space, n, container)
}

// AllRows returns the prefix of all keys that RowsKey gives for code number n.
func (k CodeKeys) AllRows(n uint32) []byte {
	return codec.CodeRowsPrefix(k.Collection, k.Space, n)
}

// AppendPosting appends the key of the posting of all codes whose substring with this number,
// in the cut of Split, has this value. With 15 bytes of room in dst it does not allocate.
func (k CodeKeys) AppendPosting(dst []byte, substring uint16, value uint32) []byte {
	return codec.AppendSubstringKey(dst, k.Collection, k.Space, substring, value)
}

// RowCode returns which code a row has, where the code comes from, and which revision made it.
// found is false where the row has no code in the set. It reads one block of 256 rows.
func (k CodeKeys) RowCode(r pebble.Reader, row uint32) (rc codec.RowCode, found bool, err error) {
	err = BlockEntry(r, k.Block(codec.KindRowCodes, row), row, func(entry []byte) error {
		found = true
		if rc, err = codec.DecodeRowCode(entry); err != nil {
			return fault.Corrupt(err, "code of row %d", row)
		}
		return nil
	})
	return rc, found && err == nil, err
}

// Code returns the code with number n, in memory of the caller's own. A number that is not stored is an
// ErrCorrupt. row, which carries the code, serves only the text of errors.
func (k CodeKeys) Code(r pebble.Reader, n, row uint32) (codec.Code, error) {
	code, found := codec.NewCode(k.Bits), false
	err := BlockEntry(r, k.Block(codec.KindCodes, n), n, func(entry []byte) error {
		found = true
		_, err := codec.DecodeCodeEntry(code, k.Bits, entry)
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("number %d does not exist", n)
	}
	if err != nil {
		return nil, fault.Corrupt(err, "code of row %d", row)
	}
	return code, nil
}

// Split returns how the stored postings divide codes of q bits into substrings: into the fewest of at most 16
// bits. The split does not depend on the number of codes, because postings cannot be split again when a
// collection grows. With a million codes a posting has some 15 numbers. The split is part of the stored
// format. Tables in memory (mih) have another one. Codes that are too long for tables have no postings: they
// would be most of the stored bytes, and no search would be faster by them.
func Split(q int) mih.Split {
	if !mih.Tabled(q) {
		return mih.NewSplit(q, 0)
	}
	return mih.NewSplit(q, (q+15)/16)
}

// CodeBlocks reads the codes of one code set from their blocks in the store: by number (Read),
// or all of them from a number on (Each). A block of codec.BlockRows codes is decoded once for all numbers of
// it that are asked for in a row, so numbers should come in ascending order. It is for one
// goroutine. Close it.
type CodeBlocks struct {
	snap *pebble.Snapshot // the caller's, who keeps it open
	set  CodeKeys         // where the codes are

	key []byte // of the block that is looked for; scratch memory
	// over the blocks; nil before its first use. Exported for tests, which count its reads
	It   *pebble.Iterator
	code codec.Code // that Read has returned; scratch memory

	// The block that It stands at, in memory of the iterator's: it is gone when It moves.
	block codec.Block
	at    uint32 // its number + 1; 0: none
}

// NewCodeBlocks returns a reader of the codes of a set as they are in a snapshot. It reads
// nothing yet.
func NewCodeBlocks(snap *pebble.Snapshot, set CodeKeys) CodeBlocks {
	return CodeBlocks{snap: snap, set: set, code: codec.NewCode(set.Bits)}
}

// Close closes the iterator. Codes that Read has returned stay valid.
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
		if it.SeekGEWithLimit(b.key, append(b.key, 0)) != pebble.IterValid ||
			string(it.Key()) != string(b.key) {
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

// Each calls f with all codes of the set from number first on and their numbers, ascending, a block at a
// time: codes are packed, codec.Words(bits) words each, in the order of numbers. Both slices are overwritten
// after f returns. An error of f ends the iteration and is returned.
func (b *CodeBlocks) Each(first uint32, f func(numbers []uint32, codes []uint64) error) error {
	it, err := b.iterator()
	if err != nil {
		return err
	}
	q := b.set.Bits
	var numbers []uint32
	codes := codec.NewCodes(q, codec.BlockRows)
	for ok := it.SeekGE(b.set.Block(codec.KindCodes, first)); ok; ok = it.Next() {
		if err := b.decode(it); err != nil {
			return err
		}
		numbers, codes = numbers[:0], codes.Truncated()
		base := (b.at - 1) * codec.BlockRows
		for i := range b.block.Len() {
			n := base + uint32(b.block.Offset(i))
			if n < first {
				continue
			}
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

// ByBlock is a sparse array: it holds a T for each number in the blocks of codec.BlockRows
// numbers that something was put into. Verification and repair use it for rows and code
// numbers that a store names. Such a number may be damaged, so memory goes by how many blocks
// are in use, and not by the largest number. The zero value is empty. It is for one goroutine,
// even to read.
type ByBlock[T any] struct {
	blocks map[uint32]*[codec.BlockRows]T // by number / codec.BlockRows

	// The block that Get or Put has found last: numbers mostly come in order.
	at    uint32
	block *[codec.BlockRows]T // nil: none yet
}

// Put returns the place of a number and makes its block, of zero values, if there is none. The
// pointer stays valid, as blocks never move.
func (p *ByBlock[T]) Put(n uint32) *T {
	if x := p.Get(n); x != nil {
		return x
	}
	if p.blocks == nil {
		p.blocks = map[uint32]*[codec.BlockRows]T{}
	}
	p.at, p.block = n/codec.BlockRows, new([codec.BlockRows]T)
	p.blocks[p.at] = p.block
	return &p.block[n%codec.BlockRows]
}

// Get returns the place of a number, nil if its block is missing. A place in a block that exists may hold the
// zero value: T itself has to tell whether Put has filled it.
func (p *ByBlock[T]) Get(n uint32) *T {
	if p.block == nil || p.at != n/codec.BlockRows {
		b := p.blocks[n/codec.BlockRows]
		if b == nil {
			return nil
		}
		p.at, p.block = n/codec.BlockRows, b
	}
	return &p.block[n%codec.BlockRows]
}

// Chunked describes how a large value, such as a model, is stored in chunks, which are records of their own.
// The descriptor of the value's owner has it, because the chunks alone could not tell that the last ones are
// missing. The zero value means that the value is not stored.
type Chunked struct {
	Chunks uint32 `json:"chunks"` // records: Bytes / ChunkBytes, rounded up
	Bytes  int64  `json:"bytes"`  // of all chunks together
}

// ChunkBytes is the length of each chunk but the last. It is part of the stored format.
const ChunkBytes = 1 << 20

// ChunksOf returns the chunks that WriteChunks makes of b.
func ChunksOf(b []byte) Chunked {
	return Chunked{Chunks: uint32((len(b) + ChunkBytes - 1) / ChunkBytes), Bytes: int64(len(b))}
}

// WriteChunks stores b in chunks. The key of chunk i is prefix followed by first+i as a u32,
// big-endian; first is 1 where number 0 is the descriptor (revisions), else 0. It does not
// delete chunks of a longer value that was there before.
func WriteChunks(w pebble.Writer, prefix []byte, first uint32, b []byte) error {
	for i := range ChunksOf(b).Chunks {
		n := min(ChunkBytes, len(b))
		if err := w.Set(binary.BigEndian.AppendUint32(slices.Clip(prefix), first+i), b[:n], nil); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// ReadChunks returns the value that WriteChunks has stored, as a slice of the caller's own. A
// chunk that is missing, or another length than c.Bytes, is an ErrCorrupt. Memory is taken as
// chunks are read, not as c promises: c may be damaged.
func ReadChunks(r pebble.Reader, prefix []byte, first uint32, c Chunked) ([]byte, error) {
	var b []byte
	for i := range c.Chunks {
		value, closer, err := r.Get(binary.BigEndian.AppendUint32(slices.Clip(prefix), first+i))
		if err != nil {
			return nil, fault.ReadError(err, "chunk %d of %d", i, c.Chunks)
		}
		b = append(b, value...)
		if err := closer.Close(); err != nil {
			return nil, err
		}
	}
	if int64(len(b)) != c.Bytes {
		return nil, fault.Corrupt(fmt.Errorf("%d bytes, %d were written", len(b), c.Bytes), "chunks")
	}
	return b, nil
}

// Checksum returns the CRC-32C in which a stored frame of package model ends, as eight
// hexadecimal digits. It reads the last chunk only, or the last two where the sum lies across
// their border, and compares it with nothing.
func Checksum(r pebble.Reader, prefix []byte, first uint32, c Chunked) (string, error) {
	var tail []byte
	for i := c.Chunks; i > 0 && len(tail) < 4; i-- {
		value, closer, err := r.Get(binary.BigEndian.AppendUint32(slices.Clip(prefix), first+i-1))
		if err != nil {
			return "", fault.ReadError(err, "chunk %d of %d", i-1, c.Chunks)
		}
		tail = append(slices.Clone(value[max(0, len(value)-4):]), tail...)
		if err := closer.Close(); err != nil {
			return "", err
		}
	}
	if len(tail) < 4 {
		return "", fault.Corrupt(fmt.Errorf("%d bytes", c.Bytes), "checksum")
	}
	return fmt.Sprintf("%08x", binary.LittleEndian.Uint32(tail[len(tail)-4:])), nil
}
