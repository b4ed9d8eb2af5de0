package db

import (
	"context"
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
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// Each staged import is a folder in imports/, with these things in it:
//
//	HEAD          JSON: what it is an import of, see importHeader
//	000001.items  what is staged, see spool
//	COMMIT        from before its commit on: which commit that is, see pledge
//
// A folder whose name ends in ".gone" is being removed.
const (
	importHead   = "HEAD"
	importPledge = "COMMIT"
	importGone   = ".gone"
)

// importVersion is that of the files of a staged import. Those of another version are
// staged anew.
const importVersion = 2

// keptImports is how long what an interrupted import has staged is kept for it to go on.
const keptImports = 7 * 24 * time.Hour

// An importHeader says what has been staged.
type importHeader struct {
	FDDHDB     string `json:"fddhdb"`
	Version    int    `json:"version"`
	UUID       string `json:"uuid,omitempty"` // of the database
	Collection uint32 `json:"collection"`
	Source     string `json:"source"`
}

// name returns the name of the folder.
func (h *importHeader) name() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", h.Collection, h.Source))
	return hex.EncodeToString(sum[:12])
}

func readImportHeader(fsys vfs.FS, dir string) (h importHeader, err error) {
	b, err := readSmall(fsys, fsys.PathJoin(dir, importHead), 4*maxSourceBytes)
	if err == nil && (json.Unmarshal(b, &h) != nil || h.FDDHDB != "import") {
		return importHeader{}, nil // of none
	}
	return h, err
}

func (h *importHeader) write(fsys vfs.FS, dir string) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return store.ReplaceFile(fsys, dir, importHead, append(b, '\n'))
}

// readSmall reads a file of at most so many bytes.
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

// removeImport removes the folder of a staged import: at once, as far as anybody sees.
func removeImport(fsys vfs.FS, dir string) error {
	gone := dir + importGone
	if _, err := fsys.Stat(gone); err == nil {
		if err := fsys.RemoveAll(gone); err != nil {
			return err
		}
	}
	if err := fsys.Rename(dir, gone); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return errors.Join(store.SyncDir(fsys, fsys.PathDir(dir)), fsys.RemoveAll(gone))
}

func (d *DB) importDir(name string) string {
	return d.opts.FS.PathJoin(d.dir, store.ImportsName, name)
}

// importNames lists the folders of staged imports.
func (d *DB) importNames() ([]string, error) {
	names, err := d.opts.FS.List(d.opts.FS.PathJoin(d.dir, store.ImportsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	slices.Sort(names)
	return names, err
}

// A StagedImport is what an import has staged and not removed: it goes on, or was
// interrupted.
type StagedImport struct {
	Collection string    `json:"collection"` // "" where that is gone
	Source     string    `json:"source"`     // ImportOptions.Source
	Bytes      int64     `json:"bytes"`      // on disk
	Touched    time.Time `json:"touched"`    // when something of it was last written
	Open       bool      `json:"open"`       // it goes on, in this process
	Committed  bool      `json:"committed"`  // its process ended when all was stored: see Import.Commit

	name string
}

// StagedImports returns the imports that have something staged. It looks at the folder of
// the database only: at each file of each of them.
func (d *DB) StagedImports(ctx context.Context) ([]StagedImport, error) {
	d = d.orNone()
	var all []StagedImport
	err := d.state.Read(func(v *state.View) (err error) {
		all, err = d.stagedImports(ctx, v)
		return fault.Annotate(err, "staged imports of %s", d.dir)
	})
	return all, err
}

func (d *DB) stagedImports(ctx context.Context, v *state.View) ([]StagedImport, error) {
	names, err := d.importNames()
	if err != nil {
		return nil, err
	}
	fsys := d.opts.FS
	var all []StagedImport
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if strings.HasSuffix(name, importGone) {
			continue
		}
		dir := d.importDir(name)
		h, err := readImportHeader(fsys, dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		im := StagedImport{Source: h.Source, Open: d.imports.has(name), name: name}
		if !im.Open {
			p, given, err := readPledge(fsys, dir)
			if err != nil && !errors.Is(err, fault.ErrCorrupt) {
				return nil, err
			}
			im.Committed = given && p.sequence <= v.Sequence // what is open for reading only takes no pledge back
		}
		if cv, ok := v.Collections.Get(h.Collection); ok {
			im.Collection = cv.Name
		}
		files, err := fsys.List(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // it has just ended
			return nil, err
		}
		for _, file := range files {
			if info, err := fsys.Stat(fsys.PathJoin(dir, file)); err == nil {
				im.Bytes += info.Size()
				if t := info.ModTime(); t.After(im.Touched) {
					im.Touched = t
				}
			}
		}
		all = append(all, im)
	}
	return all, nil
}

// RemoveStagedImports removes what imports have staged, but for those that go on in this
// process, and returns what it has removed. The imports begin anew then. What is young is
// kept: what something has been written of after a time. Of imports that are committed it
// is remembered for a week that they are, so that going on with one stores nothing twice.
func (d *DB) RemoveStagedImports(ctx context.Context, before time.Time) ([]StagedImport, error) {
	d = d.orNone()
	if err := d.writable(); err != nil {
		return nil, err
	}
	var removed []StagedImport
	err := d.state.Read(func(v *state.View) error {
		all, err := d.stagedImports(ctx, v)
		for _, im := range all {
			if err == nil {
				err = ctx.Err()
			}
			if err == nil && (im.Collection == "" || im.Touched.Before(before)) && d.imports.take(im.name, nil) {
				did := true
				if im.Committed && im.Collection != "" && time.Since(im.Touched) < keptImports {
					did, err = d.removeItems(im.name)
				} else {
					err = removeImport(d.opts.FS, d.importDir(im.name))
				}
				if did && err == nil {
					removed = append(removed, im)
				}
				d.imports.leave(im.name)
			}
		}
		return fault.Annotate(err, "remove staged imports of %s", d.dir)
	})
	return removed, err
}

// removeItems removes the items of an import that is committed, and leaves that it is.
func (d *DB) removeItems(name string) (any bool, err error) {
	fsys, dir := d.opts.FS, d.importDir(name)
	names, err := fsys.List(dir)
	for _, name := range names {
		if err == nil && name != importHead && name != importPledge {
			any, err = true, fsys.Remove(fsys.PathJoin(dir, name))
		}
	}
	return any, err
}
