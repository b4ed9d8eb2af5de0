package repair

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/verify"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
)

// Options are db.RepairOptions.
type Options struct {
	Shallow  bool
	DryRun   bool
	Progress event.Progress
}

// RepairFolder makes a sound database of a damaged one that nobody has open; see db.Repair.
// It calls found with what could not be saved.
func Folder(ctx context.Context, disk *store.Config, dir string, opt Options, found func(report.Finding) error) (_ *report.Repairing, err error) {
	start := time.Now()
	marked, marker, err := repairable(disk.FS, dir)
	if err != nil {
		return nil, err
	}
	if dir, err = store.Canonical(disk.FS, dir); err != nil {
		return nil, err
	}
	lock, err := store.LockFolder(disk.FS, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if !opt.DryRun {
		if err := store.FinishRepair(disk.FS, dir); err != nil {
			return nil, fault.Annotate(err, "repair %s", dir)
		}
	}
	r := &repairer{ctx: ctx, disk: disk, dir: dir, opt: opt, tell: found, marked: marked, marker: marker}
	err = work.Safely(r.run)
	r.done.Seconds = time.Since(start).Seconds()
	return &r.done, fault.Annotate(err, "repair %s", dir)
}

// repairable looks for a store in a folder, and whether the marker is that of a database
// that this version reads, and of which format.
func repairable(fsys vfs.FS, dir string) (marked bool, format int, err error) {
	names, err := fsys.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, 0, fmt.Errorf("fddhdb: repair %s: %w", dir, err)
	}
	if !slices.Contains(names, store.StoreName) && !slices.Contains(names, store.RepairedName) {
		return false, 0, fmt.Errorf("%w: %s: there is none", fault.ErrNotDatabase, dir)
	}
	if !slices.Contains(names, store.MarkerName) {
		return false, 0, nil
	}
	format, err = store.ReadMarker(fsys, dir)
	if errors.Is(err, fault.ErrNotDatabase) {
		return false, 0, nil // its store will tell
	}
	return err == nil, format, err
}

// A repairer is what is known while a database is repaired.
type repairer struct {
	ctx    context.Context
	disk   *store.Config
	dir    string
	opt    Options
	tell   func(report.Finding) error
	err    error // of tell
	done   report.Repairing
	marked bool // the marker of the database is sound
	marker int  // the format that it names then

	identity record.Identity // of what has been made
}

// found reports something that could not be saved.
func (r *repairer) found(f report.Finding) {
	if r.err != nil {
		return
	}
	r.done.Findings++
	r.err = r.tell(f)
}

func (r *repairer) at(records int, format string, args ...any) {
	if r.opt.Progress != nil {
		r.opt.Progress(fmt.Sprintf(format, args...), int64(records), 0)
	}
}

func (r *repairer) run() error {
	items, err := r.look()
	if cerr := r.ctx.Err(); cerr != nil {
		return cerr
	}
	if err != nil && !isDamage(err) {
		return err
	}
	r.done.Damaged = err != nil || !r.marked
	if err == nil {
		r.done.Items = items
		return r.beside()
	}
	if err := r.room(); err != nil {
		return err
	}
	if err := r.clear(); err != nil {
		return err
	}
	err = r.remake()
	if err == nil && !r.opt.DryRun {
		err = r.replace()
	}
	// What is made is of use only when it is complete.
	return errors.Join(err, r.disk.FS.RemoveAll(r.path(store.RepairingName)))
}

// errUnsound ends the verification of the damaged store: that there is something is enough,
// as to find everything may take long.
var errUnsound = errors.New("not sound")

// look verifies the store, and returns how many items it has. Anything that is wrong with
// it is an error.
func (r *repairer) look() (items int, err error) {
	kv, err := store.OpenDatabase(r.dir, r.disk, store.NewLog(r.disk.Signals), true)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, kv.Close()) }()
	opt := verify.Options{Deep: !r.opt.Shallow, Progress: r.opt.Progress, StoreOnly: true}
	v, err := verify.Store(r.ctx, r.disk.FS, r.dir, kv, opt, func(report.Finding) error { return errUnsound })
	if err != nil {
		return 0, err
	}
	return v.Items, nil
}

// isDamage reports whether an error can be about what is stored: a newer format, a file that
// may not be read and a machine that has run out of something are not.
func isDamage(err error) bool {
	for _, other := range []error{fault.ErrFormat, fs.ErrPermission, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, other) {
			return false
		}
	}
	return !fault.IsDiskFull(err)
}

func (r *repairer) path(name string) string { return r.disk.FS.PathJoin(r.dir, name) }

// StoreName returns the name of the store that is to be repaired: in a trial, which
// changes nothing, it may not have got its own yet.
func (r *repairer) storeName() string {
	if _, err := r.disk.FS.Stat(r.path(store.StoreName)); r.opt.DryRun && errors.Is(err, fs.ErrNotExist) {
		return store.RepairedName
	}
	return store.StoreName
}

// room refuses a repair for which there is not enough disk space.
func (r *repairer) room() error {
	usage, err := r.disk.FS.GetDiskUsage(r.dir)
	if err != nil {
		return nil // who cannot tell has to try
	}
	store := r.path(r.storeName())
	names, err := r.disk.FS.List(store)
	if err != nil {
		return err
	}
	size := uint64(64 << 20)
	for _, name := range names {
		info, err := r.disk.FS.Stat(r.disk.FS.PathJoin(store, name))
		if err == nil && !strings.HasSuffix(name, ".log") {
			size += uint64(info.Size())
		}
	}
	if usage.AvailBytes < size {
		return fmt.Errorf("%w: %s: a second store of some %d bytes is made, and %d are free: make room, or repair a copy elsewhere", fault.ErrDiskFull, r.dir, size, usage.AvailBytes)
	}
	return nil
}

// clear removes what a repair that was interrupted has left.
func (r *repairer) clear() error {
	for _, name := range []string{store.RepairingName, store.RepairedName} {
		if name == r.storeName() {
			continue
		}
		if err := r.disk.FS.RemoveAll(r.path(name)); err != nil {
			return err
		}
	}
	return nil
}

// remake makes the new store, in a folder of its own that is a database.
func (r *repairer) remake() error {
	damaged, why, err := openDamaged(r.ctx, r.disk, r.path(r.storeName()))
	if err != nil {
		return err
	}
	s := &salvage{ctx: r.ctx, store: damaged, found: r.found}
	if why != nil {
		s.found(report.Finding{Record: "store", Problem: "it does not say which of its tables count, so all do, and what had been replaced or deleted may come back: " + fault.Problem(why)})
	}
	m := &mender{repairer: r, format: record.MinFormat - 1, collections: map[uint32]*seenCollection{}}
	err = m.open()
	if err == nil {
		err = m.salvage(s)
	}
	if err == nil {
		err = m.mend()
	}
	if cerr := m.close(); err == nil { // else it is what that has led to
		err = cerr
	}
	if err == nil {
		err = m.furnish()
	}
	if err == nil {
		err = r.build(m.plans)
	}
	if err == nil {
		err = r.check()
	}
	return err
}

// check verifies what has been made, deeply.
func (r *repairer) check() error {
	opt := verify.Options{Deep: true, Progress: r.opt.Progress, StoreOnly: true}
	v, err := verify.Folder(r.ctx, r.disk, r.path(store.RepairingName), opt, func(f report.Finding) error {
		return fmt.Errorf("fddhdb: repair: what was made is not sound, and nothing was changed: %s (key %s)", f, f.Key)
	})
	if err == nil {
		r.done.Items = v.Items
	}
	return err
}
