package db

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"

	"github.com/fddhdb/fddhdb/db/fault"
)

// A promise is the content of COMMIT. It is written before an import is committed, and says
// which commit of the database that will be. After a crash the import has been committed if and
// only if the database has this commit: whatever opens the database removes the promise of a
// commit that has not come about (see tidy), before another commit can get its number.
type promise struct {
	commit uint64 // its number, from 1 on; 0: there is no promise
	rows   uint64 // of the whole import
	items  uint64 // likewise
}

// castagnoli is the table of CRC-32C.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const promiseBytes = 28

func (p *promise) bytes() []byte {
	b := binary.LittleEndian.AppendUint64(nil, p.commit)
	b = binary.LittleEndian.AppendUint64(b, p.rows)
	b = binary.LittleEndian.AppendUint64(b, p.items)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// promised returns the promise of an import, zero if there is none. A damaged one is an
// ErrStaged.
func (f importFolder) promised(name string) (promise, error) {
	path := f.fs.PathJoin(f.path(name), promiseFile)
	b, err := readSmall(f.fs, path, promiseBytes+1)
	if errors.Is(err, fs.ErrNotExist) {
		return promise{}, nil
	}
	if err != nil {
		return promise{}, err
	}
	le := binary.LittleEndian
	if len(b) != promiseBytes || le.Uint32(b[24:]) != crc32.Checksum(b[:24], castagnoli) {
		return promise{}, &stagedDamage{fault.CorruptionError{
			What: path + ", which says whether the import has been committed: look whether its items are there, and discard it",
			Err:  errors.New("it has another sum")}}
	}
	return promise{le.Uint64(b), le.Uint64(b[8:]), le.Uint64(b[16:])}, nil
}
