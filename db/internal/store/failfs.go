package store

import (
	"path"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A failFS stands between Pebble and the file system of a store that is written to. If a write
// to its log, its manifest, one of its marker files or a folder fails, Pebble ends the
// process, by its logger or by a panic. Kept from that, it goes on as if all were well: then
// it deletes logs that it believes flushed, and acknowledged data is gone.
//
// So Pebble does not hear of such a failure. The Log records the first one, which fails the
// database: the committer acknowledges nothing any more. From then on the vital files, which
// decide what is in the store, stay as they are: writes to them, and all deletions, do
// nothing. So the disk has what a crash at that moment would have left, and opening the
// database again recovers it.
//
// Only files in dir, the folder of the store, are vital; all files may be where dir is "".
// When Pebble writes elsewhere, it makes a checkpoint, and hears of its failures.
//
// Pebble copes with tables that cannot be written, but tries again without a pause. So a flush
// that has failed rests here before it begins another table; see tableTrouble.
type failFS struct {
	vfs.FS
	log  *Log     // takes the first failure, and says whether there was one
	dir  string   // of the store; "": any file may be vital
	room *Reserve // what tables leave free; nil: nothing
}

// vital reports whether a file decides what is in the store. Tables do not: one that no
// manifest names is garbage. The file of Pebble's options does not either, but counts: where
// it cannot be written, pebble.Open fails while its goroutines still use what it takes down,
// and one of them panics.
func vital(name string) bool {
	base := path.Base(strings.ReplaceAll(name, `\`, "/"))
	return strings.HasSuffix(base, ".log") || strings.HasPrefix(base, "MANIFEST-") || strings.HasPrefix(base, "marker.") ||
		strings.HasPrefix(base, "OPTIONS-") || strings.HasSuffix(base, ".dbtmp")
}

// vital reports whether a file is one of the store and decides what is in it.
func (f *failFS) vital(name string) bool {
	return vital(name) && (f.dir == "" || f.FS.PathDir(name) == f.dir)
}

// change does do, which changes a file. A vital file is changed only as long as nothing has
// failed, and Pebble never sees an error: the Log does.
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

// file opens a file for writing. A vital one that cannot be opened becomes a file in memory
// that nobody reads.
func (f *failFS) file(name string, open func() (vfs.File, error)) (vfs.File, error) {
	var file vfs.File
	vital := f.vital(name)
	err := f.change(vital, func() (err error) {
		file, err = open()
		return err
	})
	if err == nil && file == nil { // it failed, or has before: Pebble writes into the void
		file, err = vfs.NewMem().Create("void", vfs.WriteCategoryUnspecified)
	}
	if err != nil {
		return nil, err
	}
	return &failFile{File: file, fs: f, vital: vital}, nil
}

// Create creates a file. Before a marker file it syncs the folder: the name of a marker says
// which manifest counts, and Pebble syncs the folder only when both are in it, so that after a
// crash there could be the marker of a manifest that is not there.
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

// A roomyFile is a table that is written as long as that leaves room for the vital files: see
// Reserve.admitTable. When there is none Write fails as on a full disk, which Pebble copes with.
type roomyFile struct {
	vfs.File
	room  *Reserve
	flush bool // it is made of a memtable: it may take nearly all, as the log can be deleted after it
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

// OpenDir opens a folder, for the sake of syncing it.
func (f *failFS) OpenDir(name string) (vfs.File, error) {
	d, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &failFile{File: d, fs: f, vital: f.dir == "" || name == f.dir}, nil
}

// Remove removes nothing after a failure, whatever the file: the manifest on disk may still need
// files that Pebble believes to be obsolete. A removal that fails harms nobody.
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

// Rename and Link are changes to the file of the new name.
func (f *failFS) Rename(oldname, newname string) error {
	return f.change(f.vital(newname), func() error { return f.FS.Rename(oldname, newname) })
}

func (f *failFS) Link(oldname, newname string) error {
	return f.change(f.vital(newname), func() error { return f.FS.Link(oldname, newname) })
}

// A failFile is a file that Pebble has opened for writing. Each change to a vital one goes
// through failFS.change: after the first failure of any it does nothing, and says that all is
// well.
type failFile struct {
	vfs.File
	fs    *failFS
	vital bool // it decides what is in the store

	// Of a log, which one goroutine writes to.
	preallocates bool
	size         int64 // written
	allocated    int64 // until where disk space has been asked for, in bytes from the start of the file
}

// change makes a change to the file.
func (f *failFile) change(do func() error) error { return f.fs.change(f.vital, do) }

// Write says that it has written all of p whenever Pebble is to see no failure.
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

// Sync and its kin: what they would make durable may be lost, but Log.Err keeps the committer
// from acknowledging it.
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

// Preallocate notes that the file is a log. Pebble asks here for a tenth more than the largest
// memtable, which would be most of the size of a small database: grow asks for less instead.
func (f *failFile) Preallocate(int64, int64) error {
	f.preallocates = true
	return nil
}

// maxAhead is how many bytes of a log are allocated at a time at the most.
const maxAhead = 1 << 20

// grow preallocates a log, before n bytes are written to it: as much again as it will hold,
// and at most maxAhead. That only makes later writes faster. So it is not done where the disk
// is short of room, which tables need, and an error is ignored: many file systems cannot do
// it, and where there is no room for so much at once there may be for the next write.
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

// Close always closes, so that no descriptor leaks.
func (f *failFile) Close() error {
	err := f.File.Close()
	if err != nil && f.vital {
		f.fs.log.Fail(err)
		return nil
	}
	return err
}
