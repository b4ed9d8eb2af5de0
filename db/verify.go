package db

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/store"
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

	storeOnly bool // the side file is not looked at
}

// A Finding is something that is wrong with what is stored.
type Finding struct {
	Collection string `json:"collection,omitempty"` // its name, or its number where that has none
	Space      uint32 `json:"space,omitempty"`
	Record     string `json:"record"`        // in words
	Key        string `json:"key,omitempty"` // of the record in the store, in hex; see docs/FORMAT.md
	Problem    string `json:"problem"`
}

// String returns the finding on one line. Names that are stored stand in it as they are.
func (f Finding) String() string {
	s := f.Record + ": " + f.Problem
	if f.Space != 0 {
		s = fmt.Sprintf("space %d: %s", f.Space, s)
	}
	if f.Collection != "" {
		s = fmt.Sprintf("collection %q: %s", f.Collection, s)
	}
	return s
}

// A Verification says what was looked at.
type Verification struct {
	Findings       int     `json:"-"`
	Records        int     `json:"records"`         // keys of the store that were read
	Items          int     `json:"items"`           // of all collections
	CodesChecked   int     `json:"codes_checked"`   // that were made again; with Deep
	CodesUnchecked int     `json:"codes_unchecked"` // whose revision is not kept, or whose item cannot be read or, not being labelled, is in an index-only collection; with Deep
	Seconds        float64 `json:"seconds"`
}

// Verify checks the checksums of all tables of the store, then reads everything that is
// stored, of one state of the database, and compares what stands in more than one place,
// both ways. It calls found with whatever is wrong, as it comes upon it, in the goroutine
// that called Verify, unless found is nil; an error of found ends it and is returned. Nothing is repaired.
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
	d = d.orNone()
	if err := d.guard.enter(); err != nil {
		return nil, err
	}
	defer d.guard.leave()
	ctx, op := d.signals.Begin(ctx, event.OpVerify, "")
	defer op.Abandon()
	opt.Progress = op.Telling(opt.Progress)
	v, err := verify(ctx, d.opts.FS, d.dir, d.engine.DB, opt, orNobody(found))
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
// loaded. A folder that holds no database gives ErrNotDatabase, one of a newer version
// ErrFormat, one that is open for writing ErrLocked. Where not even the store can be opened, that is the one finding.
func VerifyFolder(ctx context.Context, dir string, options *Options, opt VerifyOptions, found func(Finding) error) (*Verification, error) {
	opts := options.withDefaults()
	opts.disk.Signals.About(dir)
	defer opts.disk.Signals.Wait()
	return verifyLocked(ctx, dir, opts, opt, orNobody(found))
}

// verifyLocked is VerifyFolder with settings, whatever these say of reading only.
func verifyLocked(ctx context.Context, dir string, opts settings, opt VerifyOptions, found func(Finding) error) (_ *Verification, err error) {
	dir, lock, err := store.LockDatabase(opts.FS, dir, true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	return verifyStore(ctx, &opts.disk, dir, opt, found)
}

// orNobody returns found, or where it is nil a function that tells nobody.
func orNobody(found func(Finding) error) func(Finding) error {
	if found == nil {
		return func(Finding) error { return nil }
	}
	return found
}

// verifyStore is VerifyFolder for a folder that is locked.
func verifyStore(ctx context.Context, cfg *store.Config, dir string, opt VerifyOptions, found func(Finding) error) (_ *Verification, err error) {
	kv, err := store.OpenDatabase(dir, cfg, store.NewLog(cfg.Signals), true)
	if errors.Is(err, fault.ErrCorrupt) {
		return &Verification{Findings: 1}, found(Finding{Record: "store in " + dir, Problem: "it cannot be opened: " + fault.Problem(errors.Unwrap(err))})
	} else if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, kv.Close()) }()
	return verify(ctx, cfg.FS, dir, kv, opt, found)
}

// A verifier looks at one state of a store. The first error that ends the
// verification sticks; what is wrong with what is stored is none.
type verifier struct {
	ctx    context.Context
	snap   *pebble.Snapshot
	opt    VerifyOptions
	report func(Finding) error
	err    error
	done   Verification
	stage  string

	unread keyRanges // what could not be read
	known  map[uint32]*knownCollection
}

func verify(ctx context.Context, fsys vfs.FS, dir string, kv *pebble.DB, opt VerifyOptions, found func(Finding) error) (*Verification, error) {
	start := time.Now()
	side, sideErr := store.ReadCommits(fsys, dir) // before the snapshot, which must not be behind it
	snap := kv.NewSnapshot()                      // each commit is one batch, or one set of tables, so that any is a whole state
	defer snap.Close()
	v := &verifier{ctx: ctx, snap: snap, opt: opt, report: found, known: map[uint32]*knownCollection{}}
	err := work.Safely(func() error {
		v.tables(fsys, dir, kv)
		v.database()
		if !opt.storeOnly {
			v.beside(fsys, dir, side, sideErr)
		}
		for _, d := range v.catalogue() {
			v.collection(d)
		}
		v.strangers()
		return v.err
	})
	v.done.Seconds = time.Since(start).Seconds()
	return &v.done, err
}

// at says what is being looked at.
func (v *verifier) at(format string, args ...any) {
	v.stage = fmt.Sprintf(format, args...)
	v.progress()
}

func (v *verifier) progress() {
	if v.opt.Progress != nil {
		v.opt.Progress(v.stage, int64(v.done.Records), 0)
	}
}

// found reports something that is wrong.
func (v *verifier) found(f Finding, key []byte) {
	if v.err != nil {
		return
	}
	f.Key = hex.EncodeToString(key)
	v.done.Findings++
	v.err = v.report(f)
}
