package copies

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/report"
)

// A migration is a report.Migration with the code that does it. run first does what it can
// repeat after a crash. Then it changes the store and the format that the store says in one
// durable batch, and sets the identity of u to what it is then. So the store is always of one
// format or of the next.
type migration struct {
	report.Migration
	run func(ctx context.Context, u *upgrading) error
}

// migrations lead from record.MinFormat to record.NewestFormat, one step each, in order.
var migrations = []migration{
	{report.Migration{To: record.FormatIdentity, What: "give the database a UUID and the side file " + store.CommitsName}, addIdentity},
	{report.Migration{To: record.FormatMarks, What: "let programs keep marks"}, allowMarks},
}

// upgrading is a database while it is being upgraded. Nobody else has it open.
type upgrading struct {
	fs              vfs.FS
	dir             string     // canonical path of the folder
	store           *pebble.DB // open for writing; belongs to atDatabase
	record.Identity            // as it is in the store now; migrations change it
}

// addIdentity gives the database a UUID. It writes the side file before the store has the
// UUID. If it is interrupted in between, the next attempt takes the UUID from the side file.
func addIdentity(_ context.Context, u *upgrading) error {
	next := u.Identity
	next.Format = record.FormatIdentity
	side, err := store.ReadCommits(u.fs, u.dir)
	if next.UUID = side.UUID; err != nil {
		next.UUID = record.NewUUID()
	}
	if err := store.MakeCommits(u.fs, u.dir, store.Commits{UUID: next.UUID, Sequence: next.Sequence}); err != nil {
		return err
	}
	if err := next.Store(u.store); err != nil {
		return err
	}
	u.Identity = next
	return nil
}

// allowMarks changes nothing but the format, which keeps programs away that take marks for damage.
func allowMarks(_ context.Context, u *upgrading) error {
	next := u.Identity
	next.Format = record.FormatMarks
	if err := next.Store(u.store); err != nil {
		return err
	}
	u.Identity = next
	return nil
}

// Upgrade brings the database in dir, which nobody may have open, to the newest format, and
// locks it meanwhile. It returns the formats before and after; after an error, those of the
// steps that are complete. progress, unless nil, is called before each step, with what it
// does as the stage, and how many of the steps are done.
//
// The format in the store counts. The marker repeats it, to keep older versions from opening
// the store, and is written last. If a crash leaves it behind, opening the database, or
// Upgrade, writes it again.
func Upgrade(ctx context.Context, dir string, cfg *store.Config, progress event.Progress) (from, to int, err error) {
	err = atDatabase(dir, cfg, false, func(dir string, kv *pebble.DB, log *store.Log) error {
		u := &upgrading{fs: cfg.FS, dir: dir, store: kv}
		if u.Identity, err = record.ReadIdentity(kv, dir); err != nil {
			return err
		}
		from, to = u.Format, u.Format
		all := pending(from)
		for i, m := range all {
			if err := ctx.Err(); err != nil {
				return err
			}
			if progress != nil {
				progress(m.What, int64(i), int64(len(all)))
			}
			err := m.run(ctx, u)
			// A failed write of the log counts, even if the call has returned no error.
			if failed := log.Err(); failed != nil {
				err = failed
			}
			if err != nil {
				return fault.Annotate(err, "upgrade %s to format %d", dir, m.To)
			}
			to = u.Format
		}
		if to > from {
			// In a table the new format cannot be lost unnoticed, as the end of a log can, where
			// damage looks like a crash.
			if err := fault.Annotate(store.FlushAll(ctx, kv, log), "upgrade %s", dir); err != nil {
				return err
			}
		}
		format, err := store.ReadMarker(cfg.FS, dir)
		if err == nil && format != u.Format {
			err = fault.Annotate(store.WriteMarker(cfg.FS, dir, u.Format), "upgrade %s", dir)
		}
		return err
	})
	return from, to, err
}

// PendingMigrations returns the format of the database in dir, and the steps that Upgrade
// would take, in order. It opens the store for reading and changes nothing.
func PendingMigrations(dir string, cfg *store.Config) (format int, _ []report.Migration, err error) {
	var all []report.Migration
	err = atDatabase(dir, cfg, true, func(dir string, kv *pebble.DB, _ *store.Log) error {
		i, err := record.ReadIdentity(kv, dir)
		if err != nil {
			return err
		}
		format = i.Format
		for _, m := range pending(format) {
			all = append(all, m.Migration)
		}
		return nil
	})
	return format, all, err
}

// pending returns the migrations that a database of a format has before it. The format is
// one that this version reads.
func pending(format int) []migration { return migrations[format-record.MinFormat:] }

// atDatabase runs f with the store of the database in dir, which nobody may have open, and
// with the canonical path of dir. It locks the folder and opens the store, and undoes both
// afterwards. A full disk is a fault.DiskFullError.
func atDatabase(dir string, cfg *store.Config, readOnly bool, f func(dir string, kv *pebble.DB, log *store.Log) error) (err error) {
	dir, lock, err := store.LockDatabase(cfg.FS, dir, readOnly)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	log := store.NewLog(cfg.Signals)
	defer func() { err = fault.DiskFullToOpen(dir, err, log.Failed.Load()) }()
	kv, err := store.OpenDatabase(dir, cfg, log, readOnly)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fault.Annotate(kv.Close(), "close %s", dir)) }()
	return f(dir, kv, log)
}
