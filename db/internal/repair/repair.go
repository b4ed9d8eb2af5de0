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

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/verify"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
)

// Options are the options of a repair, as db.RepairOptions has them.
type Options struct {
	// look for damage by a verification that is not deep; the new store is verified deeply in any case
	Shallow  bool
	DryRun   bool           // make the new store and verify it, but leave the old one in place
	Progress event.Progress // called by one goroutine at a time; nil: none
}

// Folder repairs the database in the folder dir, which must not be open, and locks it meanwhile. It calls
// found, from one goroutine at a time, for every loss; an error of found ends the repair. disk is the file
// system with the options of the storage engine. The result is valid with an error, too, as far as the repair
// has got; it is nil if the repair has not begun, as when the folder has no store or is locked. After an
// error either the old store or the new one is in place.
//
// Errors: fault.ErrNotDatabase, ErrLocked, ErrFormat for another format, ErrDiskFull, ErrCorrupt
// for an index-only copy, the error of ctx. The comment of db.Repair has the cost.
func Folder(ctx context.Context, disk *store.Config, dir string, opt Options,
	found func(report.Finding) error) (_ *report.Repairing, err error) {
	start := time.Now()
	marked, err := repairable(disk.FS, dir)
	if err != nil {
		return nil, err
	}
	// Locks are known by the canonical path.
	if dir, err = store.Canonical(disk.FS, dir); err != nil {
		return nil, err
	}
	lock, err := store.LockFolder(disk.FS, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if !opt.DryRun {
		// An earlier repair may have ended between its two renames. Its store is sound, and counts. A
		// dry run changes nothing: it reads that store where it is (storeName).
		// TestTrialBetweenTheStores of db.
		if err := store.FinishRepair(disk.FS, dir); err != nil {
			return nil, fault.Annotate(err, "repair %s", dir)
		}
	}
	r := &repairer{ctx: ctx, disk: disk, dir: dir, opt: opt, tell: found, marked: marked}
	err = work.Safely(r.run)
	r.done.Seconds = time.Since(start).Seconds()
	return &r.done, fault.Annotate(err, "repair %s", dir)
}

// repairable checks that a folder has a store; ErrNotDatabase: it has none. marked says that
// its marker is sound. A marker of another format is an error.
func repairable(fsys vfs.FS, dir string) (marked bool, err error) {
	names, err := fsys.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("fddhdb: repair %s: %w", dir, err)
	}
	if !slices.Contains(names, store.StoreName) && !slices.Contains(names, store.RepairedName) {
		if slices.Contains(names, store.MarkerName) {
			return false, fmt.Errorf("%w: %s: its store is missing, so that nothing can be saved: restore a backup", fault.ErrNotDatabase, dir)
		}
		return false, fmt.Errorf("%w: %s: there is none", fault.ErrNotDatabase, dir)
	}
	if !slices.Contains(names, store.MarkerName) {
		return false, nil
	}
	err = store.CheckMarker(fsys, dir)
	if errors.Is(err, fault.ErrNotDatabase) {
		return false, nil // the marker is damaged
	}
	return err == nil, err
}

// A repairer is the repair of one folder. Folder makes it, and holds the lock of the folder
// for as long.
type repairer struct {
	ctx  context.Context            // of the whole repair
	disk *store.Config              // the caller's; not changed
	dir  string                     // the folder of the database, canonical
	opt  Options                    // the caller's
	tell func(report.Finding) error // the caller's found
	// the first error of tell, which is not called after that; the steps look at it
	err    error
	done   report.Repairing // the result so far
	marked bool             // the marker of the database is sound

	identity record.Identity // of the new store: mend sets it, build carries its sequence on
}

// found reports a finding to the caller, unless the caller has refused one before.
func (r *repairer) found(f report.Finding) {
	if r.err != nil {
		return
	}
	r.done.Findings++
	r.err = r.tell(f)
}

// at reports progress: the records so far, and the stage in words.
func (r *repairer) at(records int, format string, args ...any) {
	if r.opt.Progress != nil {
		r.opt.Progress(fmt.Sprintf(format, args...), int64(records), 0)
	}
}

// run repairs the database, or finds that it is sound. It removes the folder of the new store,
// also after an error.
func (r *repairer) run() error {
	// The order: look for damage; check the space for a second store; make and verify that; only then touch
	// the first one (replace). Any failure before replace leaves the old store as it was.
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
	// An incomplete new store is of no use.
	return errors.Join(err, r.disk.FS.RemoveAll(r.path(store.RepairingName)))
}

// errUnsound ends the verification of the damaged store at the first finding: finding all may
// take long.
var errUnsound = errors.New("not sound")

// look verifies the store without its marker and side file, and returns the number of its
// items. Any damage is an error; isDamage tells it from the other errors.
func (r *repairer) look() (items int, err error) {
	// Marker and side file do not tell whether the store is sound. beside looks at them.
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

// isDamage reports whether an error can come of damage. A newer format, a missing permission,
// a full disk and a machine without file handles or memory are no damage.
func isDamage(err error) bool {
	for _, other := range []error{fault.ErrFormat, fs.ErrPermission, syscall.EMFILE, syscall.ENFILE,
		syscall.ENOMEM} {
		if errors.Is(err, other) {
			return false
		}
	}
	return !fault.IsDiskFull(err)
}

// path returns the path of a name in the folder of the database.
func (r *repairer) path(name string) string { return r.disk.FS.PathJoin(r.dir, name) }

// storeName returns the name of the store to repair. It is RepairedName only in a dry run after
// a repair that was killed between its two renames: a dry run may not finish these.
func (r *repairer) storeName() string {
	if _, err := r.disk.FS.Stat(r.path(store.StoreName)); r.opt.DryRun && errors.Is(err, fs.ErrNotExist) {
		return store.RepairedName
	}
	return store.StoreName
}

// room returns ErrDiskFull if the disk has no room for a second store. It assumes that the new
// store is as large as the tables of the old one, and 64 MiB.
func (r *repairer) room() error {
	usage, err := r.disk.FS.GetDiskUsage(r.dir)
	if err != nil {
		return nil // the free space is not known: try
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

// clear removes the folders that an interrupted repair has left, but not the store itself.
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

// remake makes the new store and verifies it, in the folder RepairingName, which becomes a
// database of its own. It reads the old store and changes nothing of it.
func (r *repairer) remake() error {
	// The order: list the files that count; copy their records, in one step; mend the copy; close it, which
	// makes it durable; make its folder a database; open that to make the derived records; verify all of it.
	damaged, why, err := openDamaged(r.ctx, r.disk, r.path(r.storeName()))
	if err != nil {
		return err
	}
	s := &salvage{ctx: r.ctx, store: damaged, found: r.found}
	if why != nil {
		s.found(report.Finding{Record: "store",
			Problem: "it does not say which of its tables count, so all do, and what had been replaced or deleted may come back: " + fault.Problem(why)})
	}
	m := &mender{repairer: r, collections: map[uint32]*seenCollection{}}
	err = m.open()
	if err == nil {
		err = m.salvage(s)
	}
	if err == nil {
		err = m.mend()
	}
	if cerr := m.close(); err == nil { // else the error of closing is a consequence
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

// check verifies the new store, deeply. A finding there is an error of the repair, which then
// changes nothing.
func (r *repairer) check() error {
	// Without marker and side file: replace moves the store alone.
	opt := verify.Options{Deep: true, Progress: r.opt.Progress, StoreOnly: true}
	v, err := verify.Folder(r.ctx, r.disk, r.path(store.RepairingName), opt, func(f report.Finding) error {
		return fmt.Errorf("fddhdb: repair: what was made is not sound, and nothing was changed: %s (key %s)",
			f, f.Key)
	})
	if err == nil {
		r.done.Items = v.Items
	}
	return err
}

// replace puts the new store in the place of the old one, by renames. The folder has, one after
// the other:
//
//	store/  repairing/store/          the old store, and the new one, which is verified
//	store/  repaired/                 both; store/ counts, and the next repair removes repaired/
//	damaged-TIME/  repaired/          the next opening or repair renames it (store.FinishRepair)
//	damaged-TIME/  store/             the new store counts
//
// Each rename is durable before the next one. The old store stays, under a name of freeName.
func (r *repairer) replace() error {
	fsys := r.disk.FS
	made := fsys.PathJoin(r.path(store.RepairingName), store.StoreName)
	// The order: the new store is durable under RepairedName before the old one moves. From there
	// on a crash at any point leaves a sound store or the old one. TestCrashesOfARepair of db.
	if err := store.SyncDir(fsys, made); err != nil {
		return err
	}
	if err := r.rename(made, r.path(store.RepairedName)); err != nil {
		return err
	}
	if !r.marked { // before there is a moment without a store
		if err := r.mark(); err != nil {
			return err
		}
	}
	to, err := r.freeName()
	if err != nil {
		return err
	}
	// From here to the end of FinishRepair the folder has RepairedName alone.
	// TestReadingBetweenTheStores of db opens it then.
	if err := r.rename(r.path(store.StoreName), r.path(to)); err != nil {
		return err
	}
	r.done.DamagedDir = to
	if err := store.FinishRepair(fsys, r.dir); err != nil {
		return err
	}
	return r.acknowledge(r.identity) // if that is not done now, opening reports it again
}

// rename renames a file or folder durably.
func (r *repairer) rename(from, to string) error {
	if err := r.disk.FS.Rename(from, to); err != nil {
		return err
	}
	return store.SyncDir(r.disk.FS, r.dir)
}

// freeName returns a name for the damaged store, with the time in UTC, that does not exist yet.
func (r *repairer) freeName() (string, error) {
	base := store.DamagedPrefix + time.Now().UTC().Format("20060102T150405Z")
	name := base
	for i := 2; ; i++ {
		_, err := r.disk.FS.Stat(r.path(name))
		if errors.Is(err, fs.ErrNotExist) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
		name = fmt.Sprintf("%s-%d", base, i)
	}
}

// The marker says that the folder is a database. The side file says which
// commits were durable. Neither is needed to read the store, and both can be written again from
// it. But a side file that promises more than the store has is the one sign that commits are
// missing: so its findings come before it is written.

// beside mends the two files beside a sound store, its marker and the side file. It sets
// r.done.Damaged if either was damaged.
func (r *repairer) beside() error {
	kv, err := store.OpenToRead(r.path(r.storeName()), r.disk, store.NewLog(r.disk.Signals))
	if err != nil {
		return err
	}
	i, err := record.ReadIdentity(kv, r.dir)
	if err = errors.Join(err, kv.Close()); err != nil {
		return err
	}
	// Findings come before anything is written, so that a dry run has them, too.
	side, err := r.missing(i, "%d to %d, the latest, are missing")
	if err != nil {
		return err
	}
	r.done.Damaged = side || !r.marked
	if r.err != nil || r.opt.DryRun {
		return r.err
	}
	if !r.marked {
		if err := r.mark(); err != nil {
			return err
		}
	}
	if side {
		// Last: it takes away the losses that the old side file tells of.
		return r.acknowledge(i)
	}
	return nil
}

// missing compares the side file with the identity i of the store, and reports the commits that the store
// lacks. side says that the side file has to be made again. format words, for the first and the last of them,
// the commits that the side file promised and the store lacks. An error means that the side file cannot be
// read now; then it must not be replaced.
func (r *repairer) missing(i record.Identity, format string) (side bool, err error) {
	before := r.done.Findings
	// A side file that is missing or damaged is a finding; any other error may pass.
	beside, err := store.ReadCommits(r.disk.FS, r.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, codec.ErrCorrupt) {
		return false, err
	}
	told, _ := store.CompareCommits(&i, beside, err, spaces.Now())
	if told.Problem != "" {
		r.found(report.Finding{Record: store.SideFile,
			Problem: told.Problem + "; whether commits are missing is not known"})
		return true, nil
	}
	// Losses that an earlier opening has found. The new side file does not have them, so they are reported
	// once more: TestRepairTellsOfEarlierLosses of db.
	for _, l := range beside.Losses {
		r.found(report.Finding{Record: store.SideFile, Problem: l.String()})
	}
	if told.Missing() > 0 {
		r.found(report.Finding{Record: "commits", Problem: fmt.Sprintf(format, told.Found+1, told.Promised)})
	}
	return r.done.Findings > before, nil
}

// acknowledge writes the side file again, so that it promises exactly the commits of the store.
func (r *repairer) acknowledge(i record.Identity) error {
	return store.MakeCommits(r.disk.FS, r.dir, store.Commits{UUID: i.UUID, Sequence: i.Sequence})
}

// mark writes the marker of the database, and keeps a file that is in its place under the name
// of a damaged store.
func (r *repairer) mark() error {
	_, err := r.disk.FS.Stat(r.path(store.MarkerName))
	if err == nil {
		name, err := r.freeName()
		if err != nil {
			return err
		}
		if err := r.rename(r.path(store.MarkerName), r.path(name+"."+store.MarkerName)); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return store.WriteMarker(r.disk.FS, r.dir)
}
