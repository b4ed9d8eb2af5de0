package state

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/mih"
)

// A code set holds the codes of a space: the code of each row, the rows of each code, and the postings of
// substrings, in the store and in memory.

// A CodeSet is the committer's state of a code set. Only the committer touches it, and a bulk load, which
// runs in the committer; readers get a CodeSetView. The state equals the stored state: once loaded, Table has
// the codes and rows of the blocks under CodeKeys.
type CodeSet struct {
	record.CodeKeys // where the set is in the store; never changes

	// in is the latest revision of the space. New codes are marked with it.
	in *spaces.Space

	// Table has the codes, their numbers and rows. It is nil until the codes are loaded; meanwhile no item of
	// the collection is written (see Tx.resolve).
	Table *mih.Writer

	loading *Loading           // of a set found at opening, kept after it has ended; nil: nothing to load
	opening codec.CodeCounters // counters at opening; they count while Table is nil

	wantsCells atomic.Bool // of Table: a search has asked for a recall

	// Blocks of codes from number FreshCode on have never been written, so they need no merge.
	FreshCode uint64

	// Codes from number Posted on have no postings yet, see Database.post.
	Posted uint64
}

// newCodeSet returns an empty set.
func newCodeSet(sp *spaces.Space, k record.CodeKeys) *CodeSet {
	return &CodeSet{CodeKeys: k, in: sp, Table: mih.NewWriter(k.Bits)}
}

// counters returns the numbers of codes, as the counters of the collection have them.
func (s *CodeSet) counters() codec.CodeCounters {
	if s.Table == nil {
		return s.opening
	}
	n := CountersOf(s.Table)
	n.Posted = s.Posted
	return n
}

// CountersOf returns the numbers of codes in a table, without Posted. A bulk load passes a table that is not
// yet in the set.
func CountersOf(w *mih.Writer) codec.CodeCounters {
	t := w.Table()
	return codec.CodeCounters{NextCode: uint64(t.Next()), Codes: uint64(t.Distinct()),
		Coded: uint64(t.Items())}
}

// A CodeSetView is the immutable state of a code set that readers see.
type CodeSetView struct {
	record.CodeKeys
	NextCode uint64        // number of the next new code
	Posted   uint64        // codes from this number on have no postings yet
	Codes    int           // codes that some item has
	Coded    int           // items that have a code
	Table    *mih.Table    // nil until the codes are loaded: then read the store, see NumberOf
	loading  *Loading      // to wait for Table; nil: there was nothing to load
	standing spaceStanding // of the space
	Set      *CodeSet      // tells sets apart, also in requests; only the committer reads it
}

// WantCells records that a search would be faster if the codes were by cells, see mih.Query.Recall. It
// reports whether that is new: then the caller calls Database.WantRerank. Safe for concurrent use.
func (v *CodeSetView) WantCells() bool {
	return v.Table.LacksCells() && !v.Set.wantsCells.Load() && !v.Set.wantsCells.Swap(true)
}

// publish returns the view of the set, in a space with this standing.
func (s *CodeSet) publish(standing spaceStanding) CodeSetView {
	n := s.counters()
	v := CodeSetView{
		CodeKeys: s.CodeKeys, NextCode: n.NextCode, Posted: n.Posted, Codes: int(n.Codes),
		Coded: int(n.Coded), loading: s.loading, standing: standing, Set: s,
	}
	if s.Table != nil {
		v.Table = s.Table.Publish()
	}
	return v
}

// loaded reports whether all codes of the collection are in memory, in all spaces.
func (s *CollectionState) loaded() bool {
	return !slices.ContainsFunc(s.Spaces, func(sp *SpaceState) bool { return !sp.loaded() })
}

// AllCounters returns the counters as they are stored: of the collection and of all its spaces.
func (s *CollectionState) AllCounters() codec.Counters {
	n := s.Counters
	n.Spaces = nil
	for _, sp := range s.Spaces {
		n.Spaces = append(n.Spaces, sp.counters())
	}
	return n
}

// CodesFor returns the codes to search for items with the modality to; "" means any items. Errors: ErrNoModel
// if nothing is trained; ErrInvalid for an unknown name; ErrCorrupt if loading the codes has found damage.
func (cv *CollectionView) CodesFor(to string) (*CodeSetView, error) {
	if cv.Space == nil {
		return nil, fmt.Errorf("%w: collection %q: train it first", fault.ErrNoModel, cv.Name)
	}
	if to != "" {
		if _, err := cv.ModalityOf(to); err != nil {
			return nil, err
		}
	}
	return &cv.Codes, cv.Codes.damage()
}

// NumberOf returns the number of a row's code, from memory or, while codes are not loaded, from the store.
// found is false if the row has no code. r is the snapshot of the view.
func (v *CodeSetView) NumberOf(r pebble.Reader, row uint32) (n uint32, found bool, err error) {
	if v.Table != nil {
		n, found = v.Table.CodeOf(row)
		return n, found, nil
	}
	rc, found, err := v.RowCode(r, row)
	return rc.Code, found, err
}

// CodeOf returns the code with number n, from memory or from the store. It may be shared: do not write to it.
// row is a row with that code, for error messages.
func (v *CodeSetView) CodeOf(r pebble.Reader, n, row uint32) (codec.Code, error) {
	if v.Table != nil {
		if code := v.Table.Code(n); code != nil {
			return code, nil
		}
		return nil, fault.Corrupt(fmt.Errorf("number %d does not exist", n), "code of row %d", row)
	}
	return v.Code(r, n, row)
}

// ItemCode returns the code of a row; found is false if it has none. Do not write to the code.
func (cv *CollectionView) ItemCode(r pebble.Reader, row uint32) (code codec.Code, found bool, err error) {
	n, found, err := cv.Codes.NumberOf(r, row)
	if err != nil || !found {
		return nil, false, err
	}
	code, err = cv.Codes.CodeOf(r, n, row)
	return code, true, err
}

// Unlearned returns the ErrNoModel for modality t, which the model of the space does not know.
func (cv *CollectionView) Unlearned(t int) error {
	return fmt.Errorf("%w: the model of collection %q knows nothing of modality %q, which no labelled item had when it was trained: train again",
		fault.ErrNoModel, cv.Name, cv.Modalities[t].Name)
}

// A Loading is the loading of one code set after opening; callers wait for it. The goroutine that loads the
// codes ends it, once. Safe for concurrent use.
type Loading struct {
	wanted chan struct{} // a caller waits, so begin at once; holds one
	done   chan struct{} // closed when the next view has the table, or loading has failed
	err    error         // why loading failed; set before done is closed, read after
}

// newLoading returns a loading that has not begun.
func newLoading() *Loading {
	return &Loading{wanted: make(chan struct{}, 1), done: make(chan struct{})}
}

// wait waits until the codes are in memory and in the present view. The error says why they cannot be
// (damage, a failed read, ErrClosed), or is the error of the context.
func (l *Loading) wait(ctx context.Context) error {
	select {
	case <-l.done:
		return l.err
	default:
	}
	select {
	case l.wanted <- struct{}{}:
	default: // a signal is there already
	}
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ended reports whether loading has succeeded or failed.
func (l *Loading) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// damage returns the error of loading the codes of a set, if it is damage. Searches then refuse the set:
// without the table they would read the same damaged records.
func (v *CodeSetView) damage() error {
	if v.loading != nil && v.loading.ended() && errors.Is(v.loading.err, fault.ErrCorrupt) {
		return v.loading.err
	}
	return nil
}

// notLoaded ends a failed loading.
func notLoaded(l *Loading, err error) {
	l.err = err
	close(l.done)
}

// AppendLoading appends the loadings of the collection's codes, including finished ones. Hold no view while
// you wait for them: it would keep the old state of the store.
func (cv *CollectionView) AppendLoading(dst []*Loading) []*Loading {
	for i := range cv.Spaces {
		if l := cv.Spaces[i].Codes.loading; l != nil {
			dst = append(dst, l)
		}
	}
	return dst
}

// WaitForAll waits until all of these loadings have ended, or for the first error.
func WaitForAll(ctx context.Context, all []*Loading) error {
	for _, l := range all {
		if err := l.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Opening a database does not read its codes. They are loaded in the background, and until then searches read
// the store. Writers of a collection wait for its codes, as they need the number of each code.

// LoadAtOnce bounds the code sets that are loaded before Open returns, by the code numbers given out. That
// takes a few milliseconds.
const LoadAtOnce = 10_000

// loadAfter delays the loading of codes after opening, unless a caller waits for them. A program often opens
// a database and searches at once; the memory of loading would run the garbage collector during that search.
const loadAfter = 10 * time.Millisecond

// Load loads the codes of all code sets that Open has left, active spaces first, and has the committer show
// each. v is the first view: it still has these codes, as no item of a collection changes before its codes
// are loaded. Load returns when all are loaded or have failed, or when the context has ended: then waiting
// callers get ErrClosed.
func (d *Database) Load(ctx context.Context, v *View) {
	start, cancel := context.WithTimeout(ctx, loadAfter)
	defer cancel()
	defer d.loadIndexes(ctx, v) // last, as only searches wait for them
	for set, cv := range v.CodeSets() {
		if set.loading == nil || set.Table != nil || set.loading.ended() {
			continue
		}
		select {
		case <-start.Done():
		case <-set.loading.wanted:
		}
		op := d.Signals.BeginInBackground(ctx, event.OpLoad, cv.Name)
		bare := set.standing == spaceBuilding || !d.afford(d.Current.Load(), set,
			mih.TableBytes(set.Bits, set.Codes))
		var w *mih.Writer
		err := work.Safely(func() (err error) {
			w, err = loadTable(ctx, v.Snap, cv, set, bare)
			return err
		})
		if err == nil {
			err = d.Committer.Show(ctx, func() error {
				// Its collection may have been dropped.
				if s := d.Committer.States[cv.ID]; s != nil && s.holds(set.Set) {
					set.Set.Table = w
					d.Committer.Touch(s)
				}
				return nil
			})
		}
		op.End(err, set.event())
		switch {
		case err == nil:
			close(set.loading.done)
		case ctx.Err() != nil:
			set.loading.err = fault.ErrClosed
			close(set.loading.done)
		default:
			notLoaded(set.loading, err)
		}
	}
}

// event returns the event of loading or indexing a code set.
func (v *CodeSetView) event() event.Event {
	return event.Event{Space: v.Space, Items: int64(v.Coded), Attrs: []slog.Attr{slog.Int("codes", v.Codes)}}
}

// Loaded waits until the codes of all collections are in memory.
func (d *Database) Loaded(ctx context.Context) error {
	var all []*Loading
	err := d.Read(func(v *View) error {
		for cv := range v.Collections.Values() {
			all = cv.AppendLoading(all)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return WaitForAll(ctx, all)
}

// Loaded waits until the codes of the collection are in memory, in all spaces. Writers call it before they
// submit a request. Once they are loaded, it costs a look at the view.
func (c Collection) Loaded(ctx context.Context) error {
	var all []*Loading
	err := c.Read(func(_ *View, cv *CollectionView) error {
		all = cv.AppendLoading(nil)
		return nil
	})
	if err != nil {
		return err
	}
	return WaitForAll(ctx, all)
}

// maxRoom bounds the bytes allocated on the word of the counters, before any code has been read.
const maxRoom = 64 << 20

// loadTable reads the codes of a code set and their rows, and indexes them, without substring tables if bare.
// It checks everything against the counters in set and cv: a number, a row or a count that does not fit is an
// ErrCorrupt. Before it has read a code it takes no more memory than maxRoom, as the counters themselves may
// be damaged.
func loadTable(ctx context.Context, r pebble.Reader, cv *CollectionView, set *CodeSetView,
	bare bool) (*mih.Writer, error) {
	q, next := set.Bits, uint32(set.NextCode)
	// Allocate the largest first. Then the others do not run the garbage collector again, as they would one
	// by one in a small heap.
	room := min(set.Codes, maxRoom/codec.CodeEntryBytes(q))
	codes := codec.NewCodes(q, room)
	numbers, rows := make([]uint32, 0, room), make([]uint32, 0, room)
	code := codec.NewCode(q)
	err := record.ForEachEntry(r, set.Prefix(codec.KindCodes), func(n uint32, entry []byte) error {
		if n%codec.BlockRows == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		row, err := codec.DecodeCodeEntry(code, q, entry)
		if err == nil && n >= next {
			err = fmt.Errorf("the next number is %d", next)
		}
		if err != nil {
			return fault.Corrupt(err, "code number %d", n)
		}
		if have := len(numbers); have == room && have < set.Codes {
			room = min(set.Codes, 4*have)
			codes.Grow(room - have)
			numbers, rows = slices.Grow(numbers, room-have), slices.Grow(rows, room-have)
		}
		numbers, rows = append(numbers, n), append(rows, row)
		codes.Append(code)
		return nil
	})
	if err != nil {
		return nil, err
	}
	w := mih.NewWriter(q)
	if err := w.Load(ctx, numbers, codes, next, bare); err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, fault.Corrupt(err, "codes of collection %q", cv.Name)
	}
	add := func(n, row uint32) error {
		if _, has := w.Table().CodeOf(row); has || uint64(row) >= cv.NextRow || w.Table().Code(n) == nil {
			return fault.Corrupt(fmt.Errorf("row %d has a code already, or one of both is none", row),
				"rows of code number %d", n)
		}
		w.Add(n, row)
		return nil
	}
	for i, row := range rows {
		if row == codec.ManyRows {
		} else if err := add(numbers[i], row); err != nil {
			return nil, err
		}
	}
	err = record.ForEach(r, set.Prefix(codec.KindCodeRows), func(key, value []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, container := codec.CodeRowsKeyParts(key)
		l, err := codec.DecodeLayer(value)
		if err != nil {
			return fault.Corrupt(err, "rows of code number %d", n)
		}
		l.Added.Iterate(func(x uint32) bool {
			err = add(n, uint32(container)<<16|x)
			return err == nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	if t := w.Table(); t.Distinct() != set.Codes || t.Items() != set.Coded || t.Distinct() != len(numbers) {
		return nil, fault.Corrupt(fmt.Errorf("%d codes of %d rows, %d of %d were counted, %d have rows",
			len(numbers), t.Items(), set.Codes, set.Coded, t.Distinct()), "codes of collection %q", cv.Name)
	}
	return w, nil
}
