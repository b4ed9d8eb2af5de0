package db

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// beside mends what stands beside a sound store: the marker, and the side file.
func (r *repairer) beside() error {
	kv, err := openStoreToRead(r.path(r.storeName()), &r.opts.disk, newStoreLogger(r.opts.disk.signals))
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
		r.found(aheadOfStore(r.marker, i.Format))
		r.marked = false
	}
	if i.Format < record.FormatIdentity {
		return false, nil
	}
	before := r.done.Findings
	beside, err := readCommits(r.opts.FS, r.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, codec.ErrCorrupt) {
		return false, err
	}
	told, _ := compareCommits(&i, beside, err, now())
	if told.problem != "" {
		r.found(Finding{Record: sideFile, Problem: told.problem + "; whether commits are missing is not known"})
		return true, nil
	}
	for _, l := range beside.losses {
		r.found(Finding{Record: sideFile, Problem: l.String()})
	}
	if told.missing() > 0 {
		r.found(Finding{Record: "commits", Problem: fmt.Sprintf(format, told.found+1, told.promised)})
	}
	return r.done.Findings > before, nil
}

// acknowledge makes the side file again, by which nothing is missing from the store.
func (r *repairer) acknowledge(i record.Identity) error {
	if i.Format < record.FormatIdentity {
		return nil
	}
	return makeCommits(r.opts.FS, r.dir, commitsRecord{uuid: i.UUID, sequence: i.Sequence})
}

// mark writes the marker of the database, and keeps what is there in its place.
func (r *repairer) mark(format int) error {
	_, err := r.opts.FS.Stat(r.path(MarkerName))
	if err == nil {
		name, err := r.freeName()
		if err != nil {
			return err
		}
		if err := r.rename(r.path(MarkerName), r.path(name+"."+MarkerName)); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return writeMarker(r.opts.FS, r.dir, format)
}
