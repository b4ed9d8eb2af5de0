package spool

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db/internal/bulk"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// A Spool holds the items of one import until they are committed. Their keys, codes, labels and
// modalities are in memory, in the columns of a bulk.Items; everything is in chunks in files.
//
// One goroutine uses a Spool. While it waits for a commit, the committer calls Promise and
// Withdraw. When no call goes on any more, another goroutine may Close the Spool; the first may
// still ask Rows, Items, Bytes and Committed then. The zero Spool only answers these.
type Spool struct {
	// Set by Open, constant from then on.
	folder  Folder
	name    string        // of the folder of this import, in folder
	engine  *store.Engine // of the database
	bits    int           // of the codes of a codes-only collection, otherwise 0
	earlier Promise       // given and kept by an earlier process; zero: none

	// What is staged. Close does not touch these.
	items *bulk.Items // the columns, which belong to the caller of Open
	rows  uint64      // items and skipped rows
	bytes uint64      // an estimate of the memory of the items, see record.Item.Bytes

	// From Put to the files.
	keys   keyArena // the keys in items
	named  int      // how many labels of items are in chunks
	chunk  *chunk   // is being filled; nil: none
	writer *writer  // nil: this session has staged nothing
	err    error    // the first failure of writing, after which nothing can be staged

	// From the files to a commit. Open and Settle add to these; the readers of a settled Spool
	// share them.
	files  []*chunkFile // in order; chunks of the last may be missing in chunks
	chunks []chunkRef   // in order

	// ChunkBytes is the size from which on a chunk is written. Tests set less.
	ChunkBytes int
}

// Options say what Open needs besides the origin of an import.
type Options struct {
	Engine     *store.Engine      // of the database: it admits what is written
	Descriptor *record.Descriptor // of the collection, as it is now
	Items      *bulk.Items        // empty columns, to which the Spool adds all items
	Bytes      int64              // an estimate of the memory of all items; 0: not known
	Restart    bool               // begin anew: forget what is staged

	// Skipped, unless nil, is called with the rows that earlier sessions have skipped, in order.
	Skipped func(row int, why string)
}

// Open begins an import, or continues the staged one of the same origin: it reads all of that
// once. If a part is damaged, the rows from there on are forgotten, and the caller puts them
// again. Too little space for Options.Bytes gives a fault.DiskFullError, a damaged promise
// fault.ErrStaged.
func (f Folder) Open(ctx context.Context, origin Origin, o Options) (*Spool, error) {
	s := &Spool{folder: f, name: origin.Name(), engine: o.Engine, items: o.Items, ChunkBytes: chunkBytes}
	if o.Descriptor.CodesOnly() {
		s.bits = o.Descriptor.Bits
	}
	opened := false
	defer func() {
		if !opened { // also after a panic of Options.Skipped
			s.closeFiles()
		}
	}()
	if err := s.open(ctx, headerOf(origin), &o); err != nil {
		return nil, err
	}
	opened = true
	return s, nil
}

func (s *Spool) open(ctx context.Context, head header, o *Options) error {
	// The order: is there a staged import of this origin, or does this one begin; has an earlier
	// process committed it; what is staged. Only then the rest of the room is asked for.
	found, err := s.folder.readHeader(s.name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	begins := found != head || o.Restart
	if begins {
		if err := s.begin(head, o.Bytes); err != nil {
			return err
		}
	}
	if s.earlier, err = s.folder.Promised(s.name); err != nil {
		return err
	}
	if err := s.resume(ctx, o); err != nil {
		return err
	}
	if begins || s.Committed() {
		return nil
	}
	left := max(o.Bytes-int64(s.bytes), 0) // to be staged, and then all to be stored
	return s.engine.Admit(left+o.Bytes, false)
}

// begin makes the folder of the import anew. It wants room for the items twice: in the folder,
// and in the store.
func (s *Spool) begin(head header, bytes int64) error {
	// Remove before asking for room: what another import has staged here takes some.
	if err := s.folder.Remove(s.name); err != nil {
		return err
	}
	if err := s.engine.Admit(2*bytes, false); err != nil {
		return err
	}
	if err := store.MakeDir(s.folder.FS, s.Dir()); err != nil {
		return err
	}
	return s.folder.writeHeader(s.name, head)
}

// Dir returns the folder of the import.
func (s *Spool) Dir() string { return s.folder.path(s.name) }

// Committed reports whether an earlier process has committed the import and ended before it
// removed the files. Nothing may be staged then.
func (s *Spool) Committed() bool { return s.earlier.Commit > 0 }

// Rows returns the number of rows that all sessions have put and skipped.
func (s *Spool) Rows() int { return int(max(s.rows, s.earlier.Rows)) }

// Items returns the number of items that all sessions have put.
func (s *Spool) Items() int {
	if s.items == nil { // the zero Spool
		return 0
	}
	return max(s.items.Len(), int(s.earlier.Items))
}

// Bytes returns an estimate of the memory of the staged items.
func (s *Spool) Bytes() int64 { return int64(s.bytes) }

// Err returns the first failure of writing, or nil. Nothing can be staged after it.
func (s *Spool) Err() error { return s.err }

// Put stages a copy of an item, which has been checked against the descriptor of the
// collection. It replaces it.Key by an equal string that the columns keep. An error is a failure
// of writing: see Err.
func (s *Spool) Put(it *record.Item) error {
	c, err := s.filling()
	if err != nil {
		return err
	}
	// The columns get the item first. If the chunk then refuses it, err stays, and Settle commits
	// nothing.
	it.Key = s.keys.add(it.Key)
	s.items.AddColumns(it)
	s.nameLabels(c)
	var ids []uint32
	if len(it.Labels) > 0 {
		ids = s.items.Labels.Lookup(it.Labels)
	}
	if s.err = c.add(it, s.bits, ids); s.err != nil {
		return s.err
	}
	bytes := uint64(it.Bytes())
	c.bytes += bytes
	s.bytes += bytes
	s.rows++
	return s.flushFull()
}

// Skip stages that a row is not an item, and the reason, up to 1 KiB of it. For errors see Put.
func (s *Spool) Skip(why string) error {
	c, err := s.filling()
	if err != nil {
		return err
	}
	c.addSkip(strings.ToValidUTF8(why[:min(len(why), maxSkipBytes)], ""))
	s.rows++
	return s.flushFull()
}

// Register gives numbers to new labels, in this order. For errors see Put.
func (s *Spool) Register(labels []string) error {
	c, err := s.filling()
	if err != nil {
		return err
	}
	s.items.Register(labels)
	s.nameLabels(c)
	return s.flushFull()
}

// filling returns the chunk that is being filled, a new one where there is none.
func (s *Spool) filling() (*chunk, error) {
	if s.err == nil && s.writer == nil {
		s.writer, s.err = s.newWriter()
	}
	if s.err != nil {
		return nil, s.err
	}
	if s.chunk == nil {
		// Waits while all chunks wait to be written: that bounds memory.
		s.chunk = <-s.writer.free
		s.chunk.reset(s.rows, uint64(s.items.Len()))
	}
	return s.chunk, nil
}

// nameLabels adds to the chunk the labels that are in none yet.
func (s *Spool) nameLabels(c *chunk) {
	if s.items.Labels.Count() == s.named {
		return
	}
	for _, name := range s.items.Labels.All()[s.named:] {
		c.addLabel(name)
		s.named++
	}
}

// flushFull flushes the chunk if it is full. It returns the failure that is known by then.
func (s *Spool) flushFull() error {
	if s.chunk.full(s.ChunkBytes) {
		s.flush()
		s.err = s.writer.failed()
	}
	return s.err
}

// flush hands the chunk that is being filled to the writer.
func (s *Spool) flush() {
	c := s.chunk
	s.chunk = nil
	switch {
	case c == nil:
	// An empty chunk is not written, and can be filled again.
	case c.size() == 0:
		s.writer.free <- c
	default:
		s.writer.chunks <- c
	}
}

// Settle makes all staged rows durable and readable: it lets the columns read labels, fields,
// payloads and vectors from the files, which a commit of the columns needs. d is the descriptor
// of the collection; it is at least as new as the one of the last item.
func (s *Spool) Settle(d *record.Descriptor) error {
	if s.err != nil {
		return s.err
	}
	if s.writer != nil {
		s.flush()
		if s.err = s.writer.sync(); s.err != nil {
			return s.err
		}
		s.chunks = append(s.chunks, s.writer.written()...)
	}
	// If all items are plain, their columns have everything, and no file is read again.
	var rest bulk.Extras // none
	if slices.ContainsFunc(s.chunks, func(ref chunkRef) bool { return !ref.plain() }) {
		rest = &extras{s, d}
	}
	s.items.ReadFrom(rest, s.folder.FS, s.Dir())
	return nil
}

// Commit stores the items of an import, which are settled, in one commit if that is possible.
func (s *Spool) Commit(ctx context.Context, o bulk.OneByOne) error {
	o.Bytes, o.Promise = s.Bytes(), s.Promise
	if s.items.Len() > 0 {
		err := s.items.Commit(ctx, bulk.Options{Bytes: o.Bytes, Promise: s.Promise, Withdraw: s.Withdraw, Progress: o.Progress})
		if !errors.Is(err, bulk.ErrNotBulk) {
			return err
		}
	}
	return s.items.CommitOneByOne(ctx, o)
}

// Promise writes durably that the next commit, which has this number, is the import. An error
// means that nothing is promised.
func (s *Spool) Promise(commit uint64) error {
	p := Promise{commit, s.rows, uint64(s.items.Len())}
	// The file may be there in spite of the error.
	err := store.ReplaceFile(s.folder.FS, s.Dir(), promiseFile, p.bytes())
	if err != nil {
		s.Withdraw()
	}
	return err
}

// Withdraw removes the promise, because the commit has not come about. If that fails, the
// database fails: otherwise the promise would name a later commit.
func (s *Spool) Withdraw() {
	if err := removeFile(s.folder.FS, s.Dir(), promiseFile); err != nil {
		s.engine.Log.Fail(err)
	}
}

// Close makes all staged rows durable and closes the files, so that another Open continues the
// import. It returns the first failure of writing.
func (s *Spool) Close() error {
	err := s.err
	if s.writer != nil && err == nil {
		s.flush()
		err = s.writer.sync()
	}
	s.closeFiles()
	return err
}

// Remove closes the files and removes them: the import has been committed, or is given up.
func (s *Spool) Remove() error {
	s.closeFiles()
	return s.folder.Remove(s.name)
}

// closeFiles ends the writer and closes the files that have been read.
func (s *Spool) closeFiles() {
	if s.writer != nil {
		_ = s.writer.close() // Close has synced before; Remove needs nothing of the file
		s.writer = nil
	}
	for _, f := range s.files {
		f.close()
	}
}
