package db

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// A pledge says, from before an import is committed until it is forgotten, which commit of
// the database it is. So an import whose process ended around its commit is known to be
// done, or not: there is such a commit then, or there is none. What opens the database
// takes back the pledge of a commit that has not come about, before there can be another
// of that number.
type pledge struct {
	log *store.Log // of the database
	fs  vfs.FS
	dir string
	pledged
}

// pledged is what a pledge says.
type pledged struct {
	sequence    uint64 // of the commit
	rows, items uint64 // of the whole import
}

// castagnoli is the table of CRC-32C.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const pledgeBytes = 28

// give writes the pledge for the commit of that number, durably.
func (p *pledge) give(sequence uint64) error {
	b := binary.LittleEndian.AppendUint64(nil, sequence)
	b = binary.LittleEndian.AppendUint64(b, p.rows)
	b = binary.LittleEndian.AppendUint64(b, p.items)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	err := store.ReplaceFile(p.fs, p.dir, importPledge, b)
	if err != nil {
		p.takeBack()
	}
	return err
}

// takeBack removes it. Where that fails so does the database: a later commit would be
// taken for this one.
func (p *pledge) takeBack() {
	if err := removeFile(p.fs, p.dir, importPledge); err != nil {
		p.log.Fail(err)
	}
}

// readPledge returns what the pledge in a folder says; given is false where there is none.
func readPledge(fsys vfs.FS, dir string) (p pledged, given bool, err error) {
	path := fsys.PathJoin(dir, importPledge)
	b, err := readSmall(fsys, path, pledgeBytes+1)
	if errors.Is(err, fs.ErrNotExist) {
		return p, false, nil
	}
	if err != nil {
		return p, false, err
	}
	if len(b) != pledgeBytes || binary.LittleEndian.Uint32(b[24:]) != crc32.Checksum(b[:24], castagnoli) {
		return p, false, &stagedDamage{fault.CorruptionError{
			What: path + ", which says whether the import has been committed: look whether its items are there, and discard it",
			Err:  errors.New("it has another sum")}}
	}
	p.sequence = binary.LittleEndian.Uint64(b)
	p.rows, p.items = binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
	return p, true, nil
}
