package state

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/pmap"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
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
		return nil, fmt.Errorf("%w: space %d of collection %q is being built: wait until it is complete",
			fault.ErrBusy, id, cv.Name)
	}
	in := *cv
	in.SpaceView = *sp
	return &in, nil
}

// InRevision returns a copy of cv that encodes by the projections of a kept revision of its space. 0 keeps
// the present ones. A revision that is not kept is an ErrNotFound.
func (cv *CollectionView) InRevision(r pebble.Reader, revision uint32) (*CollectionView, error) {
	switch {
	case revision == 0 || cv.Space != nil && revision == cv.Space.Revision:
		return cv, nil
	case cv.Space == nil || cv.Space.Learned == nil:
		return nil, fault.NotFound("revision %d of collection %q, which has no model", revision, cv.Name)
	}
	kept := func(d *spaces.RevisionDescriptor) bool { return d.Revision == revision }
	if revision != 1 && !slices.ContainsFunc(cv.Revisions, kept) {
		return nil, fault.NotFound("revision %d of space %d of collection %q: the present one is %d",
			revision, cv.Space.ID, cv.Name, cv.Space.Revision)
	}
	earlier, err := cv.Space.Earlier(r, cv.ID, revision)
	if err != nil {
		return nil, err
	}
	in := *cv
	in.Space = earlier
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
	return fault.NotFound("space %d of collection %q, which has the spaces %s", id, cv.Name,
		strings.Join(numbers, ", "))
}

// Row returns the row of the item with a key, or an ErrNotFound. r is the snapshot of the view.
func (cv *CollectionView) Row(r pebble.Reader, key string) (uint32, error) {
	if len(key) > record.MaxKeyBytes {
		return 0, fault.NotFound("item %q in collection %q: a key has at most %d bytes, this one %d",
			record.Shortened(key), cv.Name, record.MaxKeyBytes, len(key))
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

// A Catalogue holds all collections as readers see them. It is immutable: With and without return another
// one, at a cost of some 100 bytes a level of its maps. Both maps have the same collections.
type Catalogue struct {
	Collections pmap.Map[uint32, *CollectionView] // by id
	IDs         pmap.Map[string, uint32]          // by name
	Tables      TableBytes                        // the sum of CollectionView.tables
	Rerank      TableBytes                        // the sum of CollectionView.rerank
}

// With returns the catalogue with these collections in place of those with the same ids. The id and the name
// of a collection never change, and no other collection gets them.
func (c Catalogue) With(changed ...*CollectionView) Catalogue {
	owned := c.Collections.Len() == 0 // at opening: the new maps have no readers yet
	for _, cv := range changed {
		if old, found := c.Collections.Get(cv.ID); found {
			c.Tables, c.Rerank = c.Tables.minus(old.tables), c.Rerank.minus(old.rerank)
		} else {
			c.IDs = c.IDs.Set(cv.Name, cv.ID, owned) // a name never changes
		}
		c.Collections = c.Collections.Set(cv.ID, cv, owned)
		c.Tables, c.Rerank = c.Tables.plus(cv.tables), c.Rerank.plus(cv.rerank)
	}
	return c
}

// without returns the catalogue without a collection, which may be absent.
func (c Catalogue) without(id uint32) Catalogue {
	if old, found := c.Collections.Get(id); found {
		c.IDs = c.IDs.Without(old.Name)
		c.Collections = c.Collections.Without(id)
		c.Tables, c.Rerank = c.Tables.minus(old.tables), c.Rerank.minus(old.rerank)
	}
	return c
}

// Named returns the collection with a name, and whether there is one.
func (c Catalogue) Named(name string) (*CollectionView, bool) {
	id, found := c.IDs.Get(name)
	if !found {
		return nil, false
	}
	return c.Collections.Get(id)
}

// A Pin keeps a view readable beyond the call that took it, for a snapshot or for runs. It ends when it is
// released, at the latest when the database is closed. It keeps no call open: while nobody reads through it,
// the database may be closed. Safe for concurrent use.
type Pin struct {
	db         *Database
	v          *View // nil once it is released; guarded by pins.mu
	prev, next *Pin  // in the list of pins; guarded by pins.mu
}

// ErrReleased is the error of reading through a pin that has ended. It is a fault.ErrClosed with its own
// message, as the database may be open.
var ErrReleased error = errReleased{}

type errReleased struct{}

func (errReleased) Error() string {
	return "fddhdb: the snapshot, or the runs, that this reads are closed"
}
func (errReleased) Is(target error) bool { return target == fault.ErrClosed }

// pins are the pins of a database that have not been released.
type pins struct {
	mu   sync.Mutex // guards the fields below, and those of each Pin; held while a view is released
	head *Pin       // of a doubly linked list, in no particular order
	n    int        // pins in the list
}

// Pin returns a pin that takes over a reference to v and releases it at its end.
func (d *Database) Pin(v *View) *Pin {
	p := &Pin{db: d, v: v}
	d.pins.mu.Lock()
	defer d.pins.mu.Unlock()
	if p.next = d.pins.head; p.next != nil {
		p.next.prev = p
	}
	d.pins.head = p
	d.pins.n++
	return p
}

// Pinned returns the number of pins that have not been released.
func (d *Database) Pinned() int {
	d.pins.mu.Lock()
	defer d.pins.mu.Unlock()
	return d.pins.n
}

// Release ends the pin, and reports whether it was still open. A running read keeps the view until it is
// done.
func (p *Pin) Release() bool {
	l := &p.db.pins
	l.mu.Lock()
	defer l.mu.Unlock() // held until the view is released, as Close goes on when the list is empty
	v := p.v
	if v != nil {
		p.v = nil
		l.n--
		if p.prev != nil {
			p.prev.next = p.next
		} else {
			l.head = p.next
		}
		if p.next != nil {
			p.next.prev = p.prev
		}
		v.Release()
	}
	return v != nil
}

// Read gives f the view, and keeps the view and the database open while f runs. It returns the error of f,
// ErrReleased if the pin has ended, or ErrClosed if the database is closed.
func (p *Pin) Read(f func(v *View) error) error {
	if err := p.db.Guard.Enter(); err != nil {
		return err
	}
	defer p.db.Guard.Leave()
	p.db.pins.mu.Lock()
	v := p.v
	if v != nil {
		v.Acquire()
	}
	p.db.pins.mu.Unlock()
	if v == nil {
		return ErrReleased
	}
	defer v.Release()
	return f(v)
}

// releaseAll ends all pins when the database is closed and nobody reads any more. Release may be called at
// the same time.
func (l *pins) releaseAll() {
	for {
		l.mu.Lock()
		p := l.head
		l.mu.Unlock()
		if p == nil {
			return
		}
		p.Release()
	}
}

// A Collection is a handle on a collection of an open database, for packages that write to it or learn from
// it. It is a plain value and holds nothing open. If the collection has been dropped, its methods return an
// ErrNotFound. Read and Loaded enter the Guard; callers of the other methods have entered it, or run in the
// background.
type Collection struct {
	DB   *Database
	ID   uint32 // see record.Descriptor.ID; it identifies the collection
	Name string // for error messages
}

// Read gives f the present view of the database and of the collection. Both views and the database stay open
// while f runs.
func (c Collection) Read(f func(v *View, cv *CollectionView) error) error {
	return c.DB.Read(func(v *View) error {
		cv, err := v.Collection(c.ID, c.Name)
		if err != nil {
			return err
		}
		return f(v, cv)
	})
}

// Do is Committer.Do with the state of the collection. If the collection has been dropped, Do and the methods
// below return an ErrNotFound.
func (c Collection) Do(ctx context.Context, bytes int, f func(tx *Tx, s *CollectionState) error) error {
	return c.DB.Committer.Do(ctx, bytes, func(tx *Tx) error {
		return c.withState(func(s *CollectionState) error { return f(tx, s) })
	})
}

// Free is Committer.Free with the state of the collection.
func (c Collection) Free(ctx context.Context, f func(tx *Tx, s *CollectionState) error) error {
	return c.DB.Committer.Free(ctx, func(tx *Tx) error {
		return c.withState(func(s *CollectionState) error { return f(tx, s) })
	})
}

// Load is Committer.Load with the state of the collection.
func (c Collection) Load(ctx context.Context, f func(tx *Tx, s *CollectionState) error) error {
	return c.DB.Committer.Load(ctx, func(tx *Tx) error {
		return c.withState(func(s *CollectionState) error { return f(tx, s) })
	})
}

// Look is Committer.Look with the state of the collection.
func (c Collection) Look(ctx context.Context, f func(s *CollectionState) error) error {
	return c.DB.Committer.Look(ctx, func() error { return c.withState(f) })
}

// Show is Committer.Show with the state of the collection.
func (c Collection) Show(ctx context.Context, f func(s *CollectionState) error) error {
	return c.DB.Committer.Show(ctx, func() error { return c.withState(f) })
}

// withState calls f, in the committer, with the state of the collection.
func (c Collection) withState(f func(s *CollectionState) error) error {
	s := c.DB.Committer.States[c.ID]
	if s == nil {
		return fault.NotFound("collection %q", c.Name)
	}
	return f(s)
}

// Watching runs f, in the caller's goroutine, and collects the rows of the collection whose items are
// replaced or deleted meanwhile. So f can read items of a view before a request, and reread only the changed
// ones in the request. It does not collect rows of new items, or of items that only get another label by a
// merge. changed belongs to the committer: f reads it only in requests.
func (c Collection) Watching(ctx context.Context, f func(changed *roaring.Bitmap) error) error {
	changed := roaring.New()
	err := c.Look(ctx, func(s *CollectionState) error {
		s.watches = append(s.watches, changed)
		return nil
	})
	if err != nil {
		return err
	}
	// This fails only if the database has failed or the collection was dropped: then it is not needed.
	defer func() {
		_ = c.Look(context.WithoutCancel(ctx), func(s *CollectionState) error {
			s.watches = slices.DeleteFunc(s.watches, func(w *roaring.Bitmap) bool { return w == changed })
			return nil
		})
	}()
	return f(changed)
}
