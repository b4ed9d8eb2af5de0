package report

import (
	"fmt"
	"time"
)

// A Recovery says how what Open found in the store compares with what was known to be
// durable. Each commit has a number, and what a store can lose is a suffix: the latest
// commits, whole. Losses that were found earlier stay in Losses until they are
// acknowledged.
type Recovery struct {
	Found    uint64 `json:"found"`    // the last commit in the store
	Promised uint64 `json:"promised"` // the last that was known to be durable; there may have been later ones
	Losses   []Loss `json:"losses,omitempty"`

	// Problem says, where that is so, why it is not known what was durable: the side
	// file is missing or damaged, or of another database. It has been made again then,
	// but not where the database is read-only.
	Problem string `json:"problem,omitempty"`
}

// Missing returns how many commits Open found to be missing: at least so many are.
func (r Recovery) Missing() uint64 {
	if r.Promised > r.Found {
		return r.Promised - r.Found
	}
	return 0
}

// A Loss is a run of commits that were durable and have gone from the store: its log was
// damaged, or it was replaced by an older copy. New commits take their numbers again.
type Loss struct {
	Found time.Time `json:"found"` // when Open saw it
	First uint64    `json:"first"`
	Last  uint64    `json:"last"`
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
