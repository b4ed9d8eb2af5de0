package db

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

// bulkFileBytes bounds a table that is to be taken over by the store.
const bulkFileBytes = 64 << 20

// bulkTables makes one commit of sorted tables, in a folder of their own, that the
// store takes over: all of them, or none, durably.
type bulkTables struct {
	store    *pebble.DB
	log      *storeLogger
	sequence uint64 // of the commit before
	fs       vfs.FS
	dir      string
	opts     sstable.WriterOptions
	workers  int // goroutines that make them

	// promise, unless nil, hears the number of the commit before the store takes the tables over,
	// and withdraw hears that the store has not taken them.
	promise  func(commit uint64) error
	withdraw func()

	mu      sync.Mutex
	paths   []string       // of the finished ones, too
	closing sync.WaitGroup // of those that are being made durable
	failed  error          // why one could not be
}

// newBulkTables returns tables for a store of the database in dir that has so many commits.
func newBulkTables(kv *pebble.DB, log *storeLogger, cfg *storeConfig, dir string, sequence uint64) *bulkTables {
	return &bulkTables{
		store: kv, log: log, sequence: sequence,
		fs: &failFS{FS: cfg.fs, log: log, room: cfg.room}, dir: cfg.fs.PathJoin(dir, ingestName),
		opts: tableOptions(cfg), workers: work.All(),
	}
}

// take does the tasks, which make the tables, and gives them to the store. With an error the
// store is as it was, or has failed. The commit sequence has to be in the tables, see
// writeSequence.
func (t *bulkTables) take(ctx context.Context, tasks ...work.Task) error {
	err := t.fs.MkdirAll(t.dir, 0o755)
	if err == nil {
		err = t.make(ctx, tasks)
	}
	if err == nil {
		err = t.ingest(ctx)
	}
	// What the store has not taken away is of no use to anybody; if it cannot be
	// removed now, Open does.
	_ = t.fs.RemoveAll(t.dir)
	if failed := t.log.err(); failed != nil {
		return failed
	}
	return err
}

// make does the tasks and waits until their tables are durable.
func (t *bulkTables) make(ctx context.Context, tasks []work.Task) (err error) {
	defer func() {
		t.closing.Wait()
		if err == nil {
			err = t.failed
		}
		if err == nil {
			err = context.Cause(ctx)
		}
	}()
	return work.Together(ctx, t.workers, tasks)
}

// close makes a table durable, in the background: the device can do it for many at a
// time.
func (t *bulkTables) close(w *sstable.Writer) {
	t.closing.Go(func() {
		if err := work.Safely(w.Close); err != nil {
			t.mu.Lock()
			t.failed = errors.Join(t.failed, err)
			t.mu.Unlock()
		}
	})
}

// ingest gives the tables to the store.
func (t *bulkTables) ingest(ctx context.Context) error {
	// The store would wait for a flush of what is in memory, for ever where that fails. Nobody
	// else writes to it now, so that nothing is in memory after this. With NoSync this also
	// makes durable what was written before the tables, which are durable at once.
	if err := flushStore(ctx, t.store, t.log); err != nil {
		return err
	}
	if err := t.log.err(); err != nil {
		return err
	}
	if t.promise != nil {
		if err := t.promise(t.sequence + 1); err != nil {
			return err
		}
	}
	err := t.store.Ingest(context.WithoutCancel(ctx), t.paths)
	if err == nil || t.log.err() != nil {
		return err
	}
	// Whether it has happened is not for guessing.
	b, rerr := record.Get(t.store, codec.DatabaseKey(codec.RecordSequence))
	if rerr != nil || (len(b) == 8 && binary.BigEndian.Uint64(b) > t.sequence) {
		t.log.fail(errors.Join(err, rerr))
		return err
	}
	if t.withdraw != nil {
		t.withdraw()
	}
	return err
}

// writeSequence writes the commit sequence.
func (t *bulkTables) writeSequence(s *tableStream) error {
	return s.set(codec.DatabaseKey(codec.RecordSequence), binary.BigEndian.AppendUint64(nil, t.sequence+1))
}

func (t *bulkTables) create() (*sstable.Writer, error) {
	t.mu.Lock()
	path := t.fs.PathJoin(t.dir, fmt.Sprintf("%06d.sst", len(t.paths)))
	t.paths = append(t.paths, path)
	t.mu.Unlock()
	f, err := t.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return sstable.NewWriter(objstorageprovider.NewFileWritable(f), t.opts), nil
}

// A tableStream writes ascending keys into one table after the other.
type tableStream struct {
	ctx    context.Context
	tables *bulkTables
	w      *sstable.Writer
	keys   int
}

// set writes a value that nothing is under.
func (s *tableStream) set(key, value []byte) error { return s.put(key, value, true) }

// put writes a value; one that is not fresh is merged with what is under the key.
func (s *tableStream) put(key, value []byte, fresh bool) error {
	if s.keys++; s.keys%512 == 0 {
		if s.ctx.Err() != nil {
			return context.Cause(s.ctx)
		}
		if s.w != nil && s.w.Raw().EstimatedSize() >= bulkFileBytes {
			s.finish()
		}
	}
	if err := s.open(); err != nil {
		return err
	}
	if fresh {
		return s.w.Set(key, value)
	}
	return s.w.Merge(key, value)
}

// open begins a table, unless one is being written.
func (s *tableStream) open() (err error) {
	if s.w == nil {
		s.w, err = s.tables.create()
	}
	return err
}

// finish ends the table that is being written.
func (s *tableStream) finish() {
	if s.w != nil {
		s.tables.close(s.w)
		s.w = nil
	}
}

// task returns the task of calling f with a stream. No two of a commit may write
// keys between those of each other.
func (t *bulkTables) task(f func(*tableStream) error) work.Task {
	return func(ctx context.Context) error {
		s := &tableStream{ctx: ctx, tables: t}
		err := f(s)
		s.finish() // after an error, too: there is no other way to close its file
		return err
	}
}

// wait waits for another task to get somewhere.
func (s *tableStream) wait(done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}
