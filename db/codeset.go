package db

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

// A codeSet is what the committer knows of a code set. Only the committer touches
// it; readers see what it publishes.
type codeSet struct {
	record.CodeKeys
	space   *spaces.Space      // in its latest revision
	table   *mih.Writer        // nil while it is being loaded; nothing is written meanwhile
	loading *loading           // nil where there is nothing to load
	stored  codec.CodeCounters // in the store, while there is no table

	// Blocks of codes from this number on have never been written, so that they
	// need no merging with what was there.
	freshCode uint64
}

// newCodeSet returns a set with no codes in it.
func newCodeSet(sp *spaces.Space, k record.CodeKeys) *codeSet {
	return &codeSet{CodeKeys: k, space: sp, table: mih.NewWriter(k.Bits)}
}

// counters returns how many codes there are.
func (s *codeSet) counters() codec.CodeCounters {
	if s.table == nil {
		return s.stored
	}
	return countersOf(s.CodeKeys, s.table)
}

// countersOf returns how many codes there are in a table, as counters of the set.
func countersOf(k record.CodeKeys, w *mih.Writer) codec.CodeCounters {
	t := w.Table()
	return codec.CodeCounters{
		View: k.Target, NextCode: uint64(t.Next()), Codes: uint64(t.Distinct()), Coded: uint64(t.Items()),
	}
}

// codeSetView is the state of a code set as readers see it, which is immutable.
type codeSetView struct {
	record.CodeKeys
	nextCode uint64
	codes    int // that some item has
	coded    int // items that have a code
	table    *mih.Table
	loading  *loading
	standing spaceStanding // of the space
	set      *codeSet      // to tell it from others; only the committer looks into it
}

func (s *codeSet) publish(standing spaceStanding) codeSetView {
	n := s.counters()
	v := codeSetView{
		CodeKeys: s.CodeKeys, nextCode: n.NextCode, codes: int(n.Codes), coded: int(n.Coded),
		loading: s.loading, standing: standing, set: s,
	}
	if s.table != nil {
		v.table = s.table.Publish()
	}
	return v
}

// loaded reports whether all codes of the collection are in memory.
func (s *collectionState) loaded() bool {
	return !slices.ContainsFunc(s.spaces, func(sp *spaceState) bool { return !sp.loaded() })
}

// allCounters returns the counters as they are stored.
func (s *collectionState) allCounters() codec.Counters {
	n := s.counters
	n.Spaces = nil
	for _, sp := range s.spaces {
		n.Spaces = append(n.Spaces, sp.counters())
	}
	return n
}
