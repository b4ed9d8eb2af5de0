package db

import (
	"context"
	"time"

	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/copies"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// RestoreOptions are those of Restore. The zero value means the newest backup.
type RestoreOptions struct {
	// ID is the id of the backup, or the beginning of one and of no other.
	ID string

	// Before, if not zero and there is no ID, means the newest backup that did not begin
	// after it.
	Before time.Time

	// Database is the UUID of the database, where a repository has backups of several and
	// no ID is given.
	Database string

	// SkipVerify leaves out what VerifyFolder does, which takes as long as reading
	// everything twice. All files are compared with their SHA-256 in any case.
	SkipVerify bool

	// Progress hears backup.StageFetch, in bytes, and StageVerify, in records, of which
	// the total is not known.
	Progress event.Progress
}

// StageVerify is a stage of a restore, for Progress, after backup.StageFetch.
const StageVerify = copies.StageVerify

// Restore makes a database of a backup, in a folder that is empty or missing. It is
// fetched, compared with its SHA-256, synced, and verified as by VerifyFolder before it
// becomes a database: if that fails, or is cancelled, the folder is left as it was; if the
// process is killed, the folder is no database, and Restore can be called again. Without
// an ID the newest backup of the whole database is taken, see backup.Find.
//
// The database has the UUID of the one that was backed up. Of the options only FS, CacheBytes,
// Logger, EventListener and Tracer are used; nil means the defaults. Memory is that of
// VerifyFolder, and some 150 MiB.
//
// A folder that holds anything gives ErrExists, one in another database ErrInvalid, a backup
// that is damaged backup.ErrDamaged, one that is not sound ErrCorrupt, one of another format
// backup.ErrVersion or ErrFormat, and those of backup.Find are returned.
func Restore(ctx context.Context, from backup.Store, dir string, options *Options, opt RestoreOptions) (*backup.Manifest, error) {
	opts := options.withDefaults()
	opts.disk.Signals.About(dir)
	defer opts.disk.Signals.Wait()
	ctx, ended := work.Hearing(ctx, &opt.Progress)
	defer ended()
	ctx, op := opts.disk.Signals.Begin(ctx, event.OpRestore, "")
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
