package verify

import (
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/report"
)

// An index-only collection has no features and nothing that is learned from them. So these records
// must be absent, and only codes of labels can be made again.

// checkAbsent reports the records under a prefix, which an index-only collection does not
// have, in one finding about the first of them.
func (c *collectionVerifier) checkAbsent(prefix []byte, about report.Finding) {
	n := 0
	var first []byte
	c.walkPrefix(prefix, about, func(key, _ []byte) {
		if n++; n == 1 {
			first = slices.Clone(key)
		}
	})
	if n > 0 {
		about.Problem = fmt.Sprintf("%d, and the collection is index-only", n)
		c.found(about, first)
	}
}

// checkIndexOnly reports records and counters of a space that an index-only collection does
// not have.
func (s *spaceVerifier) checkIndexOnly() {
	if !s.IndexOnly {
		return
	}
	s.checkAbsent(append(s.prefix(codec.KindOnlineRows), codec.SetPending), s.about("rows that the online step has not seen"))
	s.checkAbsent(s.prefix(codec.KindLessons), s.about("lessons"))
	s.checkAbsent(s.prefix(codec.KindOutbox), s.about("departures"))
	if s.n.Building {
		s.badCounters("the space is being built, and the collection is index-only")
	}
	if s.n.Checkpoint != 0 {
		s.badCounters("the statistics are of revision %d, and the collection is index-only", s.n.Checkpoint)
	}
}

// compareLabels verifies items of an index-only collection deeply. Their codes are of one
// revision. It compares codes of labels, and counts the others as unchecked.
func (s *spaceVerifier) compareLabels(codes *codeVerifier, revision *spaces.Space, items []*verifiedItem) {
	want := codec.NewCode(s.Bits())
	for _, it := range items {
		// Without a known label the code is one of features, which are not there to make it again.
		labelled := revision.Learned.LabelCode(want, it.labels)
		if s.recode.Contains(it.row) { // its labels have changed since
			s.done.CodesUnchecked++
			continue
		}
		if labelled {
			s.done.CodesChecked++
		} else {
			s.done.CodesUnchecked++
		}
		switch {
		case labelled:
			codes.compareCode(it.row, want, codec.ProvenanceLabels, nil)
		case codes.rows.Get(it.row).from == codec.ProvenanceLabels:
			s.bad(fmt.Sprintf("code of row %d", it.row), codes.Block(codec.KindRowCodes, it.row), "of labels, and it has none that the model knows")
		}
	}
}
