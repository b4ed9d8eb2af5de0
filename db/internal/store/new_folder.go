package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// A folder that is being made has IncompleteSuffix behind its name until it is complete. As
// long as it is not, it holds a file incompleteName, which is the first to be made and the
// last to be removed: so the next attempt knows that a folder of that name may be cleared
// away.
const (
	IncompleteSuffix = ".incomplete"
	incompleteName   = "INCOMPLETE"
)

// NewFolder makes a folder that is there whole and durable, or not at all, such as a
// checkpoint. make fills it at path, where it has its other name and is locked; what make
// leaves must be durable, NewFolder renames it then. dir must not be there yet (ErrExists),
// nor be inside of a database (ErrInvalid). When make fails, or panics, the folder is removed;
// what a process that has been killed has left there the next attempt clears away, by the same
// name.
func NewFolder(fsys vfs.FS, dir string, make func(path string) error) error {
	dir = filepath.Clean(dir)
	if err := Outside(fsys, dir); err != nil {
		return err
	}
	switch _, err := fsys.Stat(dir); {
	case err == nil:
		return fmt.Errorf("%w: %s: give a folder that is not there yet", fault.ErrExists, dir)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	path := dir + IncompleteSuffix
	if err := MakeDir(fsys, path); err != nil {
		return err
	}
	lock, err := takeFolder(fsys, path)
	if err != nil {
		return err
	}
	err = work.Safely(func() error { return make(path) })
	// Windows renames and removes no folder with an open file in it, so the lock goes first.
	// Elsewhere it stays until the end, so that nobody else begins in between.
	if runtime.GOOS == "windows" {
		err = errors.Join(err, lock.Close())
		lock = noLock{}
	}
	if err == nil {
		err = fsys.Rename(path, dir)
	}
	if err != nil {
		removeIncomplete(fsys, path)
		return errors.Join(err, lock.Close())
	}
	if err := lock.Close(); err != nil {
		return err
	}
	if err := SyncDir(fsys, fsys.PathDir(dir)); err != nil {
		if fsys.Rename(dir, path) == nil {
			removeIncomplete(fsys, path)
		}
		return err
	}
	_ = fsys.Remove(fsys.PathJoin(dir, incompleteName)) // it does no harm there
	return nil
}

// takeFolder locks a folder that is to be filled, and clears away what an earlier attempt has
// left in it. A folder with other things in it is an ErrExists.
func takeFolder(fsys vfs.FS, path string) (_ io.Closer, err error) {
	names, err := fsys.List(path)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == LockName })
	if len(names) > 0 && !slices.Contains(names, incompleteName) {
		return nil, fmt.Errorf("%w: %s is in the way: remove it, or give another folder", fault.ErrExists, path)
	}
	locked, err := Canonical(fsys, path)
	if err != nil {
		return nil, err
	}
	lock, err := LockFolder(fsys, locked)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, lock.Close())
		}
	}()
	if err := clearIncomplete(fsys, path); err != nil {
		return nil, err
	}
	return lock, writeIncomplete(fsys, path)
}

// writeIncomplete writes the file that says that a folder is being made, durably.
func writeIncomplete(fsys vfs.FS, path string) error {
	f, err := fsys.Create(fsys.PathJoin(path, incompleteName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte("fddhdb is filling this folder. If no process does, it may be removed.\n"))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return SyncDir(fsys, path)
}

// clearIncomplete removes all that is in a folder, but for the lock, and the file
// incompleteName last.
func clearIncomplete(fsys vfs.FS, path string) error {
	names, err := fsys.List(path)
	if err != nil {
		return err
	}
	last := false
	for _, name := range names {
		switch name {
		case LockName:
			continue
		case incompleteName:
			last = true
			continue
		}
		if err := fsys.RemoveAll(fsys.PathJoin(path, name)); err != nil {
			return err
		}
	}
	if last {
		return fsys.Remove(fsys.PathJoin(path, incompleteName))
	}
	return nil
}

// removeIncomplete removes a folder that could not be completed. If that fails, the next
// attempt clears it away.
func removeIncomplete(fsys vfs.FS, path string) {
	if clearIncomplete(fsys, path) == nil {
		_ = fsys.RemoveAll(path)
	}
}
