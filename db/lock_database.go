package db

import (
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/fault"
)

// lock locks the folder of a database: for this process alone, or, to read only, together
// with others that read.
func lock(fsys vfs.FS, dir string, readOnly bool) (io.Closer, error) {
	if readOnly {
		return lockShared(fsys, dir)
	}
	return lockFolder(fsys, dir)
}

// lockDatabase locks the folder of a database, which must exist, and returns its one path.
func lockDatabase(fsys vfs.FS, dir string, readOnly bool) (string, io.Closer, error) {
	exists, creatable, err := inspect(fsys, dir)
	switch {
	case err != nil:
		return "", nil, err
	case !exists && !creatable:
		return "", nil, foreign(fsys, dir)
	case !exists:
		return "", nil, fmt.Errorf("%w: %s: there is none", fault.ErrNotDatabase, dir)
	}
	if dir, err = canonical(fsys, dir); err != nil {
		return "", nil, err
	}
	l, err := lock(fsys, dir, readOnly)
	return dir, l, err
}
