package db

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// A view is one state of the whole database: what is in memory and a snapshot
// of the store, taken by the committer at the same point. It is immutable.
// Readers hold a view for as long as they read and never wait for writers.
type view struct {
	refs     atomic.Int64
	snap     *pebble.Snapshot
	sequence uint64 // of the last commit
	catalogue
}

// collectionView is the state of one collection. Everything in it is shared
// with other views and must not be written to.
type collectionView struct {
	*record.Descriptor
	labels   *labels
	names    []string // of the labels, by id, as of this view
	items    int
	live     *roaring.Bitmap   // rows that have an item
	presence []*roaring.Bitmap // by modality: rows that have it
	nextRow  uint64
	spaces   []spaceView // by ascending id
	active   uint32      // of these, the one that searches use, whichever is looked at; 0: none
	previous uint32      // that was active before it; 0: none
	gone     <-chan struct{}
	tables   tableBytes // of all its spaces

	// What is looked at: the active space, unless a search names another.
	spaceView
}

// acquire adds a reference, unless the last one is gone already.
func (v *view) acquire() bool {
	for {
		n := v.refs.Load()
		if n == 0 {
			return false
		}
		if v.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release drops a reference; the last one frees the snapshot.
func (v *view) release() {
	if v.refs.Add(-1) == 0 {
		// The only error is that of a snapshot closed twice, which refs rules out.
		_ = v.snap.Close()
	}
}

// collection returns the state of a collection by id.
func (v *view) collection(id uint32, name string) (*collectionView, error) {
	if c, ok := v.collections.get(id); ok {
		return c, nil
	}
	return nil, fault.NotFound("collection %q", name)
}

// spaceNumber returns a space of the collection, nil where there is none.
func (cv *collectionView) spaceNumber(id uint32) *spaceView {
	for i := range cv.spaces {
		if cv.spaces[i].space.ID == id {
			return &cv.spaces[i]
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

// noSpace is about a space that the collection does not have.
func (cv *collectionView) noSpace(id uint32) error {
	var numbers []string
	for _, sp := range cv.spaces {
		number := fmt.Sprint(sp.space.ID)
		if sp.space.ID == cv.active {
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

// row returns the row of an item by its key, or ErrNotFound.
func (cv *collectionView) row(r pebble.Reader, key string) (uint32, error) {
	if len(key) > record.MaxKeyBytes {
		return 0, fault.NotFound("item %q in collection %q: a key has at most %d bytes, this one %d", record.Shortened(key), cv.Name, record.MaxKeyBytes, len(key))
	}
	row, found, err := record.RowOf(r, cv.ID, key)
	if err == nil && !found {
		err = fault.NotFound("item %q in collection %q", key, cv.Name)
	}
	return row, err
}
