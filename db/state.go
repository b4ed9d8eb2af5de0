package db

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

// collectionState is what the committer knows of a collection. Only the
// committer touches it; readers see what it publishes.
type collectionState struct {
	*record.Descriptor
	labels   *labels
	counters codec.Counters // but those of the spaces
	live     sharedBitmap
	presence []sharedBitmap
	spaces   []*spaceState // by ascending id

	// Blocks from this row on have never been written, so that they need no merging
	// with what was there.
	freshRow uint64

	// changed collects the rows that were put or deleted since a training took
	// its snapshot; nil while none is going on.
	changed *roaring.Bitmap

	dirty bool          // it is in committer.dirty
	gone  chan struct{} // closed when the collection is dropped
}

// sharedBitmap is a bitmap that published views may show: it is copied before
// the first change after that.
type sharedBitmap struct {
	b      *roaring.Bitmap
	shared bool
}

func (s *sharedBitmap) edit() *roaring.Bitmap {
	if s.shared {
		s.b, s.shared = s.b.Clone(), false
	}
	return s.b
}

func (s *sharedBitmap) publish() *roaring.Bitmap {
	s.shared = true
	return s.b
}

func newCollectionState(d *record.Descriptor) *collectionState {
	s := &collectionState{Descriptor: d, labels: newLabels(), live: sharedBitmap{b: roaring.New()}, gone: make(chan struct{})}
	for range d.Modalities {
		s.presence = append(s.presence, sharedBitmap{b: roaring.New()})
	}
	s.counters.NextSpace = 1
	return s
}

// publish returns the state as readers see it.
func (s *collectionState) publish() *collectionView {
	s.dirty = false
	v := &collectionView{
		Descriptor: s.Descriptor,
		labels:     s.labels,
		names:      s.labels.all(),
		items:      int(s.counters.Items),
		live:       s.live.publish(),
		nextRow:    s.counters.NextRow,
		active:     uint32(s.counters.ActiveSpace),
		previous:   uint32(s.counters.PreviousSpace),
		gone:       s.gone,
	}
	for i := range s.presence {
		v.presence = append(v.presence, s.presence[i].publish())
	}
	for _, sp := range s.spaces {
		active := uint64(sp.ID) == s.counters.ActiveSpace
		sv := sp.publish(active)
		v.spaces = append(v.spaces, sv)
		v.tables.add(sv.sets)
		if active {
			v.spaceView = sv
		}
	}
	return v
}

// loadStates reads all collections of the store.
func loadStates(r pebble.Reader) (map[uint32]*collectionState, error) {
	states := map[uint32]*collectionState{}
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

func loadState(r pebble.Reader, d *record.Descriptor) (*collectionState, error) {
	s := newCollectionState(d)
	b, err := record.Get(r, codec.CollectionKey(codec.KindCounters, d.ID))
	if err != nil {
		return nil, fault.ReadError(err, "counters of collection %q", d.Name)
	}
	if s.counters, err = codec.DecodeCounters(b); err != nil {
		return nil, fault.Corrupt(err, "counters of collection %q", d.Name)
	}
	s.freshRow = s.counters.NextRow
	err = record.ForEach(r, codec.CollectionKey(codec.KindLabel, d.ID), func(key, value []byte) error {
		id, isNew := s.labels.add(string(value))
		if want := codec.LastNumber(key); id != want || !isNew {
			return fault.Corrupt(fmt.Errorf("%q has id %d", value, id), "label %d", want)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	// The sets of labels and fields stay in the store.
	for _, set := range []byte{codec.SetLive, codec.SetModality} {
		if err := s.loadRows(r, set); err != nil {
			return nil, err
		}
	}
	stored := s.counters.Spaces
	s.counters.Spaces = nil
	for _, n := range stored {
		sp, err := loadSpace(r, d, n)
		if err != nil {
			return nil, err
		}
		s.spaces = append(s.spaces, sp)
	}
	for _, id := range []uint64{s.counters.ActiveSpace, s.counters.PreviousSpace} {
		if id != 0 && s.spaceByID(uint32(id)) == nil {
			return nil, fault.Corrupt(fmt.Errorf("no space %d", id), "counters of collection %q", d.Name)
		}
	}
	return s, nil
}

// loadRows reads the sets of rows of one sort that are held in memory.
func (s *collectionState) loadRows(r pebble.Reader, set byte) error {
	prefix := append(codec.CollectionKey(codec.KindRows, s.ID), set)
	return record.ForEach(r, prefix, func(key, value []byte) error {
		_, id, container := codec.RowsKeyParts(key)
		var into *roaring.Bitmap
		switch {
		case set == codec.SetLive && id == 0:
			into = s.live.b
		case set == codec.SetModality && int(id) < len(s.presence):
			into = s.presence[id].b
		default:
			return fault.Corrupt(errors.New("unknown set"), "rows %x", key)
		}
		return record.AddRows(into, key, value, container)
	})
}
