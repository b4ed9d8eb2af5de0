package verify

import (
	"context"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
)

// Folder verifies the database in a folder that nobody has open for writing. It locks the
// folder and opens the store for reading only. If not even the store can be opened because of
// damage, that is the one finding.
//
// found is called with each finding, in the caller's goroutine; an error of it ends the
// verification and is returned. Other errors are fault.ErrNotDatabase, ErrFormat, ErrLocked,
// failures to read what is no damage, and the end of ctx.
func Folder(ctx context.Context, cfg *store.Config, dir string, opt Options, found func(report.Finding) error) (_ *report.Verification, err error) {
	// The lock is shared with other readers, and keeps writers out: opening for reading needs a
	// store that nobody changes.
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
		// The order: blocks of tables, as they need no record; the database and the catalogue, which
		// name what there is; what is in each collection; last the keys that nothing has claimed.
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
