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

	"github.com/fddhdb/fddhdb/internal/inside"
)

// incoming is the name of the folders that hold an object while it is written. No
// object can have such a name.
const (
	incoming       = ".incoming"
	incomingPrefix = "put-" // prefix of the files in it
)

// folder is a Store in a folder of the file system, with a file for each object. It
// follows all links; see look.
type folder struct {
	root   string       // absolute
	refuse func() error // reason why nothing may be put, found once
	clean  sync.Once    // removes old leftovers once
}

// Folder returns the store in a folder, on a disk or a network file system that several
// machines may share. The first Put creates a missing folder.
//
// The folder, its subfolders and files may be symbolic links, such as to another disk:
// they are followed. Put replaces a link to a file and Delete removes the link; its
// target stays. A link without a target, and anything but a file in the place of an
// object, give ErrDamaged and not fs.ErrNotExist: an unmounted disk does not make a
// backup disappear.
func Folder(path string) (Store, error) {
	root, err := filepath.Abs(path)
	if err != nil {
		return nil, annotate(err, "backups in %s", path)
	}
	if info, err := os.Stat(root); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%w: %s is not a folder", ErrNotRepository, path)
	}
	return &folder{root: root, refuse: sync.OnceValue(func() error {
		if dir := inside.Database(root); dir != "" {
			return fmt.Errorf("%w: %s is in the database %s, and opening that may delete it: keep backups elsewhere, best on another disk", ErrInvalid, path, dir)
		}
		return nil
	})}, nil
}

// FolderPath returns the absolute path of a store that Folder has returned, and "" for any
// other store. A database that backs itself up leaves its reserve free on that disk.
func FolderPath(s Store) string {
	if f, ok := s.(*folder); ok {
		return f.root
	}
	return ""
}

func (s *folder) path(name string) (string, error) {
	return filepath.Join(s.root, filepath.FromSlash(name)), CheckName(name)
}

func (s *folder) Put(ctx context.Context, name string, r io.ReadSeeker, size int64) (err error) {
	path, err := s.path(name)
	if err != nil {
		return err
	}
	if err := s.refuse(); err != nil {
		return err
	}
	if _, err := look(path); err != nil && !notThere(err) {
		return err
	}
	temp, err := s.incoming(path)
	if err != nil {
		return err
	}
	if err := makeFolder(temp); err != nil {
		return err
	}
	s.clean.Do(s.removeOld)
	f, err := os.CreateTemp(temp, incomingPrefix)
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
	if err := fsync(f); err != nil {
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

// incoming returns the folder in which an object is written before it is renamed to
// path. Both must be on the same disk. So objects/, backups/ and the others have a
// folder each, as they may be links or mounts, and so has every other folder that is a
// link.
func (s *folder) incoming(path string) (string, error) {
	dir := filepath.Dir(path)
	for ; dir != s.root && filepath.Dir(dir) != s.root; dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		if err != nil && !notThere(err) {
			return "", err
		}
		if err == nil && !info.IsDir() {
			break
		}
	}
	return filepath.Join(dir, incoming), nil
}

// rename replaces the file at the new path. Windows refuses that while someone reads
// it, so rename tries again.
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

// makeFolder makes a folder and its parents, durably.
func makeFolder(path string) error {
	info, err := look(path)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("%s is a file, not a folder", path)
	case !notThere(err):
		return err
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

// fsync makes a file or the entries of a folder durable. Tests observe it, and let it fail.
var fsync = (*os.File).Sync

// syncFolder makes the entries of a folder durable, on systems that can.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(fsync(d), d.Close())
}

// removeOld removes files that killed processes have left in the incoming folders.
func (s *folder) removeOld() {
	removeOld(filepath.Join(s.root, incoming))
	entries, err := os.ReadDir(s.root)
	if err != nil {
		return
	}
	for _, e := range entries {
		removeOld(filepath.Join(s.root, e.Name(), incoming))
	}
}

func removeOld(temp string) {
	entries, err := os.ReadDir(temp)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), incomingPrefix) {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() &&
			time.Since(info.ModTime()) > 24*time.Hour {
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
	info, err := look(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() { // a folder: objects have names below it
		return nil, fmt.Errorf("%s: %w: a folder", name, fs.ErrNotExist)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &contextFile{contextReader{ctx, f}, f}, nil
}

func (s *folder) Delete(ctx context.Context, name string) error {
	path, err := s.path(name)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	info, err := look(path)
	if notThere(err) || err == nil && info.IsDir() { // a folder: objects have names below it
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
	// After a crash a manifest must not be back without the objects that were deleted
	// after it.
	return syncFolder(filepath.Dir(path))
}

// contextReader reads until its context ends.
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

// look returns the file or folder at a path, following links. Put, Get, List and Delete all use it, so that
// they find the same objects: a Prune deletes objects that are not listed. If nothing is there the error
// wraps fs.ErrNotExist. A link without a target counts as something, and so does a pipe, a socket or a
// device, whose reader might wait for ever: these give ErrDamaged.
func look(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		here, lerr := os.Lstat(path)
		switch {
		case lerr == nil && !here.Mode().IsRegular() && !here.IsDir():
			return nil, damaged("%s is a link that leads nowhere: mount the disk that it leads to, or remove it (%v)", path, err)
		case notThere(lerr) && filepath.Dir(path) != path:
			if _, above := look(filepath.Dir(path)); above != nil && !notThere(above) {
				return nil, above
			}
		}
		return nil, err
	}
	if info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDevice|fs.ModeCharDevice) != 0 {
		return nil, damaged("%s is neither a file nor a folder (%s): remove it", path, info.Mode().Type())
	}
	return info, nil
}

func (s *folder) List(ctx context.Context, prefix string, f func(Object) error) error {
	start, name := s.root, ""
	if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
		name = prefix[:i]
		if err := CheckName(name); err != nil {
			return err
		}
		start = filepath.Join(s.root, filepath.FromSlash(name))
	}
	info, err := look(start)
	switch {
	case notThere(err): // the store is still empty
		return ctx.Err()
	case err != nil:
		return err
	}
	if err := inPlace(start, name, info.IsDir()); err != nil || !info.IsDir() {
		return errors.Join(err, ctx.Err())
	}
	l := &lister{ctx: ctx, prefix: prefix, found: f}
	return l.folder(start, name, []fs.FileInfo{info})
}

// inPlace returns an error if a folder is in the place of a file of a repository, or a
// file in the place of a folder. Something was there and is lost.
func inPlace(path, name string, isFolder bool) error {
	switch {
	case isFolder && validFile.MatchString(name):
		return damaged("%s is a folder, where a repository has a file: remove the folder", path)
	case !isFolder && validFolder.MatchString(name):
		return damaged("%s is a file, where a repository has a folder: remove the file", path)
	}
	return nil
}

// A lister walks through folders.
type lister struct {
	ctx    context.Context
	prefix string
	found  func(Object) error
}

// folder lists the folder at path, whose objects have names that begin with name and a
// slash. within are the folders around it and, last, the folder itself.
func (l *lister) folder(path, name string, within []fs.FileInfo) error {
	entries, err := os.ReadDir(path)
	if err != nil && !notThere(err) { // the folder has been deleted meanwhile
		return err
	}
	for _, e := range entries {
		if l.ctx.Err() != nil {
			return context.Cause(l.ctx)
		}
		child := e.Name()
		if name != "" {
			child = name + "/" + child
		}
		if CheckName(child) != nil || !l.wanted(child) {
			continue
		}
		full := filepath.Join(path, e.Name())
		info, err := look(full)
		if err == nil {
			err = inPlace(full, child, info.IsDir())
		}
		switch {
		case notThere(err): // it has been deleted meanwhile
			continue
		case err == nil && info.IsDir():
			err = l.inner(full, child, info, within)
		case err == nil && strings.HasPrefix(child, l.prefix):
			err = l.found(Object{Name: child, Size: info.Size(), Modified: info.ModTime()})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wanted reports whether an object with this name, or in a folder with this name, may
// be listed.
func (l *lister) wanted(name string) bool {
	return strings.HasPrefix(name, l.prefix) || strings.HasPrefix(l.prefix, name+"/")
}

// inner lists a folder in another one, unless a link leads back to one of within.
func (l *lister) inner(path, name string, info fs.FileInfo, within []fs.FileInfo) error {
	for _, above := range within {
		if os.SameFile(above, info) {
			return damaged("%s is a link to a folder that it is in: remove it", path)
		}
	}
	return l.folder(path, name, append(within, info))
}
