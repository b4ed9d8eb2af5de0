package copies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/verify"
	"github.com/fddhdb/fddhdb/db/report"
)

// RestoreOptions say which backup is restored, and whether it is verified. Without ID, Before and Database
// that is the newest backup; see backup.Find. The type has the fields of db.RestoreOptions, which is
// converted to it.
type RestoreOptions struct {
	ID         string    // of the backup, or the beginning of its id
	Before     time.Time // take the newest backup that did not begin later; zero: any
	Database   string    // UUID of the database that was backed up; "": all backups are of one
	SkipVerify bool      // compare files with their SHA-256 only
	// hears backup.StageFetch, in bytes, and StageVerify, in records; must not be nil
	Progress event.Progress
}

// StageVerify is the stage of a restore in which the database is verified.
const StageVerify = "verify"

// Restore makes a database of a backup in dir, which is empty or missing, and returns the
// manifest of the backup. The files are fetched, synced and verified before dir becomes a
// database. After an error the folder is as it was, or the error also says why it could not
// be cleared. After a crash it is no database, and Restore can be called again. It holds
// the lock of the folder meanwhile. The caller adds to errors what they are about.
func Restore(ctx context.Context, from backup.Store, dir string, cfg *store.Config,
	opt RestoreOptions) (_ *backup.Manifest, err error) {
	// The order: choose the backup and check its manifest, before the folder is touched; lock and
	// clear the folder; fetch, check and verify in restoring/; move. Only the last move makes a
	// database.
	m, err := backup.Find(ctx, from, backup.Choice{ID: opt.ID, Before: opt.Before, Database: opt.Database})
	if err != nil {
		return nil, err
	}
	if err := restorable(m); err != nil {
		return nil, err
	}
	r := &restorer{ctx: ctx, fs: cfg.FS, cfg: cfg, opt: opt, m: m}
	if err := r.begin(dir); err != nil {
		return nil, err
	}
	if err = r.run(from); err != nil {
		return nil, errors.Join(err, r.undo())
	}
	return m, r.lock.Close()
}

// restorable checks the manifest of a backup: it is of a database in a format that this
// version reads, and has a marker and files of the store and no others. So no path in it
// leads out of the folder, or to a lock.
func restorable(m *backup.Manifest) error {
	if m.Format != record.Format {
		return &fault.FormatError{Where: "backup " + m.ID, Found: m.Format, Supported: record.Format}
	}
	marker := false
	for _, f := range m.Files {
		folder, name := path.Split(f.Path)
		switch {
		case f.Path == store.MarkerName:
			marker = true
		case folder != store.StoreName+"/" || name == store.LockName:
			return fmt.Errorf("%w: backup %s: file %s is not one of a database", backup.ErrDamaged, m.ID,
				f.Path)
		}
	}
	if !marker {
		return fmt.Errorf("%w: backup %s: it has no %s", backup.ErrDamaged, m.ID, store.MarkerName)
	}
	return nil
}

// A restorer makes a database in dir. All its files are in dir/restoring until they are known
// to be sound. Then the store is moved, and the marker last, which makes dir a database. While
// there is restoring/ and no marker, everything in dir but the lock comes from a restore, and
// may be removed by the next one. It is for one goroutine and one call of Restore.
type restorer struct {
	ctx context.Context
	fs  vfs.FS           // of the new database
	cfg *store.Config    // of the new database
	opt RestoreOptions   // of the call
	m   *backup.Manifest // of the backup; checked by restorable

	// begin sets these.
	dir    string    // canonical path of the folder
	made   bool      // the folder was missing, so that undo removes it
	lock   io.Closer // of the folder; closed by undo or at the end of Restore
	within string    // dir/restoring
}

// begin locks the folder, makes it if it is missing, and removes what an interrupted restore
// has left there. After an error nothing is locked.
func (r *restorer) begin(dir string) (err error) {
	if err := store.Outside(r.fs, dir); err != nil {
		return err
	}
	if err := r.vacant(dir); err != nil {
		return err
	}
	if _, err := r.fs.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		r.made = true
	}
	if err := store.MakeDir(r.fs, dir); err != nil {
		return err
	}
	if r.dir, err = store.Canonical(r.fs, dir); err == nil {
		r.lock, err = store.LockFolder(r.fs, r.dir)
	}
	if err != nil {
		if r.made {
			_ = r.fs.Remove(dir) // unless another process has put something there meanwhile
		}
		return err
	}
	r.within = r.fs.PathJoin(r.dir, store.RestoringName)
	if err := r.vacant(r.dir); err != nil { // another process may have had the lock until now
		return errors.Join(err, r.lock.Close())
	}
	if err := r.clear(); err != nil {
		return errors.Join(err, r.undo())
	}
	return nil
}

// vacant returns fault.ErrExists unless a database may be restored to a folder: it is missing
// or empty, or has nothing but what an interrupted restore has left. A store or a side file
// is such a rest only while restoring/ is there.
func (r *restorer) vacant(dir string) error {
	names, err := r.fs.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		// With a marker the folder is a database, also while restoring/ is there.
		switch {
		case name == store.LockName || name == store.RestoringName:
		case (name == store.StoreName || name == store.CommitsName) &&
			slices.Contains(names, store.RestoringName):
		default:
			return fmt.Errorf("%w: %s is not empty: restore to a new folder", fault.ErrExists, dir)
		}
	}
	return nil
}

// clear removes everything that a restore has put into the folder: first the marker, so that
// it is no database any more, and last restoring/, which tells that the rest may go.
func (r *restorer) clear() error {
	for _, name := range []string{store.MarkerName, store.StoreName, store.CommitsName, store.RestoringName} {
		path := r.fs.PathJoin(r.dir, name)
		if _, err := r.fs.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := r.fs.RemoveAll(path); err != nil {
			return err
		}
		if err := store.SyncDir(r.fs, r.dir); err != nil {
			return err
		}
	}
	return nil
}

// undo leaves the folder as it was before begin, and closes the lock.
func (r *restorer) undo() error {
	err := r.clear()
	lock := r.fs.PathJoin(r.dir, store.LockName)
	if runtime.GOOS == "windows" { // open files cannot be removed there
		err = errors.Join(err, r.lock.Close(), r.fs.Remove(lock))
	} else {
		err = errors.Join(err, r.fs.Remove(lock), r.lock.Close())
	}
	if r.made && err == nil {
		err = r.fs.Remove(r.dir)
	}
	return err
}

// run fetches the backup, checks it, verifies it unless SkipVerify says not to, and makes it
// the database. After an error the caller calls undo.
func (r *restorer) run(from backup.Store) error {
	if err := r.fetch(from); err != nil {
		return err
	}
	// The pieces have the right checksums. Whether they are the database that the manifest names is
	// another question: a repository may have been edited.
	i, err := r.identify()
	if err != nil {
		return err
	}
	// Backups have no side file: it is about one folder.
	if err := store.MakeCommits(r.fs, r.within,
		store.Commits{UUID: i.UUID, Sequence: i.Sequence}); err != nil {
		return err
	}
	if !r.opt.SkipVerify {
		if err := r.verify(); err != nil {
			return err
		}
	}
	if err := r.ctx.Err(); err != nil {
		return context.Cause(r.ctx)
	}
	return r.place()
}

// fetch writes the files of the backup to restoring/, durably. backup.Fetch checks each
// piece and syncs the files.
func (r *restorer) fetch(from backup.Store) error {
	// If the free space is not known, try.
	if usage, err := r.fs.GetDiskUsage(r.dir); err == nil && uint64(r.m.BytesTotal) > usage.AvailBytes {
		return fmt.Errorf("%w: %s: backup %s takes %d bytes, %d are free", fault.ErrDiskFull, r.dir, r.m.ID,
			r.m.BytesTotal, usage.AvailBytes)
	}
	if err := r.fs.MkdirAll(r.fs.PathJoin(r.within, store.StoreName), 0o755); err != nil {
		return err
	}
	if err := store.SyncDir(r.fs, r.dir); err != nil {
		return err
	}
	err := backup.Fetch(r.ctx, from, r.m, func(path string) (backup.Target, error) {
		full := r.fs.PathJoin(r.within, r.fs.PathJoin(strings.Split(path, "/")...))
		return r.fs.Create(full, vfs.WriteCategoryUnspecified)
	}, backup.FetchOptions{Progress: r.opt.Progress})
	if err != nil {
		return err
	}
	if err := store.SyncDir(r.fs, r.fs.PathJoin(r.within, store.StoreName)); err != nil {
		return err
	}
	return store.SyncDir(r.fs, r.within)
}

// identify checks that restoring/ is the database that the manifest names, at the commit that
// it names, and returns its identity.
func (r *restorer) identify() (record.Identity, error) {
	if err := store.CheckMarker(r.fs, r.within); errors.Is(err, fault.ErrNotDatabase) {
		return record.Identity{}, fmt.Errorf("%w: backup %s: its %s is not one of a database",
			backup.ErrDamaged, r.m.ID, store.MarkerName)
	} else if err != nil {
		return record.Identity{}, err
	}
	i, err := r.identity()
	switch {
	case err != nil:
	case i.Sequence != r.m.Sequence:
		err = fault.Corrupt(fmt.Errorf("commit sequence %d, the backup says %d", i.Sequence, r.m.Sequence),
			"backup %s", r.m.ID)
	case i.Text() != r.m.Database:
		err = fault.Corrupt(fmt.Errorf("database %q, the backup says %q", i.Text(), r.m.Database),
			"backup %s", r.m.ID)
	}
	return i, err
}

// verify checks that the database in restoring/ is sound. One that is not is
// fault.ErrCorrupt, with the first finding.
func (r *restorer) verify() error {
	var first *report.Finding
	records := func(_ string, records, _ int64) { r.opt.Progress(StageVerify, records, 0) }
	v, err := verify.Folder(r.ctx, r.cfg, r.within, verify.Options{Progress: records},
		func(f report.Finding) error {
			if first == nil {
				first = &f
			}
			return nil
		})
	if err != nil {
		return err
	}
	if first != nil {
		return fault.Corrupt(fmt.Errorf("%d findings, the first: %s", v.Findings, first), "backup %s", r.m.ID)
	}
	return nil
}

// identity opens the store in restoring/ for reading, and reads its identity.
func (r *restorer) identity() (i record.Identity, err error) {
	kv, err := store.OpenToRead(r.fs.PathJoin(r.within, store.StoreName), r.cfg, store.NewLog(r.cfg.Signals))
	if err != nil {
		if store.MissesFiles(err) || pebble.IsCorruptionError(err) || errors.Is(err, codec.ErrCorrupt) {
			return i, fault.Corrupt(err, "backup %s", r.m.ID)
		}
		return i, err
	}
	defer func() { err = errors.Join(err, kv.Close()) }()
	return record.ReadIdentity(kv, "backup "+r.m.ID)
}

// place moves the files in restoring/ to the folder, each durably before the next, the marker
// last. Once the marker is there dir is a database; an error after that makes undo remove it
// again.
func (r *restorer) place() error {
	for _, name := range []string{store.StoreName, store.CommitsName, store.MarkerName} {
		if _, err := r.fs.Stat(r.fs.PathJoin(r.within, name)); name == store.CommitsName &&
			errors.Is(err, fs.ErrNotExist) {
			continue // of a format that has none
		}
		if err := r.fs.Rename(r.fs.PathJoin(r.within, name), r.fs.PathJoin(r.dir, name)); err != nil {
			return err
		}
		if err := store.SyncDir(r.fs, r.dir); err != nil {
			return err
		}
	}
	_ = r.fs.RemoveAll(r.within) // if it cannot be removed now, Open does
	return nil
}
