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

// ReadFS is a file system in which nothing can be changed: such calls fail with
// fs.ErrPermission. Pebble gets it where it is to read only. It would make a lock of its own,
// which is a change: that of the folder is there already, so Lock does nothing.
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

// OpenDatabase opens the store of the database in dir, wherever an interrupted repair has left
// it (Path), to read only or to write. The folder is locked. Files that are missing or have
// another length are an ErrCorrupt.
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

// otherOptions reports whether pebble.Open has failed because the file of the store's options
// names another merger or the like. As that file has no checksum, a damaged one looks so.
func otherOptions(err error) bool {
	var elsewhere pebble.ErrMissingWALRecoveryDir
	return errors.As(err, &elsewhere) || strings.Contains(err.Error(), " name from file ")
}

// OpenToRead opens the store at path and changes nothing on disk. What the log has comes into
// memory. The error is Pebble's, not worded yet.
func OpenToRead(path string, cfg *Config, logger *Log) (*pebble.DB, error) {
	po := PebbleOptions(cfg, logger, false)
	po.FS, po.ReadOnly = ReadFS{cfg.FS}, true
	return OpenPebble(path, po, logger)
}

// lockShared takes the lock that keeps writers out and lets other readers in, if that can be
// done without changing anything. Without a lock file nobody has the database open. Where the
// file cannot be opened for want of permission nobody here can write; and a file system that
// knows no locks protects nobody. Then it returns a lock that locks nothing.
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
		l, err = fsys.Lock(path) // a file system of the caller's may know no shared locks
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
