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
	Deep      bool           // codes, projections and statistics are made again
	Progress  event.Progress // hears how many records have been read; nil: nobody does
	StoreOnly bool           // the side file is not looked at
}

// Folder verifies the database in a folder that nobody has open for writing, which it
// opens for reading only. Where not even the store can be opened, that is the one finding.
func Folder(ctx context.Context, cfg *store.Config, dir string, opt Options, found func(report.Finding) error) (_ *report.Verification, err error) {
	dir, lock, err := store.LockDatabase(cfg.FS, dir, true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	return Locked(ctx, cfg, dir, opt, found)
}

// Locked is Folder for a folder that is locked.
func Locked(ctx context.Context, cfg *store.Config, dir string, opt Options, found func(report.Finding) error) (_ *report.Verification, err error) {
	kv, err := store.OpenDatabase(dir, cfg, store.NewLog(cfg.Signals), true)
	if errors.Is(err, fault.ErrCorrupt) {
		return &report.Verification{Findings: 1}, found(report.Finding{Record: "store in " + dir, Problem: "it cannot be opened: " + fault.Problem(errors.Unwrap(err))})
	} else if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, kv.Close()) }()
	return Store(ctx, cfg.FS, dir, kv, opt, found)
}

// A verifier looks at one state of a store. The first error that ends the
// verification sticks; what is wrong with what is stored is none.
type verifier struct {
	ctx    context.Context
	snap   *pebble.Snapshot
	opt    Options
	report func(report.Finding) error
	err    error
	done   report.Verification
	stage  string

	unread record.KeyRanges // what could not be read
	known  map[uint32]*knownCollection
}

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
func (v *verifier) found(f report.Finding, key []byte) {
	if v.err != nil {
		return
	}
	f.Key = hex.EncodeToString(key)
	v.done.Findings++
	v.err = v.report(f)
}
