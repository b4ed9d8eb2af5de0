package backup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// look returns the file or folder at a path, following links. Put, Get, List and Delete
// all use it, so that none of them finds an object that another one does not find: a
// Prune deletes what is not listed. If nothing is there the error wraps fs.ErrNotExist.
// A link without a target is something, and so is a pipe, a socket or a device, whose
// reader might wait for ever: these give ErrDamaged.
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
