package db

import (
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
