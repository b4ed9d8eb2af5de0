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

// A Keeper keeps the side file in step with what is durable, in the background: no commit
// waits for it. The file is at most keepDelay or keepEvery commits behind. It never says more
// than is durable, as Reached is told after the sync.
//
// One goroutine runs Run; all other methods are safe for concurrent use with it, but Drop and
// Close, which come last. A database that is only read, or whose format has no side file, has
// no keeper.
type Keeper struct {
	fs      vfs.FS         // of the database, and not the store's: a failure here fails nothing
	dir     string         // of the database
	signals *signal.Sender // hears of the first failure of a row
	wake    chan struct{}  // asks Run to look; holds one
	durable atomic.Uint64  // number of the last durable commit; only Reached sets it

	kept  atomic.Uint64 // what the file says: record.Sequence, to be read without Mu
	awake atomic.Bool   // Run has been woken, and has not kept the file since

	// Mu guards the fields below, and with them the file on disk; it is held while that is
	// written. Exported for tests, which hold it so that the file stays as it is.
	Mu     sync.Mutex
	file   vfs.File // open from the first write on; nil before
	record Commits  // as last written
	failed bool     // the last write has failed, so that only the first of a row is logged
}

const (
	keepDelay = time.Second // after the first commit that the file lacks
	keepEvery = 1000        // commits, after which it is written at once
)

// NewKeeper returns a keeper of the side file of the database in dir. CompareCommits has said
// what the file says (side) and is to say (next). It is brought to say that at once, where the
// two differ or remake asks for a new file. A failure of that is logged only.
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
	case side.Sequence != next.Sequence: // it was behind, or the store is
		k.report(k.write(next))
	}
	return k
}

// Reached tells that a commit is durable, and so are all before it. It never waits, and costs
// a few atomic operations. The committer calls it; a nil keeper keeps nothing.
func (k *Keeper) Reached(sequence uint64) {
	if k == nil {
		return
	}
	k.durable.Store(sequence)
	// Most find that it is awake: it looks once in keepDelay, or after keepEvery.
	if behind := sequence - k.kept.Load(); !k.awake.Swap(true) || behind >= keepEvery {
		k.nudge()
	}
}

// nudge wakes Run, now or when it waits next.
func (k *Keeper) nudge() {
	select {
	case k.wake <- struct{}{}:
	default: // it will look
	}
}

// Run keeps the file until the context ends. What was reached last may not be in it then:
// Close sees to that.
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
			k.nudge() // there were more meanwhile, or it has failed
		}
	}
}

// Keep brings the file up to date now, and returns when it is durable or has failed.
func (k *Keeper) Keep() {
	k.Mu.Lock()
	defer k.Mu.Unlock()
	if durable := k.durable.Load(); durable != k.record.Sequence || k.failed {
		next := k.record
		next.Sequence = durable
		k.report(k.write(next))
	}
}

// write writes the next record. The caller has Mu.
func (k *Keeper) write(next Commits) (err error) {
	if k.file == nil {
		if k.file, err = k.fs.OpenReadWrite(k.fs.PathJoin(k.dir, CommitsName), vfs.WriteCategoryUnspecified); err != nil {
			return err
		}
	}
	next.write = k.record.write + 1
	if err := writeCommits(k.file, &next); err != nil {
		return err // the slot is written again
	}
	k.record = next
	k.kept.Store(next.Sequence)
	return nil
}

// report logs the first failure of a row. The database goes on: all that is lost is that the
// file could tell of missing commits. The caller has Mu.
func (k *Keeper) report(err error) {
	if err != nil && !k.failed {
		k.signals.Happened(event.CommitsUnkept, slog.LevelWarn, event.Event{Err: err, Attrs: []slog.Attr{slog.String("file", CommitsName)}})
	}
	k.failed = err != nil
}

// Losses returns the losses that nobody has acknowledged, in a slice of the caller's own.
func (k *Keeper) Losses() []report.Loss {
	k.Mu.Lock()
	defer k.Mu.Unlock()
	return slices.Clone(k.record.Losses)
}

// Forget acknowledges all losses and returns them, when the file that says so is durable. With
// an error they are not forgotten.
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

// Drop closes the file as it is, where opening the database fails before Run. A nil keeper has
// none.
func (k *Keeper) Drop() error {
	if k == nil || k.file == nil {
		return nil
	}
	return k.file.Close()
}

// Close brings the file up to date and closes it, when Run has ended.
func (k *Keeper) Close() {
	k.Keep()
	k.Mu.Lock()
	defer k.Mu.Unlock()
	if k.file != nil {
		k.report(k.file.Close())
	}
}
