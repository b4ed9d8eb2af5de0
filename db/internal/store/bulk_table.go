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

// TableBytes is about how large a table gets that the store is to take over. A Stream looks
// every 512 keys, so that long values make some larger.
var TableBytes uint64 = 64 << 20 // tests have smaller ones

// Tables makes one commit of sorted tables, in a folder of their own, which the store takes
// over in one atomic and durable step: all of them, or none. Tasks write the tables side by
// side, each by a Stream; Take runs the tasks and hands their tables to the store. What is
// stored in this way passes no log and no memtable, and few compactions.
//
// One goroutine at a time uses a Tables: in an open database that is the committer, which
// keeps all other writes away meanwhile. A literal with FS, Dir, Opts and Workers, without a
// store, is enough for Make (an extract makes tables for a store that does not exist yet).
type Tables struct {
	store    *pebble.DB // that takes them over
	log      *Log       // of that store: after a failure nothing is taken over
	sequence uint64     // number of the commit before; this one has the next

	FS      vfs.FS                // in an open database a failFS, which leaves room for the log
	Dir     string                // where the tables are until then; Take makes and removes it
	Opts    sstable.WriterOptions // see TableOptions
	Workers int                   // goroutines for the tasks; may be set before Take or Make

	mu      sync.Mutex     // guards Paths and failed while tasks run
	Paths   []string       // of all tables that were begun, in no order of keys
	closing sync.WaitGroup // counts tables that are being made durable
	failed  error          // why some could not be; nil: all could
}

// newTables returns Tables for the store kv of the database in dir, which has had sequence
// commits.
func newTables(kv *pebble.DB, log *Log, cfg *Config, dir string, sequence uint64) *Tables {
	return &Tables{
		store: kv, log: log, sequence: sequence,
		FS: &failFS{FS: cfg.FS, log: log, room: cfg.Room}, Dir: cfg.FS.PathJoin(dir, IngestName),
		Opts: TableOptions(cfg), Workers: work.All(),
	}
}

// Take does the tasks, which make the tables, and gives these to the store. With an error the
// store is as it was, or has failed (then the error is that of the Log). One of the tasks has
// to store the number of the commit, see WriteSequence. The context counts until all tables
// are made and what is in memory is flushed: nothing ends the step itself.
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

// Make does the tasks on Workers goroutines and waits until their tables are durable. Paths
// has them then. Dir has to be there already.
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
	err := t.store.Ingest(context.WithoutCancel(ctx), t.Paths)
	if err == nil || t.log.Err() != nil {
		return err
	}
	// Whether it has happened is not for guessing.
	b, rerr := record.Get(t.store, codec.DatabaseKey(codec.RecordSequence))
	if rerr != nil || (len(b) == 8 && binary.BigEndian.Uint64(b) > t.sequence) {
		t.log.Fail(errors.Join(err, rerr))
	}
	return err
}

// WriteSequence stores the number of this commit. It must be called once, where the key is
// next in order.
func (t *Tables) WriteSequence(s *Stream) error { return s.Records.Sequence(t.sequence + 1) }

// create begins a table, which counts in Paths at once.
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

// A Stream is how one task writes keys, which must ascend, into one table after the other. It
// is for the goroutine of its task. Between the first and the last key of a stream there must
// be no key of another one: the store takes over only tables that do not overlap.
type Stream struct {
	Ctx     context.Context // of the task: ended when another task has failed
	Records *record.Writer  // writes records to this stream
	tables  *Tables
	W       *sstable.Writer // of the table that is being written; nil between two
	keys    int             // written so far, to all tables
}

// Set writes a value under a key that the store has nothing under. The slices may be used
// again. The error is the cause of Ctx when that has ended.
func (s *Stream) Set(key, value []byte) error {
	if err := s.next(); err != nil {
		return err
	}
	return s.W.Set(key, value)
}

// Merge is Set with an edit, which Pebble merges with what is there (codec.Merger).
func (s *Stream) Merge(key, value []byte) error {
	if err := s.next(); err != nil {
		return err
	}
	return s.W.Merge(key, value)
}

// Delete deletes what the store has under a key.
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

// open begins a table, unless one is being written.
func (s *Stream) open() (err error) {
	if s.W == nil {
		s.W, err = s.tables.create()
	}
	return err
}

// Finish ends the table that is being written, if there is one; it becomes durable in the
// background. The next key begins another one.
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
		s.Finish() // after an error, too: there is no other way to close its file
		return err
	}
}

// Wait waits until another task of the commit closes done, or has failed. As work.Together
// begins tasks in their order, only an earlier task may be waited for.
func (s *Stream) Wait(done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-s.Ctx.Done():
		return context.Cause(s.Ctx)
	}
}
