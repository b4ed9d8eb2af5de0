package db

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/copies"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// BackupOptions are the options of Backup. The zero value backs up the whole database.
type BackupOptions struct {
	// Collection is the name of the only collection to back up; "" means all.
	Collection string `json:"collection,omitempty"`

	// IndexOnly leaves out vectors and the records of learning: the restored database answers
	// queries, and cannot be written to. See CheckpointOptions.
	IndexOnly bool `json:"index_only,omitempty"`

	// Progress is called with bytes, in the stage "copy" if a collection or an index-only copy is written
	// first, and in the stages of backup.Create.
	Progress event.Progress `json:"-"`
}

// Backup stores one state of the database in a repository of backups; an empty store becomes a repository.
// Reads and writes go on, except while Backup links the files of the database into its folder checkpoints.
// Without hard links it copies them: writes wait meanwhile, and the copy takes as much disk space again.
// Backup does not store pieces that the repository has from other backups, of this or of other databases. It
// does not read files again that this DB has backed up.
//
// The backup has every commit up to Manifest.Sequence and no later one; writes that had returned are among
// them. With Collection or IndexOnly, Backup first writes a copy into the folder checkpoints. That copy
// shares no pieces with backups of the whole database.
//
// A database that is open for reading only is backed up with its log, and nothing in its folder
// changes. With Collection or IndexOnly the copy then goes into os.TempDir.
//
// Restore does not see a backup that failed, was cancelled or killed. The next backup uses its pieces, or
// backup.Prune deletes them. Any number of backups may run at a time, with some 150 MiB of memory each. Close
// ends them.
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
	op := d.state.Signals.Begin(ctx, event.OpBackup, opt.Collection)
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

// backupEvent returns the event for a backup; m is nil if there is none.
func backupEvent(m *backup.Manifest) event.Event {
	if m == nil {
		return event.Event{}
	}
	return event.Event{Bytes: m.BytesTotal, Attrs: []slog.Attr{slog.String("id", m.ID),
		slog.Int64("bytes_new", m.BytesNew)}}
}

// CheckpointOptions select the contents of a checkpoint. The zero value selects everything.
type CheckpointOptions struct {
	// Collection, if not empty, is the only collection of the checkpoint, with all its
	// spaces. The collection, its rows, codes and spaces keep their numbers.
	Collection string

	// IndexOnly leaves out the vectors of items, statistics, lessons, and spaces that are being built.
	// Searches by vector, code or key, filters, Get and counts work as before. Schema.IndexOnly marks such
	// collections; writes, training and updates of them give ErrReadOnly. A codes-only collection is copied
	// whole.
	IndexOnly bool

	// Progress is called with the bytes written, and an estimate of their total, in the stage "copy" of a
	// partial checkpoint.
	Progress event.Progress
}

// Checkpoint writes the present state of the database into a new folder, as a database of its own that
// another process may open at once. Reads and writes go on meanwhile. The folder appears when it is complete
// and durable. Until then its name ends in ".incomplete". After an error it is removed; if the process ends,
// the next checkpoint to the folder deletes it.
//
// A checkpoint of everything shares the tables of the store by hard links. It takes as long as a
// flush, and no space at first; later, tables that this database replaces stay on disk as long as
// the checkpoint does. Without hard links, or on another file system, Checkpoint copies the tables.
// Writers wait while it links or copies. A checkpoint that leaves something out writes tables of its own. It
// takes the time of reading and writing its contents, on half of GOMAXPROCS with some megabytes of memory
// each, and meanwhile this database keeps replaced tables. No file of it has bytes of the parts left out. A
// checkpoint has a UUID of its own.
//
// Errors: ErrExists for a folder that exists, ErrInvalid for one inside the folder of a database,
// ErrLocked for one that is being made, ErrNotFound for an unknown collection, ErrCorrupt for damage,
// ErrFailed for a failed database, ErrDiskFull if a copy would eat into Options.ReserveBytes of its
// disk, ErrClosed after Close.
func (d *DB) Checkpoint(ctx context.Context, dir string, opt CheckpointOptions) error {
	if err := d.state.Guard.Enter(); err != nil {
		return err
	}
	defer d.state.Guard.Leave()
	ctx, ended := work.Hearing(ctx, &opt.Progress)
	defer ended()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(d.state.Stopping, func() { cancel(fault.ErrClosed) })()
	op := d.state.Signals.Begin(ctx, event.OpCheckpoint, opt.Collection)
	defer op.Abandon()
	opt.Progress = op.Telling(opt.Progress)
	v := d.state.Latest()
	defer v.Release()
	err := d.copier.Checkpoint(ctx, v, dir, copies.CheckpointOptions(opt))
	if errors.Is(context.Cause(ctx), fault.ErrClosed) && errors.Is(err, context.Canceled) {
		err = fault.ErrClosed
	}
	err = fault.Annotate(fault.DiskFullElsewhere(err), "checkpoint %s", dir)
	op.End(err, event.Event{Attrs: []slog.Attr{slog.String("to", dir)}})
	return err
}

// RestoreOptions are the options of Restore. The zero value means the newest backup.
type RestoreOptions struct {
	// ID is the id of the backup, or a beginning that no other id has.
	ID string

	// Before, if not zero and without ID, means the newest backup that began by this time.
	Before time.Time

	// Database is the UUID of the database. A repository with backups of several databases needs it, or an
	// ID.
	Database string

	// SkipVerify leaves out the verification of the restored database, which takes as long as reading it
	// twice. Restore compares all files with their SHA-256 in any case.
	SkipVerify bool

	// Progress is called with backup.StageFetch, in bytes, and StageVerify, in records of an unknown total.
	Progress event.Progress
}

// StageVerify is a stage of a restore, for Progress, after backup.StageFetch.
const StageVerify = copies.StageVerify

// Restore makes a database from a backup, in an empty or new folder. Without an ID it takes the newest backup
// of the whole database, see backup.Find. It fetches the files, compares them with their SHA-256, syncs them,
// and verifies them as VerifyFolder does; only then the folder becomes a database. After an error the folder
// is as before. If the process ends, the folder is no database, and you can call Restore again.
//
// The database keeps the UUID of its source. Restore uses FS, CacheBytes, Logger and EventListener of
// the options; nil means the defaults. It takes the memory of VerifyFolder and some 150 MiB.
//
// Errors: ErrExists for a folder that is not empty, ErrInvalid for one inside another database,
// backup.ErrDamaged for a damaged backup, ErrCorrupt for an unsound one, backup.ErrVersion or ErrFormat for
// another format, and the errors of backup.Find.
func Restore(ctx context.Context, from backup.Store, dir string, options *Options,
	opt RestoreOptions) (*backup.Manifest, error) {
	opts := options.withDefaults()
	opts.disk.Signals.About(dir)
	defer opts.disk.Signals.Wait()
	ctx, ended := work.Hearing(ctx, &opt.Progress)
	defer ended()
	op := opts.disk.Signals.Begin(ctx, event.OpRestore, "")
	defer op.Abandon()
	opt.Progress = op.Telling(opt.Progress)
	m, err := copies.Restore(ctx, from, dir, &opts.disk, copies.RestoreOptions(opt))
	err = fault.Annotate(err, "restore to %s", dir)
	op.End(err, backupEvent(m))
	if err != nil {
		return nil, err
	}
	return m, nil
}

// A Snapshot is the database at one moment: items, index and model. Any number of goroutines may read its
// collections, which never change; a write gives ErrReadOnly. A snapshot keeps replaced data on disk and in
// memory: close it when you no longer need it.
type Snapshot struct {
	pin *state.Pin
	db  *DB
}

// Snapshot returns the database as it is now. It costs next to nothing.
func (d *DB) Snapshot() (*Snapshot, error) {
	v, done, err := d.state.Acquire()
	if err != nil {
		return nil, err
	}
	defer done()
	v.Acquire()
	return &Snapshot{d.state.Pin(v), d}, nil
}

// Collection returns the collection of that name as of the snapshot, or ErrNotFound.
func (s *Snapshot) Collection(name string) (*Collection, error) {
	var c *Collection
	err := s.pin.Read(func(v *state.View) error {
		id, ok := v.IDs.Get(name)
		if !ok {
			return fault.NotFound("collection %q", name)
		}
		c = &Collection{db: s.db, id: id, name: name, pin: s.pin}
		return nil
	})
	return c, err
}

// Close releases the disk space and memory that the snapshot holds. After that its collections return
// ErrClosed, and so does a second Close.
func (s *Snapshot) Close() error {
	if !s.pin.Release() {
		return state.ErrReleased
	}
	return nil
}
