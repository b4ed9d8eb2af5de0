package store

import (
	"errors"
	"io"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/fault"
)

// A kindFS checks the kind of a file before it opens it: opening a pipe waits until another process writes to
// it, and opening a device may do anything. If the file is missing, or stat fails, the file system below
// returns the error. All of db reads and writes through a kindFS.
type kindFS struct{ vfs.FS }

// WithKinds wraps a file system in a kindFS, unless it is one. Package db wraps Options.FS first of all. So a
// pipe, a device, or a folder in place of a file is a *fault.KindError everywhere.
func WithKinds(fsys vfs.FS) vfs.FS {
	if _, is := fsys.(kindFS); is {
		return fsys
	}
	return kindFS{fsys}
}

// onDisk reports whether a file system is the operating system's, which has links.
func onDisk(fsys vfs.FS) bool {
	if f, is := fsys.(kindFS); is {
		fsys = f.FS
	}
	return fsys == vfs.Default
}

// oddKinds are the types that are neither file nor folder. Files that a system has moved to other media are
// "irregular", and count as files.
const oddKinds = fs.ModeNamedPipe | fs.ModeSocket | fs.ModeDevice | fs.ModeCharDevice

// file returns an error if the path is not a file, or if its parent is not a folder.
func (f kindFS) file(path string) error {
	info, err := f.FS.Stat(path)
	switch {
	case err == nil && info.Mode()&(oddKinds|fs.ModeDir) != 0:
		return &fault.KindError{Path: path, Found: info.Mode().Type()}
	case err == nil || errors.Is(err, fs.ErrNotExist):
		return nil
	}
	above := f.FS.PathDir(path)
	if info, err := f.FS.Stat(above); err == nil && !info.IsDir() {
		return &fault.KindError{Path: above, Found: info.Mode().Type(), Folder: true}
	}
	return nil
}

// folder returns an error if the path is neither a folder nor a file: for a file, the system returns the
// error.
func (f kindFS) folder(path string) error {
	info, err := f.FS.Stat(path)
	if err == nil && info.Mode()&oddKinds != 0 {
		return &fault.KindError{Path: path, Found: info.Mode().Type(), Folder: true}
	}
	return nil
}

// Open and the methods below refuse paths of the wrong kind, and call the file system otherwise.

func (f kindFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := f.file(name); err != nil {
		return nil, err
	}
	return f.FS.Open(name, opts...)
}

func (f kindFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := f.file(name); err != nil {
		return nil, err
	}
	return f.FS.OpenReadWrite(name, c, opts...)
}

func (f kindFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.file(oldname); err != nil {
		return nil, err
	}
	return f.FS.ReuseForWrite(oldname, newname, c)
}

func (f kindFS) OpenDir(name string) (vfs.File, error) {
	if err := f.folder(name); err != nil {
		return nil, err
	}
	return f.FS.OpenDir(name)
}

func (f kindFS) List(dir string) ([]string, error) {
	if err := f.folder(dir); err != nil {
		return nil, err
	}
	return f.FS.List(dir)
}

func (f kindFS) Lock(name string) (io.Closer, error) {
	if err := f.file(name); err != nil {
		return nil, err
	}
	return f.FS.Lock(name)
}
