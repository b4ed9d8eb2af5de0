package db

import (
	"context"
	"errors"
	"time"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/bulk/spool"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// keptImports is how long the files of an interrupted import are kept.
const keptImports = 7 * 24 * time.Hour

// importFolder returns the folder of staged imports.
func (d *DB) importFolder() spool.Folder {
	return spool.Folder{FS: d.opts.FS, Dir: d.opts.FS.PathJoin(d.dir, store.ImportsName)}
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
	folder := d.importFolder()
	names, err := folder.Names()
	if err != nil {
		return nil, err
	}
	var all []StagedImport
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		files, err := folder.Look(name)
		if err != nil {
			return nil, err
		}
		im := StagedImport{Source: files.Source, Bytes: files.Bytes, Touched: files.Touched, Open: d.imports.has(name), name: name}
		if !im.Open {
			p, err := folder.Promised(name)
			if err != nil && !errors.Is(err, fault.ErrCorrupt) {
				return nil, err
			}
			im.Committed = p.Commit > 0 && p.Commit <= v.Sequence // a promise that is not kept stays while the database is only read
		}
		if cv, ok := v.Collections.Get(files.Collection); ok {
			im.Collection = cv.Name
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
	folder := d.importFolder()
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
					did, err = folder.RemoveItems(im.name)
				} else {
					err = folder.Remove(im.name)
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
