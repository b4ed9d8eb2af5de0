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
)

// A Keeper keeps the side file in step with what is durable, in the background: no commit
// waits for it. The file is at most keepDelay or keepEvery commits behind.
type Keeper struct {
	fs      vfs.FS
	dir     string
	signals *signal.Sender
	wake    chan struct{} // holds one
	durable atomic.Uint64 // the last commit that is

	kept  atomic.Uint64 // what the file says
	awake atomic.Bool   // there is something to keep, and it knows

	Mu     sync.Mutex
	file   vfs.File
	record Commits // as last written
	failed bool    // the last write, so that only the first of a row is logged
}

const (
	keepDelay = time.Second
	keepEvery = 1000
)

// NewKeeper returns a keeper of the side file, which says what side does and is to say what
// next does; with remake it is made.
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

// Reached tells that a commit is durable, and so are all before it. A nil keeper keeps
// nothing.
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

func (k *Keeper) nudge() {
	select {
	case k.wake <- struct{}{}:
	default: // it will look
	}
}

// Run keeps the file until the context ends.
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

// Keep brings the file up to date.
func (k *Keeper) Keep() {
	k.Mu.Lock()
	defer k.Mu.Unlock()
	if durable := k.durable.Load(); durable != k.record.Sequence || k.failed {
		next := k.record
		next.Sequence = durable
		k.report(k.write(next))
	}
}

// write writes the next record. The caller has the mutex.
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

// report logs the first failure of a row. The database goes on: what is missing from the
// file is that it could tell of a loss.
func (k *Keeper) report(err error) {
	if err != nil && !k.failed {
		k.signals.Happened(event.CommitsUnkept, slog.LevelWarn, event.Event{Err: err, Attrs: []slog.Attr{slog.String("file", CommitsName)}})
	}
	k.failed = err != nil
}

func (k *Keeper) Losses() []Loss {
	k.Mu.Lock()
	defer k.Mu.Unlock()
	return slices.Clone(k.record.Losses)
}

// Forget forgets the losses.
func (k *Keeper) Forget() ([]Loss, error) {
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

// Drop closes the file as it is.
func (k *Keeper) Drop() error {
	if k == nil || k.file == nil {
		return nil
	}
	return k.file.Close()
}

// Close brings the file up to date and closes it.
func (k *Keeper) Close() {
	k.Keep()
	k.Mu.Lock()
	defer k.Mu.Unlock()
	if k.file != nil {
		k.report(k.file.Close())
	}
}
