package store

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// OpenTable opens a table by itself, without the store that it belongs to, to be closed by the
// caller. Checksums of blocks are looked at first, as summedFile does. Pebble closes no file
// of a table that it refuses, be it by a panic: so this does, and lets the panic go on.
func OpenTable(ctx context.Context, fsys vfs.FS, path string, options sstable.ReaderOptions) (r *sstable.Reader, err error) {
	file, err := fsys.Open(path)
	f, err := summed(path, file, err)
	if err != nil {
		return nil, err
	}
	defer func() {
		if r == nil {
			err = errors.Join(err, f.Close())
		}
	}()
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return nil, err
	}
	return sstable.NewReader(ctx, readable, options)
}
