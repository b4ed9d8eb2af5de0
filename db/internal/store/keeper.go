package store

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/signal"
	"github.com/fddhdb/fddhdb/db/report"
)

// A Keeper keeps the side file in step with durable commits, in the background: no commit waits for it. The
// file is at most keepDelay or keepEvery commits behind. It never names a commit that is not durable, because
// Reached is called after the sync.
//
// One goroutine runs Run. All other methods are safe for concurrent use with it, except Drop and Close, which
// come last. A read-only database has no keeper.
type Keeper struct {
	fs      vfs.FS         // of the database, not of the store: a failure here fails nothing
	dir     string         // of the database
	signals *signal.Sender // gets the first failure of a series
	wake    chan struct{}  // wakes Run; holds one
	durable atomic.Uint64  // number of the last durable commit; only Reached sets it

	kept  atomic.Uint64 // sequence in the file, to be read without Mu
	awake atomic.Bool   // Run was woken, and has not written the file since

	// Mu guards the fields below and the file on disk, and is held while the file is written. It is exported
	// for tests, which hold it to keep the file unchanged.
	Mu     sync.Mutex
	file   vfs.File // open after the first write; nil before
	record Commits  // as last written
	failed bool     // the last write failed; only the first failure of a series is reported
}

const (
	keepDelay = time.Second // after the first commit that the file lacks
	keepEvery = 1000        // commits, after which the file is written at once
)

// NewKeeper returns a keeper of the side file of the database in dir. CompareCommits has returned the content
// of the file (side) and its next content (next). NewKeeper writes next at once if the two differ, or if
// remake asks for a new file. A failure of that write is only reported.
func NewKeeper(fsys vfs.FS, dir string, signals *signal.Sender, side, next Commits, remake bool) *Keeper {
	k := &Keeper{fs: fsys, dir: dir, signals: signals, wake: make(chan struct{}, 1), record: next}
	k.durable.Store(next.Sequence)
	k.kept.Store(next.Sequence)
	k.Mu.Lock()
	defer k.Mu.Unlock()
	switch {
	case remake:
		k.record.write++
		k.report(MakeCommits(fsys, dir, k.record))
	case side.Sequence != next.Sequence: // the file was behind, or the store is
		k.report(k.write(next))
	}
	return k
}

// Reached reports that a commit and all earlier ones are durable. It never waits, and costs a few atomic
// operations. The committer calls it; a nil keeper does nothing.
func (k *Keeper) Reached(sequence uint64) {
	if k == nil {
		return
	}
	k.durable.Store(sequence)
	// Mostly Run is awake: it writes once in keepDelay, or after keepEvery commits.
	if behind := sequence - k.kept.Load(); !k.awake.Swap(true) || behind >= keepEvery {
		k.nudge()
	}
}

// nudge wakes Run, now or when it waits next.
func (k *Keeper) nudge() {
	select {
	case k.wake <- struct{}{}:
	default: // Run will look
	}
}

// Run keeps the file until the context ends. The file may then lack the last commits; Close writes them.
func (k *Keeper) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		}
		wait := time.NewTimer(keepDelay)
		for due := false; !due; {
			select {
			case <-ctx.Done():
				wait.Stop()
				return
			case <-wait.C:
				due = true
			case <-k.wake:
				due = k.durable.Load()-k.kept.Load() >= keepEvery
			}
		}
		wait.Stop()
		k.awake.Store(false)
		k.Keep()
		if k.durable.Load() != k.kept.Load() {
			k.nudge() // more commits came meanwhile, or the write failed
		}
	}
}

// Keep brings the file up to date now, and returns when it is durable or the write has failed.
func (k *Keeper) Keep() {
	k.Mu.Lock()
	defer k.Mu.Unlock()
	if durable := k.durable.Load(); durable != k.record.Sequence || k.failed {
		next := k.record
		next.Sequence = durable
		k.report(k.write(next))
	}
}

// write writes the next record. The caller holds Mu.
func (k *Keeper) write(next Commits) (err error) {
	if k.file == nil {
		if k.file, err = k.fs.OpenReadWrite(k.fs.PathJoin(k.dir, CommitsName), vfs.WriteCategoryUnspecified); err != nil {
			return err
		}
	}
	next.write = k.record.write + 1
	if err := writeCommits(k.file, &next); err != nil {
		return err // the next write uses the same slot
	}
	k.record = next
	k.kept.Store(next.Sequence)
	return nil
}

// report reports the first failure of a series. The database goes on: only the detection of missing commits
// suffers. The caller holds Mu.
func (k *Keeper) report(err error) {
	if err != nil && !k.failed {
		k.signals.Happened(event.CommitsUnkept, slog.LevelWarn, event.Event{Err: err, Attrs: []slog.Attr{slog.String("file", CommitsName)}})
	}
	k.failed = err != nil
}

// Losses returns the losses that are not acknowledged, in a new slice.
func (k *Keeper) Losses() []report.Loss {
	k.Mu.Lock()
	defer k.Mu.Unlock()
	return slices.Clone(k.record.Losses)
}

// Forget acknowledges all losses and returns them once the changed file is durable. After an error they are
// not forgotten.
func (k *Keeper) Forget() ([]report.Loss, error) {
	k.Mu.Lock()
	defer k.Mu.Unlock()
	if len(k.record.Losses) == 0 {
		return nil, nil
	}
	gone := k.record.Losses
	next := k.record
	next.Losses, next.Sequence = nil, k.durable.Load()
	if err := k.write(next); err != nil {
		return nil, fault.Annotate(err, "write %s in %s", CommitsName, k.dir)
	}
	return gone, nil
}

// Drop closes the file without a write, if opening the database fails before Run. A nil keeper has no file.
func (k *Keeper) Drop() error {
	if k == nil || k.file == nil {
		return nil
	}
	return k.file.Close()
}

// Close brings the file up to date and closes it, after Run has ended.
func (k *Keeper) Close() {
	k.Keep()
	k.Mu.Lock()
	defer k.Mu.Unlock()
	if k.file != nil {
		k.report(k.file.Close())
	}
}
