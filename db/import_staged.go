package db

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// keptImports is how long what an interrupted import has staged is kept for it to go on.
const keptImports = 7 * 24 * time.Hour

// importDir returns the folder of a staged import.
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

// settleImports takes back the pledges of commits that have not come about.
func (d *DB) settleImports() error {
	names, err := d.importNames()
	if err != nil {
		return err
	}
	for _, name := range names {
		dir := d.importDir(name)
		if strings.HasSuffix(name, importGone) {
			if err := d.opts.FS.RemoveAll(dir); err != nil { // another time: nobody reads it
				d.importLeft(dir, err)
			}
			continue
		}
		p, given, err := readPledge(d.opts.FS, dir)
		if errors.Is(err, fault.ErrCorrupt) {
			continue // whoever goes on with the import hears of it
		}
		if err == nil && given && p.sequence > d.identity.Sequence {
			err = removeFile(d.opts.FS, dir, importPledge)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
