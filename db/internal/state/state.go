package state

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
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
	s := &CollectionState{Descriptor: d, Labels: NewLabels(), Live: sharedBitmap{B: roaring.New()}, wants: new(Wants), Gone: make(chan struct{})}
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
