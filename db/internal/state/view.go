package state

import (
	"fmt"
	"iter"
	"strings"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// A View is one immutable state of the whole database: memory and a snapshot of the store, taken by the
// committer at the same point, so they always agree. Readers hold a view while they read, and never wait for
// writers. A held view keeps data on disk that was deleted or replaced since, and old tables and bitmaps in
// memory.
type View struct {
	Refs     atomic.Int64     // number of holders, Database.Current included; 0: Snap is closed
	Snap     *pebble.Snapshot // closed by the last Release
	Sequence uint64           // number of the last commit in it
	Catalogue
}

// A CollectionView is the state of one collection in a View. Everything in it is shared with other views: do
// not write to it. It needs no reference of its own. Items, codes that are not loaded, and other stored data
// are read from the snapshot of its view.
type CollectionView struct {
	*record.Descriptor

	Labels   *Labels           // may know later labels, too
	Names    []string          // of the labels, by id, as of this view
	Items    int               // number of items: rows in Live
	Live     *roaring.Bitmap   // rows that have an item
	Presence []*roaring.Bitmap // by modality: rows that have it
	NextRow  uint64            // row of the next new item; unused so far
	Spaces   []SpaceView       // by ascending id
	Active   uint32            // the space that searches use by default; 0: none
	Previous uint32            // the space that was active before it; 0: none
	Gone     <-chan struct{}   // closed when the collection has been dropped
	tables   TableBytes        // of all its spaces
	Vectors  []QuantView       // by modality: vectors of rows, as far as they are in memory
	rerank   TableBytes        // memory of Vectors, and of the directions of all its spaces
	Indexes  []IndexView       // of vectors, by ascending id
	Filters  *Filters          // cached by searches of this view
	inUse    *labelsInUse      // of this view, or of an earlier one with the same sets of labels
	wants    *Wants            // modalities whose vectors searches want in memory

	// SpaceView is the space in use: the one chosen by InSpace, otherwise the active one. Without an active
	// space its Space is nil.
	SpaceView
}

// Acquire adds a reference; give it back with Release. It returns false if the last reference is gone: then
// there is a newer view.
func (v *View) Acquire() bool {
	for {
		n := v.Refs.Load()
		if n == 0 {
			return false
		}
		if v.Refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release drops a reference; the last one frees the snapshot.
func (v *View) Release() {
	if v.Refs.Add(-1) == 0 {
		// The only possible error is a second close of the snapshot, which Refs rules out.
		_ = v.Snap.Close()
	}
}

// Collection returns the state of the collection with an id, or an ErrNotFound that names it.
func (v *View) Collection(id uint32, name string) (*CollectionView, error) {
	if c, ok := v.Collections.Get(id); ok {
		return c, nil
	}
	return nil, fault.NotFound("collection %q", name)
}

// SpaceNumber returns the space of the collection with an id, nil if there is none.
func (cv *CollectionView) SpaceNumber(id uint32) *SpaceView {
	for i := range cv.Spaces {
		if cv.Spaces[i].Space.ID == id {
			return &cv.Spaces[i]
		}
	}
	return nil
}

// Building returns the space that is being built, nil if there is none.
func (cv *CollectionView) Building() *SpaceView {
	for i := range cv.Spaces {
		if cv.Spaces[i].Numbers.Building {
			return &cv.Spaces[i]
		}
	}
	return nil
}

// InSpace returns a copy of cv with another space in use. 0 keeps the space in use, which is the active one
// unless the handle or the search names another. A space that does not exist is an ErrNotFound; one that is
// being built is an ErrBusy.
func (cv *CollectionView) InSpace(id uint32) (*CollectionView, error) {
	if id == 0 || cv.Space != nil && cv.Space.ID == id {
		return cv, nil
	}
	sp := cv.SpaceNumber(id)
	switch {
	case sp == nil:
		return nil, cv.noSpace(id)
	case sp.Numbers.Building:
		return nil, fmt.Errorf("%w: space %d of collection %q is being built: wait until it is complete", fault.ErrBusy, id, cv.Name)
	}
	in := *cv
	in.SpaceView = *sp
	return &in, nil
}

// noSpace returns an ErrNotFound that lists the spaces of the collection.
func (cv *CollectionView) noSpace(id uint32) error {
	var numbers []string
	for _, sp := range cv.Spaces {
		number := fmt.Sprint(sp.Space.ID)
		if sp.Space.ID == cv.Active {
			number += " (active)"
		}
		numbers = append(numbers, number)
	}
	switch len(numbers) {
	case 0:
		return fault.NotFound("space %d of collection %q, which has none: it is not trained", id, cv.Name)
	case 1:
		return fault.NotFound("space %d of collection %q, which has space %s only", id, cv.Name, numbers[0])
	}
	return fault.NotFound("space %d of collection %q, which has the spaces %s", id, cv.Name, strings.Join(numbers, ", "))
}

// Row returns the row of the item with a key, or an ErrNotFound. r is the snapshot of the view.
func (cv *CollectionView) Row(r pebble.Reader, key string) (uint32, error) {
	if len(key) > record.MaxKeyBytes {
		return 0, fault.NotFound("item %q in collection %q: a key has at most %d bytes, this one %d", record.Shortened(key), cv.Name, record.MaxKeyBytes, len(key))
	}
	row, found, err := record.RowOf(r, cv.ID, key)
	if err == nil && !found {
		err = fault.NotFound("item %q in collection %q", key, cv.Name)
	}
	return row, err
}

// CodeSets yields the code sets of all collections: active spaces first, then standby, then building.
func (v *View) CodeSets() iter.Seq2[*CodeSetView, *CollectionView] {
	return func(yield func(*CodeSetView, *CollectionView) bool) {
		for _, standing := range []spaceStanding{spaceActive, spaceStandby, spaceBuilding} {
			for cv := range v.Collections.Values() {
				for i := range cv.Spaces {
					if set := &cv.Spaces[i].Codes; set.standing == standing && !yield(set, cv) {
						return
					}
				}
			}
		}
	}
}
