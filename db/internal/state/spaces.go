package state

import (
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/internal/quant"
)

// A collection has one active space, which searches use unless told otherwise, and may
// have others: one that is being built, and those that stand by. Every write keeps all
// of them current, so that activating one is a matter of one commit.
//
// The life of a space: a training or a reindexing founds it, in one commit, with its model and
// with what rows have taught it, and with no codes (Numbers.Building). A builder gives codes
// to the rows that were there, block by block, and Numbers.Built is the row that it has come
// to; rows that are written meanwhile get theirs from the write (Tx.put). When all rows have
// codes Building ends, and the space stands by or becomes active (Tx.Activate). Updates revise
// it (SpaceState.Revise), until Tx.DropSpace deletes it. The one space of a codes-only
// collection is there from the beginning and never changes.

// A SpaceState is what the committer knows of a space. Only the committer touches it;
// readers see what it publishes.
type SpaceState struct {
	*spaces.Space // its latest revision; Revise replaces the pointer
	collection    uint32

	// Numbers are the counters of the space as they are stored, but for Revision, which is
	// that of Space, and of the codes, which Codes counts.
	Numbers codec.SpaceCounters

	Codes   *CodeSet
	Pending sharedBitmap // rows that the online step has not seen; stored as codec.SetPending
	Recode  sharedBitmap // rows whose codes are not those of their labels yet; stored as codec.SetRecode

	// Relabellings counts, since opening, how often rows in Recode have got other labels: what has been
	// encoded for them before is not their code.
	Relabellings uint64

	// Figures since opening; all revisions of the space share them.
	distances histogram

	// Directions has the projections of rows, as far as they are in memory; there are none if
	// codes are given.
	Directions QuantRows

	// Revisions are those that are stored, ascending. Views share the slice and what it points
	// to: both are replaced, and not written to.
	Revisions []*spaces.RevisionDescriptor

	// Written counts, since the last update began, the writes of rows from which the space may
	// learn, or that had taught and have changed or gone. When there are Options.UpdateItems
	// an update is due. It is not stored: after opening it is the number of pending rows.
	Written int

	// fresh says that no block of the space has ever been written. It is true only in the
	// commit that founds the space.
	fresh bool

	// Left says, of a space that is being built, that nobody waits for that: the call that
	// wanted it has ended, or its process has, and no call has asked to go on with it. It is
	// completed in the background after an opening, unless a training replaces the space first
	// (LeftByTraining).
	Left bool

	// Changed collects the rows that were put or deleted since the builder of the space, or an
	// update, took its view, as what these make of such rows is out of date. Nil while there
	// is neither; there is never more than one of both.
	Changed *roaring.Bitmap
}

// NewSpaceState returns the state of a new space without codes, of which nothing is stored yet.
func NewSpaceState(collection uint32, sp *spaces.Space) *SpaceState {
	s := &SpaceState{
		Space: sp, collection: collection, Numbers: codec.SpaceCounters{ID: uint64(sp.ID)}, fresh: true,
		distances: make(histogram, sp.Bits+1),
		Pending:   sharedBitmap{B: roaring.New()}, Recode: sharedBitmap{B: roaring.New()},
	}
	if sp.ProjectionBytes() > 0 {
		s.Directions.Writer = quant.NewWriter(sp.Bits)
	}
	s.Codes = newCodeSet(sp, sp.Keys(collection))
	return s
}

// LeftByTraining reports whether the space is Left and its model was trained for it, and not
// taken over from another space by a reindexing.
func (s *SpaceState) LeftByTraining() bool { return s.Left && s.Parent == 0 }

// A SpaceView is the state of a space as readers see it. It is immutable, and what it points
// to is shared and must not be written to, but for the figures. SpaceState says more of each
// field.
type SpaceView struct {
	Space   *spaces.Space       // in its latest revision; nil, in a CollectionView: the collection has no active space
	Numbers codec.SpaceCounters // as stored, with revision and counters of codes
	Codes   CodeSetView
	Pending *roaring.Bitmap // rows that the online step has not seen
	Recode  *roaring.Bitmap // rows whose codes are not those of their labels yet

	Relabellings uint64
	Directions   QuantView // projections of rows, as far as they are in memory; none if codes are given

	Distances histogram // searches count into it

	Revisions []*spaces.RevisionDescriptor // that are stored, ascending
	Written   int                          // since the last update began
}

// A spaceStanding says which searches look into a space. Its codes get memory and the
// indexer's time in that order: active, standby, building.
type spaceStanding byte

const (
	spaceStandby  spaceStanding = iota // those that name it
	spaceActive                        // all that name no other
	spaceBuilding                      // none yet
)

// publish returns the space as readers see it; active says that it is the active one of the
// collection.
func (s *SpaceState) publish(active bool) SpaceView {
	standing := spaceStandby
	switch {
	case s.Numbers.Building:
		standing = spaceBuilding
	case active:
		standing = spaceActive
	}
	v := SpaceView{
		Space: s.Space, Numbers: s.counters(), Codes: s.Codes.publish(standing),
		Pending: s.Pending.publish(), Recode: s.Recode.publish(), Relabellings: s.Relabellings,
		Distances: s.distances,
		Revisions: s.Revisions, Written: s.Written,
	}
	v.Directions = s.Directions.publish()
	return v
}

// counters returns the counters of the space as they are stored.
func (s *SpaceState) counters() codec.SpaceCounters {
	n := s.Numbers
	n.Revision, n.CodeCounters = uint64(s.Revision), s.Codes.counters()
	return n
}

// TakeOver makes n, which a commit of tables has stored, the counters of the space. Its tables
// of codes have the codes already.
func (s *SpaceState) TakeOver(n codec.SpaceCounters) {
	s.Codes.FreshCode = n.NextCode
	s.Numbers = n
	s.fresh = false
}

// Revise makes sp, another revision of the space, the latest. The caller stores the revision
// in the same request, and calls Touch.
func (s *SpaceState) Revise(sp *spaces.Space) {
	s.Space, s.Codes.in = sp, sp
}

// loaded reports whether all codes of the space are in memory.
func (s *SpaceState) loaded() bool { return s.Codes.Table != nil }

// Coded returns how many items have a code.
func (s *SpaceState) Coded() int { return int(s.Codes.counters().Coded) }

// HasCode reports whether a row has a code. The codes must be loaded.
func (s *SpaceState) HasCode(row uint32) bool {
	_, has := s.Codes.Table.Table().CodeOf(row)
	return has
}

// loadSpace reads the state of a space, but not its codes.
func loadSpace(r pebble.Reader, d *record.Descriptor, n codec.SpaceCounters) (*SpaceState, error) {
	sp, err := spaces.Read(r, d, uint32(n.ID), uint32(n.Revision))
	if err != nil {
		return nil, err
	}
	s := NewSpaceState(d.ID, sp)
	s.fresh, s.Left = false, n.Building
	s.Numbers = n
	set := s.Codes
	set.Table, set.opening, set.loading, set.FreshCode = nil, n.CodeCounters, newLoading(), n.NextCode
	if s.Revisions, err = spaces.ReadRevisions(r, d.ID, sp.ID); err != nil {
		return nil, err
	}
	prefix := codec.NumberKey(codec.KindOnlineRows, d.ID, sp.ID)
	err = record.ForEach(r, prefix, func(key, value []byte) error {
		which, container := codec.OnlineRowsKeyParts(key)
		into := s.onlineRows(which)
		if into == nil {
			return fault.Corrupt(fmt.Errorf("unknown set %d", which), "rows %x", key)
		}
		return record.AddRows(into.B, key, value, container)
	})
	s.Written = int(s.Pending.B.GetCardinality()) // it is looked at once after opening
	return s, err
}

// onlineRows returns the set of rows that codec calls set, nil where there is no such set.
func (s *SpaceState) onlineRows(set byte) *sharedBitmap {
	switch set {
	case codec.SetPending:
		return &s.Pending
	case codec.SetRecode:
		return &s.Recode
	}
	return nil
}

// SpaceByID returns the space of the collection with an id, nil where there is none.
func (s *CollectionState) SpaceByID(id uint32) *SpaceState {
	for _, sp := range s.Spaces {
		if sp.ID == id {
			return sp
		}
	}
	return nil
}

// SpaceNamed returns the space that a caller means by a number: that with the id, or for 0 the
// active one; nil where there is none.
func (s *CollectionState) SpaceNamed(id uint32) *SpaceState {
	if id == 0 {
		return s.Active()
	}
	return s.SpaceByID(id)
}

// Active returns the space that searches use, nil where there is none.
func (s *CollectionState) Active() *SpaceState { return s.SpaceByID(uint32(s.Counters.ActiveSpace)) }

// Building returns the space that is being built, nil where there is none. There is at most one.
func (s *CollectionState) Building() *SpaceState {
	for _, sp := range s.Spaces {
		if sp.Numbers.Building {
			return sp
		}
	}
	return nil
}

// Having returns the rows that have at least one of the modalities, in a bitmap of the
// caller's own.
func (s *CollectionState) Having(modalities []int) *roaring.Bitmap {
	var presence []*roaring.Bitmap
	for i := range s.Presence {
		presence = append(presence, s.Presence[i].B)
	}
	return record.UnionOf(presence, modalities)
}

// holds reports whether a code set is still in one of the spaces of the collection.
func (s *CollectionState) holds(set *CodeSet) bool {
	return slices.ContainsFunc(s.Spaces, func(sp *SpaceState) bool { return sp.Codes == set })
}
