package learn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/bulk"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
)

// A NewSpace is the beginning of a new space: a model, its statistics, and the lesson of
// each row. A builder makes the codes of the items later. The goroutine that calls Install fills
// it; then the committer stores it (createSpace), while that goroutine waits.
type NewSpace struct {
	space    *spaces.Space // createSpace gives it its number
	activate bool          // make the space the active one when it is complete
	number   uint32        // of the space; 0: the next one
	model    []byte        // the model in its binary form, stored in chunks
	// the statistics in their binary form, stored in chunks; nil without spaces.Space.HasStatistics
	statistics []byte
	report     json.RawMessage     // the report of the training, part of the descriptor
	revision   report.RevisionInfo // describes revision 1; createSpace adds number and date
	rows       []uint32            // the rows that have taught, ascending
	lessons    []codec.Taught      // what each of rows has taught; equal ones share their memory
	// the rows that have not taught, none without statistics; createSpace hands it to the space
	pending  *roaring.Bitmap
	expected map[string]float64 // see spaces.RevisionDescriptor
	before   uint64             // without statistics: rows below it were there when the model was trained
	replaced uint32             // createSpace sets it: the unfinished space that it has dropped; 0: none
	// rows with lessons of outdated codes, to be retracted; may be nil; shared with the view
	relearn *roaring.Bitmap

	known map[string]codec.Taught // the distinct lessons, by their stored form: about one a label set
	key   []byte                  // scratch memory
}

// addLesson appends the lesson of a row, which must be the next in ascending order. It copies
// the lesson if that is new.
func (f *NewSpace) addLesson(row uint32, t codec.Taught) {
	f.key = codec.Lesson{Taught: t}.Append(f.key[:0])
	own, known := f.known[string(f.key)]
	if !known {
		if f.known == nil {
			f.known = map[string]codec.Taught{}
		}
		own = t.Clone()
		f.known[string(f.key)] = own
	}
	f.rows, f.lessons = append(f.rows, row), append(f.lessons, own)
}

// bytes returns about how many bytes the commit of the new space writes.
func (f *NewSpace) bytes() int {
	n := len(f.model) + len(f.statistics)
	for _, t := range f.lessons {
		n += 10 + len(t.Codes) + 5*len(t.Labels)
	}
	return n
}

// Install stores a new space without codes, which a builder has to complete. prepare makes the new space from
// a view of the collection, in the goroutine of the caller, and may take long. Rows that change meanwhile are
// recorded, and the commit adjusts them. With replace, the new space replaces the remains of an interrupted
// training.
//
// The commit takes about as many bytes as the new space, at most 3 GiB. Errors: ErrBusy if
// another space is being installed or built, ErrInvalid for a codes-only collection and a
// new space that is too large, any error of prepare. After an error the collection is as it was.
func (c Collection) Install(ctx context.Context, replace bool,
	prepare func(v *state.View, cv *state.CollectionView) (*NewSpace, error)) (*spaces.Space, error) {
	v, err := c.beginInstall(ctx, replace)
	if err != nil {
		return nil, err
	}
	defer v.Release()
	installed := false
	defer func() {
		// createSpace has ended the recording then.
		if installed {
			return
		}
		// The committer stops recording rows, even if ctx has ended or prepare has panicked. In
		// a database that has failed it cannot, and need not.
		_ = c.Look(context.WithoutCancel(ctx), func(s *state.CollectionState) error {
			s.Changed = nil
			return nil
		})
	}()
	cv, err := v.Collection(c.ID, c.Name)
	if err != nil {
		return nil, err
	}
	f, err := prepare(v, cv)
	if err != nil {
		return nil, err
	}
	err = c.Do(ctx, f.bytes(),
		func(tx *state.Tx, s *state.CollectionState) error { return createSpace(tx, s, f, v, cv) })
	if err != nil {
		return nil, err
	}
	installed = true
	if f.replaced != 0 {
		c.in.learners.remove(spaceKey{c.ID, f.replaced})
		c.DB.Signals.Tell(ctx, event.Event{Name: event.SpaceDropped, Collection: c.Name, Space: f.replaced})
	}
	return f.space, nil
}

// abandon drops a space if it is still being built, even when ctx has ended.
func (c Collection) abandon(ctx context.Context, space uint32) {
	_ = c.Free(context.WithoutCancel(ctx), func(tx *state.Tx, s *state.CollectionState) error {
		if sp := s.SpaceByID(space); sp != nil && sp.Numbers.Building {
			return tx.DropSpace(s, sp)
		}
		return nil
	})
}

// beginInstall returns the view to install a space on, which the caller releases. From that view on the
// committer records changed rows in CollectionState.Changed. That field also marks an install in progress.
func (c Collection) beginInstall(ctx context.Context, replace bool) (*state.View, error) {
	var v *state.View
	err := c.Look(ctx, func(s *state.CollectionState) error {
		switch {
		case s.CodesOnly():
			return fault.Invalid("collection %q has no model: its items bring their codes", s.Name)
		case s.Changed != nil:
			return fmt.Errorf("%w: collection %q: wait for the other training, or reindexing, to end",
				fault.ErrBusy, s.Name)
		}
		if sp := s.Building(); sp != nil && !(replace && sp.LeftByTraining()) {
			return fmt.Errorf("%w: collection %q: space %d is being built: wait for it (reindex), or drop it",
				fault.ErrBusy, s.Name, sp.ID)
		}
		// Recording and the view begin in one request, so no write falls between them.
		s.Changed = roaring.New()
		v = c.DB.Current.Load() // it stays while an operation runs, as this one does
		v.Acquire()
		return nil
	})
	return v, err
}

// maxNewSpaceBytes keeps the batch of a new space below 4 GB, the most that Pebble takes.
const maxNewSpaceBytes = 3 << 30

// createSpace stores a new space that was made on view v, with cv the collection in it. It
// runs in the committer, alone in its commit. Lessons of rows that have changed since v become
// retractions with the features of v: the statistics contain these.
func createSpace(tx *state.Tx, s *state.CollectionState, f *NewSpace, v *state.View,
	cv *state.CollectionView) error {
	number := uint64(f.number)
	if number == 0 {
		number = s.Counters.NextSpace
	}
	if number >= record.MaxRows {
		return fmt.Errorf("%w: spaces of collection %q", fault.ErrFull, s.Name)
	}
	// Numbers ascend in the counters.
	if i := slices.IndexFunc(s.Spaces,
		func(sp *state.SpaceState) bool { return uint64(sp.ID) >= number }); i >= 0 {
		return fmt.Errorf("%w: space %d of collection %q, so that a new one cannot be %d", fault.ErrExists,
			s.Spaces[i].ID, s.Name, number)
	}
	// First every step that may fail: limits, and reading. The batch and the counters of a failed request are
	// dropped, but its changes in memory would stay.
	size := f.bytes()
	if size > maxNewSpaceBytes {
		return fault.Invalid("what %d items have taught is too much for one commit (%d bytes of at most %d): train on fewer rows, or with fewer bits",
			len(f.rows), size, maxNewSpaceBytes)
	}
	sp := f.space
	sp.ID, sp.Created = uint32(number), spaces.Now()
	sp.Model, sp.Statistics = record.ChunksOf(f.model), record.ChunksOf(f.statistics)
	if err := record.WriteChunks(tx.Batch, codec.NumberKey(codec.KindModel, s.ID, sp.ID), 0,
		f.model); err != nil {
		return err
	}
	if err := record.WriteChunks(tx.Batch, codec.NumberKey(codec.KindStatistics, s.ID, sp.ID), 0,
		f.statistics); err != nil {
		return err
	}
	if err := tx.WriteDescriptor(s, sp, f.report); err != nil {
		return err
	}
	gone := s.Changed // the rows whose lessons to retract, then all that have to teach again
	if f.relearn != nil {
		gone = roaring.Or(gone, f.relearn)
	}
	// Read the retractions before anything changes: reading may fail.
	retractions := map[uint32]*codec.Retraction{}
	for i, row := range f.rows {
		if !gone.Contains(row) {
			continue
		}
		d, err := record.Retraction(v.Snap, cv.Descriptor, sp.Positions, row,
			codec.Lesson{Revision: sp.Revision, Taught: f.lessons[i]})
		if err != nil {
			return err
		}
		// The retraction has the features of the view, with which the row has taught. The snapshot of
		// v still has them after a write.
		retractions[row] = d
		if size += d.Bytes(); size > maxNewSpaceBytes {
			return fmt.Errorf("%w: too much of what collection %q was trained on has been overwritten meanwhile: try again", fault.ErrBusy, s.Name)
		}
	}
	left := s.Building()
	if left != nil && !left.LeftByTraining() {
		return fmt.Errorf("%w: collection %q: somebody wants space %d, which is being built: wait for it (reindex), or drop it", fault.ErrBusy, s.Name, left.ID)
	}
	// From here on the state changes, so nothing may fail. Only a batch that is too large could; the checks
	// above exclude it.
	if left != nil {
		if err := tx.DropSpace(s, left); err != nil {
			return err
		}
		f.replaced = left.ID
	}
	made := state.NewSpaceState(s.ID, sp)
	first := &spaces.RevisionDescriptor{RevisionInfo: f.revision, Rows: f.before, Expected: f.expected}
	first.Revision, first.Created = sp.Revision, sp.Created
	if err := tx.WriteRevisionDescriptor(made, first); err != nil {
		return err
	}
	made.Revisions = []*spaces.RevisionDescriptor{first}
	made.Numbers.Building = true
	if sp.HasStatistics() {
		made.Numbers.Checkpoint = uint64(sp.Revision)
	}
	// The first space of a collection always becomes active.
	made.Numbers.Activate = f.activate || s.Counters.ActiveSpace == 0
	for i, row := range f.rows {
		if d := retractions[row]; d != nil {
			if err := tx.QueueRetraction(made, d); err != nil {
				return err
			}
			continue
		}
		tx.Learn(made, row, codec.Lesson{Revision: sp.Revision, Taught: f.lessons[i]}, true)
	}
	// Rows that have changed teach again, if they exist and have features.
	if sp.HasStatistics() {
		f.pending.Or(gone)
		f.pending.And(s.Having(sp.Positions))
	}
	err := record.ByContainer(f.pending, func(container uint16, l codec.Layer) error {
		// The set is new, so each container is stored whole and not row by row.
		tx.Layers[string(codec.OnlineRowsKey(s.ID, sp.ID, codec.SetPending, container))] = l
		return nil
	})
	if err != nil {
		return err
	}
	made.Pending.B = f.pending
	s.Spaces = append(s.Spaces, made)
	s.Counters.NextSpace = max(s.Counters.NextSpace, number+1)
	s.Changed = nil
	tx.Committer.Touch(s)
	return nil
}

// A space is installed without codes. Until all items have theirs it is being built, and cannot be searched
// or updated. Building may take hours and may be interrupted, so it goes block by block, from the lowest row
// up, with a commit each. Two sources give a row its code in the new space: the builder, for the rows that
// were there, and each write, for the rows that it touches. The write is always the newer one, so the
// committer lets it win.

// A builder gives all items of a collection their codes in a space, block by block of rows.
// Writes keep the space current meanwhile, so a builder leaves out the rows that have changed
// since it took the view of the block. The commit of a block stores how far the builder has
// got (SpaceCounters.Built). If it ends early, another builder goes on from there.
//
// A builder is for one call of run, and belongs to the goroutine of that call.
type builder struct {
	c        Collection
	space    uint32         // the number of the space to build
	workers  int            // goroutines that read, encode, and store: work.All() or work.Background()
	rate     int            // the most items a second; 0: no limit
	to       uint64         // only rows below it get codes, and the space is not completed; 0: all rows
	progress event.Progress // called in the goroutine of run, in the stage "encode"; nil: none

	// rows from here on have been put since it began, with codes in the space; 0: not begun
	until      uint64
	next       uint64        // the first row behind the last block
	building   *building     // the turn, and the figures that waiting builders see
	committing time.Duration // the total time of its commits so far
}

// A builtSpace describes a space that a builder has completed.
type builtSpace struct {
	Space    uint32 // its number
	Parent   uint32 // the space that it was reindexed from; 0: a training has made it
	Revision uint32
	Items    int  // the items that have a code in it
	Active   bool // it is the active space of the collection
}

// event returns the fields of events about a completed space.
func (b builtSpace) event() event.Event {
	return event.Event{Space: b.Space, Revision: b.Revision, Items: int64(b.Items),
		Attrs: []slog.Attr{slog.Bool("active", b.Active)}}
}

// Unbuilt returns the fields of events about a failed training or reindexing. space is the unfinished space,
// 0 if there was none yet. The attribute "resumes" says that it stays as far as it is, for Reindex or the
// next Open.
func (c Collection) Unbuilt(space uint32) event.Event {
	e := event.Event{Space: space}
	if cv, ok := c.DB.Current.Load().Collections.Get(c.ID); ok {
		if sp := cv.SpaceNumber(space); sp != nil && sp.Numbers.Building {
			e.Attrs = []slog.Attr{slog.Bool("resumes", true)}
		}
	}
	return e
}

// build builds the space, or the rest of it. The caller has claimed it (buildings.claim).
func (b *builder) build(ctx context.Context) (builtSpace, error) {
	defer func() {
		// The committer stops recording rows, even if ctx has ended. If the space is complete,
		// Changed may belong to an update by now. Another builder, whose Changed must stay, cannot
		// begin before buildings.end, which runs later.
		_ = b.c.Look(context.WithoutCancel(ctx), func(s *state.CollectionState) error {
			if sp, err := b.spaceIn(s); err == nil && sp.Numbers.Building {
				sp.Changed = nil
				sp.Left = sp.Left || sp.Parent == 0 // the next training may replace what a training has left
			}
			return nil
		})
	}()
	for {
		// Since the last block a waiting builder may have replaced the rate.
		began, rate := time.Now(), int(b.building.rate.Load())
		rows, built, complete, err := b.step(ctx, blockSize(rate))
		if complete || err != nil || b.to > 0 && b.next >= b.to {
			return built, err
		}
		if err := pace(ctx, began, rows, rate); err != nil {
			return built, err
		}
	}
}

// step encodes and stores the next block of at most size rows, and returns how many rows it
// had. After the last block a step without rows completes the space; built describes it then.
// Each step takes a view of its own: one view for a slow build would keep replaced and deleted
// records in the store.
func (b *builder) step(ctx context.Context, size int) (rows int, built builtSpace, complete bool, err error) {
	// The order: take a view, from which on changes are recorded; encode from the view; make the index when
	// all rows are encoded; commit the rows that have not changed since the view. Only the commit stores
	// anything, so a crash costs one block at most (TestCrashesWhileASpaceIsBuilt of db).
	v, built, err := b.begin(ctx)
	if v == nil || err != nil {
		return 0, built, true, err
	}
	defer v.Release()
	cv, err := v.Collection(b.c.ID, b.c.Name)
	if err != nil {
		return 0, built, false, err
	}
	// Rows from cv.NextRow on come later. Their writes give them codes in this space too (Tx.put),
	// so the builder ends even if items come faster than it encodes.
	if b.until == 0 {
		b.until = cv.NextRow
	}
	sp := cv.SpaceNumber(b.space)
	from := uint32(sp.Numbers.Built)
	before := 0 // the items below from: earlier blocks
	if from > 0 {
		before = int(cv.Live.Rank(from - 1))
	}
	total := cv.Items
	if b.until < cv.NextRow {
		total = int(cv.Live.Rank(uint32(b.until - 1)))
	}
	until := b.until
	if b.to > 0 {
		until = min(until, b.to)
	}
	block, err := encodeRows(ctx, v, cv, sp.Space, b.workers, from, until, size,
		func(n int) { b.at(before+n, max(before+n, total)) })
	if err != nil {
		return 0, built, false, err
	}
	rows = len(block.rows)
	switch {
	case rows > 0:
		from = block.rows[rows-1] + 1
	case until < b.until: // no row below to is left
		from = max(from, uint32(until))
	}
	b.next = uint64(from)
	last := rows == 0 && until == b.until // all rows have codes, as the index needs
	// If there is an active space, the new one gets its index before it is complete: it may become active
	// then, and searches must not be slower for a while.
	if last && cv.Space != nil && cv.Items >= indexFirstItems {
		if err := b.c.DB.IndexSpace(ctx, b.c.ID, b.space, b.workers); err != nil {
			return 0, built, false, err
		}
	}
	since := time.Now()
	built, err = b.store(ctx, block, from, last)
	b.committing += time.Since(since)
	return rows, built, last, err
}

// indexFirstItems is the number of items from which on step indexes a space before it is
// complete.
const indexFirstItems = 4096

// at reports to progress and to waiting builders that done of total items have been looked at.
func (b *builder) at(done, total int) {
	b.building.done.Store(int64(done))
	b.building.total.Store(int64(total))
	if b.progress != nil {
		b.progress("encode", int64(done), int64(total))
	}
}

// spaceIn returns the state of the space that is being built, ErrNotFound if it has been
// dropped. It runs in the committer.
func (b *builder) spaceIn(s *state.CollectionState) (*state.SpaceState, error) {
	sp := s.SpaceByID(b.space)
	if sp == nil {
		return nil, fault.NotFound("space %d of collection %q, which was being built", b.space, s.Name)
	}
	return sp, nil
}

// begin returns the view of the next block, which the caller releases. From that view on the
// committer records changed rows in SpaceState.Changed. If the space is complete already, the
// view is nil and built describes the space.
func (b *builder) begin(ctx context.Context) (v *state.View, built builtSpace, err error) {
	err = b.c.Look(ctx, func(s *state.CollectionState) error {
		sp, err := b.spaceIn(s)
		if err != nil {
			return err
		}
		if !sp.Numbers.Building {
			built = builtOf(s, sp)
			return nil
		}
		// Recording and the view begin in one request, so no write falls between them.
		sp.Changed = roaring.New()
		v = b.c.DB.Current.Load() // it stays while an operation runs, as this one does
		v.Acquire()
		return nil
	})
	return v, built, err
}

// builtOf describes a space of a collection. It runs in the committer.
func builtOf(s *state.CollectionState, sp *state.SpaceState) builtSpace {
	return builtSpace{sp.ID, sp.Parent, sp.Revision, sp.Coded(), s.Active() == sp}
}

// store stores the codes of a block in one commit: as tables from TableRows rows on, else in a
// batch. next is the first row behind the block. With last, the block is empty and the commit
// completes the space.
func (b *builder) store(ctx context.Context, block *coded, next uint32,
	last bool) (built builtSpace, err error) {
	do := func(f func(tx *state.Tx, s *state.CollectionState) error) error { return b.c.Do(ctx, 0, f) }
	tables := len(block.rows) >= TableRows
	if tables {
		do = func(f func(tx *state.Tx, s *state.CollectionState) error) error { return b.c.Load(ctx, f) }
	}
	err = do(func(tx *state.Tx, s *state.CollectionState) error {
		sp, err := b.spaceIn(s)
		if err != nil {
			return err
		}
		if err := sp.RoomFor(uint64(len(block.rows))); err != nil {
			return fault.Annotate(err, "collection %q", s.Name)
		}
		// A row that has changed since the view, or has a code already, got it from a write. It
		// keeps that code, or has none if its item is gone. HasCode finds the rows that were
		// written before this view, as Changed is new for each block. TestWritesWhileReindexing
		// of db provokes both.
		fresh := block.without(func(row uint32) bool { return sp.Changed.Contains(row) || sp.HasCode(row) })
		// Built passes the rows that were left out, too: nothing remains to be done for them.
		n := sp.Numbers
		n.Built = uint64(next)
		switch {
		case tables:
			err = bulk.StoreCodes(ctx, tx.Committer, b.workers, s, sp, n, fresh.rows, fresh.encs)
		case last:
			completeSpace(tx, s, sp)
		default:
			err = txStoreCodes(tx, s, sp, n, fresh)
		}
		built = builtOf(s, sp)
		return err
	})
	return built, err
}

// txStoreCodes stores the codes of a block of few rows in a transaction. n has the new counters of the space,
// except for the counts of codes, which SetCodes updates.
func txStoreCodes(tx *state.Tx, s *state.CollectionState, sp *state.SpaceState, n codec.SpaceCounters,
	block *coded) error {
	for i, row := range block.rows {
		if err := tx.SetCodes(s, sp, row, block.encs[i]); err != nil {
			return err
		}
	}
	sp.Numbers = n
	tx.Committer.Touch(s)
	return nil
}

// completeSpace marks a space as complete, and activates it if Activate is set.
func completeSpace(tx *state.Tx, s *state.CollectionState, sp *state.SpaceState) {
	if sp.Numbers.Activate {
		tx.Activate(s, sp)
	}
	// All of this is one commit: after a crash the space is still being built and Activate is not
	// forgotten, or it is complete and active.
	sp.Numbers.Building, sp.Numbers.Activate, sp.Numbers.Built = false, false, 0
	sp.Changed = nil
	tx.Committer.Touch(s)
}

// without returns a copy that leaves out the stale rows. The codes are shared.
func (c *coded) without(stale func(row uint32) bool) *coded {
	out := &coded{space: c.space, rows: make([]uint32, 0, len(c.rows)),
		encs: make([]spaces.Encoding, 0, len(c.encs))}
	for i, row := range c.rows {
		if !stale(row) {
			out.rows, out.encs = append(out.rows, row), append(out.encs, c.encs[i])
		}
	}
	return out
}

// Rebuild gives all items their codes in a space that is being built and was complete before,
// as repair leaves it. It uses all processors, and returns how many items have a code.
func (c Collection) Rebuild(ctx context.Context, space uint32, progress event.Progress) (int, error) {
	b := &builder{c: c, space: space, workers: work.All(), progress: progress}
	built, err := b.run(ctx)
	return built.Items, err
}

// A training or reindexing builds its space itself. Resume completes, after Open, a space that
// a crash or Close has interrupted. One builder at a time builds a space; others that want it
// complete wait for that builder.

// A building is the turn of builders of one space, and what waiting builders see of the one at work.
type building struct {
	turn  turn
	rate  atomic.Int64 // the most items a second, 0 for no limit; a waiting builder may replace it
	done  atomic.Int64 // the items looked at so far
	total atomic.Int64 // the items to look at; 0: not known yet
}

// A spaceKey names a space of a database by the numbers of its collection and itself.
type spaceKey struct{ collection, space uint32 }

// perSpace has a T for each space that was asked for. Safe for concurrent use.
type perSpace[T any] struct {
	mu sync.Mutex
	of map[spaceKey]*T // guarded by mu; made by the first get
}

// get returns the T of a space, which it makes if need be.
func (p *perSpace[T]) get(key spaceKey, new func() *T) *T {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[spaceKey]*T{}
	}
	if p.of[key] == nil {
		p.of[key] = new()
	}
	return p.of[key]
}

// remove drops the T of a space. A goroutine that uses it may go on.
func (p *perSpace[T]) remove(key spaceKey) {
	p.mu.Lock()
	delete(p.of, key)
	p.mu.Unlock()
}

// A turn is a lock that ends with a context: it holds one while a goroutine has it.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// release gives the turn to another goroutine.
func (t turn) release() { <-t }

// run builds the space. If another builder is at it, run waits for its turn, and goes on from where that one
// has come to: it may be complete. Errors: the error of ctx, ErrNotFound if the space has been dropped, any
// error of the store.
func (b *builder) run(ctx context.Context) (builtSpace, error) {
	// TestReindexTogether of db has three builders.
	b.building = b.c.in.buildings.get(spaceKey{b.c.ID, b.space}, func() *building {
		return &building{turn: newTurn()}
	})
	if err := b.wait(ctx); err != nil {
		return builtSpace{}, err
	}
	defer b.building.turn.release()
	b.building.rate.Store(int64(b.rate))
	return b.build(ctx)
}

// watchEvery is the time between two progress reports of a waiting builder.
const watchEvery = 100 * time.Millisecond

// wait waits for the turn, and reports the progress of the builder that has it. If b has a rate, that
// replaces the rate of the other one.
func (b *builder) wait(ctx context.Context) error {
	one := b.building
	if b.rate > 0 { // build reads it before each block
		one.rate.Store(int64(b.rate))
	}
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	last := int64(-1)
	for {
		select {
		case one.turn <- struct{}{}:
			return nil
		default:
		}
		if done, total := one.done.Load(), one.total.Load(); b.progress != nil && total > 0 && done != last {
			b.progress("encode", done, total)
			last = done
		}
		select {
		case one.turn <- struct{}{}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// coded holds the codes of some rows in one revision of a space. The goroutine that made it
// owns it.
type coded struct {
	space *spaces.Space     // the revision that has made the codes
	rows  []uint32          // ascending
	encs  []spaces.Encoding // parallel to rows

	// teaches is parallel to rows: the item has a vector that the projections can learn
	// from. Only encodeSome sets it.
	teaches []bool
}

// Reading items waits for the store and decodes vectors, encoding multiplies matrices. encodeRows
// does both at the same time: one block is encoded in the background while the caller's goroutine
// reads the next one. At most one block is being encoded, so results come in the order of rows.

// EncodeBlock is the number of items to encode together, while the next ones are read.
const EncodeBlock = 1024

// encodeRows encodes the items of rows [from, until) of a view in space sp. It stops after
// limit items; 0 means no limit. It reads ahead while it encodes. Of fewer workers than
// work.All(), reading is one; with one worker it reads and encodes in turn. progress, unless
// nil, is called in the goroutine of the caller, with the number of items encoded so far. Up
// to two blocks of EncodeBlock items with their vectors are in memory, beside the result.
func encodeRows(ctx context.Context, v *state.View, cv *state.CollectionView, sp *spaces.Space, workers int,
	from uint32, until uint64, limit int, progress func(done int)) (*coded, error) {
	out := &coded{space: sp}
	var rows []uint32
	var vectors [][]model.Vector
	var labels [][]uint32
	var working chan error // gives the outcome of the block that is being encoded; nil: there is none
	if workers < work.All() {
		workers--
	}
	// finish waits for the block that is being encoded.
	finish := func() (err error) {
		if working != nil {
			err = <-working
			working = nil
			if err == nil && progress != nil {
				progress(len(out.rows))
			}
		}
		return err
	}
	defer func() {
		if working != nil { // reading has failed: wait for the goroutine
			<-working
		}
	}()
	// flush waits for the block before, and begins to encode the rows read since.
	flush := func() error {
		if err := finish(); err != nil {
			return err
		}
		// append may move out.encs, into which the goroutine writes: finish has waited for it.
		at := len(out.encs)
		out.rows = append(out.rows, rows...)
		out.encs = append(out.encs, make([]spaces.Encoding, len(rows))...)
		encs, rowsNow, vectorsNow, labelsNow := out.encs[at:], rows, vectors, labels
		// It has room for the result, so the goroutine ends even if reading has failed.
		result := make(chan error, 1)
		working = result
		encode := func() {
			result <- work.Safely(func() error {
				return sp.EncodeAll(ctx, max(workers, 1), encs,
					func(i int) ([]model.Vector, []uint32) { return vectorsNow[i], labelsNow[i] },
					func(i int, err error) error {
						return fmt.Errorf("fddhdb: encode row %d: %w", rowsNow[i],
							err)
					})
			})
		}
		rows, vectors, labels = nil, nil, nil
		if workers == 0 { // one goroutine reads and encodes
			encode()
			return finish()
		}
		go encode()
		return nil
	}
	err := record.ForEachItem(v.Snap, cv.Descriptor, from,
		func(row uint32, rec *codec.ItemRecord, x []model.Vector) error {
			if uint64(row) >= until {
				return record.ErrStopped
			}
			// ForEachItem fills x again for the next item, and this one waits for its block.
			own := make([]model.Vector, len(x))
			for t := range x {
				own[t] = record.CloneVector(x[t])
			}
			rows, vectors, labels = append(rows, row), append(vectors, own), append(labels, rec.Labels)
			n := len(out.rows) + len(rows)
			if len(rows) == EncodeBlock || n == limit {
				if err := flush(); err != nil {
					return err
				}
			}
			if n == limit {
				return record.ErrStopped
			}
			return nil
		})
	if err == nil || errors.Is(err, record.ErrStopped) {
		err = flush()
	}
	if err == nil {
		err = finish()
	}
	return out, err
}
