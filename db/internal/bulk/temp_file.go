package bulk

import (
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A tempFile is a file that is appended to by several goroutines, and then read, and that
// is gone when it is not needed any more.
type tempFile struct {
	fs   vfs.FS
	path string

	mu     sync.Mutex
	file   vfs.File
	size   int64
	reader vfs.File // nil: nobody has read yet
}

// newTempFile makes the file, which must not be open already.
func newTempFile(fsys vfs.FS, path string) (*tempFile, error) {
	f, err := fsys.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return &tempFile{fs: fsys, path: path, file: f}, nil
}

// append writes b at the end, and returns where that is.
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

// read fills b with what is at a place of the file.
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

// remove closes and removes the file; what is left of it is removed with its folder.
func (t *tempFile) remove() {
	_ = t.file.Close()
	if t.reader != nil {
		_ = t.reader.Close()
	}
	_ = t.fs.Remove(t.path)
}
