package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// incoming is the folder of what is being put. No object can have such a name.
const incoming = ".incoming"

// folder is a Store in a folder of the file system: a file for each object.
type folder struct {
	root string
	once sync.Once
}

// Folder returns the store in a folder, on a disk or a network file system that
// several machines may share. The first Put makes it where it is missing.
func Folder(path string) (Store, error) {
	root, err := filepath.Abs(path)
	if err != nil {
		return nil, annotate(err, "backups in %s", path)
	}
	if info, err := os.Stat(root); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%w: %s is a file", ErrNotRepository, path)
	}
	return &folder{root: root}, nil
}

func (s *folder) path(name string) (string, error) {
	return filepath.Join(s.root, filepath.FromSlash(name)), CheckName(name)
}

func (s *folder) Put(ctx context.Context, name string, r io.ReadSeeker, size int64) (err error) {
	path, err := s.path(name)
	if err != nil {
		return err
	}
	temp := filepath.Join(s.root, incoming)
	if err := makeFolder(temp); err != nil {
		return err
	}
	s.once.Do(func() { removeOld(temp) })
	f, err := os.CreateTemp(temp, "put-")
	if err != nil {
		return err
	}
	open := true
	defer func() {
		if err != nil {
			if open {
				f.Close()
			}
			os.Remove(f.Name())
		}
	}()
	if n, err := io.Copy(f, &contextReader{ctx, r}); err != nil {
		return err
	} else if n != size {
		return fmt.Errorf("put %s: %d bytes, %d were announced", name, n, size)
	}
	if err := f.Sync(); err != nil {
		return err
	}
	open = false
	if err := f.Close(); err != nil {
		return err
	}
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return err
	}
	if err := rename(ctx, f.Name(), path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// rename replaces what is at the new path. Windows refuses that for as long as somebody
// reads it.
func rename(ctx context.Context, from, to string) error {
	for try := 0; ; try++ {
		err := os.Rename(from, to)
		if err == nil || runtime.GOOS != "windows" || try == 50 || !errors.Is(err, fs.ErrPermission) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// makeFolder makes a folder and those above it, durably.
func makeFolder(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(path)
	if parent != path {
		if err := makeFolder(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(parent)
}

// syncFolder makes what a folder lists durable, where systems can.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// removeOld removes what killed processes have left of what they were putting.
func removeOld(temp string) {
	entries, err := os.ReadDir(temp)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			os.Remove(filepath.Join(temp, e.Name()))
		}
	}
}

func (s *folder) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	path, err := s.path(name)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for whoever writes to it
		return nil, fmt.Errorf("%s: %w: not a file", name, fs.ErrNotExist)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &contextFile{contextReader{ctx, f}, f}, nil
}

func (s *folder) List(ctx context.Context, prefix string, f func(Object) error) error {
	start := s.root
	if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
		if err := CheckName(prefix[:i]); err != nil {
			return err
		}
		start = filepath.Join(s.root, filepath.FromSlash(prefix[:i]))
	}
	return filepath.WalkDir(start, func(path string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			if notThere(err) { // nothing is there yet, or it has gone meanwhile
				return nil
			}
			return err
		}
		rel, err := filepath.Rel(s.root, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		if e.IsDir() {
			if strings.HasPrefix(e.Name(), ".") && path != start {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasPrefix(name, prefix) || CheckName(name) != nil || !e.Type().IsRegular() {
			return nil
		}
		info, err := e.Info()
		if notThere(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return f(Object{Name: name, Size: info.Size(), Modified: info.ModTime()})
	})
}

func (s *folder) Delete(ctx context.Context, name string) error {
	path, err := s.path(name)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	info, err := os.Lstat(path)
	if notThere(err) || err == nil && info.IsDir() { // objects lie under the name
		return nil
	} else if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		if notThere(err) {
			return nil
		}
		return err
	}
	// A manifest must not come back after a crash without the objects that went after it.
	return syncFolder(filepath.Dir(path))
}

// contextReader reads until a context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *contextReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(p)
}

type contextFile struct {
	contextReader
	io.Closer
}
