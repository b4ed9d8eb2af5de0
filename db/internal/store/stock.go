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
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/signal"
	"github.com/fddhdb/fddhdb/db/report"
)

// CompareCommits compares the store with the identity i with its side file. It returns the missing commits,
// and the next content of the side file. side and err are the results of ReadCommits. It changes nothing.
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

// TakeStock compares the store of the database in dir, with the identity i, with its side file, reports
// missing commits, and brings the file up to date unless the database is read-only. It returns the keeper of
// the file. The keeper is nil for a read-only database, and if the file could not be read just now: then the
// file stays unchanged.
func TakeStock(fsys vfs.FS, dir string, i *record.Identity, readOnly bool, signals *signal.Sender) (report.Recovery, *Keeper, error) {
	side, err := ReadCommits(fsys, dir)
	r, next := CompareCommits(i, side, err, time.Now().UTC().Truncate(time.Millisecond))
	if n := r.Missing(); n > 0 {
		signals.Happened(event.CommitsMissing, slog.LevelWarn, event.Event{Attrs: []slog.Attr{
			slog.Uint64("missing", n), slog.Uint64("found", r.Found), slog.Uint64("promised", r.Promised),
		}})
	}
	if r.Problem != "" {
		signals.Happened(event.CommitsUnknown, slog.LevelWarn, event.Event{Attrs: []slog.Attr{slog.String("problem", r.Problem)}})
	}
	known := err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, codec.ErrCorrupt)
	if readOnly || !known {
		return r, nil, nil
	}
	return r, NewKeeper(fsys, dir, signals, side, next, r.Problem != ""), nil
}

// addLoss returns the losses with another one. Above maxLosses, it merges the two oldest into one that covers
// all commits from the first to the last of both.
func addLoss(losses []report.Loss, l report.Loss) []report.Loss {
	all := append(slices.Clone(losses), l)
	if len(all) > maxLosses {
		all[1].First, all[1].Last = min(all[0].First, all[1].First), max(all[0].Last, all[1].Last)
		all = all[1:]
	}
	return all
}

// SideFile names the side file in a finding.
const SideFile = "side file " + CommitsName
