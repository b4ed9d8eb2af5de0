package db

import (
	"encoding/json"
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

// A spaceState is what the committer knows of a space. Only the committer touches it;
// readers see what it publishes.
type spaceState struct {
	*spaces.Space // as its latest revision has it
	in            uint32
	numbers       codec.SpaceCounters // but revision and sets
	sets          []*codeSet          // of its targets
	pending       sharedBitmap        // rows that the online step has not seen
	recode        sharedBitmap        // rows whose codes are not those of their labels yet

	// Figures since opening; all revisions and views of the space share them.
	distances histogram
	balance   *knownBalance

	revisions []*spaces.RevisionDescriptor // that are kept, ascending; the slice is replaced, not written to
	written   int                          // rows from which it may learn, or that had taught and are gone, since the last update began

	// No block of the space has ever been written.
	fresh bool

	// left is set where the call that wanted the space built has ended, or its process has, and
	// nobody has asked to go on with it. After an opening it is completed in the background.
	left bool

	// changed collects the rows that were put or deleted since the builder of the
	// space, or what updates it, took its view; nil while there is neither.
	changed *roaring.Bitmap
}

// newSpaceState returns the state of a space without codes.
func newSpaceState(collection uint32, sp *spaces.Space) *spaceState {
	s := &spaceState{
		Space: sp, in: collection, numbers: codec.SpaceCounters{ID: uint64(sp.ID)}, fresh: true,
		distances: make(histogram, sp.Bits+1), balance: new(knownBalance),
		pending: sharedBitmap{b: roaring.New()}, recode: sharedBitmap{b: roaring.New()},
	}
	for _, target := range sp.Targets {
		s.sets = append(s.sets, newCodeSet(sp, sp.Keys(collection, target)))
	}
	return s
}

// leftByTraining reports whether the space is one of a training that nobody waits for.
func (s *spaceState) leftByTraining() bool { return s.left && s.Parent == 0 }

// A spaceView is the state of a space as readers see it. It is immutable.
type spaceView struct {
	space   *spaces.Space // nil: there is none
	numbers codec.SpaceCounters
	coded   int           // items that have a code for any target
	sets    []codeSetView // of its targets
	pending *roaring.Bitmap
	recode  *roaring.Bitmap

	distances histogram
	balances  *knownBalance

	revisions []*spaces.RevisionDescriptor // that are kept, ascending
	written   int                          // rows from which it may learn, or that had taught and are gone, since the last update began
}

// A spaceStanding says who searches a space.
type spaceStanding byte

const (
	spaceStandby  spaceStanding = iota // who asks for it
	spaceActive                        // everybody
	spaceBuilding                      // nobody yet
)

func (s *spaceState) publish(active bool) spaceView {
	standing := spaceStandby
	switch {
	case s.numbers.Building:
		standing = spaceBuilding
	case active:
		standing = spaceActive
	}
	v := spaceView{
		space: s.Space, numbers: s.counters(), coded: int(s.numbers.Coded),
		pending: s.pending.publish(), recode: s.recode.publish(),
		sets:      make([]codeSetView, 0, len(s.sets)),
		distances: s.distances, balances: s.balance,
		revisions: s.revisions, written: s.written,
	}
	for _, set := range s.sets {
		v.sets = append(v.sets, set.publish(standing))
	}
	return v
}

// counters returns the counters of the space as they are stored.
func (s *spaceState) counters() codec.SpaceCounters {
	n := s.numbers
	n.Revision, n.Sets = uint64(s.Revision), nil
	for _, set := range s.sets {
		n.Sets = append(n.Sets, set.counters())
	}
	return n
}

// stored takes over the counters of a bulk load of codes.
func (s *spaceState) stored(n codec.SpaceCounters) {
	for i, set := range s.sets {
		set.freshCode = n.Sets[i].NextCode
	}
	s.numbers = n
	s.numbers.Sets = nil
	s.fresh = false
}

// revise gives the space another revision.
func (s *spaceState) revise(sp *spaces.Space) {
	s.Space = sp
	for _, set := range s.sets {
		set.space = sp
	}
}

// loaded reports whether all codes of the space are in memory.
func (s *spaceState) loaded() bool {
	return !slices.ContainsFunc(s.sets, func(set *codeSet) bool { return set.table == nil })
}

// hasCode reports whether a row has a code for any target.
func (s *spaceState) hasCode(row uint32) bool {
	return slices.ContainsFunc(s.sets, func(set *codeSet) bool {
		_, has := set.table.Table().CodeOf(row)
		return has
	})
}

// loadSpace reads the state of a space, but not its codes.
func loadSpace(r pebble.Reader, d *record.Descriptor, n codec.SpaceCounters) (*spaceState, error) {
	sp, err := spaces.Read(r, d, uint32(n.ID), uint32(n.Revision))
	if err != nil {
		return nil, err
	}
	s := newSpaceState(d.ID, sp)
	s.fresh, s.left = false, n.Building
	s.numbers = n
	s.numbers.Sets = nil
	if len(n.Sets) != len(sp.Targets) {
		return nil, fault.Corrupt(fmt.Errorf("of %d views, space %d has %d", len(n.Sets), n.ID, len(sp.Targets)), "counters of collection %q", d.Name)
	}
	for i, set := range s.sets {
		if n.Sets[i].View != set.Target {
			return nil, fault.Corrupt(fmt.Errorf("of view %d in space %d, not %d", n.Sets[i].View, n.ID, set.Target), "counters of collection %q", d.Name)
		}
		set.table, set.stored, set.loading, set.freshCode = nil, n.Sets[i], newLoading(), n.Sets[i].NextCode
	}
	if s.revisions, err = spaces.ReadRevisions(r, d.ID, sp.ID); err != nil {
		return nil, err
	}
	prefix := codec.NumberKey(codec.KindOnlineRows, d.ID, sp.ID)
	err = record.ForEach(r, prefix, func(key, value []byte) error {
		which, container := codec.OnlineRowsKeyParts(key)
		into := s.onlineRows(which)
		if into == nil {
			return fault.Corrupt(fmt.Errorf("unknown set %d", which), "rows %x", key)
		}
		return record.AddRows(into.b, key, value, container)
	})
	s.written = int(s.pending.b.GetCardinality()) // it is looked at once after opening
	return s, err
}

// onlineRows returns a set of rows of the online step, nil where there is none.
func (s *spaceState) onlineRows(set byte) *sharedBitmap {
	switch set {
	case codec.SetPending:
		return &s.pending
	case codec.SetRecode:
		return &s.recode
	}
	return nil
}

// spaceByID returns a space of the collection, nil where there is none.
func (s *collectionState) spaceByID(id uint32) *spaceState {
	for _, sp := range s.spaces {
		if sp.ID == id {
			return sp
		}
	}
	return nil
}

// active returns the space that searches use, nil where there is none.
// spaceNamed returns a space by its number, the active one for 0; nil where there is none.
func (s *collectionState) spaceNamed(id uint32) *spaceState {
	if id == 0 {
		return s.active()
	}
	return s.spaceByID(id)
}

func (s *collectionState) active() *spaceState { return s.spaceByID(uint32(s.counters.ActiveSpace)) }

// building returns the space that is being built, nil where there is none.
func (s *collectionState) building() *spaceState {
	for _, sp := range s.spaces {
		if sp.numbers.Building {
			return sp
		}
	}
	return nil
}

// building returns the space that is being built, nil where there is none.
func (cv *collectionView) building() *spaceView {
	for i := range cv.spaces {
		if cv.spaces[i].numbers.Building {
			return &cv.spaces[i]
		}
	}
	return nil
}

// inSpace returns the collection as it is seen in a space: 0 is the one that it is seen
// in already, which is the active one unless the handle or the search names another.
func (cv *collectionView) inSpace(id uint32) (*collectionView, error) {
	if id == 0 || cv.space != nil && cv.space.ID == id {
		return cv, nil
	}
	sp := cv.spaceNumber(id)
	switch {
	case sp == nil:
		return nil, cv.noSpace(id)
	case sp.numbers.Building:
		return nil, fmt.Errorf("%w: space %d of collection %q is being built: wait until it is complete", fault.ErrBusy, id, cv.Name)
	}
	in := *cv
	in.spaceView = *sp
	return &in, nil
}

// codesOnlySpace makes the one space that a codes-only collection has.
func (tx *tx) codesOnlySpace(s *collectionState) error {
	sp, err := spaces.New(spaces.Stored{ID: 1, Bits: s.Bits, Created: spaces.Now()}, nil, nil)
	if err != nil {
		return err
	}
	if err := tx.writeDescriptor(s, sp, nil); err != nil {
		return err
	}
	s.spaces = append(s.spaces, newSpaceState(s.ID, sp))
	s.counters.ActiveSpace, s.counters.NextSpace = 1, 2
	return nil
}

// writeDescriptor stores the descriptor of a space, with the report of its training and a
// copy of the descriptor of the collection.
func (tx *tx) writeDescriptor(s *collectionState, sp *spaces.Space, report json.RawMessage) error {
	b, err := json.Marshal(spaces.Reported{Stored: sp.Stored, Report: report, Collection: s.Descriptor})
	if err != nil {
		return err
	}
	return tx.batch.Set(codec.NumberKey(codec.KindSpace, s.ID, sp.ID), b, nil)
}
