package store

import (
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Lock locks the folder of a database, given by its Canonical path: to write, alone, or to read, shared with
// other readers. It never waits: if the lock is held, the error is an ErrLocked. Closing the result frees the
// lock.
func Lock(fsys vfs.FS, dir string, readOnly bool) (io.Closer, error) {
	if readOnly {
		return lockShared(fsys, dir)
	}
	return LockFolder(fsys, dir)
}

// LockDatabase locks the folder of a database, which must exist, as Lock does, and returns its Canonical
// path. Without a database the error is an ErrNotDatabase, see NoneYet.
func LockDatabase(fsys vfs.FS, dir string, readOnly bool) (string, io.Closer, error) {
	exists, creatable, err := Inspect(fsys, dir)
	switch {
	case err != nil:
		return "", nil, err
	case !exists && !creatable:
		return "", nil, Foreign(fsys, dir)
	case !exists:
		return "", nil, NoneYet(fsys, dir)
	}
	if dir, err = Canonical(fsys, dir); err != nil {
		return "", nil, err
	}
	l, err := Lock(fsys, dir, readOnly)
	return dir, l, err
}
