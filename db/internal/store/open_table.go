package store

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// OpenTable opens a table without its store; the caller closes it. It checks the sums of blocks first, as
// summedFile does. If Pebble refuses a table, by an error or a panic, it leaves the file open: OpenTable
// closes it, and lets a panic go on.
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
