package spool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// A Folder is the folder imports/ of a database. Each staged import has a folder in it, with
// these files:
//
//	HEAD          a header
//	000001.items  chunks, one after the other; a file for each session of the import
//	COMMIT        a Promise
//
// While an import is removed, the name of its folder ends in ".gone". A Folder has no state
// besides the files, so goroutines may share it. Of an import that is open, others only call
// Look: reading the promise might keep the import from writing it.
type Folder struct {
	FS  vfs.FS
	Dir string // its path; it need not exist
}

// Names of files and folders.
const (
	headFile     = "HEAD"
	promiseFile  = "COMMIT"
	chunksSuffix = ".items"
	goneSuffix   = ".gone"
)

// filesVersion is the version of the files of a staged import. An import that finds files of
// another version begins anew.
const filesVersion = 2

// MaxSourceBytes is how long Origin.Source may be.
const MaxSourceBytes = 1 << 20

// An Origin says which items an import brings into which collection. An import continues the
// staged one whose Origin is equal.
type Origin struct {
	UUID       string `json:"uuid,omitempty"` // of the database
	Collection uint32 `json:"collection"`     // its number
	Source     string `json:"source"`         // any text of the user that identifies the items
}

// Name returns the name of the import's folder, which depends on collection and source alone.
func (o *Origin) Name() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", o.Collection, o.Source))
	return hex.EncodeToString(sum[:12])
}

// A header is the content of HEAD, as JSON.
type header struct {
	FDDHDB  string `json:"fddhdb"` // "import"
	Version int    `json:"version"`
	Origin
}

// headerOf returns the header that this version writes.
func headerOf(o Origin) header { return header{"import", filesVersion, o} }

// Files describes the files of one staged import.
type Files struct {
	Origin            // zero if HEAD is missing or damaged
	Bytes   int64     // on disk
	Touched time.Time // when one of the files was last written
}

// path returns the folder of an import.
func (f Folder) path(name string) string { return f.FS.PathJoin(f.Dir, name) }

// Names returns the names of the staged imports, in order.
func (f Folder) Names() ([]string, error) {
	names, err := f.list()
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, goneSuffix) }), err
}

// list returns the names of all folders, in order; none if there is no Folder.
func (f Folder) list() ([]string, error) {
	names, err := f.FS.List(f.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	slices.Sort(names)
	return names, err
}

// Look describes the files of an import. Files that vanish meanwhile, because the import ends,
// do not count.
func (f Folder) Look(name string) (s Files, err error) {
	h, err := f.readHeader(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	s.Origin = h.Origin
	dir := f.path(name)
	files, err := f.FS.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	for _, file := range files {
		if info, err := f.FS.Stat(f.FS.PathJoin(dir, file)); err == nil {
			s.Bytes += info.Size()
			if t := info.ModTime(); t.After(s.Touched) {
				s.Touched = t
			}
		}
	}
	return s, nil
}

// readHeader reads the header of an import. It is zero if the file is damaged.
func (f Folder) readHeader(name string) (h header, err error) {
	b, err := readSmall(f.FS, f.FS.PathJoin(f.path(name), headFile), 4*MaxSourceBytes)
	if err == nil && (json.Unmarshal(b, &h) != nil || h.FDDHDB != "import") {
		return header{}, nil
	}
	return h, err
}

// writeHeader writes the header of an import durably.
func (f Folder) writeHeader(name string, h header) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return store.ReplaceFile(f.FS, f.path(name), headFile, append(b, '\n'))
}

// Remove removes a staged import. A crash leaves all of it, or a folder that Tidy removes.
func (f Folder) Remove(name string) error {
	dir := f.path(name)
	// Rename first: removing many files takes long, and a crash in between would leave an import
	// that lacks some.
	gone := dir + goneSuffix
	if _, err := f.FS.Stat(gone); err == nil {
		if err := f.FS.RemoveAll(gone); err != nil {
			return err
		}
	}
	if err := f.FS.Rename(dir, gone); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return errors.Join(store.SyncDir(f.FS, f.Dir), f.FS.RemoveAll(gone))
}

// RemoveItems removes the items of a committed import, and reports whether there were any. The
// header and the promise stay: they say that the import has been committed.
func (f Folder) RemoveItems(name string) (any bool, err error) {
	dir := f.path(name)
	files, err := f.FS.List(dir)
	for _, file := range files {
		if err == nil && file != headFile && file != promiseFile {
			any, err = true, f.FS.Remove(f.FS.PathJoin(dir, file))
		}
	}
	return any, err
}

// Tidy is called when a database is opened, before anything is committed. commits is the number
// of its last commit. Tidy removes the promises of later commits, which have not come about, and
// folders that are half removed; where that fails for a folder, left hears of it.
func (f Folder) Tidy(commits uint64, left func(dir string, err error)) error {
	names, err := f.list()
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, goneSuffix) {
			if err := f.FS.RemoveAll(f.path(name)); err != nil {
				left(f.path(name), err)
			}
			continue
		}
		p, err := f.Promised(name)
		if errors.Is(err, fault.ErrCorrupt) {
			continue // Open tells the user
		}
		// The process ended between the promise and its commit. The next commit of the database gets
		// this number, so the promise must go before that.
		if err == nil && p.Commit > commits {
			err = removeFile(f.FS, f.path(name), promiseFile)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readSmall reads a file up to most bytes.
func readSmall(fsys vfs.FS, path string, most int64) ([]byte, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, most))
	return b, errors.Join(err, f.Close())
}

// removeFile removes a file durably, if there is one.
func removeFile(fsys vfs.FS, dir, name string) error {
	if err := fsys.Remove(fsys.PathJoin(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return store.SyncDir(fsys, dir)
}
