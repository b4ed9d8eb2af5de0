package db

import (
	"context"
	"log/slog"
	"slices"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/repair"
	"github.com/fddhdb/fddhdb/db/internal/verify"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
)

// VerifyOptions are the options of Verify. The zero value reads and compares all records, and recomputes
// nothing.
type VerifyOptions struct {
	// Deep recomputes codes and projections from labels and vectors, by the revision that
	// each row names, if it is kept, and the statistics of each space from the lessons of
	// rows. A bit may differ if its projection is within 1e-4 of the largest from 0,
	// statistics by 1e-9 of their largest number.
	Deep bool `json:"deep,omitempty"`

	// Progress is called with the number of records read so far, and the stage, in the goroutine of Verify;
	// the total is unknown.
	Progress event.Progress `json:"-"`
}

// inside returns the options for the package that verifies.
func (o *VerifyOptions) inside() verify.Options {
	return verify.Options{Deep: o.Deep, Progress: o.Progress}
}

// Verify checks the checksums of all tables of the store, then reads all records of one state
// of the database, and compares records that have to agree, in both directions. It calls found
// with each Finding, in the goroutine that called Verify; found may be nil. An error of found
// ends the verification, which returns it. Verify repairs nothing.
//
// Readers and writers go on; Verify does not see their writes. A record that cannot be read is a
// finding, and Verify goes on behind it. It reports no consequences of that finding, as far as it
// can tell; a damaged descriptor of a collection hides the whole collection.
//
// Verify takes the time of reading everything twice, and of reading once more what contradicts. Deep
// recomputes codes and projections on all cores, and adds up statistics. Memory, for one collection at a
// time: bitmaps of rows, and 16 bytes a code; with Deep also the kept revisions of a space, and its
// statistics, three times. Each record that cannot be read takes some 100 bytes.
//
// Errors: any error of found and of the context, and ErrClosed.
func (d *DB) Verify(ctx context.Context, opt VerifyOptions,
	found func(report.Finding) error) (*report.Verification, error) {
	if err := d.state.Guard.Enter(); err != nil {
		return nil, err
	}
	defer d.state.Guard.Leave()
	ctx, ended := work.Hearing(ctx, &opt.Progress)
	defer ended()
	op := d.state.Signals.Begin(ctx, event.OpVerify, "")
	defer op.Abandon()
	opt.Progress = op.Telling(opt.Progress)
	v, err := verify.Store(ctx, d.opts.FS, d.dir, d.state.Engine.DB, opt.inside(), orNobody(found))
	e := event.Event{}
	if v != nil {
		e = event.Event{Items: int64(v.Items), Attrs: []slog.Attr{slog.Int("findings", v.Findings)}}
		if v.Findings > 0 {
			e.Level = slog.LevelError
		}
	}
	op.End(err, e)
	return v, err
}

// VerifyFolder is Verify for a database that is not open, even one that is too damaged to open. It opens the
// folder for reading only (see Options.ReadOnly), and loads nothing. A folder without a database gives
// ErrNotDatabase, another format ErrFormat, a database open for writing ErrLocked. If not even the store
// opens, that is the only finding.
func VerifyFolder(ctx context.Context, dir string, options *Options, opt VerifyOptions,
	found func(report.Finding) error) (*report.Verification, error) {
	opts := options.withDefaults()
	opts.disk.Signals.About(dir)
	defer opts.disk.Signals.Wait()
	ctx, ended := work.Hearing(ctx, &opt.Progress)
	defer ended()
	return verify.Folder(ctx, &opts.disk, dir, opt.inside(), orNobody(found))
}

// orNobody returns found, or a function that does nothing if found is nil.
func orNobody(found func(report.Finding) error) func(report.Finding) error {
	if found == nil {
		return func(report.Finding) error { return nil }
	}
	return found
}

// RepairOptions are the options of Repair. The zero value will do.
type RepairOptions struct {
	// Shallow looks for damage as Verify does without Deep, which takes less time on a sound
	// database. Codes, projections and statistics that contradict vectors and labels then stay
	// as they are, unless something else is damaged.
	Shallow bool

	// DryRun makes the new store, reports the losses, and deletes the new store.
	DryRun bool

	// Progress is called with the number of records read so far, and the stage, in the goroutine of Repair;
	// the total is unknown.
	Progress event.Progress
}

// Repair makes a sound database of a damaged one that no process has open. It reads the store as
// far as it can, table by table if the store does not open. It copies primary records into a new
// store, and derives all other records from them. It verifies the new store, deeply, and only then
// puts it in the place of the old one, which stays beside it, unchanged, until you delete it. If a
// deep VerifyFolder would find nothing, Repair does nothing; after a repair it finds nothing (see
// also RepairOptions.Shallow).
//
// Repair calls found, unless it is nil, with every loss and every guess.
//
// Repair copies items with their row numbers, keys, labels, fields, payloads and vectors, the codes
// that items bring, descriptors, models and revisions. It derives sets, indexes, counters, keys from
// rows and rows from keys, and the codes of learned spaces, by the present revision of each space, as
// Reindex does; that takes most of the time. What items have taught a space is not kept: the next
// Update learns from all items again.
//
// A lost record of an item loses the item; an item whose key is lost gets the key "lost+found/ROW". A space
// whose model is lost is dropped, and its items stay. A collection whose descriptor is lost is lost, unless
// the descriptor of a space has a copy of it. If a block of a table is lost, older versions of its records
// take its place. If the store no longer tells which of its tables count, all do. Either may bring back
// replaced or deleted items. Commits that are missing by the file of commits stay missing: Repair reports
// them, even if nothing else is wrong, and acknowledges them, as AcknowledgeLosses does.
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
func Repair(ctx context.Context, dir string, options *Options, opt RepairOptions,
	found func(report.Finding) error) (*report.Repairing, error) {
	opts := options.withDefaults()
	opts.disk.Signals.About(dir)
	defer opts.disk.Signals.Wait()
	ctx, ended := work.Hearing(ctx, &opt.Progress)
	defer ended()
	return repair.Folder(ctx, &opts.disk, dir, repair.Options(opt), orNobody(found))
}

// Recovery returns what Open found, and the losses since then. The slice is the caller's.
func (d *DB) Recovery() report.Recovery {
	r := d.recovery
	if r.Losses = slices.Clone(r.Losses); d.keeper != nil {
		r.Losses = d.keeper.Losses()
	}
	return r
}

// AcknowledgeLosses forgets the losses in Recovery, durably. Call it once you have restored the database, or
// know the losses and have made up for them. It returns the forgotten losses. It gives ErrReadOnly if the
// database is open for reading only. It waits for the disk.
func (d *DB) AcknowledgeLosses(ctx context.Context) ([]report.Loss, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := d.writable(); err != nil {
		return nil, err
	}
	if err := d.state.Guard.Enter(); err != nil {
		return nil, err
	}
	defer d.state.Guard.Leave()
	if d.keeper == nil {
		return nil, nil
	}
	forgotten, err := d.keeper.Forget()
	if err == nil {
		d.lost.Store(0)
	}
	return forgotten, err
}

// UUID returns the identity of the database in 32 hexadecimal digits. It is made with the
// database, at random, and stays with it through backup and restore; copies of the folder
// share it.
func (d *DB) UUID() string { return d.identity.Text() }

// Compact frees the disk space and the memory of deleted and replaced records: it rewrites the store, and
// indexes in memory that have holes. It takes the time of reading and writing the whole store; reads and
// writes go on. Records of open snapshots stay until these are closed; a long reader delays Compact by a
// second at most. It needs some 256 MiB of free disk space, or less with more steps, and returns ErrDiskFull
// if the rewritten tables do not fit.
//
// Events and Activity have its progress: the stage "sweep", of unknown length; "rewrite", in bytes of tables,
// some 256 MiB at a time; and "index", of unknown length.
func (d *DB) Compact(ctx context.Context) error {
	if err := d.writable(); err != nil {
		return err
	}
	if err := d.state.Guard.Enter(); err != nil {
		return err
	}
	defer d.state.Guard.Leave()
	op := d.state.Signals.Begin(ctx, event.OpCompact, "")
	defer op.Abandon()
	err := d.state.Compact(ctx, op.Progress)
	op.End(err, event.Event{})
	return err
}

// WaitForIndex returns when the codes of all collections are in memory and indexed, and projections are in
// memory as far as Options.RerankCacheBytes allows. Searches before that give the same answers, more slowly.
func (d *DB) WaitForIndex(ctx context.Context) error {
	if err := d.state.Guard.Enter(); err != nil {
		return err
	}
	defer d.state.Guard.Leave()
	return d.state.IndexAll(ctx)
}
