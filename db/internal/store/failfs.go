package store

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/fault"
)

// A failFS is between Pebble and the file system of a store that is open to write. If a write to the log, the
// manifest, a marker file or a folder fails, Pebble ends the process, by its logger or by a panic. If it is
// merely kept from that, it goes on as if nothing had failed: it deletes logs that it believes flushed, and
// acknowledged data is lost.
//
// So a failFS hides such a failure from Pebble. The Log records the first one, which fails the database: the
// committer acknowledges nothing more. From then on the vital files, which decide the content of the store,
// stay unchanged: writes to them, and all deletions, do nothing. So the disk has the state that a crash at
// that moment would have left, and opening the database again recovers it.
//
// Only files in dir, the folder of the store, are vital; without dir, all files may be. Pebble writes
// elsewhere only for a checkpoint, and learns of failures there.
//
// Pebble survives a failed write of a table, but tries again without a pause. So a flush waits here after a
// failure before it begins another table, see tableTrouble.
type failFS struct {
	vfs.FS
	log  *Log     // takes the first failure, and knows whether there was one
	dir  string   // of the store; "": any file may be vital
	room *Reserve // free space that tables have to leave; nil: none
}

// vital reports whether a file decides the content of the store. Tables do not: a table that no manifest
// names is garbage. The file of Pebble's options does not either, but counts as vital: if it cannot be
// written, pebble.Open fails and frees memory that its goroutines still use, and one of them panics.
func vital(name string) bool {
	base := path.Base(strings.ReplaceAll(name, `\`, "/"))
	return strings.HasSuffix(base, ".log") || strings.HasPrefix(base, "MANIFEST-") ||
		strings.HasPrefix(base, "marker.") ||
		strings.HasPrefix(base, "OPTIONS-") || strings.HasSuffix(base, ".dbtmp")
}

// vital reports whether a file is in the store and decides its content.
func (f *failFS) vital(name string) bool {
	return vital(name) && (f.dir == "" || f.FS.PathDir(name) == f.dir)
}

// change runs do, which changes a file. It changes a vital file only while nothing has failed. Pebble sees no
// error of a vital file; the Log does.
func (f *failFS) change(vital bool, do func() error) error {
	if !vital {
		return do()
	}
	if f.log.Failed.Load() == nil {
		if err := do(); err != nil {
			f.log.Fail(err)
		}
	}
	return nil
}

// file opens a file for writing. If a vital file cannot be opened, Pebble gets a file in memory that is never
// read.
func (f *failFS) file(name string, open func() (vfs.File, error)) (vfs.File, error) {
	var file vfs.File
	vital := f.vital(name)
	err := f.change(vital, func() (err error) {
		file, err = open()
		return err
	})
	if err == nil && file == nil { // it fails, or has failed before: Pebble writes into the void
		file, err = vfs.NewMem().Create("void", vfs.WriteCategoryUnspecified)
	}
	if err != nil {
		return nil, err
	}
	return &failFile{File: file, fs: f, vital: vital}, nil
}

// Create creates a file. Before a marker file it syncs the folder. The name of a marker says which manifest
// counts, and Pebble syncs the folder only when both exist. Without this sync a crash could leave the marker
// of a manifest that does not exist.
func (f *failFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	flush := c == "pebble-memtable-flush"
	if flush {
		time.Sleep(f.log.flushes.rest())
	}
	file, err := f.file(name, func() (vfs.File, error) {
		if strings.HasPrefix(f.FS.PathBase(name), "marker.") {
			if err := SyncDir(f.FS, f.FS.PathDir(name)); err != nil {
				return nil, err
			}
		}
		return f.FS.Create(name, c)
	})
	if err == nil && f.room != nil && strings.HasSuffix(name, ".sst") {
		file = &roomyFile{file, f.room, flush}
	}
	return file, err
}

// A roomyFile is a table that may be written while it leaves room for the vital files, see
// Reserve.admitTable. Without room Write fails as on a full disk, which Pebble survives.
type roomyFile struct {
	vfs.File
	room  *Reserve
	flush bool // from a memtable: it may take nearly all space, because the log can be deleted after it
}

func (f *roomyFile) Write(p []byte) (int, error) {
	if err := f.room.admitTable(int64(len(p)), f.flush); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

func (f *failFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.file(newname, func() (vfs.File, error) { return f.FS.ReuseForWrite(oldname, newname, c) })
}

// OpenDir opens a folder to sync it.
func (f *failFS) OpenDir(name string) (vfs.File, error) {
	d, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &failFile{File: d, fs: f, vital: f.dir == "" || name == f.dir}, nil
}

// Remove removes no file after a failure: the manifest on disk may still need files that Pebble believes
// obsolete. A failed removal is harmless.
func (f *failFS) Remove(name string) error {
	if f.log.Failed.Load() != nil {
		return nil
	}
	return f.FS.Remove(name)
}

// RemoveAll is Remove for folders.
func (f *failFS) RemoveAll(name string) error {
	if f.log.Failed.Load() != nil {
		return nil
	}
	return f.FS.RemoveAll(name)
}

// Rename and Link change the file of the new name.
func (f *failFS) Rename(oldname, newname string) error {
	return f.change(f.vital(newname), func() error { return f.FS.Rename(oldname, newname) })
}

func (f *failFS) Link(oldname, newname string) error {
	return f.change(f.vital(newname), func() error { return f.FS.Link(oldname, newname) })
}

// A failFile is a file that Pebble has opened for writing. Each change of a vital file goes through
// failFS.change: after the first failure of any vital file it does nothing and reports success.
type failFile struct {
	vfs.File
	fs    *failFS
	vital bool // decides the content of the store

	// Of a log, which one goroutine writes.
	preallocates bool
	size         int64 // written
	allocated    int64 // end of the preallocated space, in bytes from the start of the file
}

func (f *failFile) change(do func() error) error { return f.fs.change(f.vital, do) }

// Write reports that it has written all of p whenever it hides a failure from Pebble.
func (f *failFile) Write(p []byte) (int, error) {
	n := len(p)
	f.grow(int64(n))
	err := f.change(func() (err error) {
		n, err = f.File.Write(p)
		return err
	})
	if err == nil {
		n = len(p)
	}
	return n, err
}

func (f *failFile) WriteAt(p []byte, at int64) (int, error) {
	n := len(p)
	err := f.change(func() (err error) {
		n, err = f.File.WriteAt(p, at)
		return err
	})
	if err == nil {
		n = len(p)
	}
	return n, err
}

// Sync, SyncData and SyncTo may lose data silently; Log.Err keeps the committer from acknowledging it.
func (f *failFile) Sync() error     { return f.change(f.File.Sync) }
func (f *failFile) SyncData() error { return f.change(f.File.SyncData) }

func (f *failFile) SyncTo(length int64) (full bool, err error) {
	full = true
	err = f.change(func() (err error) {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

// Preallocate notes that the file is a log. Pebble asks for a tenth more than the largest memtable, which
// would be most of the size of a small database. grow allocates less instead.
func (f *failFile) Preallocate(int64, int64) error {
	f.preallocates = true
	return nil
}

// maxAhead is the largest number of bytes of a log that are allocated at a time.
const maxAhead = 1 << 20

// grow preallocates a log before n bytes are written to it: as much again as it will hold, and at most
// maxAhead. This only makes later writes faster. So grow skips it if the disk is short of room, which tables
// need. It ignores errors: many file systems cannot preallocate, and there may be room for the next write
// alone.
func (f *failFile) grow(n int64) {
	f.size += n
	if f.preallocates && f.size > f.allocated && f.fs.log.Failed.Load() == nil {
		until := f.size + min(f.size, maxAhead)
		if f.fs.room.short() {
			until = f.size
		}
		_ = f.File.Preallocate(f.allocated, until-f.allocated)
		f.allocated = until
	}
}

// Close closes the file even after a failure, so no descriptor leaks.
func (f *failFile) Close() error {
	err := f.File.Close()
	if err != nil && f.vital {
		f.fs.log.Fail(err)
		return nil
	}
	return err
}

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

func (f kindFS) OpenReadWrite(name string, c vfs.DiskWriteCategory,
	opts ...vfs.OpenOption) (vfs.File, error) {
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
