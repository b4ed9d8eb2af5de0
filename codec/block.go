package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// A packed block holds one entry for each of up to 256 consecutive rows (or code
// numbers). The offset of an entry is row mod 256. Blocks are written as edits and
// merged: an edit names the entries it sets and those it clears. It has the same form
// as the block that the edits add up to.
//
//	byte     1
//	uvarint  width+1 of every entry in bytes; 0: entries differ in length
//	u16 LE   n, number of entries set (0 to 256)
//	u16 LE   c, number of entries cleared (0 to 256)
//	n bytes  their offsets, ascending (absent when n = 256)
//	c bytes  offsets of the cleared entries, ascending (absent when c = 256)
//	         width known: n*width bytes
//	         else: n times u32 LE, where the entry ends, then the entries
//
// Cleared entries must be remembered only until the edit meets the base of its key; see
// [Merger].
const blockVersion = 1

const variableWidth = -1

// MaxBlockEntry bounds one entry of a block, in bytes.
const MaxBlockEntry = 1 << 16

// A BlockEdit collects changes to one block. The zero value is not ready: use
// NewBlockEdit. It is not safe for concurrent use.
type BlockEdit struct {
	width   int                   // bytes of every entry; negative: they differ
	entries [BlockRows][]byte     // by offset, where state is set; slices of the caller
	state   [BlockRows]entryState // by offset
}

type entryState byte

const (
	entryAbsent entryState = iota
	entrySet
	entryCleared
)

// NewBlockEdit returns an empty edit of a block. Its entries have width bytes, or any
// length up to MaxBlockEntry if width is negative.
func NewBlockEdit(width int) *BlockEdit {
	return &BlockEdit{width: max(width, variableWidth)}
}

// Reset makes e an empty edit again, as NewBlockEdit returns one. It costs less than another
// edit, which takes 6 KiB, and keeps no slice of the caller.
func (e *BlockEdit) Reset(width int) {
	e.width = max(width, variableWidth)
	for off, state := range e.state {
		if state != entryAbsent {
			e.entries[off], e.state[off] = nil, entryAbsent
		}
	}
}

// Set sets the entry at the offset. The edit keeps the slice.
func (e *BlockEdit) Set(offset byte, entry []byte) {
	e.entries[offset], e.state[offset] = entry, entrySet
}

// Clear removes the entry at the offset.
func (e *BlockEdit) Clear(offset byte) {
	e.entries[offset], e.state[offset] = nil, entryCleared
}

// Lookup returns the entry that the edit sets at the offset. known is false if the edit
// neither sets nor clears it.
func (e *BlockEdit) Lookup(offset byte) (entry []byte, known bool) {
	return e.entries[offset], e.state[offset] != entryAbsent
}

// Under puts e on top of an older edit or block: offsets that e neither sets nor clears
// are as in older. Their entries alias older.
func (e *BlockEdit) Under(older Block) {
	for i := range older.Len() {
		if off := older.Offset(i); e.state[off] == entryAbsent {
			e.entries[off], e.state[off] = older.entry(i), entrySet
		}
	}
	for _, off := range older.cleared {
		if e.state[off] == entryAbsent {
			e.state[off] = entryCleared
		}
	}
}

var allOffsets = func() (o [BlockRows]byte) {
	for i := range o {
		o[i] = byte(i)
	}
	return o
}()

// Append appends the encoded edit. If final, no older edit exists, and cleared entries
// are not recorded.
func (e *BlockEdit) Append(dst []byte, final bool) []byte {
	var set, cleared []byte
	size := 0
	for off := range BlockRows {
		switch e.state[off] {
		case entrySet:
			set = append(set, byte(off))
			size += len(e.entries[off])
		case entryCleared:
			if !final {
				cleared = append(cleared, byte(off))
			}
		}
	}
	dst = append(dst, blockVersion)
	dst = binary.AppendUvarint(dst, uint64(e.width+1))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(set)))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(cleared)))
	for _, offsets := range [][]byte{set, cleared} {
		if len(offsets) < BlockRows {
			dst = append(dst, offsets...)
		}
	}
	if e.width < 0 {
		end := uint32(0)
		for _, off := range set {
			end += uint32(len(e.entries[off]))
			dst = binary.LittleEndian.AppendUint32(dst, end)
		}
	}
	for _, off := range set {
		dst = append(dst, e.entries[off]...)
	}
	return dst
}

// A Block is a decoded view of an encoded block or edit, which it aliases.
type Block struct {
	width   int    // bytes of every entry; negative: they differ
	offsets []byte // of the entries, ascending
	cleared []byte // offsets, ascending
	ends    []byte // variable width: n times u32
	data    []byte // the entries
}

// DecodeBlock checks b and returns its block, without copying. The error wraps
// ErrCorrupt.
func DecodeBlock(b []byte) (Block, error) {
	bad := func(format string, args ...any) (Block, error) {
		return Block{}, fmt.Errorf("%w: block: %s", ErrCorrupt, fmt.Sprintf(format, args...))
	}
	if len(b) == 0 || b[0] != blockVersion {
		return bad("does not start with version %d", blockVersion)
	}
	width, n := binary.Uvarint(b[1:])
	if n <= 0 || width > MaxBlockEntry+1 {
		return bad("bad entry width")
	}
	b = b[1+n:]
	if len(b) < 4 {
		return bad("ends in its header")
	}
	blk := Block{width: int(width) - 1}
	set, cleared := int(binary.LittleEndian.Uint16(b)), int(binary.LittleEndian.Uint16(b[2:]))
	b = b[4:]
	for _, part := range []struct {
		n    int
		into *[]byte
	}{{set, &blk.offsets}, {cleared, &blk.cleared}} {
		switch {
		case part.n > BlockRows:
			return bad("%d entries of %d", part.n, BlockRows)
		case part.n == BlockRows:
			*part.into = allOffsets[:]
		case len(b) < part.n:
			return bad("ends in its offsets")
		default:
			*part.into, b = b[:part.n:part.n], b[part.n:]
			for i := 1; i < part.n; i++ {
				if (*part.into)[i] <= (*part.into)[i-1] {
					return bad("offsets do not ascend")
				}
			}
		}
	}
	if blk.width >= 0 {
		if len(b) != set*blk.width {
			return bad("%d bytes for %d entries of %d", len(b), set, blk.width)
		}
		blk.data = b
		return blk, nil
	}
	if len(b) < 4*set {
		return bad("ends in its lengths")
	}
	blk.ends, blk.data = b[:4*set], b[4*set:]
	last := uint32(0)
	for i := range set {
		end := binary.LittleEndian.Uint32(blk.ends[4*i:])
		if end < last || end-last > MaxBlockEntry {
			return bad("entry %d ends at %d after %d", i, end, last)
		}
		last = end
	}
	if int64(last) != int64(len(blk.data)) {
		return bad("%d bytes for entries that end at %d", len(blk.data), last)
	}
	return blk, nil
}

// Width returns the length of every entry in bytes; negative if lengths differ.
func (b Block) Width() int { return b.width }

// Len returns the number of entries set.
func (b Block) Len() int { return len(b.offsets) }

// Offset returns the offset of the i-th entry.
func (b Block) Offset(i int) byte { return b.offsets[i] }

// Entry returns the i-th entry in order of offsets. It aliases the block.
func (b Block) Entry(i int) []byte { return b.entry(i) }

func (b Block) entry(i int) []byte {
	if b.width >= 0 {
		return b.data[i*b.width : (i+1)*b.width : (i+1)*b.width]
	}
	from := uint32(0)
	if i > 0 {
		from = binary.LittleEndian.Uint32(b.ends[4*i-4:])
	}
	to := binary.LittleEndian.Uint32(b.ends[4*i:])
	return b.data[from:to:to]
}

// Lookup returns the entry at the offset, or false if none is set. The entry aliases
// the block.
func (b Block) Lookup(offset byte) ([]byte, bool) {
	i := int(offset)
	if len(b.offsets) < BlockRows {
		if i = bytes.IndexByte(b.offsets, offset); i < 0 {
			return nil, false
		}
	}
	return b.entry(i), true
}
