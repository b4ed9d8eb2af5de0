package db

import (
	"context"
	"fmt"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/copies"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// MarkerName is the name of the file that makes a folder a database.
const MarkerName = store.MarkerName

// The format of a database says how everything in its folder is stored. It only ever
// rises, by Upgrade: Open leaves it as it is, so that an older version of fddhdb goes on
// reading a database until somebody decides otherwise. docs/FORMAT.md has every byte.
const (
	// FormatFirst is the first format that is frozen: collections, spaces and their
	// revisions, lessons and departures.
	FormatFirst = record.FormatFirst

	// FormatIdentity gives a database a UUID, and the side file that tells which of its
	// commits are known to be durable, so that Open can say what is missing.
	FormatIdentity = record.FormatIdentity

	// FormatMarks gives a database marks, see Batch.Mark.
	FormatMarks = record.FormatMarks

	// MinFormat is the oldest format that this version opens.
	MinFormat = record.MinFormat

	// NewestFormat is the newest that it opens, and that of databases that it creates.
	NewestFormat = record.NewestFormat
)

// UpgradeOptions are those of Upgrade.
type UpgradeOptions struct {
	// Progress is called before each migration, with what it does (Migration.What) as the
	// stage, and how many of all are done.
	Progress event.Progress
}

// Upgrade brings the database in dir, which nobody may have open, to NewestFormat. Versions of
// fddhdb that do not know that format cannot open it any more, and there is no way back but a
// backup. It returns the formats before and after; after an error or a crash the database is
// of one of them or of one in between, opens as before, and Upgrade goes on from there. Where
// the format is the newest already it does nothing.
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
	ctx, ended := work.Hearing(ctx, &opt.Progress)
	defer ended()
	return copies.Upgrade(ctx, dir, &opts.disk, opt.Progress)
}

// PendingMigrations returns the format of the database in dir, and what Upgrade would do,
// and changes nothing. It takes the time of opening the store. The errors are those of
// Upgrade.
func PendingMigrations(ctx context.Context, dir string, options *Options) (format int, _ []Migration, err error) {
	opts := options.withDefaults()
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	return copies.PendingMigrations(dir, &opts.disk)
}
