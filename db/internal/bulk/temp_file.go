package bulk

import (
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A tempFile is a file for projections that wait to be stored. Several goroutines append to
// it; when they are done it is read, and then removed. It is never made durable.
type tempFile struct {
	fs   vfs.FS
	path string

	mu     sync.Mutex // guards the fields below, and keeps appended pieces apart
	file   vfs.File   // for appending
	size   int64      // bytes appended
	reader vfs.File   // for reading; nil before the first read
}

// newTempFile makes the file, and replaces one that a crash has left there.
func newTempFile(fsys vfs.FS, path string) (*tempFile, error) {
	f, err := fsys.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return &tempFile{fs: fsys, path: path, file: f}, nil
}

// append writes b at the end, and returns the offset of its first byte.
func (t *tempFile) append(b []byte) (at int64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(b) == 0 {
		return t.size, nil
	}
	if _, err := t.file.Write(b); err != nil {
		return 0, err
	}
	at = t.size
	t.size += int64(len(b))
	return at, nil
}

// read fills b with the bytes from offset at. A file that is shorter is an error.
func (t *tempFile) read(b []byte, at int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reader == nil {
		f, err := t.fs.Open(t.path)
		if err != nil {
			return err
		}
		t.reader = f
	}
	_, err := t.reader.ReadAt(b, at)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// remove closes and removes the file. Errors are ignored: the folder, which is that of the
// import, is removed as a whole later.
func (t *tempFile) remove() {
	_ = t.file.Close()
	if t.reader != nil {
		_ = t.reader.Close()
	}
	_ = t.fs.Remove(t.path)
}
