package repair

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/report"
)

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
		r.found(report.Finding{Record: store.SideFile, Problem: told.Problem + "; whether commits are missing is not known"})
		return true, nil
	}
	// Losses that an earlier opening has found. The new side file has none of them, so they are
	// told once more: TestRepairTellsOfEarlierLosses of db.
	for _, l := range beside.Losses {
		r.found(report.Finding{Record: store.SideFile, Problem: l.String()})
	}
	if told.Missing() > 0 {
		r.found(report.Finding{Record: "commits", Problem: fmt.Sprintf(format, told.Found+1, told.Promised)})
	}
	return r.done.Findings > before, nil
}

// acknowledge writes the side file again, so that it promises what the store has and no more.
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
