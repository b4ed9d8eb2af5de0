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

// BackupOptions are the options of Backup. The zero value backs up the whole database.
type BackupOptions struct {
	// Collection is the name of the only collection to back up; "" means all.
	Collection string

	// IndexOnly leaves out vectors and the records of learning: the restored database answers
	// queries, and cannot be written to. See CheckpointOptions.
	IndexOnly bool

	// Progress hears bytes, in the stage "copy" if a collection or an index-only copy is written
	// first, and in the stages of backup.Create.
	Progress event.Progress
}

// Backup stores one state of the database in a repository of backups; an empty store becomes a
// repository. Reads and writes go on, except while Backup links the files of the database into its
// folder checkpoints. Without hard links it copies them: writes wait for that, and it takes as much
// disk space again. Backup does not store pieces again that the repository has, of earlier backups
// of this or of other databases, and does not read files again that this DB has backed up.
//
// The backup has all commits up to Manifest.Sequence, among them those of all writes that had
// returned, and no later one. With Collection or IndexOnly, Backup writes a copy into the folder
// checkpoints first, which shares nothing with backups of the whole database.
//
// A database that is open for reading only is backed up with its log, and nothing in its folder
// changes. With Collection or IndexOnly the copy then goes into os.TempDir.
//
// A backup that fails, is cancelled or killed does not exist for Restore. The next backup uses its
// pieces, or backup.Prune deletes them. Any number may run at a time, with some 150 MiB of memory
// each. Close ends them.
//
// Errors: backup.ErrInvalid for a store in the folder of a database; ErrDiskFull if the repository is
// a folder and the backup would leave less than Options.ReserveBytes free there; ErrFailed,
// ErrNotFound for the collection, backup.ErrNotRepository, backup.ErrVersion, and any error of
// the store or the context.
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
	m, err := d.copier.Backup(ctx, to, copies.CheckpointOptions(opt))
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
