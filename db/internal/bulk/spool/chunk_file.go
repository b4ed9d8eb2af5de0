package spool

import (
	"io"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A chunkFile reads a file of chunks. Goroutines may share it.
type chunkFile struct {
	fs   vfs.FS
	path string

	mu   sync.Mutex // guards file
	file vfs.File   // nil until the first read, and after close
}

// open opens the file unless it is open.
func (f *chunkFile) open() (vfs.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		file, err := f.fs.Open(f.path)
		if err != nil {
			return nil, err
		}
		f.file = file
	}
	return f.file, nil
}

// close closes the file if it is open. No other call goes on.
func (f *chunkFile) close() {
	if f.file != nil {
		_ = f.file.Close() // it was only read
		f.file = nil
	}
}

// size returns the length of the file.
func (f *chunkFile) size() (int64, error) {
	file, err := f.open()
	if err != nil {
		return 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// readAt fills b with the bytes from at on.
func (f *chunkFile) readAt(b []byte, at int64) error {
	if len(b) == 0 {
		return nil
	}
	file, err := f.open()
	if err != nil {
		return err
	}
	if _, err = file.ReadAt(b, at); err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// A chunkRef is a chunk in a file.
type chunkRef struct {
	chunkHeader
	file *chunkFile
	at   int64 // where the header begins
}

// readPart reads a part of the chunk into buf.
func (r *chunkRef) readPart(part int, buf *[]byte) error {
	n := int(r.lens[part])
	*buf = slices.Grow((*buf)[:0], n)[:n]
	if err := r.file.readAt(*buf, r.at+r.offset(part)); err != nil {
		return err
	}
	return r.sound(part, *buf)
}
