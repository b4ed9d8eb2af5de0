package store

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Pebble reads each block of a table in one read, and checks the sum at its end. If the sum is wrong, Pebble
// looks for one flipped bit as the cause: it flips every bit of the first 40 KiB in turn and sums the whole
// block each time. That takes half a second for a block of 32 KiB and minutes for one of a few MiB, ignores
// the context, and every reader of the block pays for it. So a summedFile checks the sum before Pebble sees
// the block.

// shortRead is the longest read that is left to Pebble. Footers of tables have sums of another kind, and at
// most 61 bytes. Pebble searches so short a block in no time.
const shortRead = 128

// blockTrailer is the length of the end of a block: a compression byte, and the sum of everything before the
// sum.
const blockTrailer = 1 + 4

// blockSum returns the checksum of a block and its compression byte, in the form of LevelDB, which RocksDB
// and Pebble share: the CRC-32C, rotated and shifted by a constant.
func blockSum(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoliSums)
	return (c>>15 | c<<17) + 0xa282ead8
}

// castagnoliSums is the table of CRC-32C.
var castagnoliSums = crc32.MakeTable(crc32.Castagnoli)

// A summedFile is a table opened for reading. Reading a block with a wrong checksum fails with a *blockError.
// TestSumsOfBlocksAreThoseOfPebble tests every kind of block.
type summedFile struct {
	vfs.File
	name string // of the file, without its folder, for errors
}

// summed makes an opened file a summedFile if its name is the name of a table.
func summed(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil || !strings.HasSuffix(name, ".sst") {
		return f, err
	}
	return &summedFile{f, path.Base(strings.ReplaceAll(name, `\`, "/"))}, nil
}

// ReadAt reads a whole block with its trailer, as Pebble reads tables, or something short.
func (f *summedFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	if err != nil || n != len(p) || n <= shortRead {
		return n, err
	}
	end := n - blockTrailer + 1
	if want, is := binary.LittleEndian.Uint32(p[end:]), blockSum(p[:end]); want != is {
		return 0, &blockError{table: f.name, offset: off, length: n - blockTrailer, want: want, is: is}
	}
	return n, nil
}

// A blockError reports a damaged block of a table. Pebble treats it as damage that it has found itself.
type blockError struct {
	table    string // name of the file
	offset   int64  // of the block in the table
	length   int    // of the block without its trailer
	want, is uint32 // the sum in the trailer, and the sum of the bytes read
}

func (e *blockError) Error() string {
	return fmt.Sprintf("table %s: block of %d bytes at %d: checksum is %08x, should be %08x", e.table, e.length, e.offset, e.is, e.want)
}

// Is makes a blockError a pebble.ErrCorruption.
func (e *blockError) Is(target error) bool { return target == pebble.ErrCorruption }
