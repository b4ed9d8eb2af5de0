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

// beside mends what stands beside a sound store: the marker, and the side file.
func (r *repairer) beside() error {
	kv, err := store.OpenToRead(r.path(r.storeName()), r.disk, store.NewLog(r.disk.Signals))
	if err != nil {
		return err
	}
	i, err := record.ReadIdentity(kv, r.dir)
	if err = errors.Join(err, kv.Close()); err != nil {
		return err
	}
	side, err := r.missing(i, "%d to %d, the latest, are missing")
	if err != nil {
		return err
	}
	r.done.Damaged = side || !r.marked
	if r.err != nil || r.opt.DryRun {
		return r.err
	}
	if !r.marked {
		if err := r.mark(i.Format); err != nil {
			return err
		}
	}
	if side {
		return r.acknowledge(i)
	}
	return nil
}

// missing reports what the marker and the side file say that has gone from the store.
// Either is to be made again then: it says whether the side file is. The format is for
// commits that have gone since the store was opened last.
// An error is that of reading the side file, what it says being not to be forgotten.
func (r *repairer) missing(i record.Identity, format string) (side bool, err error) {
	if r.marked && r.marker > i.Format {
		r.found(store.AheadOfStore(r.marker, i.Format))
		r.marked = false
	}
	if i.Format < record.FormatIdentity {
		return false, nil
	}
	before := r.done.Findings
	beside, err := store.ReadCommits(r.disk.FS, r.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, codec.ErrCorrupt) {
		return false, err
	}
	told, _ := store.CompareCommits(&i, beside, err, spaces.Now())
	if told.Problem != "" {
		r.found(report.Finding{Record: store.SideFile, Problem: told.Problem + "; whether commits are missing is not known"})
		return true, nil
	}
	for _, l := range beside.Losses {
		r.found(report.Finding{Record: store.SideFile, Problem: l.String()})
	}
	if told.Missing() > 0 {
		r.found(report.Finding{Record: "commits", Problem: fmt.Sprintf(format, told.Found+1, told.Promised)})
	}
	return r.done.Findings > before, nil
}

// acknowledge makes the side file again, by which nothing is missing from the store.
func (r *repairer) acknowledge(i record.Identity) error {
	if i.Format < record.FormatIdentity {
		return nil
	}
	return store.MakeCommits(r.disk.FS, r.dir, store.Commits{UUID: i.UUID, Sequence: i.Sequence})
}

// mark writes the marker of the database, and keeps what is there in its place.
func (r *repairer) mark(format int) error {
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
	return store.WriteMarker(r.disk.FS, r.dir, format)
}
