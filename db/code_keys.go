package db

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
)

// sharedTarget is the target of a space that has one, whatever is searched for.
const sharedTarget = 0

// targetOf returns the target that a modality of the collection is.
func targetOf(t int) byte { return byte(t + 1) }

// maxTargetModality is the last modality of a collection that can be a target.
const maxTargetModality = 254

// codeKeys says where a code set stands in the store.
type codeKeys struct {
	Collection, Space uint32
	Bits              int  // of a code
	Target            byte // sharedTarget, or that of a target
}

// modality returns the modality of the collection that the items of the set have;
// there is none for the shared target.
func (k codeKeys) modality() (t int, is bool) { return int(k.Target) - 1, k.Target != sharedTarget }

// prefix returns what the keys of a kind begin with.
func (k codeKeys) prefix(kind byte) []byte {
	return append(codec.NumberKey(kind, k.Collection, k.Space), k.Target)
}

// block returns the key of the block of a kind that holds the number n.
func (k codeKeys) block(kind byte, n uint32) []byte {
	return codec.SpaceBlockKey(kind, k.Collection, k.Space, k.Target, n/codec.BlockRows)
}

// rows returns the key of the rows of a container that carry a code which several
// rows do.
func (k codeKeys) rows(n uint32, container uint16) []byte {
	return codec.CodeRowsKey(k.Collection, k.Space, k.Target, n, container)
}

// allRows returns the prefix of these keys.
func (k codeKeys) allRows(n uint32) []byte {
	return codec.CodeRowsPrefix(k.Collection, k.Space, k.Target, n)
}

// appendPosting appends the key of a posting.
func (k codeKeys) appendPosting(dst []byte, substring uint16, value uint32) []byte {
	return codec.AppendSubstringKey(dst, k.Collection, k.Space, k.Target, substring, value)
}

// rowCode returns what code a row has; found is false where it has none.
func (k codeKeys) rowCode(r pebble.Reader, row uint32) (rc codec.RowCode, found bool, err error) {
	err = blockEntry(r, k.block(codec.KindRowCodes, row), row, func(entry []byte) error {
		found = true
		if rc, err = codec.DecodeRowCode(entry); err != nil {
			return fault.Corrupt(err, "code of row %d", row)
		}
		return nil
	})
	return rc, found && err == nil, err
}

// code returns the code with a number, which is the caller's, and that stands in a row.
func (k codeKeys) code(r pebble.Reader, n, row uint32) (codec.Code, error) {
	code, found := codec.NewCode(k.Bits), false
	err := blockEntry(r, k.block(codec.KindCodes, n), n, func(entry []byte) error {
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
