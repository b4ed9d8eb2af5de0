package record

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/mih"
)

// CodeKeys says where the codes of a space stand in the store: blocks from row to code number,
// blocks from code number to code, the rows of codes that several carry, and postings of
// substrings. It is a value of 16 bytes, free to copy and to compare.
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

// Code returns the code with number n, in memory of the caller's own. A number that is not
// stored is an ErrCorrupt. row, which carries the code, is there for the words of errors only.
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

// Split returns how codes of q bits are cut into substrings for the stored postings: into the
// fewest that have at most 16 bits. That does not depend on how many codes there are, as
// postings cannot be cut anew when a collection grows. With a million codes a posting has some
// 15 numbers. The cut is part of the stored format. Tables in memory (mih) are cut otherwise.
func Split(q int) mih.Split { return mih.NewSplit(q, (q+15)/16) }
