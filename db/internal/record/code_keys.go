package record

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/mih"
)

// SharedTarget is the target of a space that has one, whatever is searched for.
const SharedTarget = 0

// TargetOf returns the target that a modality of the collection is.
func TargetOf(t int) byte { return byte(t + 1) }

// MaxTargetModality is the last modality of a collection that can be a target.
const MaxTargetModality = 254

// CodeKeys says where a code set stands in the store.
type CodeKeys struct {
	Collection, Space uint32
	Bits              int  // of a code
	Target            byte // SharedTarget, or that of a target
}

// Modality returns the modality of the collection that the items of the set have;
// there is none for the shared target.
func (k CodeKeys) Modality() (t int, is bool) { return int(k.Target) - 1, k.Target != SharedTarget }

// Prefix returns what the keys of a kind begin with.
func (k CodeKeys) Prefix(kind byte) []byte {
	return append(codec.NumberKey(kind, k.Collection, k.Space), k.Target)
}

// Block returns the key of the block of a kind that holds the number n.
func (k CodeKeys) Block(kind byte, n uint32) []byte {
	return codec.SpaceBlockKey(kind, k.Collection, k.Space, k.Target, n/codec.BlockRows)
}

// RowsKey returns the key of the rows of a container that carry a code which several
// RowsKey do.
func (k CodeKeys) RowsKey(n uint32, container uint16) []byte {
	return codec.CodeRowsKey(k.Collection, k.Space, k.Target, n, container)
}

// AllRows returns the prefix of these keys.
func (k CodeKeys) AllRows(n uint32) []byte {
	return codec.CodeRowsPrefix(k.Collection, k.Space, k.Target, n)
}

// AppendPosting appends the key of a posting.
func (k CodeKeys) AppendPosting(dst []byte, substring uint16, value uint32) []byte {
	return codec.AppendSubstringKey(dst, k.Collection, k.Space, k.Target, substring, value)
}

// RowCode returns what code a row has; found is false where it has none.
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

// Code returns the code with a number, which is the caller's, and that stands in a row.
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

// Split returns how codes of q bits are cut for the stored postings: into
// 16 bits each, whatever their number, as postings cannot be cut anew when a
// collection grows. With a million codes a posting has some 15 numbers.
func Split(q int) mih.Split { return mih.NewSplit(q, (q+15)/16) }
