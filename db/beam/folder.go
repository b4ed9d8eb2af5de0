package beam

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"

	"github.com/fddhdb/fddhdb/db/backup"
)

// A folder is a backup.Store in a folder of a file system of Beam's.
type folder struct{ root string }

// Put implements backup.Store.
func (s *folder) Put(ctx context.Context, name string, r io.ReadSeeker, size int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return create(ctx, join(s.root, name), func(w io.Writer) error {
		n, err := io.Copy(w, io.LimitReader(r, size))
		if err == nil && n < size {
			err = io.ErrUnexpectedEOF
		}
		return errors.Join(err, ctx.Err())
	})
}

// Get implements backup.Store.
func (s *folder) Get(ctx context.Context, name string) (r io.ReadCloser, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path := join(s.root, name)
	if !exists(ctx, path) {
		return nil, &fs.PathError{Op: "get", Path: path, Err: fs.ErrNotExist}
	}
	err = withFS(ctx, path, func(fsys filesystem.Interface) error {
		r, err = fsys.OpenRead(ctx, path)
		return err
	})
	return r, err
}

// List implements backup.Store.
func (s *folder) List(ctx context.Context, prefix string, f func(backup.Object) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	root := strings.TrimRight(s.root, "/") + "/"
	paths, err := list(ctx, root+prefix+"*")
	if err != nil {
		return err
	}
	for _, path := range paths {
		n, err := size(ctx, path)
		if err != nil {
			return err
		}
		if err := f(backup.Object{Name: strings.TrimPrefix(path, root), Size: n, Modified: modified(ctx, path)}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// modified returns the time of a file, or now where a file system does not say: an object that might be new is not
// pruned.
func modified(ctx context.Context, path string) (at time.Time) {
	at = time.Now()
	_ = withFS(ctx, path, func(fsys filesystem.Interface) error {
		if g, ok := fsys.(filesystem.LastModifiedGetter); ok {
			if t, err := g.LastModified(ctx, path); err == nil {
				at = t
			}
		}
		return nil
	})
	return at
}

// Delete implements backup.Store.
func (s *folder) Delete(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	path := join(s.root, name)
	if !exists(ctx, path) {
		return nil
	}
	return remove(ctx, path)
}
