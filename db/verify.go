package db

import (
	"context"
	"log/slog"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/verify"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// VerifyOptions say how closely to look. The zero value reads and compares everything
// that is stored and computes nothing anew.
type VerifyOptions struct {
	// Deep makes codes and projections again from labels and features, with the
	// revision that each row names, where that is kept, and the statistics of each space
	// from what rows have taught. A bit may differ where its projection is within 1e-4 of
	// the largest from 0, statistics by 1e-9 of their largest number.
	Deep bool

	// Progress hears how many records have been read so far; the stage names what is being
	// looked at, and the total is not known. It is called by the goroutine that called
	// Verify.
	Progress event.Progress
}

// inside returns the options for the package that verifies.
func (o *VerifyOptions) inside() verify.Options {
	return verify.Options{Deep: o.Deep, Progress: o.Progress}
}

// Verify checks the checksums of all tables of the store, then reads everything that is
// stored, of one state of the database, and compares what stands in more than one place, both
// ways. It calls found with whatever is wrong, as it comes upon it, in the goroutine that
// called Verify, unless found is nil; an error of found ends it and is returned. Nothing is
// repaired.
//
// Readers and writers go on, and what they write meanwhile is not looked at. Damage
// that keeps something from being read is found, and the rest is looked at
// nevertheless. What follows from something that cannot be read is left out as far as
// that can be told; a damaged descriptor of a collection hides what is in it.
//
// The time is that of reading everything twice; with Deep codes and projections are made
// again, on all cores, and statistics are added up. Memory, of one collection at a time:
// 8 bytes a row for keys, the sets of rows of all labels, and those of indexed fields of
// 65,536 rows; for each target of one space 12 bytes a row, 8 + bits/8 bytes a code, and 16
// more while codes are compared with each other; with Deep also the revisions that a space
// keeps, and its statistics, three times. Each record that cannot be read takes some 100
// bytes.
//
// The errors are those of found and of the context, and ErrClosed.
func (d *DB) Verify(ctx context.Context, opt VerifyOptions, found func(Finding) error) (*Verification, error) {
	if err := d.state.Guard.Enter(); err != nil {
		return nil, err
	}
	defer d.state.Guard.Leave()
	ctx, ended := work.Hearing(ctx, &opt.Progress)
	defer ended()
	ctx, op := d.state.Signals.Begin(ctx, event.OpVerify, "")
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

// VerifyFolder is Verify for a database that need not be open, or that cannot be opened
// because of damage; it is opened for reading only (see Options.ReadOnly), and nothing is
// loaded. A folder that holds no database gives ErrNotDatabase, one of another format
// ErrFormat, one that is open for writing ErrLocked. Where not even the store can be opened,
// that is the one finding.
func VerifyFolder(ctx context.Context, dir string, options *Options, opt VerifyOptions, found func(Finding) error) (*Verification, error) {
	opts := options.withDefaults()
	opts.disk.Signals.About(dir)
	defer opts.disk.Signals.Wait()
	ctx, ended := work.Hearing(ctx, &opt.Progress)
	defer ended()
	return verify.Folder(ctx, &opts.disk, dir, opt.inside(), orNobody(found))
}

// orNobody returns found, or where it is nil a function that tells nobody.
func orNobody(found func(Finding) error) func(Finding) error {
	if found == nil {
		return func(Finding) error { return nil }
	}
	return found
}
