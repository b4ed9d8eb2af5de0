package db

import (
	"context"
	"log/slog"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/verify"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// VerifyOptions say how closely to look. The zero value reads and compares all records, and
// recomputes nothing.
type VerifyOptions struct {
	// Deep recomputes codes and projections from labels and vectors, by the revision that
	// each row names, if it is kept, and the statistics of each space from the lessons of
	// rows. A bit may differ if its projection is within 1e-4 of the largest from 0,
	// statistics by 1e-9 of their largest number.
	Deep bool

	// Progress hears the number of records read so far, and the stage; the total is unknown.
	// The goroutine that called Verify calls it.
	Progress event.Progress
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
// Verify takes the time of reading everything twice. Deep recomputes codes and projections on all
// cores, and adds up statistics. Memory, for one collection at a time: 8 bytes a row for keys, the
// sets of rows of all labels, and the sets of indexed fields for 65,536 rows; for one space 12
// bytes a row, 8 + bits/8 bytes a code, and 16 more while it compares codes with each other; with
// Deep also the kept revisions of a space, and its statistics, three times. Each record that
// cannot be read takes some 100 bytes.
//
// Errors: those of found and of the context, and ErrClosed.
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

// VerifyFolder is Verify for a database that is not open, or that damage keeps from opening. It opens
// the folder for reading only (see Options.ReadOnly), and loads nothing. A folder without a database
// gives ErrNotDatabase, another format ErrFormat, a database open for writing ErrLocked. If not even
// the store opens, that is the only finding.
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
