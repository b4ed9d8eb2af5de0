package store

import (
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A tableFile closes itself as soon as a write, a sync or a stat fails, because Pebble then forgets the file
// without always closing it. Pebble tries to write a table again and again, so open files would pile up.
type tableFile struct {
	vfs.File
	mu  sync.Mutex // guards err, and is held during calls that may set it
	err error      // the first error, which closed the file; nil: none
}

// table makes a tableFile of an opened file.
func table(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &tableFile{File: f}, nil
}

// do runs op, and closes the file for good if op fails. Later calls get the same error.
func (f *tableFile) do(op func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	if f.err = op(); f.err != nil {
		_ = f.File.Close() // its content is useless
	}
	return f.err
}

func (f *tableFile) Write(p []byte) (n int, err error) {
	err = f.do(func() (err error) {
		n, err = f.File.Write(p)
		return err
	})
	return n, err
}

func (f *tableFile) Sync() error     { return f.do(f.File.Sync) }
func (f *tableFile) SyncData() error { return f.do(f.File.SyncData) }

func (f *tableFile) SyncTo(length int64) (full bool, err error) {
	err = f.do(func() (err error) {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

func (f *tableFile) Stat() (info vfs.FileInfo, err error) {
	err = f.do(func() (err error) {
		info, err = f.File.Stat()
		return err
	})
	return info, err
}

func (f *tableFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil
	}
	return f.File.Close()
}
