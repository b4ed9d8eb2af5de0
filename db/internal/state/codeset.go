package state

import (
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/mih"
)

// A space gives items codes for one target that all searches share, or for each target
// modality. A code set is what there is of one target: which code a row has, the
// codes, which rows carry each, and the postings of their substrings, in the store
// and in memory. Sets know nothing of each other; a code has a number in each set.

// A CodeSet is what the committer knows of a code set. Only the committer touches
// it; readers see what it publishes.
type CodeSet struct {
	record.CodeKeys
	in      *spaces.Space      // in its latest revision
	Table   *mih.Writer        // nil while it is being loaded; nothing is written meanwhile
	loading *Loading           // nil where there is nothing to load
	stored  codec.CodeCounters // in the store, while there is no table

	// Blocks of codes from this number on have never been written, so that they
	// need no merging with what was there.
	FreshCode uint64
}

// newCodeSet returns a set with no codes in it.
func newCodeSet(sp *spaces.Space, k record.CodeKeys) *CodeSet {
	return &CodeSet{CodeKeys: k, in: sp, Table: mih.NewWriter(k.Bits)}
}

// counters returns how many codes there are.
func (s *CodeSet) counters() codec.CodeCounters {
	if s.Table == nil {
		return s.stored
	}
	return CountersOf(s.CodeKeys, s.Table)
}

// CountersOf returns how many codes there are in a table, as counters of the set.
func CountersOf(k record.CodeKeys, w *mih.Writer) codec.CodeCounters {
	t := w.Table()
	return codec.CodeCounters{
		View: k.Target, NextCode: uint64(t.Next()), Codes: uint64(t.Distinct()), Coded: uint64(t.Items()),
	}
}

// CodeSetView is the state of a code set as readers see it, which is immutable.
type CodeSetView struct {
	record.CodeKeys
	NextCode uint64
	Codes    int // that some item has
	Coded    int // items that have a code
	Table    *mih.Table
	loading  *Loading
	standing spaceStanding // of the space
	Set      *CodeSet      // to tell it from others; only the committer looks into it
}

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

// loaded reports whether all codes of the collection are in memory.
func (s *CollectionState) loaded() bool {
	return !slices.ContainsFunc(s.Spaces, func(sp *SpaceState) bool { return !sp.loaded() })
}

// AllCounters returns the counters as they are stored.
func (s *CollectionState) AllCounters() codec.Counters {
	n := s.Counters
	n.Spaces = nil
	for _, sp := range s.Spaces {
		n.Spaces = append(n.Spaces, sp.counters())
	}
	return n
}
