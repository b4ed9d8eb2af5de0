package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

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

// A tableFile closes itself as soon as a write, a sync or a stat fails, because Pebble then forgets the file
// without always closing it. Pebble tries to write a table again and again, so open files would pile up.
type tableFile struct {
	vfs.File
	mu  sync.Mutex // guards err, and is held during calls that may set it
	err error      // the first error, which closed the file; nil: none
}

// table makes a tableFile of an opened file.
func table(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &tableFile{File: f}, nil
}

// do runs op, and closes the file for good if op fails. Later calls get the same error.
func (f *tableFile) do(op func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	if f.err = op(); f.err != nil {
		_ = f.File.Close() // its content is useless
	}
	return f.err
}

func (f *tableFile) Write(p []byte) (n int, err error) {
	err = f.do(func() (err error) {
		n, err = f.File.Write(p)
		return err
	})
	return n, err
}

func (f *tableFile) Sync() error     { return f.do(f.File.Sync) }
func (f *tableFile) SyncData() error { return f.do(f.File.SyncData) }

func (f *tableFile) SyncTo(length int64) (full bool, err error) {
	err = f.do(func() (err error) {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

func (f *tableFile) Stat() (info vfs.FileInfo, err error) {
	err = f.do(func() (err error) {
		info, err = f.File.Stat()
		return err
	})
	return info, err
}

func (f *tableFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil
	}
	return f.File.Close()
}

// compactPiece is roughly the number of bytes of the store that are rewritten at a time. The rewrite takes at
// most as much additional space. With less free space a piece is smaller.
const compactPiece = 256 << 20

// CompactAll rewrites the whole store, so that deleted and replaced data takes no space. It flushes memory,
// and then compacts piece by piece, so it never needs much more than compactPiece bytes of additional space.
// On a full disk it takes the free space, and a table without room ends it. After each piece progress gets
// the bytes done and in total. Writers and readers go on. An error (ErrDiskFull, or the end of the context)
// ends it between two pieces; rewritten pieces stay. It needs a Reserve.
func (e *Engine) CompactAll(ctx context.Context, progress func(done, total int64)) error {
	room := e.Reserve.roomToCompact()
	if err := e.Admit(0, true); err != nil {
		return err
	}
	if err := e.FlushAll(ctx); err != nil {
		return err
	}
	pieces, err := e.pieces(min(room, compactPiece))
	if err != nil {
		return err
	}
	done, total := int64(0), int64(0)
	for _, p := range pieces {
		total += p.bytes
	}
	patient := time.Now().Add(maxZombieWait)
	for i, p := range pieces {
		progress(done, total)
		end := []byte{0xff} // keys begin with a kind, and no kind is that large
		if i+1 < len(pieces) {
			end = pieces[i+1].start
		}
		if err := e.Rewrite(ctx, p.start, end); err != nil {
			return err
		}
		if err := e.waitForRoom(ctx, patient); err != nil {
			return err
		}
		done += p.bytes
	}
	e.Reserve.LookAgain() // the old tables are gone
	progress(done, total)
	return nil
}

// maxZombieWait is the total time that CompactAll waits for tables that are still being read.
const maxZombieWait = time.Second

// waitForRoom returns once the old tables are gone: Pebble removes them in the background. Pebble itself
// often reads one for some milliseconds more, to take its statistics. An iterator may hold one for any time,
// so the wait for tables that are being read ends at the time patient.
func (e *Engine) waitForRoom(ctx context.Context, patient time.Time) error {
	for {
		m := e.DB.Metrics()
		if m.Table.ObsoleteCount == 0 && (m.Table.ZombieCount == 0 || !time.Now().Before(patient)) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Millisecond):
		}
	}
}

// Rewrite compacts the tables with keys from start to end to the lowest level. If that fails, Pebble tries
// forever; Rewrite returns once tableTrouble reports trouble. Two calls at a time may take each other's
// signal of a failure; as Pebble tries again, the other call gets the next one.
func (e *Engine) Rewrite(ctx context.Context, start, end []byte) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-e.Log.trouble:
			}
			if err := e.Log.compactions.err(); err != nil {
				cancel(err)
				return
			}
		}
	}()
	err := e.DB.Compact(ctx, start, end, true)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// A storePiece is the part of the store from a key up to the next piece.
type storePiece struct {
	start []byte // first key of the piece
	bytes int64  // of the tables that begin in the piece
}

// pieces cuts the store at the beginnings of tables into pieces of at most so many bytes; tables that begin
// with the same key stay together. A table counts where it begins, though it may reach into the next piece.
func (e *Engine) pieces(most int64) ([]storePiece, error) {
	levels, err := e.DB.SSTables()
	if err != nil {
		return nil, err
	}
	all := []storePiece{{start: []byte{0}}}
	for _, level := range levels {
		for _, t := range level {
			all = append(all, storePiece{t.Smallest.UserKey, int64(t.Size)})
		}
	}
	slices.SortFunc(all, func(a, b storePiece) int { return bytes.Compare(a.start, b.start) })
	out := all[:1]
	for _, t := range all[1:] {
		if last := &out[len(out)-1]; last.bytes+t.bytes <= most || bytes.Equal(last.start, t.start) {
			last.bytes += t.bytes
		} else {
			out = append(out, t)
		}
	}
	return out, nil
}

// Pebble reads each block of a table in one read, and checks the sum at its end. If the sum is wrong, Pebble
// looks for one flipped bit as the cause: it flips every bit of the first 40 KiB in turn and sums the whole
// block each time. That takes half a second for a block of 32 KiB and minutes for one of a few MiB, ignores
// the context, and every reader of the block pays for it. So a summedFile checks the sum before Pebble sees
// the block.

// shortRead is the longest read that is left to Pebble. Footers of tables have sums of another kind, and at
// most 61 bytes. Pebble searches so short a block in no time.
const shortRead = 128

// blockTrailer is the length of the end of a block: a compression byte, and the sum of everything before the
// sum.
const blockTrailer = 1 + 4

// blockSum returns the checksum of a block and its compression byte, in the form of LevelDB, which RocksDB
// and Pebble share: the CRC-32C, rotated and shifted by a constant.
func blockSum(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoliSums)
	return (c>>15 | c<<17) + 0xa282ead8
}

// castagnoliSums is the table of CRC-32C.
var castagnoliSums = crc32.MakeTable(crc32.Castagnoli)

// A summedFile is a table opened for reading. Reading a block with a wrong checksum fails with a *blockError.
// TestSumsOfBlocksAreThoseOfPebble tests every kind of block.
type summedFile struct {
	vfs.File
	name string // of the file, without its folder, for errors
}

// summed makes an opened file a summedFile if its name is the name of a table.
func summed(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil || !strings.HasSuffix(name, ".sst") {
		return f, err
	}
	return &summedFile{f, path.Base(strings.ReplaceAll(name, `\`, "/"))}, nil
}

// ReadAt reads a whole block with its trailer, as Pebble reads tables, or something short.
func (f *summedFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	if err != nil || n != len(p) || n <= shortRead {
		return n, err
	}
	end := n - blockTrailer + 1
	if want, is := binary.LittleEndian.Uint32(p[end:]), blockSum(p[:end]); want != is {
		return 0, &blockError{table: f.name, offset: off, length: n - blockTrailer, want: want, is: is}
	}
	return n, nil
}

// A blockError reports a damaged block of a table. Pebble treats it as damage that it has found itself.
type blockError struct {
	table    string // name of the file
	offset   int64  // of the block in the table
	length   int    // of the block without its trailer
	want, is uint32 // the sum in the trailer, and the sum of the bytes read
}

func (e *blockError) Error() string {
	return fmt.Sprintf("table %s: block of %d bytes at %d: checksum is %08x, should be %08x", e.table,
		e.length, e.offset, e.is, e.want)
}

// Is makes a blockError a pebble.ErrCorruption.
func (e *blockError) Is(target error) bool { return target == pebble.ErrCorruption }
