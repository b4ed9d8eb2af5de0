package spool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/report"
)

// Imports are the staged imports of an open database: those that go on in this process, and
// those that were interrupted. Safe for concurrent use.
type Imports struct {
	db     *state.Database
	folder Folder

	mu   sync.Mutex        // guards open
	open map[string]*Spool // of folders that are reserved, by name; nil while one is being opened or removed

	changes atomic.Uint64 // see Changes
	known   figures
}

// figures are what Stats says of staged imports, so that it need not look for them each time.
// The zero value knows nothing.
type figures struct {
	mu      sync.Mutex // guards the fields below; held while it looks
	known   bool
	changes uint64 // Imports.Changes before it looked
	at      time.Time
	all     []report.StagedImport
}

// kept is how long the files of an interrupted import are kept.
const kept = 7 * 24 * time.Hour

// figuresEvery is how often Known looks at the files of imports that go on.
const figuresEvery = time.Second

// NewImports returns the imports of a database.
func NewImports(db *state.Database, fsys vfs.FS) *Imports {
	return &Imports{db: db, folder: Folder{FS: fsys, Dir: fsys.PathJoin(db.Engine.Dir, store.ImportsName)}, open: map[string]*Spool{}}
}

// Tidy is Folder.Tidy when the database is opened.
func (o *Imports) Tidy(commits uint64) error { return o.folder.Tidy(commits, o.left) }

// Changes counts what changes the folders of imports, but for what those write that go on.
func (o *Imports) Changes() uint64 { return o.changes.Load() }

// Dropped notes that a collection has gone, and with it the name that an import has.
func (o *Imports) Dropped() { o.changes.Add(1) }

// Open begins an import, or goes on with one that was interrupted, see Folder.Open. Imports that
// nothing has been written of for a week are removed before. One of the same origin that goes on
// already is an ErrBusy. Close or Remove gives the folder back.
func (o *Imports) Open(ctx context.Context, origin Origin, collection string, opt Options) (s *Spool, err error) {
	name := origin.Name()
	if !o.take(name) {
		return nil, fmt.Errorf("%w: an import into collection %q from the same source goes on", fault.ErrBusy, collection)
	}
	defer func() {
		if s == nil { // also after a panic of Options.Skipped
			o.leave(name)
		}
	}()
	if _, err = o.RemoveOld(ctx, time.Now().Add(-kept)); err != nil {
		return nil, err
	}
	if s, err = o.folder.Open(ctx, origin, opt); err != nil {
		return nil, err
	}
	o.mu.Lock()
	o.open[name] = s
	o.mu.Unlock()
	o.changes.Add(1) // figures that were made since take may lack the folder
	return s, nil
}

// Close closes an import, and keeps what it has staged.
func (o *Imports) Close(s *Spool) error {
	defer o.leave(s.name)
	return s.Close()
}

// Remove closes an import, and removes what it has staged.
func (o *Imports) Remove(s *Spool) error {
	defer o.leave(s.name)
	return s.Remove()
}

// Forget is Remove for an import that is committed: where the files cannot be removed that is an
// event, and the next opening tries again.
func (o *Imports) Forget(s *Spool) {
	if err := o.Remove(s); err != nil {
		o.left(s.Dir(), err)
	}
}

// left tells that the folder of an import could not be removed.
func (o *Imports) left(dir string, err error) {
	o.db.Signals.Happened(event.ImportLeft, slog.LevelWarn, event.Event{Err: err, Attrs: []slog.Attr{slog.String("folder", dir)}})
}

// CloseAll closes the imports that are open when the database is closed. No other method is
// called at the same time.
func (o *Imports) CloseAll() error {
	o.mu.Lock()
	open := slices.Collect(maps.Values(o.open))
	o.mu.Unlock()
	var err error
	for _, s := range open {
		err = errors.Join(err, o.Close(s))
	}
	return err
}

// take reserves the folder of an import. It reports false if the folder is reserved already.
func (o *Imports) take(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.open[name]; ok {
		return false
	}
	o.open[name] = nil
	o.changes.Add(1)
	return true
}

// leave gives the folder back.
func (o *Imports) leave(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.open, name)
	o.changes.Add(1)
}

// has reports whether the folder is reserved.
func (o *Imports) has(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.open[name]
	return ok
}

// A staged is one import, and the name of its folder.
type staged struct {
	report.StagedImport
	name string
}

// All returns the imports that have something staged. It looks at each file of each of them.
func (o *Imports) All(ctx context.Context) ([]report.StagedImport, error) {
	var all []report.StagedImport
	err := o.db.Read(func(v *state.View) (err error) {
		all, err = o.all(ctx, v)
		return err
	})
	return all, err
}

func (o *Imports) all(ctx context.Context, v *state.View) (all []report.StagedImport, err error) {
	found, err := o.look(ctx, v)
	for _, im := range found {
		all = append(all, im.StagedImport)
	}
	return all, err
}

// look is All with the names of folders.
func (o *Imports) look(ctx context.Context, v *state.View) ([]staged, error) {
	names, err := o.folder.Names()
	if err != nil {
		return nil, err
	}
	var all []staged
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		files, err := o.folder.Look(name)
		if err != nil {
			return nil, err
		}
		im := report.StagedImport{Source: files.Source, Bytes: files.Bytes, Touched: files.Touched, Open: o.has(name)}
		if !im.Open {
			p, err := o.folder.Promised(name)
			if err != nil && !errors.Is(err, fault.ErrCorrupt) {
				return nil, err
			}
			im.Committed = p.Commit > 0 && p.Commit <= v.Sequence // a promise that is not kept stays while the database is only read
		}
		if cv, ok := v.Collections.Get(files.Collection); ok {
			im.Collection = cv.Name
		}
		all = append(all, staged{im, name})
	}
	return all, nil
}

// RemoveOld removes the imports that nothing has been written of after a time, and those whose
// collection has gone, but for those that go on, and returns them. Of an import that is
// committed it is remembered for a week that it is.
func (o *Imports) RemoveOld(ctx context.Context, before time.Time) (removed []report.StagedImport, err error) {
	err = o.db.Read(func(v *state.View) error {
		all, err := o.look(ctx, v)
		for _, im := range all {
			if err == nil {
				err = ctx.Err()
			}
			if err == nil && (im.Collection == "" || im.Touched.Before(before)) && o.take(im.name) {
				did := true
				if im.Committed && im.Collection != "" && time.Since(im.Touched) < kept {
					did, err = o.folder.RemoveItems(im.name)
				} else {
					err = o.folder.Remove(im.name)
				}
				if did && err == nil {
					removed = append(removed, im.StagedImport)
				}
				o.leave(im.name)
			}
		}
		return fault.Annotate(err, "remove staged imports of %s", o.db.Engine.Dir)
	})
	return removed, err
}

// Known returns what imports have staged: as it is, but for what those that go on have written
// in the last second.
func (o *Imports) Known(v *state.View) ([]report.StagedImport, error) {
	f := &o.known
	f.mu.Lock()
	defer f.mu.Unlock()
	changes := o.Changes()
	fresh := f.known && changes == f.changes &&
		(!slices.ContainsFunc(f.all, func(im report.StagedImport) bool { return im.Open }) || time.Since(f.at) < figuresEvery)
	if !fresh {
		all, err := o.all(context.Background(), v)
		if err != nil {
			return nil, err
		}
		f.known, f.changes, f.at, f.all = true, changes, time.Now(), all
	}
	return slices.Clone(f.all), nil
}
