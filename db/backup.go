package db

import (
	"context"
	"errors"
	"log/slog"

	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/copies"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// BackupOptions are those of Backup. The zero value backs up the whole database.
type BackupOptions struct {
	// Collection is the name of the only collection to back up; "" means all.
	Collection string

	// IndexOnly leaves out vectors, and what only learning needs: what is restored answers
	// queries, and cannot be written to. See CheckpointOptions.
	IndexOnly bool

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
// A database that is open for reading only is backed up as it stands, without a change in its
// folder, and its log is stored as it is. With Collection or IndexOnly, what is wanted is then
// written to the folder of the operating system for temporary files (os.TempDir).
//
// A backup that fails, is cancelled or killed is none: Restore does not know of it. What it
// has stored, the next one uses, or backup.Prune deletes. Any number may run at a time.
// Memory is some 150 MiB. Close ends it. A store in the folder of a database gives backup.ErrInvalid.
// ErrDiskFull says that the repository is a folder, and that the backup would leave less than
// Options.ReserveBytes free there. Other errors: ErrFailed, ErrNotFound for the collection,
// backup.ErrNotRepository, backup.ErrVersion, and any error that the store or the context
// returns.
func (d *DB) Backup(ctx context.Context, to backup.Store, opt BackupOptions) (*backup.Manifest, error) {
	if err := d.state.Guard.Enter(); err != nil {
		return nil, err
	}
	defer d.state.Guard.Leave()
	if to == nil {
		return nil, fault.Invalid("there is no store to back up to")
	}
	ctx, ended := work.Hearing(ctx, &opt.Progress)
	defer ended()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(d.state.Stopping, func() { cancel(fault.ErrClosed) })()
	ctx, op := d.state.Signals.Begin(ctx, event.OpBackup, opt.Collection)
	defer op.Abandon()
	opt.Progress = op.Telling(opt.Progress)
	m, err := d.copier.Backup(ctx, to, copies.BackupOptions(opt))
	if errors.Is(context.Cause(ctx), fault.ErrClosed) && errors.Is(err, context.Canceled) {
		err = fault.ErrClosed
	}
	err = fault.Annotate(fault.DiskFullElsewhere(err), "backup of %s", d.dir)
	op.End(err, backupEvent(m))
	if err != nil {
		return nil, err
	}
	return m, nil
}

// backupEvent returns what events say of a backup; nil: there is none.
func backupEvent(m *backup.Manifest) event.Event {
	if m == nil {
		return event.Event{}
	}
	return event.Event{Bytes: m.BytesTotal, Attrs: []slog.Attr{slog.String("id", m.ID), slog.Int64("bytes_new", m.BytesNew)}}
}
