package testfs

import (
	"errors"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A SmallDisk is a file system with room for a number of bytes. Deleting files frees
// none, but where Usage is set. Goroutines may share it, if they read and change its fields within Set alone.
type SmallDisk struct {
	vfs.FS
	Late bool // a full disk fails when a file is synced, not when it is written; set before use

	mu    sync.Mutex
	Room  int64         // bytes that still fit; negative: any number
	Full  bool          // something did not fit
	Usage vfs.DiskUsage // answer of GetDiskUsage; zero: it is unsupported
	Asked int           // how often GetDiskUsage was called
}

// Set calls f with the lock. f may read and change the fields.
func (d *SmallDisk) Set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// take uses up to n bytes of the room, and returns how many fit.
func (d *SmallDisk) take(n int) (taken int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Room < 0 {
		return n, nil
	}
	if int64(n) > d.Room {
		n, d.Full, err = int(d.Room), true, &Error{syscall.ENOSPC}
	}
	d.Room -= int64(n)
	return n, err
}

func (d *SmallDisk) GetDiskUsage(path string) (vfs.DiskUsage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Asked++
	if d.Usage == (vfs.DiskUsage{}) {
		return d.Usage, vfs.ErrUnsupported
	}
	return d.Usage, nil
}

func (d *SmallDisk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if _, err := d.take(32); err != nil && !d.Late {
		return nil, err
	}
	f, err := d.FS.Create(name, c)
	if err != nil {
		return nil, err
	}
	return &smallFile{File: f, disk: d}, nil
}

// Remove removes a file. Where Usage is set there is room for as many bytes more.
func (d *SmallDisk) Remove(name string) error {
	info, err := d.FS.Stat(name)
	if err == nil {
		err = d.FS.Remove(name)
	}
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Usage != (vfs.DiskUsage{}) {
		d.Usage.AvailBytes += uint64(info.Size())
		if d.Room >= 0 {
			d.Room += info.Size()
		}
	}
	return nil
}

func (d *SmallDisk) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.ReuseForWrite(old, name, c)
	if err != nil {
		return nil, err
	}
	return &smallFile{File: f, disk: d}, nil
}

type smallFile struct {
	vfs.File
	disk *SmallDisk
	lost error
}

func (f *smallFile) Write(p []byte) (int, error) {
	n, err := f.disk.take(len(p))
	if f.disk.Late {
		f.lost = errors.Join(f.lost, err)
		return f.File.Write(p)
	}
	if n, werr := f.File.Write(p[:n]); werr != nil {
		return n, werr
	}
	return n, err
}

func (f *smallFile) Sync() error { return errors.Join(f.lost, f.File.Sync()) }

func (f *smallFile) SyncData() error { return errors.Join(f.lost, f.File.SyncData()) }

func (f *smallFile) SyncTo(n int64) (bool, error) {
	full, err := f.File.SyncTo(n)
	return full, errors.Join(f.lost, err)
}

// Error wraps an error as the operating system does.
type Error struct{ Err error }

func (e *Error) Error() string { return "write: " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }
