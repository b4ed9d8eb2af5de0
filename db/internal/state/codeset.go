package state

import (
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/mih"
)

// A code set holds the codes of a space: the code of each row, the rows of each code, and the postings of
// substrings, in the store and in memory.

// A CodeSet is the committer's state of a code set. Only the committer touches it, and a bulk load, which
// runs in the committer; readers get a CodeSetView. The state equals the stored state: once loaded, Table has
// the codes and rows of the blocks under CodeKeys.
type CodeSet struct {
	record.CodeKeys // where the set is in the store; never changes

	// in is the latest revision of the space. New codes are marked with it.
	in *spaces.Space

	// Table has the codes, their numbers and rows. It is nil until the codes are loaded; meanwhile no item of
	// the collection is written (see Tx.resolve).
	Table *mih.Writer

	loading *Loading           // of a set found at opening, kept after it has ended; nil: nothing to load
	opening codec.CodeCounters // counters at opening; they count while Table is nil

	// Blocks of codes from number FreshCode on have never been written, so they need no merge.
	FreshCode uint64
}

// newCodeSet returns an empty set.
func newCodeSet(sp *spaces.Space, k record.CodeKeys) *CodeSet {
	return &CodeSet{CodeKeys: k, in: sp, Table: mih.NewWriter(k.Bits)}
}

// counters returns the numbers of codes, as the counters of the collection have them.
func (s *CodeSet) counters() codec.CodeCounters {
	if s.Table == nil {
		return s.opening
	}
	return CountersOf(s.Table)
}

// CountersOf returns the numbers of codes in a table. A bulk load passes a table that is not yet in the set.
func CountersOf(w *mih.Writer) codec.CodeCounters {
	t := w.Table()
	return codec.CodeCounters{NextCode: uint64(t.Next()), Codes: uint64(t.Distinct()), Coded: uint64(t.Items())}
}

// A CodeSetView is the immutable state of a code set that readers see.
type CodeSetView struct {
	record.CodeKeys
	NextCode uint64        // number of the next new code
	Codes    int           // codes that some item has
	Coded    int           // items that have a code
	Table    *mih.Table    // nil until the codes are loaded: then read the store, see NumberOf
	loading  *Loading      // to wait for Table; nil: there was nothing to load
	standing spaceStanding // of the space
	Set      *CodeSet      // tells sets apart, also in requests; only the committer reads it
}

// publish returns the view of the set, in a space with this standing.
func (s *CodeSet) publish(standing spaceStanding) CodeSetView {
	n := s.counters()
	v := CodeSetView{
		CodeKeys: s.CodeKeys, NextCode: n.NextCode, Codes: int(n.Codes), Coded: int(n.Coded),
		loading: s.loading, standing: standing, Set: s,
	}
	if s.Table != nil {
		v.Table = s.Table.Publish()
	}
	return v
}

// loaded reports whether all codes of the collection are in memory, in all spaces.
func (s *CollectionState) loaded() bool {
	return !slices.ContainsFunc(s.Spaces, func(sp *SpaceState) bool { return !sp.loaded() })
}

// AllCounters returns the counters as they are stored: of the collection and of all its spaces.
func (s *CollectionState) AllCounters() codec.Counters {
	n := s.Counters
	n.Spaces = nil
	for _, sp := range s.Spaces {
		n.Spaces = append(n.Spaces, sp.counters())
	}
	return n
}
