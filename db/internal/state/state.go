package state

import (
	"encoding/binary"
	"errors"
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

// A CollectionState is the committer's state of a collection. Only the committer touches it; readers get a
// CollectionView. It equals the stored state without items; items, and the sets of rows of labels and fields,
// are read when needed. A request that changes it calls Committer.Touch.
type CollectionState struct {
	*record.Descriptor // of the collection; AlterCollection replaces the pointer

	Labels   *Labels        // all labels that items have had; views share it
	Counters codec.Counters // as stored, without Spaces: see AllCounters
	Live     sharedBitmap   // rows that have an item
	Presence []sharedBitmap // by modality: rows that have it
	Spaces   []*SpaceState  // by ascending id
	Indexes  []*IndexState  // of vectors, by ascending id

	// Blocks from row FreshRow on have never been written, so they need no merge.
	FreshRow uint64

	// Changed collects the rows that were put or deleted since a training or a reindexing took its view. It
	// is nil while neither runs, so it also says whether another may begin.
	Changed *roaring.Bitmap

	watches  []*roaring.Bitmap // see Watching
	indexing *fieldIndexing    // index of fields under construction; nil: none

	inUse      *labelsInUse    // of the latest view
	relabelled *roaring.Bitmap // labels whose sets have changed since that view; nil: any may have

	Vectors []QuantRows // by modality: vectors of rows, as far as they are in memory
	wants   *Wants      // modalities whose vectors searches want in memory; views share it

	dirty bool          // it is in Committer.dirty, see Touch
	Gone  chan struct{} // closed after the commit that drops the collection; views share it
}

// A sharedBitmap is a bitmap that published views may show. The committer reads B and changes the result of
// Edit, which is a copy if a view has the bitmap. So a view costs nothing, and the first change after it
// costs a copy.
type sharedBitmap struct {
	B      *roaring.Bitmap // to be read; never nil
	shared bool            // a view has it
	copies byte            // number of copies made by Edit
}

// Edit returns the bitmap to be changed. The result is valid until the next publish.
func (s *sharedBitmap) Edit() *roaring.Bitmap {
	if s.shared {
		s.B, s.shared = s.B.Clone(), false
		// Rows are given in order, so runs mostly take next to nothing, and so does their copy. Looking for
		// runs costs more than a copy, so it is done rarely.
		if s.copies++; s.copies == 0 {
			s.B.RunOptimize()
		}
	}
	return s.B
}

// publish returns the bitmap for a view. It does not change any more.
func (s *sharedBitmap) publish() *roaring.Bitmap {
	s.shared = true
	return s.B
}

// newCollectionState returns the state of a collection without items, labels or spaces.
func newCollectionState(d *record.Descriptor) *CollectionState {
	s := &CollectionState{Descriptor: d, Labels: NewLabels(), Live: sharedBitmap{B: roaring.New()},
		wants: new(Wants), Gone: make(chan struct{})}
	s.haveModalities(len(d.Modalities))
	s.Counters.NextSpace = 1
	return s
}

// haveModalities makes room for n modalities. No item has the new ones yet.
func (s *CollectionState) haveModalities(n int) {
	for range n - len(s.Presence) {
		s.Presence = append(s.Presence, sharedBitmap{B: roaring.New()})
		s.Vectors = append(s.Vectors, QuantRows{})
	}
}

// publish returns the view of the collection in its active space. It costs a few hundred bytes, more with
// more spaces and modalities, however many items there are.
func (s *CollectionState) publish() *CollectionView {
	s.dirty = false
	s.inUse = s.inUse.next(s.relabelled)
	s.relabelled = roaring.New()
	v := &CollectionView{
		Descriptor: s.Descriptor,
		Labels:     s.Labels,
		Names:      s.Labels.All(),
		Items:      int(s.Counters.Items),
		Live:       s.Live.publish(),
		NextRow:    s.Counters.NextRow,
		Active:     uint32(s.Counters.ActiveSpace),
		Previous:   uint32(s.Counters.PreviousSpace),
		Gone:       s.Gone,
		Filters:    new(Filters),
		inUse:      s.inUse,
		wants:      s.wants,
	}
	for i := range s.Presence {
		v.Presence = append(v.Presence, s.Presence[i].publish())
	}
	for t := range s.Vectors {
		v.Vectors = append(v.Vectors, s.Vectors[t].publish())
		v.rerank.add(v.Vectors[t].Bytes(), false)
	}
	for _, x := range s.Indexes {
		v.Indexes = append(v.Indexes, x.publish())
	}
	for _, sp := range s.Spaces {
		active := uint64(sp.ID) == s.Counters.ActiveSpace
		sv := sp.publish(active)
		v.Spaces = append(v.Spaces, sv)
		v.tables.Add(&sv.Codes)
		v.rerank.add(sv.Directions.Bytes(), active)
		if active {
			v.SpaceView = sv
		}
	}
	return v
}

// loadStates reads the states of all collections of the store, without codes.
func loadStates(r pebble.Reader) (map[uint32]*CollectionState, error) {
	states := map[uint32]*CollectionState{}
	err := record.ForEach(r, []byte{codec.KindCollection}, func(key, value []byte) error {
		d, err := record.DecodeDescriptor(value)
		if err == nil && d.ID != binary.BigEndian.Uint32(key[1:]) {
			err = fmt.Errorf("id %d", d.ID)
		}
		if err != nil {
			return fault.Corrupt(err, "descriptor of collection %x", key[1:])
		}
		states[d.ID], err = loadState(r, d)
		return err
	})
	return states, err
}

// loadState reads the state of the collection with the descriptor d, without codes.
func loadState(r pebble.Reader, d *record.Descriptor) (*CollectionState, error) {
	s := newCollectionState(d)
	b, err := record.Get(r, codec.CollectionKey(codec.KindCounters, d.ID))
	if err != nil {
		return nil, fault.ReadError(err, "counters of collection %q", d.Name)
	}
	if s.Counters, err = codec.DecodeCounters(b); err != nil {
		return nil, fault.Corrupt(err, "counters of collection %q", d.Name)
	}
	s.FreshRow = s.Counters.NextRow
	err = record.ForEach(r, codec.CollectionKey(codec.KindLabel, d.ID), func(key, value []byte) error {
		id, isNew := s.Labels.Add(string(value))
		if want := codec.LastNumber(key); id != want || !isNew {
			return fault.Corrupt(fmt.Errorf("%q has id %d", value, id), "label %d", want)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	// The sets of labels and fields stay in the store: filters read what they need.
	for _, set := range []byte{codec.SetLive, codec.SetModality} {
		if err := s.loadRows(r, set); err != nil {
			return nil, err
		}
	}
	stored := s.Counters.Spaces
	s.Counters.Spaces = nil
	for _, n := range stored {
		sp, err := loadSpace(r, d, n)
		if err != nil {
			return nil, err
		}
		s.Spaces = append(s.Spaces, sp)
	}
	if err := s.loadIndexes(r); err != nil {
		return nil, err
	}
	for _, id := range []uint64{s.Counters.ActiveSpace, s.Counters.PreviousSpace} {
		if id != 0 && s.SpaceByID(uint32(id)) == nil {
			return nil, fault.Corrupt(fmt.Errorf("no space %d", id), "counters of collection %q", d.Name)
		}
	}
	return s, nil
}

// loadRows reads the sets of rows of one kind that is held in memory: codec.SetLive or codec.SetModality.
func (s *CollectionState) loadRows(r pebble.Reader, set byte) error {
	prefix := append(codec.CollectionKey(codec.KindRows, s.ID), set)
	return record.ForEach(r, prefix, func(key, value []byte) error {
		_, id, container := codec.RowsKeyParts(key)
		var into *roaring.Bitmap
		switch {
		case set == codec.SetLive && id == 0:
			into = s.Live.B
		case set == codec.SetModality && int(id) < len(s.Presence):
			into = s.Presence[id].B
		default:
			return fault.Corrupt(errors.New("unknown set"), "rows %x", key)
		}
		return record.AddRows(into, key, value, container)
	})
}

// A collection has one active space, which searches use by default. It may also have a space that is being
// built, and spaces that stand by. Every write updates all of them, so activating a space takes one commit.
//
// The life of a space: a training or a reindexing installs it in one commit, with its model and its lessons,
// but without codes (Numbers.Building). A builder encodes the existing rows block by block, and Numbers.Built
// is the row it has reached. Rows written meanwhile are encoded by their write (Tx.put). When all rows have
// codes, Building ends, and the space stands by or becomes active (Tx.Activate). Updates revise it
// (SpaceState.Revise), until Tx.DropSpace deletes it. The one space of a codes-only collection exists from
// the beginning and never changes.

// A SpaceState is the committer's state of a space. Only the committer touches it; readers get a SpaceView.
type SpaceState struct {
	*spaces.Space // its latest revision; Revise replaces the pointer
	collection    uint32

	// Numbers are the stored counters of the space, except two: Space has the revision, and Codes counts the
	// codes.
	Numbers codec.SpaceCounters

	Codes   *CodeSet
	Pending sharedBitmap // rows that the online step has not seen; stored as codec.SetPending
	Recode  sharedBitmap // rows that do not have the codes of their labels yet; stored as codec.SetRecode

	// Figures since opening; all revisions of the space share them.
	distances histogram

	// Directions has the projections of rows, as far as they are in memory; none if codes are given.
	Directions QuantRows

	// Revisions are the stored revisions, ascending. Views share the slice and its elements: replace them, do
	// not write to them.
	Revisions []*spaces.RevisionDescriptor

	// Written counts, since the last update began, writes of rows that the space may learn from, and of rows
	// that had taught it and have changed or gone. At Options.UpdateItems an update is due. It is not stored:
	// opening sets it to the number of pending rows.
	Written int

	// fresh says that no block of the space has been written: only in the commit that installs it.
	fresh bool

	// Left says that no caller waits for this unfinished space: its call or process has ended, and no other
	// call has resumed it. It is completed in the background after an opening, unless a training replaces it
	// first (LeftByTraining).
	Left bool

	// Changed collects the rows that were put or deleted since the builder of the space, or an update, took
	// its view: their results for these rows are out of date. Nil while neither runs; they never run
	// together.
	Changed *roaring.Bitmap
}

// NewSpaceState returns the state of a new space without codes. Nothing of it is stored yet.
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

// LeftByTraining reports whether the space is Left and its model was trained for it, not taken from another
// space by a reindexing.
func (s *SpaceState) LeftByTraining() bool { return s.Left && s.Parent == 0 }

// A SpaceView is the immutable state of a space that readers see. Everything it points to is shared and,
// except for the figures, must not be written to. See SpaceState for the fields.
type SpaceView struct {
	Space   *spaces.Space       // the latest revision; nil in a CollectionView without an active space
	Numbers codec.SpaceCounters // as stored, with revision and counters of codes
	Codes   CodeSetView
	Pending *roaring.Bitmap // rows that the online step has not seen
	Recode  *roaring.Bitmap // rows that do not have the codes of their labels yet

	Directions QuantView // projections of rows, as far as they are in memory; none if codes are given

	Distances histogram // searches count into it

	Revisions []*spaces.RevisionDescriptor // the stored ones, ascending
	Written   int                          // since the last update began
}

// A spaceStanding says which searches use a space. Memory and the indexer's time go to active spaces first,
// then to standby spaces, then to spaces being built.
type spaceStanding byte

const (
	spaceStandby  spaceStanding = iota // searches that name it
	spaceActive                        // all searches that name no other
	spaceBuilding                      // no search yet
)

// publish returns the view of the space; active says whether it is the active space of the collection.
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
		Pending: s.Pending.publish(), Recode: s.Recode.publish(),
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

// TakeOver sets the counters of the space to n, which a commit of tables has stored. Its tables of codes have
// the codes already.
func (s *SpaceState) TakeOver(n codec.SpaceCounters) {
	s.Codes.FreshCode, s.Codes.Posted = n.NextCode, n.Posted
	s.Numbers = n
	s.fresh = false
}

// Revise makes sp the latest revision of the space. The caller stores the revision in the same request and
// calls Touch.
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
	set.Posted = n.Posted
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
	s.Written = int(s.Pending.B.GetCardinality()) // an update checks it right after opening
	return s, err
}

// onlineRows returns the set of rows with the number set in codec, nil if there is no such set.
func (s *SpaceState) onlineRows(set byte) *sharedBitmap {
	switch set {
	case codec.SetPending:
		return &s.Pending
	case codec.SetRecode:
		return &s.Recode
	}
	return nil
}

// SpaceByID returns the space of the collection with an id, nil if there is none.
func (s *CollectionState) SpaceByID(id uint32) *SpaceState {
	for _, sp := range s.Spaces {
		if sp.ID == id {
			return sp
		}
	}
	return nil
}

// SpaceNamed returns the space with an id, or the active space for 0; nil if there is none.
func (s *CollectionState) SpaceNamed(id uint32) *SpaceState {
	if id == 0 {
		return s.Active()
	}
	return s.SpaceByID(id)
}

// Active returns the space that searches use, nil if there is none.
func (s *CollectionState) Active() *SpaceState { return s.SpaceByID(uint32(s.Counters.ActiveSpace)) }

// Building returns the space that is being built, nil if there is none. There is at most one.
func (s *CollectionState) Building() *SpaceState {
	for _, sp := range s.Spaces {
		if sp.Numbers.Building {
			return sp
		}
	}
	return nil
}

// Having returns the rows that have at least one of the modalities, in a new bitmap.
func (s *CollectionState) Having(modalities []int) *roaring.Bitmap {
	var presence []*roaring.Bitmap
	for i := range s.Presence {
		presence = append(presence, s.Presence[i].B)
	}
	return record.UnionOf(presence, modalities)
}

// holds reports whether a space of the collection still has the code set.
func (s *CollectionState) holds(set *CodeSet) bool {
	return slices.ContainsFunc(s.Spaces, func(sp *SpaceState) bool { return sp.Codes == set })
}
