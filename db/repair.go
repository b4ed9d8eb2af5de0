package db

import (
	"context"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/repair"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// RepairOptions say how a database is to be repaired. The zero value repairs what is
// damaged.
type RepairOptions struct {
	// Shallow looks for damage as Verify does without Deep, which takes less time where
	// nothing is wrong: codes, projections and statistics that do not follow from what they
	// are made of stay as they are if nothing else is damaged.
	Shallow bool

	// DryRun makes everything that a repair makes, and takes it away again, so that what
	// cannot be saved is known before.
	DryRun bool

	// Progress hears how many records have been read so far; the stage names what is being
	// done, and the total is not known. It is called by the goroutine that called Repair.
	Progress event.Progress
}

// Repair makes a sound database of a damaged one that nobody has open. It reads what can
// be read of the store, table by table where that does not open any more. It copies the
// records that nothing else tells into a new store, and makes there what follows from
// them. It verifies the new store, deeply, and only then puts it in the place of the old
// one, which stays beside it as it is, for the caller to delete. Where a deep VerifyFolder
// would find nothing, nothing is done, and after a repair it finds nothing; see also
// RepairOptions.Shallow.
//
// It calls found, unless that is nil, with what could not be saved, and with what had to
// be guessed.
//
// Copied are items with their row numbers, keys, labels, fields, payloads and features,
// the codes that items bring, descriptors, models, revisions, and what items have taught.
// Made again are sets, indexes, counters, statistics, keys from rows and rows from keys,
// and the codes of learned spaces, all of them by the present revision of each space, as
// Reindex makes them: that is what takes most of the time.
//
// An item whose record is lost is lost; one whose key is lost gets another, of
// the form "lost+found/ROW". A space whose model is lost is dropped, and its items stay.
// A collection whose descriptor is lost is lost, unless the descriptor of a space has a
// copy of it. Where a block of a table is lost, what was written before under the same
// keys, and is kept still, stands in for it; and where the store does not say any more
// which of its tables count, all do: either may bring back what had been replaced or
// deleted. Commits that are missing, by what is known to have been durable, stay missing:
// a repair names them, also where nothing else is wrong, and acknowledges them with that,
// as AcknowledgeLosses does.
//
// An index-only copy has nothing of which its codes could be made: a damaged one gives an
// error that is an ErrCorrupt, and stays as it is. Make it again from its source.
//
// An error, a context that ends, and a process that is killed leave either the old store
// or the new one in place, and Repair can be called again. It needs disk space for a
// second store, and time for reading everything three times and making all codes
// again. Memory is that of a deep Verify, of an open database with all its codes, and of
// what the logs of the store hold.
//
// A folder that holds no database gives ErrNotDatabase, one of another format
// ErrFormat, one that is open ErrLocked.
func Repair(ctx context.Context, dir string, options *Options, opt RepairOptions, found func(Finding) error) (*Repairing, error) {
	opts := options.withDefaults()
	opts.disk.Signals.About(dir)
	defer opts.disk.Signals.Wait()
	ctx, ended := work.Hearing(ctx, &opt.Progress)
	defer ended()
	return repair.Folder(ctx, &opts.disk, dir, repair.Options(opt), orNobody(found))
}
