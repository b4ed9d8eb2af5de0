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

// RestoreOptions are the options of Restore. The zero value means the newest backup.
type RestoreOptions struct {
	// ID is the id of the backup, or a beginning that no other id has.
	ID string

	// Before, if not zero and without ID, means the newest backup that began by this time.
	Before time.Time

	// Database is the UUID of the database. A repository with backups of several databases needs it, or an ID.
	Database string

	// SkipVerify leaves out the verification of the restored database, which takes as long as reading it twice.
	// Restore compares all files with their SHA-256 in any case.
	SkipVerify bool

	// Progress hears backup.StageFetch, in bytes, and StageVerify, in records of an unknown total.
	Progress event.Progress
}

// StageVerify is a stage of a restore, for Progress, after backup.StageFetch.
const StageVerify = copies.StageVerify

// Restore makes a database of a backup, in a folder that is empty or missing. Without an ID it takes the newest
// backup of the whole database, see backup.Find. It fetches the files, compares them with their SHA-256, syncs
// them, and verifies them as VerifyFolder does; only then the folder becomes a database. After an error the
// folder is as it was. If the process ends, the folder is no database, and you can call Restore again.
//
// The database has the UUID of the one that was backed up. Restore uses FS, CacheBytes, Logger, EventListener
// and Tracer of the options; nil means the defaults. It takes the memory of VerifyFolder and some 150 MiB.
//
// Errors: ErrExists for a folder that is not empty, ErrInvalid for one inside another database,
// backup.ErrDamaged for a damaged backup, ErrCorrupt for an unsound one, backup.ErrVersion or ErrFormat for
// another format, and those of backup.Find.
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
