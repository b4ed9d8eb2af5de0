package db

import (
	"fmt"
	"slices"
	"time"

	"github.com/fddhdb/fddhdb/db/internal/record"
)

// A stock says how the commits that are in a store compare with those that were known to be
// durable.
type stock struct {
	found    uint64 // the last commit in the store
	promised uint64 // the last that was known to be durable
	losses   []loss // that nobody has acknowledged, oldest first
	problem  string // why it is not known what was durable; "" where it is
}

// missing returns how many durable commits are not in the store: at least so many.
func (s *stock) missing() uint64 {
	if s.promised > s.found {
		return s.promised - s.found
	}
	return 0
}

// A loss is a run of commits that were durable and have gone from the store.
type loss struct {
	found       time.Time // when opening saw it
	first, last uint64
}

// commits returns how many commits are lost.
func (l loss) commits() uint64 { return l.last - l.first + 1 }

// String returns the loss in words.
func (l loss) String() string {
	when := l.found.UTC().Format(time.RFC3339)
	if l.first == l.last {
		return fmt.Sprintf("commit %d, the latest then, was missing on %s", l.first, when)
	}
	return fmt.Sprintf("the commits %d to %d, the latest then, were missing on %s", l.first, l.last, when)
}

// compareCommits finds out what is missing from a store by the side file, and returns what
// the side file is to say from now on. err is that of reading the file.
func compareCommits(i *record.Identity, side commitsRecord, err error, now time.Time) (s stock, next commitsRecord) {
	s.found = i.Sequence
	next = commitsRecord{uuid: i.UUID, sequence: i.Sequence}
	switch {
	case err != nil:
		s.problem = commitsProblem(err)
		return s, next
	case side.uuid != i.UUID:
		s.problem = fmt.Sprintf("the file %s is of another database: its UUID is %x, that of the store %x", commitsName, side.uuid, i.UUID)
		return s, next
	}
	s.promised = side.sequence
	next.write, next.losses = side.write, side.losses
	if s.missing() > 0 {
		next.losses = addLoss(side.losses, loss{found: now, first: s.found + 1, last: s.promised})
	}
	s.losses = next.losses
	return s, next
}

// addLoss adds a loss; where there is no room for it the two oldest become one.
func addLoss(losses []loss, l loss) []loss {
	all := append(slices.Clone(losses), l)
	if len(all) > maxLosses {
		all[1].first, all[1].last = min(all[0].first, all[1].first), max(all[0].last, all[1].last)
		all = all[1:]
	}
	return all
}

// olderStore says in words that the marker names a later format than the store has. An
// upgrade writes the store first, and durably.
func olderStore(marker, store int) string {
	return fmt.Sprintf("is of format %d, and the store of format %d: an older copy, or one that has lost its latest commits", marker, store)
}
