package db

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// A Migration brings a database from one format to the next. Each is atomic: a database
// is of one format or of the next, whenever it is interrupted, and Upgrade goes on from
// there. None goes back.
type Migration struct {
	To   int    `json:"to"`   // the format that it leads to
	What string `json:"what"` // it does, in words
}

// migration is what a Migration does: whatever it needs to do before, any number of times,
// and then, with the new format in one batch, what makes the database one of it.
type migration struct {
	Migration
	run func(ctx context.Context, u *upgrading) error
}

// migrations lead from MinFormat to NewestFormat, one step each.
var migrations = []migration{
	{Migration{record.FormatIdentity, "give the database a UUID and the side file " + store.CommitsName}, addIdentity},
}

// upgrading is a database while it is being upgraded.
type upgrading struct {
	fs    vfs.FS
	dir   string
	store *pebble.DB
	record.Identity
}

// addIdentity writes the side file first: as long as the store does not name its UUID it is
// of no database, and the next attempt takes the UUID from it.
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

// UpgradeOptions are those of Upgrade.
type UpgradeOptions struct {
	// Progress is called before each migration, with what it does (Migration.What) as the
	// stage, and how many of all are done.
	Progress event.Progress
}

// Upgrade brings the database in dir, which nobody may have open, to NewestFormat. Versions
// of fddhdb that do not know that format cannot open it any more, and there is no way back
// but a backup. It returns the formats before and after; after an error or a crash the database is of one of them or of
// one in between, opens as before, and Upgrade goes on from there. Where the format is
// the newest already it does nothing.
//
// Options are those of Open; with ReadOnly it gives ErrReadOnly. The other errors are those
// of Open, where there is no database ErrNotDatabase.
func Upgrade(ctx context.Context, dir string, options *Options, opt UpgradeOptions) (from, to int, err error) {
	opts := options.withDefaults()
	if opts.ReadOnly {
		return 0, 0, fmt.Errorf("%w: %s cannot be upgraded so", fault.ErrReadOnly, dir)
	}
	opts.disk.Signals.About(dir)
	defer opts.disk.Signals.Wait()
	err = atDatabase(dir, &opts, func(dir string, kv *pebble.DB, log *store.Log) error {
		u := &upgrading{fs: opts.FS, dir: dir, store: kv}
		if u.Identity, err = record.ReadIdentity(kv, dir); err != nil {
			return err
		}
		from, to = u.Format, u.Format
		all := pending(from)
		for i, m := range all {
			if err := ctx.Err(); err != nil {
				return err
			}
			if opt.Progress != nil {
				opt.Progress(m.What, int64(i), int64(len(all)))
			}
			err := m.run(ctx, u)
			if failed := log.Err(); failed != nil {
				err = failed
			}
			if err != nil {
				return fault.Annotate(err, "upgrade %s to format %d", dir, m.To)
			}
			to = u.Format
		}
		if to > from { // damage to the end of the log is not to undo it unnoticed
			if err := fault.Annotate(store.FlushAll(ctx, kv, log), "upgrade %s", dir); err != nil {
				return err
			}
		}
		format, err := store.ReadMarker(opts.FS, dir)
		if err == nil && format != u.Format {
			err = fault.Annotate(store.WriteMarker(opts.FS, dir, u.Format), "upgrade %s", dir)
		}
		return err
	})
	return from, to, err
}

// PendingMigrations returns the format of the database in dir, and what Upgrade would do,
// and changes nothing. It takes the time of opening the store. The errors are those of
// Upgrade.
func PendingMigrations(ctx context.Context, dir string, options *Options) (format int, _ []Migration, err error) {
	opts := options.withDefaults()
	opts.ReadOnly = true
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	var all []Migration
	err = atDatabase(dir, &opts, func(dir string, kv *pebble.DB, _ *store.Log) error {
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

// pending returns the migrations of a database of a format.
func pending(format int) []migration { return migrations[format-record.MinFormat:] }

// atDatabase runs f with the store of the database in dir, which nobody may have open.
func atDatabase(dir string, opts *settings, f func(dir string, kv *pebble.DB, log *store.Log) error) (err error) {
	dir, lock, err := store.LockDatabase(opts.FS, dir, opts.ReadOnly)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	log := store.NewLog(opts.disk.Signals)
	defer func() { err = fault.DiskFullToOpen(dir, err, log.Failed.Load()) }()
	kv, err := store.OpenDatabase(dir, &opts.disk, log, opts.ReadOnly)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fault.Annotate(kv.Close(), "close %s", dir)) }()
	return f(dir, kv, log)
}
