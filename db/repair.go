package db

import (
	"context"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/repair"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// RepairOptions are the options of Repair. The zero value will do.
type RepairOptions struct {
	// Shallow looks for damage as Verify does without Deep, which takes less time on a sound
	// database. Codes, projections and statistics that contradict vectors and labels then stay
	// as they are, unless something else is damaged.
	Shallow bool

	// DryRun makes the new store, reports what it cannot save, and deletes the new store.
	DryRun bool

	// Progress hears the number of records read so far, and the stage; the total is unknown. The
	// goroutine that called Repair calls it.
	Progress event.Progress
}

// Repair makes a sound database of a damaged one that no process has open. It reads the store as
// far as it can, table by table if the store does not open. It copies primary records into a new
// store, and derives all other records from them. It verifies the new store, deeply, and only then
// puts it in the place of the old one, which stays beside it, unchanged, until you delete it. If a
// deep VerifyFolder would find nothing, Repair does nothing; after a repair it finds nothing (see
// also RepairOptions.Shallow).
//
// Repair calls found, unless it is nil, with everything that it could not save or had to guess.
//
// Repair copies items with their row numbers, keys, labels, fields, payloads and vectors, the codes
// that items bring, descriptors, models, revisions, and the lessons of items. It derives sets,
// indexes, counters, statistics, keys from rows and rows from keys, and the codes of learned spaces,
// by the present revision of each space, as Reindex does; that takes most of the time.
//
// An item whose record is lost is lost; an item whose key is lost gets the key "lost+found/ROW". A
// space whose model is lost is dropped, and its items stay. A collection whose descriptor is lost is
// lost, unless the descriptor of a space has a copy of it. If a block of a table is lost, older
// versions of its records take its place; if the store does not say any more which of its tables
// count, all do. Either may bring back items that had been replaced or deleted. Missing commits,
// which the file of commits tells of, stay missing: Repair reports them, even if nothing else is
// wrong, and acknowledges them, as AcknowledgeLosses does.
//
// An index-only copy has no vectors to make codes of: a damaged one gives an ErrCorrupt, and stays as
// it is. Make it again from its source.
//
// After an error, the end of the context or of the process, either the old store or the new one is
// in place, and you can call Repair again. It needs disk space for a second store, and the time of
// reading everything three times and making all codes again. It takes the memory of a deep Verify,
// of an open database with all its codes, and of the logs of the store.
//
// A folder without a database gives ErrNotDatabase, another format ErrFormat, an open database
// ErrLocked.
func Repair(ctx context.Context, dir string, options *Options, opt RepairOptions, found func(Finding) error) (*Repairing, error) {
	opts := options.withDefaults()
	opts.disk.Signals.About(dir)
	defer opts.disk.Signals.Wait()
	ctx, ended := work.Hearing(ctx, &opt.Progress)
	defer ended()
	return repair.Folder(ctx, &opts.disk, dir, repair.Options(opt), orNobody(found))
}
