package db

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// BackupOptions are those of Backup. The zero value backs up the whole database.
type BackupOptions struct {
	// Collection is the name of the only collection to back up; "" means all.
	Collection string

	// IndexOnly leaves out vectors, and what only learning needs: what is restored answers
	// queries, and cannot be written to. See CheckpointOptions.
	IndexOnly bool

	// Compress stores with zstd what that makes smaller. The tables of a database are
	// compressed already, vectors hardly become smaller.
	Compress bool

	// Progress hears the stages "copy", where a collection or an index-only copy is written
	// first, and those of backup.Create, in bytes.
	Progress event.Progress
}

// Backup stores the database, as it is at one moment, in a repository of backups, which
// an empty store becomes. Reads and writes go on, but for the moment in which the files
// of the database are linked into the folder checkpoints of the database; where the file
// system has no hard links they are copied, writes wait for that, and it takes as much
// disk space again. What the repository has already, of earlier backups of this or of
// other databases, is not stored again; and not read again either, if this DB has made
// the backup that stored it.
//
// All commits up to Manifest.Sequence are in the backup, those of all writes that had
// returned, and none after it. With Collection or IndexOnly what is wanted is written
// anew, into the folder checkpoints, and has nothing in common with backups of the whole
// database.
//
// A backup that fails, is cancelled or killed is none: Restore does not know of it. What it
// has stored, the next one uses, or backup.Prune deletes. Any number may run at a time.
// Memory is some 150 MiB. Close ends it. A database of format 0 has no UUID and has to be
// upgraded before (ErrFormat). A store in the folder of a database gives backup.ErrInvalid.
// The other errors are those of the store and of the context, ErrFailed, ErrReadOnly,
// ErrNotFound for the collection, backup.ErrNotRepository and backup.ErrVersion.
func (d *DB) Backup(ctx context.Context, to backup.Store, opt BackupOptions) (*backup.Manifest, error) {
	d = d.orNone()
	if err := d.state.Guard.Enter(); err != nil {
		return nil, err
	}
	defer d.state.Guard.Leave()
	if err := d.writable(); err != nil {
		return nil, err
	}
	if to == nil {
		return nil, fault.Invalid("there is no store to back up to")
	}
	if d.Format() < record.FormatIdentity {
		return nil, fmt.Errorf("%w: backups are told apart by the UUID of their database, which %s has not, being of format %d: upgrade it",
			fault.ErrFormat, d.dir, d.Format())
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(d.state.Stopping, func() { cancel(fault.ErrClosed) })()
	ctx, op := d.state.Signals.Begin(ctx, event.OpBackup, opt.Collection)
	defer op.Abandon()
	opt.Progress = op.Telling(opt.Progress)
	m, err := d.backup(ctx, to, opt)
	if errors.Is(context.Cause(ctx), fault.ErrClosed) && errors.Is(err, context.Canceled) {
		err = fault.ErrClosed
	}
	err = fault.Annotate(fault.DiskFullElsewhere(err), "backup of %s", d.dir)
	op.End(err, backupEvent(m))
	if err != nil {
		return nil, err
	}
	d.counters.lastBackup.Store(&LastBackup{m.ID, m.Time, m.Sequence, m.BytesTotal, m.BytesNew})
	return m, nil
}

// backupEvent returns what events say of a backup; nil: there is none.
func backupEvent(m *backup.Manifest) event.Event {
	if m == nil {
		return event.Event{}
	}
	return event.Event{Bytes: m.BytesTotal, Attrs: []slog.Attr{slog.String("id", m.ID), slog.Int64("bytes_new", m.BytesNew)}}
}

func (d *DB) backup(ctx context.Context, to backup.Store, opt BackupOptions) (m *backup.Manifest, err error) {
	fsys := d.opts.FS
	dir := fsys.PathJoin(d.dir, store.CheckpointsName, fmt.Sprintf("%016x", rand.Uint64()))
	defer func() {
		// If it cannot be removed now, Open does.
		_ = fsys.RemoveAll(dir)
	}()
	if err := fsys.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	about := backup.Manifest{
		Database: d.UUID(), Format: d.Format(), Collection: opt.Collection, IndexOnly: opt.IndexOnly,
	}
	v := d.state.Latest()
	defer v.Release()
	x, err := d.newExtract(v, CheckpointOptions{Collection: opt.Collection, IndexOnly: opt.IndexOnly, Progress: opt.Progress})
	if err != nil {
		return nil, err
	}
	whole := x == nil
	if whole {
		var i record.Identity
		if i, err = d.checkpointStore(ctx, fsys.PathJoin(dir, store.StoreName)); err == nil {
			err = vfs.Copy(fsys, fsys.PathJoin(d.dir, store.MarkerName), fsys.PathJoin(dir, store.MarkerName))
		}
		about.Sequence = i.Sequence
	} else {
		about.Sequence = v.Sequence
		err = work.Safely(func() error { return x.writeFolder(ctx, dir) }) // a panic of who writes tables is passed on
	}
	if err != nil {
		return nil, err
	}
	files, err := backupSources(fsys, dir)
	if err != nil {
		return nil, err
	}
	if whole {
		d.tables.know(files)
	}
	m, err = backup.Create(ctx, to, about, files, backup.CreateOptions{Compress: opt.Compress, Progress: opt.Progress})
	if err == nil && whole {
		d.tables.remember(m)
	}
	return m, err
}

// backupSources returns the files of a folder, and of those in it, that make a database: without
// locks, and without the side file, which tells of what became of one folder.
func backupSources(fsys vfs.FS, dir string) ([]backup.Source, error) {
	var all []backup.Source
	var walk func(path string) error
	walk = func(path string) error {
		folder := dir
		if path != "" {
			folder = fsys.PathJoin(dir, fsys.PathJoin(strings.Split(path, "/")...))
		}
		names, err := fsys.List(folder)
		if err != nil {
			return err
		}
		slices.Sort(names)
		for _, name := range names {
			full, rel := fsys.PathJoin(folder, name), strings.TrimPrefix(path+"/"+name, "/")
			info, err := fsys.Stat(full)
			switch {
			case err != nil:
				return err
			case info.IsDir():
				if err := walk(rel); err != nil {
					return err
				}
			case name == store.LockName, name == store.CommitsName:
			default:
				all = append(all, backup.Source{Path: rel, Size: info.Size(), Open: func() (backup.SourceFile, error) {
					return fsys.Open(full)
				}})
			}
		}
		return nil
	}
	return all, walk("")
}

// backedUp remembers which pieces the tables of the database are stored as, so that
// the next backup need not read them. A table never changes, and while a database is open
// a number is given to one table only. Not so across openings: another folder may
// have been put in the place of this one meanwhile. So nothing of this is stored.
type backedUp struct {
	mu    sync.Mutex
	files map[string]backup.File // by path: of the last backup of the whole database
}

// know tells files what they were stored as.
func (b *backedUp) know(files []backup.Source) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range files {
		if f, ok := b.files[files[i].Path]; ok && f.Size == files[i].Size {
			files[i].Pieces = f.Pieces
		}
	}
}

func (b *backedUp) remember(m *backup.Manifest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.files = map[string]backup.File{}
	for _, f := range m.Files {
		if strings.HasSuffix(f.Path, ".sst") || strings.HasSuffix(f.Path, ".blob") {
			b.files[f.Path] = f
		}
	}
}
