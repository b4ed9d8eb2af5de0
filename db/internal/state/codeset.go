package state

import (
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/mih"
)

// A code set is the codes of a space: which code a row has, the codes, which rows carry each,
// and the postings of their substrings, in the store and in memory.

// A CodeSet is what the committer knows of a code set. Only the committer touches it, and a
// bulk load, which runs in the committer; readers see what it publishes. What it knows is what
// the store says: Table has the codes and rows of the blocks under CodeKeys, once it is
// loaded.
type CodeSet struct {
	record.CodeKeys // where the set is in the store; never changes

	// in is the space, in its latest revision, which new codes are marked with.
	in *spaces.Space

	// Table has the codes, their numbers and rows. Nil until the codes are loaded; meanwhile
	// no item of the collection is written (see Tx.resolve).
	Table *mih.Writer

	loading *Loading           // of a set that was found at opening, also when it has ended; nil: nothing to load
	opening codec.CodeCounters // as they were at opening; they count while Table is nil

	// Blocks of codes that begin at number FreshCode or later have never been written, so that
	// they need no merging with what was there.
	FreshCode uint64
}

// newCodeSet returns a set with no codes in it.
func newCodeSet(sp *spaces.Space, k record.CodeKeys) *CodeSet {
	return &CodeSet{CodeKeys: k, in: sp, Table: mih.NewWriter(k.Bits)}
}

// counters returns how many codes there are, as the counters of the collection have it.
func (s *CodeSet) counters() codec.CodeCounters {
	if s.Table == nil {
		return s.opening
	}
	return CountersOf(s.Table)
}

// CountersOf returns how many codes there are in a table, which may be one that is not in the set yet, as in
// a bulk load.
func CountersOf(w *mih.Writer) codec.CodeCounters {
	t := w.Table()
	return codec.CodeCounters{NextCode: uint64(t.Next()), Codes: uint64(t.Distinct()), Coded: uint64(t.Items())}
}

// A CodeSetView is the state of a code set as readers see it, which is immutable.
type CodeSetView struct {
	record.CodeKeys
	NextCode uint64        // the number that the next new code gets
	Codes    int           // that some item has
	Coded    int           // items that have a code
	Table    *mih.Table    // nil until the codes are loaded: then the store has to be asked, see NumberOf
	loading  *Loading      // to wait for Table; nil: there was nothing to load
	standing spaceStanding // of the space
	Set      *CodeSet      // to tell it from others, and for requests; only the committer looks into it
}

// publish returns the set as readers see it, in a space with this standing.
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

// AllCounters returns the counters as they are stored: those of the collection and of all its
// spaces.
func (s *CollectionState) AllCounters() codec.Counters {
	n := s.Counters
	n.Spaces = nil
	for _, sp := range s.Spaces {
		n.Spaces = append(n.Spaces, sp.counters())
	}
	return n
}
