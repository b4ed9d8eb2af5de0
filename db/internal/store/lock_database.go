package store

import (
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/fault"
)

// Lock locks the folder of a database: for this process alone, or, to read only, together
// with others that read.
func Lock(fsys vfs.FS, dir string, readOnly bool) (io.Closer, error) {
	if readOnly {
		return lockShared(fsys, dir)
	}
	return LockFolder(fsys, dir)
}

// LockDatabase locks the folder of a database, which must exist, and returns its one path.
func LockDatabase(fsys vfs.FS, dir string, readOnly bool) (string, io.Closer, error) {
	exists, creatable, err := Inspect(fsys, dir)
	switch {
	case err != nil:
		return "", nil, err
	case !exists && !creatable:
		return "", nil, Foreign(fsys, dir)
	case !exists:
		return "", nil, fmt.Errorf("%w: %s: there is none", fault.ErrNotDatabase, dir)
	}
	if dir, err = Canonical(fsys, dir); err != nil {
		return "", nil, err
	}
	l, err := Lock(fsys, dir, readOnly)
	return dir, l, err
}
