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

// A View is one state of the whole database: what is in memory and a snapshot of the store,
// taken by the committer at the same point, so that the two always agree. It is immutable.
// Readers hold a view for as long as they read and never wait for writers. A view that is held
// keeps what was deleted or replaced since on disk, and old tables and bitmaps in memory.
type View struct {
	Refs     atomic.Int64     // of its holders, one of which is Database.Current; 0: Snap is closed
	Snap     *pebble.Snapshot // closed by the last Release
	Sequence uint64           // number of the last commit in it
	Catalogue
}

// A CollectionView is the state of one collection in a View. Everything in it is shared with
// other views and must not be written to. It needs no reference of its own, but codes that are
// not loaded, items and all else that the store has are read from the snapshot of its view.
type CollectionView struct {
	*record.Descriptor

	Labels   *Labels           // knows later labels, too
	Names    []string          // of the labels, by id, as of this view
	Items    int               // that there are: rows in Live
	Live     *roaring.Bitmap   // rows that have an item
	Presence []*roaring.Bitmap // by modality: rows that have it
	NextRow  uint64            // the row that the next new item gets; none has had it
	Spaces   []SpaceView       // by ascending id
	Active   uint32            // of these, the one that searches use, whichever is looked at; 0: none
	Previous uint32            // that was active before it; 0: none
	Gone     <-chan struct{}   // closed when the collection has been dropped
	tables   TableBytes        // of all its spaces
	Vectors  []QuantView       // by modality: vectors of rows, as far as they are in memory
	rerank   TableBytes        // memory of Vectors, and of the directions of all its spaces
	Indexes  []IndexView       // of vectors, by ascending id
	Filters  *Filters          // that searches of this view have evaluated
	inUse    *labelsInUse      // of this view, or of one before it with the same sets of labels
	wants    *Wants            // of which modalities searches want the vectors in memory

	// SpaceView is the space that is looked at: the active one (its Space is nil where there
	// is none), unless InSpace has chosen another.
	SpaceView
}

// Acquire adds a reference, to be given back with Release, unless the last one is gone
// already: then it returns false, and there is a newer view.
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
		// The only error is that of a snapshot closed twice, which refs rules out.
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

// SpaceNumber returns the space of the collection with an id, nil where there is none.
func (cv *CollectionView) SpaceNumber(id uint32) *SpaceView {
	for i := range cv.Spaces {
		if cv.Spaces[i].Space.ID == id {
			return &cv.Spaces[i]
		}
	}
	return nil
}

// Building returns the space that is being built, nil where there is none.
func (cv *CollectionView) Building() *SpaceView {
	for i := range cv.Spaces {
		if cv.Spaces[i].Numbers.Building {
			return &cv.Spaces[i]
		}
	}
	return nil
}

// InSpace returns the collection as it is seen in the space with an id: a copy of cv with
// another SpaceView. 0 is the space that it is seen in already, which is the active one unless
// the handle or the search names another. A space that does not exist is an ErrNotFound, one
// that is being built an ErrBusy.
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

// noSpace returns the error, an ErrNotFound, about a space that the collection does not have.
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

// CodeSets yields the code sets of all collections, those of active spaces first.
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
