package state

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/mih"
)

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
		octx, op := d.Signals.BeginInBackground(ctx, event.OpLoad, cv.Name)
		bare := set.standing == spaceBuilding || !d.afford(d.Current.Load(), set, mih.TableBytes(set.Bits, set.Codes))
		var w *mih.Writer
		err := work.Safely(func() (err error) {
			w, err = loadTable(octx, v.Snap, cv, set, bare)
			return err
		})
		if err == nil {
			err = d.Committer.Show(octx, func() error {
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
func loadTable(ctx context.Context, r pebble.Reader, cv *CollectionView, set *CodeSetView, bare bool) (*mih.Writer, error) {
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
			return fault.Corrupt(fmt.Errorf("row %d has a code already, or one of both is none", row), "rows of code number %d", n)
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
