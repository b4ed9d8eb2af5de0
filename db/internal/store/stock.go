package store

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/signal"
	"github.com/fddhdb/fddhdb/db/report"
)

// CompareCommits finds out which commits are missing from the store with the identity i, by
// what its side file says, and returns what the side file is to say from now on. side and err
// are the results of ReadCommits. It changes nothing.
func CompareCommits(i *record.Identity, side Commits, err error, now time.Time) (s report.Recovery, next Commits) {
	s.Found = i.Sequence
	next = Commits{UUID: i.UUID, Sequence: i.Sequence}
	switch {
	case err != nil:
		s.Problem = commitsProblem(err)
		return s, next
	case side.UUID != i.UUID:
		s.Problem = fmt.Sprintf("the file %s is of another database: its UUID is %x, that of the store %x", CommitsName, side.UUID, i.UUID)
		return s, next
	}
	s.Promised = side.Sequence
	next.write, next.Losses = side.write, side.Losses
	if s.Missing() > 0 {
		next.Losses = addLoss(side.Losses, report.Loss{Found: now, First: s.Found + 1, Last: s.Promised})
	}
	s.Losses = next.Losses
	return s, next
}

// TakeStock compares what the store of the database in dir says, its identity i, with what
// stands beside it, and brings that in step, unless the database is only read. It tells of
// commits that are missing, and returns the keeper of the side file; nil where there is none,
// where it is only read, or where it could not be read just now and is left alone.
func TakeStock(fsys vfs.FS, dir string, i *record.Identity, readOnly bool, signals *signal.Sender) (report.Recovery, *Keeper, error) {
	format, err := ReadMarker(fsys, dir)
	if err != nil {
		return report.Recovery{}, nil, err
	}
	if format < i.Format && !readOnly { // the end of an interrupted upgrade
		if err := WriteMarker(fsys, dir, i.Format); err != nil {
			return report.Recovery{}, nil, fault.Annotate(err, "open %s", dir)
		}
	}
	unknown := func(problem string) {
		signals.Happened(event.CommitsUnknown, slog.LevelWarn, event.Event{Attrs: []slog.Attr{slog.String("problem", problem)}})
	}
	if i.Format < record.FormatIdentity {
		r := report.Recovery{Found: i.Sequence, Promised: i.Sequence}
		if format > i.Format {
			r.Problem = "the file " + MarkerName + " " + OlderStore(format, i.Format)
			unknown(r.Problem)
		}
		return r, nil, nil
	}
	side, err := ReadCommits(fsys, dir)
	r, next := CompareCommits(i, side, err, time.Now().UTC().Truncate(time.Millisecond))
	if n := r.Missing(); n > 0 {
		signals.Happened(event.CommitsMissing, slog.LevelWarn, event.Event{Attrs: []slog.Attr{
			slog.Uint64("missing", n), slog.Uint64("found", r.Found), slog.Uint64("promised", r.Promised),
		}})
	}
	if r.Problem != "" {
		unknown(r.Problem)
	}
	known := err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, codec.ErrCorrupt)
	if readOnly || !known {
		return r, nil, nil
	}
	return r, NewKeeper(fsys, dir, signals, side, next, r.Problem != ""), nil
}

// addLoss returns the losses with another one. Where these are more than maxLosses the two
// oldest become one, which covers all commits from the first to the last of both.
func addLoss(losses []report.Loss, l report.Loss) []report.Loss {
	all := append(slices.Clone(losses), l)
	if len(all) > maxLosses {
		all[1].First, all[1].Last = min(all[0].First, all[1].First), max(all[0].Last, all[1].Last)
		all = all[1:]
	}
	return all
}

// OlderStore says in words that the marker names a later format than the store has. No
// interrupted upgrade leaves that, as an upgrade writes the store first, and durably.
func OlderStore(marker, store int) string {
	return fmt.Sprintf("is of format %d, and the store of format %d: an older copy, or one that has lost its latest commits", marker, store)
}

// SideFile names the side file in a finding.
const SideFile = "side file " + CommitsName

// AheadOfStore is the finding that the marker names a later format than the store.
func AheadOfStore(marker, store int) report.Finding {
	return report.Finding{Record: "marker " + MarkerName, Problem: fmt.Sprintf("it %s; which commits are missing is not known", OlderStore(marker, store))}
}
