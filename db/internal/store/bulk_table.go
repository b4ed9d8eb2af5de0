package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// TableBytes bounds a table that is to be taken over by the store.
const TableBytes = 64 << 20

// Tables makes one commit of sorted tables, in a folder of their own, that the
// store takes over: all of them, or none, durably.
type Tables struct {
	store    *pebble.DB
	log      *Log
	sequence uint64 // of the commit before
	FS       vfs.FS
	Dir      string
	Opts     sstable.WriterOptions
	Workers  int // goroutines that make them

	// Promise, unless nil, hears the number of the commit before the store takes the tables over,
	// and withdraw hears that the store has not taken them.
	Promise  func(commit uint64) error
	Withdraw func()

	mu      sync.Mutex
	Paths   []string       // of the finished ones, too
	closing sync.WaitGroup // of those that are being made durable
	failed  error          // why one could not be
}

// NewTables returns tables for a store of the database in dir that has so many commits.
func newTables(kv *pebble.DB, log *Log, cfg *Config, dir string, sequence uint64) *Tables {
	return &Tables{
		store: kv, log: log, sequence: sequence,
		FS: &failFS{FS: cfg.FS, log: log, room: cfg.Room}, Dir: cfg.FS.PathJoin(dir, IngestName),
		Opts: TableOptions(cfg), Workers: work.All(),
	}
}

// Take does the tasks, which make the tables, and gives them to the store. With an error the
// store is as it was, or has failed. The commit sequence has to be in the tables, see
// writeSequence.
func (t *Tables) Take(ctx context.Context, tasks ...work.Task) error {
	err := t.FS.MkdirAll(t.Dir, 0o755)
	if err == nil {
		err = t.Make(ctx, tasks)
	}
	if err == nil {
		err = t.ingest(ctx)
	}
	// What the store has not taken away is of no use to anybody; if it cannot be
	// removed now, Open does.
	_ = t.FS.RemoveAll(t.Dir)
	if failed := t.log.Err(); failed != nil {
		return failed
	}
	return err
}

// Make does the tasks and waits until their tables are durable.
func (t *Tables) Make(ctx context.Context, tasks []work.Task) (err error) {
	defer func() {
		t.closing.Wait()
		if err == nil {
			err = t.failed
		}
		if err == nil {
			err = context.Cause(ctx)
		}
	}()
	return work.Together(ctx, t.Workers, tasks)
}

// close makes a table durable, in the background: the device can do it for many at a
// time.
func (t *Tables) close(w *sstable.Writer) {
	t.closing.Go(func() {
		if err := work.Safely(w.Close); err != nil {
			t.mu.Lock()
			t.failed = errors.Join(t.failed, err)
			t.mu.Unlock()
		}
	})
}

// ingest gives the tables to the store.
func (t *Tables) ingest(ctx context.Context) error {
	// The store would wait for a flush of what is in memory, for ever where that fails. Nobody
	// else writes to it now, so that nothing is in memory after this. With NoSync this also
	// makes durable what was written before the tables, which are durable at once.
	if err := FlushAll(ctx, t.store, t.log); err != nil {
		return err
	}
	if err := t.log.Err(); err != nil {
		return err
	}
	if t.Promise != nil {
		if err := t.Promise(t.sequence + 1); err != nil {
			return err
		}
	}
	err := t.store.Ingest(context.WithoutCancel(ctx), t.Paths)
	if err == nil || t.log.Err() != nil {
		return err
	}
	// Whether it has happened is not for guessing.
	b, rerr := record.Get(t.store, codec.DatabaseKey(codec.RecordSequence))
	if rerr != nil || (len(b) == 8 && binary.BigEndian.Uint64(b) > t.sequence) {
		t.log.Fail(errors.Join(err, rerr))
		return err
	}
	if t.Withdraw != nil {
		t.Withdraw()
	}
	return err
}

// WriteSequence writes the commit sequence.
func (t *Tables) WriteSequence(s *Stream) error {
	return s.Set(codec.DatabaseKey(codec.RecordSequence), binary.BigEndian.AppendUint64(nil, t.sequence+1))
}

func (t *Tables) create() (*sstable.Writer, error) {
	t.mu.Lock()
	path := t.FS.PathJoin(t.Dir, fmt.Sprintf("%06d.sst", len(t.Paths)))
	t.Paths = append(t.Paths, path)
	t.mu.Unlock()
	f, err := t.FS.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return sstable.NewWriter(objstorageprovider.NewFileWritable(f), t.Opts), nil
}

// A Stream writes ascending keys into one table after the other.
type Stream struct {
	Ctx    context.Context
	tables *Tables
	W      *sstable.Writer
	keys   int
}

// Set writes a value that nothing is under.
func (s *Stream) Set(key, value []byte) error { return s.Put(key, value, true) }

// Put writes a value; one that is not fresh is merged with what is under the key.
func (s *Stream) Put(key, value []byte, fresh bool) error {
	if s.keys++; s.keys%512 == 0 {
		if s.Ctx.Err() != nil {
			return context.Cause(s.Ctx)
		}
		if s.W != nil && s.W.Raw().EstimatedSize() >= TableBytes {
			s.Finish()
		}
	}
	if err := s.open(); err != nil {
		return err
	}
	if fresh {
		return s.W.Set(key, value)
	}
	return s.W.Merge(key, value)
}

// open begins a table, unless one is being written.
func (s *Stream) open() (err error) {
	if s.W == nil {
		s.W, err = s.tables.create()
	}
	return err
}

// Finish ends the table that is being written.
func (s *Stream) Finish() {
	if s.W != nil {
		s.tables.close(s.W)
		s.W = nil
	}
}

// Task returns the task of calling f with a stream. No two of a commit may write
// keys between those of each other.
func (t *Tables) Task(f func(*Stream) error) work.Task {
	return func(ctx context.Context) error {
		s := &Stream{Ctx: ctx, tables: t}
		err := f(s)
		s.Finish() // after an error, too: there is no other way to close its file
		return err
	}
}

// Wait waits for another task to get somewhere.
func (s *Stream) Wait(done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-s.Ctx.Done():
		return context.Cause(s.Ctx)
	}
}
