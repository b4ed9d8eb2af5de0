package db

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

// A keeper keeps the side file in step with what is durable, in the background: no commit
// waits for it. The file is at most keepDelay or keepEvery commits behind.
type keeper struct {
	fs      vfs.FS
	dir     string
	signals *signal.Sender
	wake    chan struct{} // holds one
	durable atomic.Uint64 // the last commit that is

	kept  atomic.Uint64 // what the file says
	awake atomic.Bool   // there is something to keep, and it knows

	mu     sync.Mutex
	file   vfs.File
	record commitsRecord // as last written
	failed bool          // the last write, so that only the first of a row is logged
}

const (
	keepDelay = time.Second
	keepEvery = 1000
)

// newKeeper returns a keeper of the side file, which says what side does and is to say what
// next does; with remake it is made.
func newKeeper(fsys vfs.FS, dir string, signals *signal.Sender, side, next commitsRecord, remake bool) *keeper {
	k := &keeper{fs: fsys, dir: dir, signals: signals, wake: make(chan struct{}, 1), record: next}
	k.durable.Store(next.sequence)
	k.kept.Store(next.sequence)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case remake:
		k.record.write++
		k.report(makeCommits(fsys, dir, k.record))
	case side.sequence != next.sequence: // it was behind, or the store is
		k.report(k.write(next))
	}
	return k
}

// reached tells that a commit is durable, and so are all before it. A nil keeper keeps
// nothing.
func (k *keeper) reached(sequence uint64) {
	if k == nil {
		return
	}
	k.durable.Store(sequence)
	// Most find that it is awake: it looks once in keepDelay, or after keepEvery.
	if behind := sequence - k.kept.Load(); !k.awake.Swap(true) || behind >= keepEvery {
		k.nudge()
	}
}

func (k *keeper) nudge() {
	select {
	case k.wake <- struct{}{}:
	default: // it will look
	}
}

// run keeps the file until the context ends.
func (k *keeper) run(ctx context.Context) {
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
		k.keep()
		if k.durable.Load() != k.kept.Load() {
			k.nudge() // there were more meanwhile, or it has failed
		}
	}
}

// keep brings the file up to date.
func (k *keeper) keep() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if durable := k.durable.Load(); durable != k.record.sequence || k.failed {
		next := k.record
		next.sequence = durable
		k.report(k.write(next))
	}
}

// write writes the next record. The caller has the mutex.
func (k *keeper) write(next commitsRecord) (err error) {
	if k.file == nil {
		if k.file, err = k.fs.OpenReadWrite(k.fs.PathJoin(k.dir, commitsName), vfs.WriteCategoryUnspecified); err != nil {
			return err
		}
	}
	next.write = k.record.write + 1
	if err := writeCommits(k.file, &next); err != nil {
		return err // the slot is written again
	}
	k.record = next
	k.kept.Store(next.sequence)
	return nil
}

// report logs the first failure of a row. The database goes on: what is missing from the
// file is that it could tell of a loss.
func (k *keeper) report(err error) {
	if err != nil && !k.failed {
		k.signals.Happened(event.CommitsUnkept, slog.LevelWarn, event.Event{Err: err, Attrs: []slog.Attr{slog.String("file", commitsName)}})
	}
	k.failed = err != nil
}

func (k *keeper) losses() []loss {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.record.losses)
}

// forget forgets the losses.
func (k *keeper) forget() ([]loss, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.record.losses) == 0 {
		return nil, nil
	}
	gone := k.record.losses
	next := k.record
	next.losses, next.sequence = nil, k.durable.Load()
	if err := k.write(next); err != nil {
		return nil, fault.Annotate(err, "write %s in %s", commitsName, k.dir)
	}
	return gone, nil
}

// drop closes the file as it is.
func (k *keeper) drop() error {
	if k == nil || k.file == nil {
		return nil
	}
	return k.file.Close()
}

// close brings the file up to date and closes it.
func (k *keeper) close() {
	k.keep()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.file != nil {
		k.report(k.file.Close())
	}
}
