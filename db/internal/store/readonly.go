package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/fault"
)

// ReadFS is a file system without changes: calls that would change it fail with fs.ErrPermission. A read-only
// Pebble gets it. Pebble would make a lock file of its own, which is a change. The folder is locked already,
// so Lock does nothing.
type ReadFS struct{ vfs.FS }

// noLock is a lock that locks nothing.
type noLock struct{}

func (noLock) Close() error { return nil }

func (ReadFS) Lock(string) (io.Closer, error) { return noLock{}, nil }

var errReadFS = fmt.Errorf("%w: opened for reading only", fs.ErrPermission)

func (ReadFS) Create(string, vfs.DiskWriteCategory) (vfs.File, error) { return nil, errReadFS }
func (ReadFS) OpenReadWrite(string, vfs.DiskWriteCategory, ...vfs.OpenOption) (vfs.File, error) {
	return nil, errReadFS
}
func (ReadFS) ReuseForWrite(_, _ string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, errReadFS
}
func (ReadFS) Link(_, _ string) error             { return errReadFS }
func (ReadFS) Rename(_, _ string) error           { return errReadFS }
func (ReadFS) Remove(string) error                { return errReadFS }
func (ReadFS) RemoveAll(string) error             { return errReadFS }
func (ReadFS) MkdirAll(string, fs.FileMode) error { return errReadFS }

// OpenDatabase opens the store of the database in dir to read or to write, wherever an interrupted repair has
// left it (Path). The folder is locked. Missing files, or files of another length, are an ErrCorrupt.
func OpenDatabase(dir string, cfg *Config, logger *Log, readOnly bool) (*pebble.DB, error) {
	path := Path(cfg.FS, dir)
	if _, err := cfg.FS.List(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Corrupt(errors.New("it is missing"), "store in %s", dir)
	} else if err != nil {
		return nil, fault.Annotate(err, "open %s", dir)
	}
	var kv *pebble.DB
	var err error
	if readOnly {
		kv, err = OpenToRead(path, cfg, logger)
	} else {
		kv, err = Open(path, cfg, logger, false)
	}
	switch {
	case err == nil:
		return kv, nil
	case MissesFiles(err), otherOptions(err):
		return nil, fault.Corrupt(err, "store in %s", dir)
	}
	return nil, fault.ReadError(err, "store in %s", dir)
}

// otherOptions reports whether pebble.Open failed because the file of the store's options names, for example,
// another merger. That file has no checksum, so damage to it may look like this.
func otherOptions(err error) bool {
	var elsewhere pebble.ErrMissingWALRecoveryDir
	return errors.As(err, &elsewhere) || strings.Contains(err.Error(), " name from file ")
}

// OpenToRead opens the store at path and changes nothing on disk. It reads the log into memory. The error is
// Pebble's, unwrapped.
func OpenToRead(path string, cfg *Config, logger *Log) (*pebble.DB, error) {
	po := PebbleOptions(cfg, logger, false)
	po.FS, po.ReadOnly = ReadFS{cfg.FS}, true
	return OpenPebble(path, po, logger)
}

// lockShared takes the lock that keeps writers out and admits other readers, if that changes nothing. It
// returns a lock that locks nothing in three cases. Without a lock file, the database is not open. Without
// permission to open the file, no process here can write. And some file systems have no locks.
func lockShared(fsys vfs.FS, dir string) (io.Closer, error) {
	path := fsys.PathJoin(dir, LockName)
	switch info, err := fsys.Stat(path); {
	case err != nil:
		return noLock{}, nil
	case info.Mode()&(oddKinds|fs.ModeDir) != 0:
		return nil, fault.Corrupt(&fault.KindError{Path: path, Found: info.Mode().Type()}, "lock of %s", dir)
	}
	var l io.Closer
	var err error
	if onDisk(fsys) {
		l, err = shareLock(path)
	} else {
		l, err = fsys.Lock(path) // a custom file system may have no shared locks
	}
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, errLockHeld) || lockHeld(err):
		return nil, fmt.Errorf("%w: %s: close it there first", fault.ErrLocked, dir)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, errors.ErrUnsupported), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOLCK):
		return noLock{}, nil
	}
	return nil, fmt.Errorf("fddhdb: lock %s: %w", dir, err)
}
