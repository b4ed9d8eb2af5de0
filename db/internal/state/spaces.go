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
)

// A collection has one active space, which searches use unless told otherwise, and may
// have others: one that is being built, and those that stand by. Every write keeps all
// of them current, so that activating one is a matter of one commit.

// A SpaceState is what the committer knows of a space. Only the committer touches it;
// readers see what it publishes.
type SpaceState struct {
	*spaces.Space // as its latest revision has it
	collection    uint32
	Numbers       codec.SpaceCounters // but revision and sets
	Sets          []*CodeSet          // of its targets
	Pending       sharedBitmap        // rows that the online step has not seen
	Recode        sharedBitmap        // rows whose codes are not those of their labels yet

	// Figures since opening; all revisions and views of the space share them.
	distances histogram
	balance   *knownBalance

	Revisions []*spaces.RevisionDescriptor // that are kept, ascending; the slice is replaced, not written to
	Written   int                          // rows from which it may learn, or that had taught and are gone, since the last update began

	// No block of the space has ever been written.
	fresh bool

	// Left is set where the call that wanted the space built has ended, or its process has, and
	// nobody has asked to go on with it. After an opening it is completed in the background.
	Left bool

	// Changed collects the rows that were put or deleted since the builder of the
	// space, or what updates it, took its view; nil while there is neither.
	Changed *roaring.Bitmap
}

// NewSpaceState returns the state of a space without codes.
func NewSpaceState(collection uint32, sp *spaces.Space) *SpaceState {
	s := &SpaceState{
		Space: sp, collection: collection, Numbers: codec.SpaceCounters{ID: uint64(sp.ID)}, fresh: true,
		distances: make(histogram, sp.Bits+1), balance: new(knownBalance),
		Pending: sharedBitmap{B: roaring.New()}, Recode: sharedBitmap{B: roaring.New()},
	}
	for _, target := range sp.Targets {
		s.Sets = append(s.Sets, newCodeSet(sp, sp.Keys(collection, target)))
	}
	return s
}

// LeftByTraining reports whether the space is one of a training that nobody waits for.
func (s *SpaceState) LeftByTraining() bool { return s.Left && s.Parent == 0 }

// A SpaceView is the state of a space as readers see it. It is immutable.
type SpaceView struct {
	Space   *spaces.Space // nil: there is none
	Numbers codec.SpaceCounters
	Coded   int           // items that have a code for any target
	Sets    []CodeSetView // of its targets
	Pending *roaring.Bitmap
	Recode  *roaring.Bitmap

	Distances histogram
	Balances  *knownBalance

	Revisions []*spaces.RevisionDescriptor // that are kept, ascending
	Written   int                          // rows from which it may learn, or that had taught and are gone, since the last update began
}

// A spaceStanding says who searches a space.
type spaceStanding byte

const (
	spaceStandby  spaceStanding = iota // who asks for it
	spaceActive                        // everybody
	spaceBuilding                      // nobody yet
)

func (s *SpaceState) publish(active bool) SpaceView {
	standing := spaceStandby
	switch {
	case s.Numbers.Building:
		standing = spaceBuilding
	case active:
		standing = spaceActive
	}
	v := SpaceView{
		Space: s.Space, Numbers: s.counters(), Coded: int(s.Numbers.Coded),
		Pending: s.Pending.publish(), Recode: s.Recode.publish(),
		Sets:      make([]CodeSetView, 0, len(s.Sets)),
		Distances: s.distances, Balances: s.balance,
		Revisions: s.Revisions, Written: s.Written,
	}
	for _, set := range s.Sets {
		v.Sets = append(v.Sets, set.publish(standing))
	}
	return v
}

// counters returns the counters of the space as they are stored.
func (s *SpaceState) counters() codec.SpaceCounters {
	n := s.Numbers
	n.Revision, n.Sets = uint64(s.Revision), nil
	for _, set := range s.Sets {
		n.Sets = append(n.Sets, set.counters())
	}
	return n
}

// TakeOver takes over the counters of a bulk load of codes.
func (s *SpaceState) TakeOver(n codec.SpaceCounters) {
	for i, set := range s.Sets {
		set.FreshCode = n.Sets[i].NextCode
	}
	s.Numbers = n
	s.Numbers.Sets = nil
	s.fresh = false
}

// Revise gives the space another revision.
func (s *SpaceState) Revise(sp *spaces.Space) {
	s.Space = sp
	for _, set := range s.Sets {
		set.in = sp
	}
}

// loaded reports whether all codes of the space are in memory.
func (s *SpaceState) loaded() bool {
	return !slices.ContainsFunc(s.Sets, func(set *CodeSet) bool { return set.Table == nil })
}

// HasCode reports whether a row has a code for any target.
func (s *SpaceState) HasCode(row uint32) bool {
	return slices.ContainsFunc(s.Sets, func(set *CodeSet) bool {
		_, has := set.Table.Table().CodeOf(row)
		return has
	})
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
	s.Numbers.Sets = nil
	if len(n.Sets) != len(sp.Targets) {
		return nil, fault.Corrupt(fmt.Errorf("of %d views, space %d has %d", len(n.Sets), n.ID, len(sp.Targets)), "counters of collection %q", d.Name)
	}
	for i, set := range s.Sets {
		if n.Sets[i].View != set.Target {
			return nil, fault.Corrupt(fmt.Errorf("of view %d in space %d, not %d", n.Sets[i].View, n.ID, set.Target), "counters of collection %q", d.Name)
		}
		set.Table, set.stored, set.loading, set.FreshCode = nil, n.Sets[i], newLoading(), n.Sets[i].NextCode
	}
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

// onlineRows returns a set of rows of the online step, nil where there is none.
func (s *SpaceState) onlineRows(set byte) *sharedBitmap {
	switch set {
	case codec.SetPending:
		return &s.Pending
	case codec.SetRecode:
		return &s.Recode
	}
	return nil
}

// SpaceByID returns a space of the collection, nil where there is none.
func (s *CollectionState) SpaceByID(id uint32) *SpaceState {
	for _, sp := range s.Spaces {
		if sp.ID == id {
			return sp
		}
	}
	return nil
}

// SpaceNamed returns a space by its number, the active one for 0; nil where there is none.
func (s *CollectionState) SpaceNamed(id uint32) *SpaceState {
	if id == 0 {
		return s.Active()
	}
	return s.SpaceByID(id)
}

// Active returns the space that searches use, nil where there is none.
func (s *CollectionState) Active() *SpaceState { return s.SpaceByID(uint32(s.Counters.ActiveSpace)) }

// Building returns the space that is being built, nil where there is none.
func (s *CollectionState) Building() *SpaceState {
	for _, sp := range s.Spaces {
		if sp.Numbers.Building {
			return sp
		}
	}
	return nil
}

// Having returns the live rows that have one of the modalities.
func (s *CollectionState) Having(modalities []int) *roaring.Bitmap {
	var presence []*roaring.Bitmap
	for i := range s.Presence {
		presence = append(presence, s.Presence[i].B)
	}
	return record.UnionOf(presence, modalities)
}
