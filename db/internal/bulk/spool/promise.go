package spool

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"

	"github.com/fddhdb/fddhdb/db/fault"
)

// A Promise is the content of COMMIT: the number that the commit of the import will have. It is
// written before that commit. After a crash the import has been committed if and only if the
// database has a commit of this number: opening the database removes the promise of one that has
// not come about (see Folder.Tidy), before another commit can get the number.
type Promise struct {
	Commit uint64 // the number, from 1 on; 0: there is no promise
	Rows   uint64 // of the whole import, skipped rows included
	Items  uint64 // of the whole import
}

// castagnoli is the table of CRC-32C.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const promiseBytes = 28

// bytes returns the content of the file.
func (p *Promise) bytes() []byte {
	b := binary.LittleEndian.AppendUint64(nil, p.Commit)
	b = binary.LittleEndian.AppendUint64(b, p.Rows)
	b = binary.LittleEndian.AppendUint64(b, p.Items)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// Promised reads the promise of an import. It is zero if there is none; a damaged one gives
// fault.ErrStaged.
func (f Folder) Promised(name string) (Promise, error) {
	path := f.FS.PathJoin(f.path(name), promiseFile)
	b, err := readSmall(f.FS, path, promiseBytes+1)
	if errors.Is(err, fs.ErrNotExist) {
		return Promise{}, nil
	}
	if err != nil {
		return Promise{}, err
	}
	le := binary.LittleEndian
	if len(b) != promiseBytes || le.Uint32(b[24:]) != crc32.Checksum(b[:24], castagnoli) {
		return Promise{}, &damage{fault.CorruptionError{
			What: path + ", which says whether the import has been committed: look whether its items are there, and discard it",
			Err:  errors.New("it has another sum")}}
	}
	return Promise{le.Uint64(b), le.Uint64(b[8:]), le.Uint64(b[16:])}, nil
}
