package store

import (
	"io/fs"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// An openingFile is a file that opening.close may close while it is in use: after a late failure of opening,
// compactions go on for a while. Files of an operating system tolerate that; files of other file systems may
// not. So closing waits for running calls, and later calls get fs.ErrClosed.
type openingFile struct {
	k *kept // closes the file, once

	mu     sync.RWMutex // held for reading by each call, for writing to close
	file   vfs.File
	closed bool
}

// A closer is a function as an io.Closer.
type closer func() error

func (c closer) Close() error { return c() }

// Close is for the user of the file. opening.close may have closed it before.
func (f *openingFile) Close() error { return f.k.Close() }

// shut closes the file itself, once no call is running.
func (f *openingFile) shut() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return f.file.Close()
}

// use runs do while the file stays open.
func (f *openingFile) use(do func() error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.closed {
		return fs.ErrClosed
	}
	return do()
}

func (f *openingFile) Read(p []byte) (n int, err error) {
	err = f.use(func() (err error) { n, err = f.file.Read(p); return err })
	return n, err
}

func (f *openingFile) ReadAt(p []byte, off int64) (n int, err error) {
	err = f.use(func() (err error) { n, err = f.file.ReadAt(p, off); return err })
	return n, err
}

func (f *openingFile) Write(p []byte) (n int, err error) {
	err = f.use(func() (err error) { n, err = f.file.Write(p); return err })
	return n, err
}

func (f *openingFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.use(func() (err error) { n, err = f.file.WriteAt(p, off); return err })
	return n, err
}

func (f *openingFile) Preallocate(offset, length int64) error {
	return f.use(func() error { return f.file.Preallocate(offset, length) })
}

func (f *openingFile) Stat() (info vfs.FileInfo, err error) {
	err = f.use(func() (err error) { info, err = f.file.Stat(); return err })
	return info, err
}

func (f *openingFile) Sync() error { return f.use(f.file.Sync) }

func (f *openingFile) SyncTo(length int64) (full bool, err error) {
	err = f.use(func() (err error) { full, err = f.file.SyncTo(length); return err })
	return full, err
}

func (f *openingFile) SyncData() error { return f.use(f.file.SyncData) }

func (f *openingFile) Prefetch(offset, length int64) error {
	return f.use(func() error { return f.file.Prefetch(offset, length) })
}

func (f *openingFile) Fd() uintptr { return f.file.Fd() }
