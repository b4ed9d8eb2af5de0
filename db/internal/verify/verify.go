package verify

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
)

// Options say how closely to look.
type Options struct {
	Deep      bool           // make codes, projections and statistics again, and compare
	Progress  event.Progress // hears how many records have been read, of an unknown total; may be nil
	StoreOnly bool           // do not compare marker and side file with the store
}

// Folder verifies the database in a folder that nobody has open for writing. It locks the
// folder and opens the store for reading only. If not even the store can be opened because of
// damage, that is the one finding.
//
// found is called with each finding, in the caller's goroutine; an error of it ends the
// verification and is returned. Other errors are fault.ErrNotDatabase, ErrFormat, ErrLocked,
// failures to read what is no damage, and the end of ctx.
func Folder(ctx context.Context, cfg *store.Config, dir string, opt Options, found func(report.Finding) error) (_ *report.Verification, err error) {
	dir, lock, err := store.LockDatabase(cfg.FS, dir, true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	return locked(ctx, cfg, dir, opt, found)
}

// locked is Folder for a folder that the caller has locked, by its canonical path.
func locked(ctx context.Context, cfg *store.Config, dir string, opt Options, found func(report.Finding) error) (_ *report.Verification, err error) {
	kv, err := store.OpenDatabase(dir, cfg, store.NewLog(cfg.Signals), true)
	if errors.Is(err, fault.ErrCorrupt) {
		return &report.Verification{Findings: 1}, found(report.Finding{Record: "store in " + dir, Problem: "it cannot be opened: " + fault.Problem(errors.Unwrap(err))})
	} else if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, kv.Close()) }()
	return Store(ctx, cfg.FS, dir, kv, opt, found)
}

// A verifier looks at one state of a store. It is for one goroutine.
type verifier struct {
	ctx    context.Context
	snap   *pebble.Snapshot           // what is looked at; belongs to Store
	opt    Options                    // of the call
	report func(report.Finding) error // gets findings; an error ends the verification

	// err is the first error, of report, of ctx or of a helper. It sticks: all loops end when
	// they see it, and nothing is reported any more. What is wrong with what is stored is none.
	err   error
	done  report.Verification // what has been looked at so far
	stage string              // for progress; see at

	unread record.KeyRanges            // keys that could not be read or decoded; see lose and skip
	known  map[uint32]*knownCollection // by number: collections that have been looked at, for strangers
}

// Store verifies the open store kv of the database in dir, in one snapshot of it: what is
// written meanwhile is not looked at. It calls found as Folder does. A panic, which damage
// must not cause, is an error. The Verification is never nil, also beside an error.
func Store(ctx context.Context, fsys vfs.FS, dir string, kv *pebble.DB, opt Options, found func(report.Finding) error) (*report.Verification, error) {
	start := time.Now()
	side, sideErr := store.ReadCommits(fsys, dir) // before the snapshot, which must not be behind it
	snap := kv.NewSnapshot()                      // each commit is one batch, or one set of tables, so that any is a whole state
	defer snap.Close()
	v := &verifier{ctx: ctx, snap: snap, opt: opt, report: found, known: map[uint32]*knownCollection{}}
	err := work.Safely(func() error {
		v.tables(fsys, dir, kv)
		v.database()
		if !opt.StoreOnly {
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

// at sets the stage of progress: what is looked at from now on.
func (v *verifier) at(format string, args ...any) {
	v.stage = fmt.Sprintf(format, args...)
	v.progress()
}

// progress tells how many records have been read.
func (v *verifier) progress() {
	if v.opt.Progress != nil {
		v.opt.Progress(v.stage, int64(v.done.Records), 0)
	}
}

// found reports something that is wrong with the record under key, nil if it has none. It
// does nothing once the verification has ended.
func (v *verifier) found(f report.Finding, key []byte) {
	if v.err != nil {
		return
	}
	f.Key = hex.EncodeToString(key)
	v.done.Findings++
	v.err = v.report(f)
}
