package db_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// vfsStore is a store of backups in a folder of a file system that a test has its hands on.
type vfsStore struct {
	fs  vfs.FS
	dir string
}

func (s vfsStore) path(name string) string {
	return s.fs.PathJoin(s.dir, s.fs.PathJoin(strings.Split(name, "/")...))
}

func (s vfsStore) Put(_ context.Context, name string, r io.ReadSeeker, size int64) error {
	path := s.path(name)
	if err := store.MakeDir(s.fs, s.fs.PathDir(path)); err != nil {
		return err
	}
	temp := path + ".tmp"
	f, err := s.fs.Create(temp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, r)
	if err == nil && n != size {
		err = fmt.Errorf("%d bytes of %d", n, size)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := s.fs.Rename(temp, path); err != nil {
		return err
	}
	return store.SyncDir(s.fs, s.fs.PathDir(path))
}

func (s vfsStore) Get(_ context.Context, name string) (io.ReadCloser, error) {
	return s.fs.Open(s.path(name))
}

func (s vfsStore) List(_ context.Context, prefix string, f func(backup.Object) error) error {
	var walk func(name string) error
	walk = func(name string) error {
		info, err := s.fs.Stat(s.path(name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !info.IsDir():
			if !strings.HasPrefix(name, prefix) || strings.HasSuffix(name, ".tmp") {
				return nil
			}
			return f(backup.Object{Name: name, Size: info.Size(), Modified: info.ModTime()})
		}
		names, err := s.fs.List(s.path(name))
		for _, n := range names {
			if err == nil {
				err = walk(strings.TrimPrefix(name+"/"+n, "/"))
			}
		}
		return err
	}
	return walk("")
}

func (s vfsStore) Delete(_ context.Context, name string) error {
	if err := s.fs.Remove(s.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
