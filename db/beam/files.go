package beam

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
)

// A remote path has a scheme; others are of this machine.
func remote(path string) bool { return strings.Contains(path, "://") }

// join joins a folder and a name in it.
func join(dir, name string) string {
	if remote(dir) {
		return strings.TrimRight(dir, "/") + "/" + name
	}
	return filepath.Join(dir, name)
}

// withFS calls f with the file system of a path.
func withFS(ctx context.Context, path string, f func(filesystem.Interface) error) error {
	fsys, err := filesystem.New(ctx, path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return errors.Join(f(fsys), fsys.Close())
}

// list returns the files that match a glob, sorted.
func list(ctx context.Context, glob string) (paths []string, err error) {
	err = withFS(ctx, glob, func(fsys filesystem.Interface) error {
		if paths, err = fsys.List(ctx, glob); err != nil {
			return fmt.Errorf("%s: %w", glob, err)
		}
		return nil
	})
	slices.Sort(paths)
	return paths, err
}

// stateOf returns the state of a file.
func stateOf(ctx context.Context, path string) (s fileState, err error) {
	if !remote(path) {
		info, err := os.Stat(path)
		if err != nil {
			return s, err
		}
		return fileState{Size: info.Size(), Modified: info.ModTime().UTC()}, nil
	}
	err = withFS(ctx, path, func(fsys filesystem.Interface) error {
		if s.Size, err = fsys.Size(ctx, path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if f, ok := fsys.(filesystem.LastModifiedGetter); ok {
			s.Modified, err = f.LastModified(ctx, path)
		}
		return err
	})
	return s, err
}

// exists reports whether a file exists. A file that cannot be looked at counts as missing: making or reading
// it then gives the error.
func exists(ctx context.Context, path string) bool {
	found, err := look(ctx, path)
	return err == nil && found
}

// look is exists with the error.
func look(ctx context.Context, path string) (bool, error) {
	if !remote(path) {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return err == nil && info.Mode().IsRegular(), err
	}
	found, err := list(ctx, path)
	return slices.Contains(found, path), err
}

// absolute makes a path of this machine absolute: workers may have another working directory.
func absolute(path string) (string, error) {
	if path == "" || remote(path) {
		return path, nil
	}
	return filepath.Abs(path)
}

// isFolder reports whether there is a folder of this machine.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// read returns the contents of a file.
func read(ctx context.Context, path string) (b []byte, err error) {
	err = open(ctx, path, func(r io.Reader) error {
		b, err = io.ReadAll(r)
		return err
	})
	return b, err
}

// open calls f with a reader of the contents of a file.
func open(ctx context.Context, path string, f func(io.Reader) error) error {
	return withFS(ctx, path, func(fsys filesystem.Interface) error {
		r, err := fsys.OpenRead(ctx, path)
		if err == nil {
			err = errors.Join(f(r), r.Close())
		}
		if err != nil && !strings.Contains(err.Error(), path) {
			return fmt.Errorf("%s: %w", path, err)
		}
		return err
	})
}

// write makes or replaces a file with contents b, atomically.
func write(ctx context.Context, path string, b []byte) error {
	return create(ctx, path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// create makes or replaces a file with the output of f, atomically.
func create(ctx context.Context, path string, f func(io.Writer) error) error {
	if remote(path) {
		return withFS(ctx, path, func(fsys filesystem.Interface) error {
			// Objects appear when they are closed, and a started one cannot be given up. So write the output
			// of f to this machine first.
			dir, err := localDir()
			if err != nil {
				return err
			}
			all, err := os.CreateTemp(dir, "upload-*")
			if err != nil {
				return err
			}
			defer os.Remove(all.Name())
			defer all.Close()
			if err := f(all); err != nil {
				return err
			}
			if _, err := all.Seek(0, io.SeekStart); err != nil {
				return err
			}
			w, err := fsys.OpenWrite(ctx, path)
			if err == nil {
				_, err = io.Copy(w, all)
				err = errors.Join(err, w.Close())
			}
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			return nil
		})
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	// Several workers may make it at a time, and the last one wins.
	w, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf(".new-%x-%s", rand.Uint64(), filepath.Base(path))),
		os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	err = f(w)
	err = errors.Join(err, w.Close())
	if err == nil {
		err = os.Rename(w.Name(), path)
	}
	if err != nil {
		_ = os.Remove(w.Name()) // the error of f matters
	}
	return err
}

// remove removes an existing file. If the file system cannot, it stays.
func remove(ctx context.Context, path string) error {
	if !remote(path) {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return withFS(ctx, path, func(fsys filesystem.Interface) error {
		if r, ok := fsys.(filesystem.Remover); ok {
			return r.Remove(ctx, path)
		}
		return nil
	})
}

// sweep removes the incomplete files that killed processes have left in a folder of this machine.
func sweep(dir string) {
	if remote(dir) {
		return
	}
	left, _ := filepath.Glob(filepath.Join(dir, ".new-*"))
	for _, path := range left {
		_ = os.Remove(path) // it only takes space
	}
}

// emptyOrNew refuses a folder that is not empty.
func emptyOrNew(ctx context.Context, dir string) error {
	n := 0
	if remote(dir) {
		found, err := list(ctx, join(dir, "*"))
		if err != nil {
			return err
		}
		n = len(found)
	} else {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		n = len(entries)
	}
	if n > 0 {
		return inputError("%s is not empty, and holds nothing of fddhdb-beam: choose another folder", dir)
	}
	return nil
}

// removeAll removes a folder. If the file system cannot, files stay.
func removeAll(ctx context.Context, dir string) error {
	if !remote(dir) {
		return os.RemoveAll(dir)
	}
	paths, err := list(ctx, join(dir, "*"))
	for _, p := range paths {
		err = errors.Join(err, remove(ctx, p))
	}
	return err
}

// copies are local copies of remote files, for reading. Each process has its own.
var copies struct {
	sync.Mutex
	files []*localCopy
}

// A localCopy is a copy of a file.
type localCopy struct {
	of, path string
	users    int
	once     sync.Once
	err      error
}

// keptCopies bounds the unused copies to keep: the next task often reads the same file.
const keptCopies = 4

// local returns a path of the file on this machine: its own, or of a copy. The caller calls done after
// reading.
func local(ctx context.Context, path string) (at string, done func(), err error) {
	if !remote(path) {
		return path, func() {}, nil
	}
	dir, err := localDir()
	if err != nil {
		return "", nil, err
	}
	copies.Lock()
	i := slices.IndexFunc(copies.files, func(c *localCopy) bool { return c.of == path })
	if i < 0 {
		// The extension tells the format.
		name := hash([]byte(path))[:16] + "-" + path[strings.LastIndexByte(path, '/')+1:]
		copies.files = append(copies.files, &localCopy{of: path, path: filepath.Join(dir, name)})
		i = len(copies.files) - 1
	}
	c := copies.files[i]
	copies.files = append(slices.Delete(copies.files, i, i+1), c) // the last used ones are at the end
	c.users++
	copies.Unlock()
	c.once.Do(func() {
		c.err = create(ctx, c.path, func(w io.Writer) error {
			return open(ctx, path, func(r io.Reader) error {
				_, err := io.Copy(w, r)
				return err
			})
		})
	})
	done = func() { c.release() }
	if c.err != nil {
		done()
		return "", nil, c.err
	}
	return c.path, done, nil
}

// release ends one use of a copy, and removes surplus copies.
func (c *localCopy) release() {
	copies.Lock()
	defer copies.Unlock()
	c.users--
	idle := 0
	for i := len(copies.files) - 1; i >= 0; i-- {
		f := copies.files[i]
		if f.users > 0 {
			continue
		}
		if idle++; idle > keptCopies || f.err != nil {
			_ = os.Remove(f.path) // a temporary file
			copies.files = slices.Delete(copies.files, i, i+1)
		}
	}
}

// hash returns the SHA-256 of bytes in hexadecimal.
func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// slash returns a path in the form of Beam's globs.
func slash(path string) string {
	if runtime.GOOS == "windows" && !remote(path) {
		return filepath.ToSlash(path)
	}
	return path
}
