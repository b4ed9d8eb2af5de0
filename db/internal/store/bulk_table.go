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

// TableBytes is roughly the size of a table for the store to ingest. A Stream checks the size every 512 keys,
// so long values make some tables larger.
var TableBytes uint64 = 64 << 20 // tests set less

// Tables makes one commit of sorted tables in a folder of its own. The store ingests them in one atomic and
// durable step, all or none. Tasks write the tables in parallel, each by a Stream; Take runs the tasks and
// hands their tables to the store. The data passes no log and no memtable, and few compactions.
//
// One goroutine at a time uses a Tables: in an open database the committer, which holds all other writes back
// meanwhile. For Make, a literal with FS, Dir, Opts and Workers and without a store is enough: an extract
// makes tables for a store that does not exist yet.
type Tables struct {
	store    *pebble.DB // the store that ingests the tables
	log      *Log       // of that store: after a failure nothing is ingested
	sequence uint64     // number of the commit before; this one has the next

	FS      vfs.FS                // in an open database a failFS, which leaves room for the log
	Dir     string                // folder of the tables until they are ingested; Take makes and removes it
	Opts    sstable.WriterOptions // see TableOptions
	Workers int                   // goroutines for the tasks; may be set before Take or Make

	mu      sync.Mutex     // guards Paths and failed while tasks run
	Paths   []string       // of all tables begun, in no order of keys
	closing sync.WaitGroup // counts tables being made durable
	failed  error          // why some tables are not durable; nil: no failure
}

// newTables returns Tables for the store kv of the database in dir, after sequence commits.
func newTables(kv *pebble.DB, log *Log, cfg *Config, dir string, sequence uint64) *Tables {
	return &Tables{
		store: kv, log: log, sequence: sequence,
		FS: &failFS{FS: cfg.FS, log: log, room: cfg.Room}, Dir: cfg.FS.PathJoin(dir, IngestName),
		Opts: TableOptions(cfg), Workers: work.All(),
	}
}

// Take runs the tasks, which make the tables, and gives the tables to the store. After an error the store is
// unchanged, or it has failed, and the error is the error of the Log. One task has to store the number of the
// commit, see WriteSequence. The context counts until all tables are made and memory is flushed; nothing
// interrupts the ingestion.
func (t *Tables) Take(ctx context.Context, tasks ...work.Task) error {
	err := t.FS.MkdirAll(t.Dir, 0o755)
	if err == nil {
		err = t.Make(ctx, tasks)
	}
	if err == nil {
		err = t.ingest(ctx)
	}
	// Files that the store has not ingested are useless. If they cannot be removed now, Open removes them.
	_ = t.FS.RemoveAll(t.Dir)
	if failed := t.log.Err(); failed != nil {
		return failed
	}
	return err
}

// Make runs the tasks on Workers goroutines and waits until their tables are durable; Paths then has them.
// Dir must exist.
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

// close makes a table durable in the background: the device can do it for many at a time.
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
	// The store would wait for a flush of the memtable, forever if that fails. No other goroutine writes now,
	// so after FlushAll the memtable is empty. With NoSync, this also makes the writes before the tables
	// durable, because ingested tables are durable at once.
	if err := FlushAll(ctx, t.store, t.log); err != nil {
		return err
	}
	if err := t.log.Err(); err != nil {
		return err
	}
	err := t.store.Ingest(context.WithoutCancel(ctx), t.Paths)
	if err == nil || t.log.Err() != nil {
		return err
	}
	// Find out whether the store has ingested the tables.
	b, rerr := record.Get(t.store, codec.DatabaseKey(codec.RecordSequence))
	if rerr != nil || (len(b) == 8 && binary.BigEndian.Uint64(b) > t.sequence) {
		t.log.Fail(errors.Join(err, rerr))
	}
	return err
}

// WriteSequence stores the number of this commit. Call it once, at the place of its key in the order.
func (t *Tables) WriteSequence(s *Stream) error { return s.Records.Sequence(t.sequence + 1) }

// create begins a table and adds it to Paths at once.
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

// A Stream writes the keys of one task, which must ascend, into one table after the other. It is for the
// goroutine of its task. The range of a stream's keys must contain no key of another stream: the store
// ingests only tables that do not overlap.
type Stream struct {
	Ctx     context.Context // of the task: ended when another task fails
	Records *record.Writer  // writes records to this stream
	tables  *Tables
	W       *sstable.Writer // of the current table; nil between two tables
	keys    int             // written to all tables so far
}

// Set writes a value under a key that does not exist in the store. The caller may reuse the slices. If Ctx
// has ended, the error is its cause.
func (s *Stream) Set(key, value []byte) error {
	if err := s.next(); err != nil {
		return err
	}
	return s.W.Set(key, value)
}

// Merge is Set with an edit, which Pebble merges with the stored value (codec.Merger).
func (s *Stream) Merge(key, value []byte) error {
	if err := s.next(); err != nil {
		return err
	}
	return s.W.Merge(key, value)
}

// Delete deletes the value that the store has under a key.
func (s *Stream) Delete(key []byte) error {
	if err := s.next(); err != nil {
		return err
	}
	return s.W.Delete(key)
}

// next makes W ready for one more key.
func (s *Stream) next() error {
	if s.keys++; s.keys%512 == 0 {
		if s.Ctx.Err() != nil {
			return context.Cause(s.Ctx)
		}
		if s.W != nil && s.W.Raw().EstimatedSize() >= TableBytes {
			s.Finish()
		}
	}
	return s.open()
}

// open begins a table unless one is open.
func (s *Stream) open() (err error) {
	if s.W == nil {
		s.W, err = s.tables.create()
	}
	return err
}

// Finish ends the current table, if there is one. It becomes durable in the background. The next key begins
// another table.
func (s *Stream) Finish() {
	if s.W != nil {
		s.tables.close(s.W)
		s.W = nil
	}
}

// Task returns the task of calling f with a stream of its own.
func (t *Tables) Task(f func(*Stream) error) work.Task {
	return func(ctx context.Context) error {
		s := &Stream{Ctx: ctx, tables: t}
		s.Records = record.NewWriter(s)
		err := f(s)
		s.Finish() // after an error too: nothing else closes its file
		return err
	}
}

// Wait waits until another task of the commit closes done, or fails. work.Together starts tasks in order, so
// wait only for an earlier task.
func (s *Stream) Wait(done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-s.Ctx.Done():
		return context.Cause(s.Ctx)
	}
}
