package db

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/verify"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
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

// A Repairing says what came of a repair.
type Repairing struct {
	Damaged    bool    `json:"-"`                 // false: nothing was to be repaired
	Findings   int     `json:"-"`                 // what could not be saved
	Items      int     `json:"items"`             // of all collections, afterwards
	CodesKept  int     `json:"codes_kept"`        // items that had brought their codes, which are those that they have
	CodesMade  int     `json:"codes_made"`        // items of learned collections whose codes were made again; in several spaces each counts
	DamagedDir string  `json:"damaged,omitempty"` // the folder in that of the database where the damaged store is now
	Seconds    float64 `json:"seconds"`
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
// A folder that holds no database gives ErrNotDatabase, one of a newer version
// ErrFormat, one that is open ErrLocked.
func Repair(ctx context.Context, dir string, options *Options, opt RepairOptions, found func(report.Finding) error) (_ *Repairing, err error) {
	start := time.Now()
	opts := options.withDefaults()
	opts.disk.Signals.About(dir)
	defer opts.disk.Signals.Wait()
	marked, marker, err := repairable(&opts, dir)
	if err != nil {
		return nil, err
	}
	if dir, err = store.Canonical(opts.FS, dir); err != nil {
		return nil, err
	}
	lock, err := store.LockFolder(opts.FS, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if !opt.DryRun {
		if err := store.FinishRepair(opts.FS, dir); err != nil {
			return nil, fault.Annotate(err, "repair %s", dir)
		}
	}
	r := &repairer{ctx: ctx, opts: opts, dir: dir, opt: opt, report: orNobody(found), marked: marked, marker: marker}
	err = work.Safely(r.run)
	r.done.Seconds = time.Since(start).Seconds()
	return &r.done, fault.Annotate(err, "repair %s", dir)
}

// repairable looks for a store in a folder, and whether the marker is that of a database
// that this version reads, and of which format.
func repairable(opts *settings, dir string) (marked bool, format int, err error) {
	names, err := opts.FS.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, 0, fmt.Errorf("fddhdb: repair %s: %w", dir, err)
	}
	if !slices.Contains(names, store.StoreName) && !slices.Contains(names, store.RepairedName) {
		return false, 0, fmt.Errorf("%w: %s: there is none", fault.ErrNotDatabase, dir)
	}
	if !slices.Contains(names, store.MarkerName) {
		return false, 0, nil
	}
	format, err = store.ReadMarker(opts.FS, dir)
	if errors.Is(err, fault.ErrNotDatabase) {
		return false, 0, nil // its store will tell
	}
	return err == nil, format, err
}

// A repairer is what is known while a database is repaired.
type repairer struct {
	ctx    context.Context
	opts   settings
	dir    string
	opt    RepairOptions
	report func(report.Finding) error
	err    error // of report
	done   Repairing
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
	r.err = r.report(f)
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
	return errors.Join(err, r.opts.FS.RemoveAll(r.path(store.RepairingName)))
}

// errUnsound ends the verification of the damaged store: that there is something is enough,
// as to find everything may take long.
var errUnsound = errors.New("not sound")

// look verifies the store, and returns how many items it has. Anything that is wrong with
// it is an error.
func (r *repairer) look() (items int, err error) {
	kv, err := store.OpenDatabase(r.dir, &r.opts.disk, store.NewLog(r.opts.disk.Signals), true)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, kv.Close()) }()
	opt := verify.Options{Deep: !r.opt.Shallow, Progress: r.opt.Progress, StoreOnly: true}
	v, err := verify.Store(r.ctx, r.opts.FS, r.dir, kv, opt, func(report.Finding) error { return errUnsound })
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

func (r *repairer) path(name string) string { return r.opts.FS.PathJoin(r.dir, name) }

// StoreName returns the name of the store that is to be repaired: in a trial, which
// changes nothing, it may not have got its own yet.
func (r *repairer) storeName() string {
	if _, err := r.opts.FS.Stat(r.path(store.StoreName)); r.opt.DryRun && errors.Is(err, fs.ErrNotExist) {
		return store.RepairedName
	}
	return store.StoreName
}

// room refuses a repair for which there is not enough disk space.
func (r *repairer) room() error {
	usage, err := r.opts.FS.GetDiskUsage(r.dir)
	if err != nil {
		return nil // who cannot tell has to try
	}
	store := r.path(r.storeName())
	names, err := r.opts.FS.List(store)
	if err != nil {
		return err
	}
	size := uint64(64 << 20)
	for _, name := range names {
		info, err := r.opts.FS.Stat(r.opts.FS.PathJoin(store, name))
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
		if err := r.opts.FS.RemoveAll(r.path(name)); err != nil {
			return err
		}
	}
	return nil
}

// remake makes the new store, in a folder of its own that is a database.
func (r *repairer) remake() error {
	damaged, why, err := openDamaged(r.ctx, &r.opts, r.path(r.storeName()))
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
	v, err := verify.Folder(r.ctx, &r.opts.disk, r.path(store.RepairingName), opt, func(f report.Finding) error {
		return fmt.Errorf("fddhdb: repair: what was made is not sound, and nothing was changed: %s (key %s)", f, f.Key)
	})
	if err == nil {
		r.done.Items = v.Items
	}
	return err
}
