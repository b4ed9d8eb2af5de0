package store

import (
	"fmt"
	"slices"
	"time"

	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/report"
)

// A stock says how the commits that are in a store compare with those that were known to be
// durable.
type stock struct {
	Found    uint64 // number of the last commit in the store
	Promised uint64 // of the last that was known to be durable; 0 where Problem says why that is not known
	Losses   []Loss // that nobody has acknowledged, oldest first
	Problem  string // why it is not known what was durable; "" where it is
}

// Missing returns how many durable commits are not in the store: at least so many.
func (s *stock) Missing() uint64 {
	if s.Promised > s.Found {
		return s.Promised - s.Found
	}
	return 0
}

// A Loss is a run of commits that were durable and have gone from the store. New commits take
// their numbers again.
type Loss struct {
	Found       time.Time // when opening saw it, in milliseconds
	First, Last uint64    // numbers of commits, both of them lost
}

// Commits returns how many commits are lost.
func (l Loss) Commits() uint64 { return l.Last - l.First + 1 }

// String returns the loss in words.
func (l Loss) String() string {
	when := l.Found.UTC().Format(time.RFC3339)
	if l.First == l.Last {
		return fmt.Sprintf("commit %d, the latest then, was missing on %s", l.First, when)
	}
	return fmt.Sprintf("the commits %d to %d, the latest then, were missing on %s", l.First, l.Last, when)
}

// CompareCommits finds out which commits are missing from the store with the identity i, by
// what its side file says, and returns what the side file is to say from now on. side and err
// are the results of ReadCommits. It changes nothing.
func CompareCommits(i *record.Identity, side Commits, err error, now time.Time) (s stock, next Commits) {
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
		next.Losses = addLoss(side.Losses, Loss{Found: now, First: s.Found + 1, Last: s.Promised})
	}
	s.Losses = next.Losses
	return s, next
}

// addLoss returns the losses with another one. Where these are more than maxLosses the two
// oldest become one, which covers all commits from the first to the last of both.
func addLoss(losses []Loss, l Loss) []Loss {
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
