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

// During its creation a folder has IncompleteSuffix after its name. Until it is complete it holds a file
// incompleteName, which is made first and removed last. So the next attempt knows that it may clear a folder
// of that name.
const (
	IncompleteSuffix = ".incomplete"
	incompleteName   = "INCOMPLETE"
)

// NewFolder makes a folder, such as a checkpoint, whole and durably, or not at all. make fills it at path,
// under the other name and locked. The files that make leaves must be durable; NewFolder then renames the
// folder. dir must not exist (ErrExists), nor be inside a database (ErrInvalid). If make fails, or panics,
// NewFolder removes the folder. If the process is killed, the next attempt with the same name clears the
// remains.
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
	// Windows neither renames nor removes a folder with an open file in it, so the lock goes first. Elsewhere
	// it stays until the end, so that no other process begins in between.
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
	_ = fsys.Remove(fsys.PathJoin(dir, incompleteName)) // it is harmless in a complete folder
	return nil
}

// takeFolder locks the folder to fill, and clears the remains of an earlier attempt. A folder with other
// files is an ErrExists.
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

// writeIncomplete durably writes the file that marks a folder as incomplete.
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

// clearIncomplete empties a folder, except for the lock. It removes the file incompleteName last.
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

// removeIncomplete removes a folder that could not be completed. If that fails, the next attempt clears it.
func removeIncomplete(fsys vfs.FS, path string) {
	if clearIncomplete(fsys, path) == nil {
		_ = fsys.RemoveAll(path)
	}
}
