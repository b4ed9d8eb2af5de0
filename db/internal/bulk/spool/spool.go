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

// A Spool holds the items of one import until they are committed: keys, codes, labels and
// modalities in the columns of a bulk.Items, everything in chunks in the files of a folder. It
// belongs to one goroutine, save what the methods say. The zero spool holds nothing, and is only
// asked for numbers.
type Spool struct {
	// Set by open, constant from then on.
	folder  Folder
	name    string        // of the folder of the import, in folder
	engine  *store.Engine // of the database
	bits    int           // of the codes of a codes-only collection; 0: it has none
	earlier Promise       // that an earlier process gave and kept: the import has been committed

	// What has been put and skipped. Put and Skip change these, close does not: the goroutine
	// that stages may read them while another closes the spool.
	items *bulk.Items // of the caller of open, who commits them
	rows  uint64      // items and skipped rows
	bytes uint64      // that the items are estimated to take in memory, see record.Item.Bytes

	// The way of items into files.
	ChunkBytes int      // a chunk of so many bytes is full; tests set less
	named      int      // labels of items that are in a chunk
	keys       keyArena // of items
	chunk      *chunk   // being filled; nil: none
	writer     *writer  // nil: nothing has been put in this session
	err        error    // the first failure of writing, after which nothing can be put

	// The way back. Chunks that the writer has written come here by settle.
	files  []*chunkFile
	chunks []chunkRef
}

// Options say what an import needs of its database and its user.
type Options struct {
	Engine     *store.Engine
	Descriptor *record.Descriptor // of the collection, as it is now
	Items      *bulk.Items        // empty; open adds the staged items, put the next
	Bytes      int64              // that all items will take in memory; 0: not known
	Restart    bool               // forget what is staged

	// Skipped, unless nil, hears of the rows that earlier sessions have skipped, in order.
	Skipped func(row int, why string)
}

// Open begins an import, or continues the staged one of the same origin. It reads what is
// staged; where a part of it is damaged, the items from there on are forgotten. Too little
// space for the items is a DiskFullError, a damaged promise an ErrStaged.
func (f Folder) Open(ctx context.Context, origin Origin, o Options) (*Spool, error) {
	s := &Spool{folder: f, name: origin.Name(), engine: o.Engine, items: o.Items, ChunkBytes: chunkBytes}
	if o.Descriptor.CodesOnly() {
		s.bits = o.Descriptor.Bits
	}
	if err := s.open(ctx, headerOf(origin), &o); err != nil {
		s.closeFiles()
		return nil, err
	}
	return s, nil
}

func (s *Spool) open(ctx context.Context, head header, o *Options) error {
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
	left := max(o.Bytes-int64(s.bytes), 0)
	return s.engine.Admit(left+o.Bytes, false)
}

// begin makes the folder of an import, in place of one that there may be. It wants room for
// the items twice: in the spool, and in the store.
func (s *Spool) begin(head header, bytes int64) error {
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

// Committed reports whether an earlier process has committed the import, and ended before it
// could remove what was staged. Nothing may be put then.
func (s *Spool) Committed() bool { return s.earlier.Commit > 0 }

// Rows returns the number of rows that have been put or skipped, in all sessions.
func (s *Spool) Rows() int { return int(max(s.rows, s.earlier.Rows)) }

// Items returns the number of items that have been put, in all sessions.
func (s *Spool) Items() int {
	if s.items == nil { // the zero spool
		return 0
	}
	return max(s.items.Len(), int(s.earlier.Items))
}

// Bytes estimates what the items take in memory.
func (s *Spool) Bytes() int64 { return int64(s.bytes) }

// Err returns the failure after which nothing can be put any more; nil: there is none.
func (s *Spool) Err() error { return s.err }

// Put stages a copy of an item that suits the collection and has been checked. It changes
// it.Key to an equal string that the columns can keep.
func (s *Spool) Put(it *record.Item) error {
	c, err := s.filling()
	if err != nil {
		return err
	}
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

// Skip stages that a row is not an item, and why, up to maxSkipBytes of it.
func (s *Spool) Skip(why string) error {
	c, err := s.filling()
	if err != nil {
		return err
	}
	c.addSkip(strings.ToValidUTF8(why[:min(len(why), maxSkipBytes)], ""))
	s.rows++
	return s.flushFull()
}

// Register numbers labels that are new, in this order.
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
		s.chunk = <-s.writer.free
		s.chunk.reset(s.rows, uint64(s.items.Len()))
	}
	return s.chunk, nil
}

// nameLabels adds the labels to the chunk that are in none yet.
func (s *Spool) nameLabels(c *chunk) {
	if s.items.Labels.Count() == s.named {
		return
	}
	for _, name := range s.items.Labels.All()[s.named:] {
		c.addLabel(name)
		s.named++
	}
}

// flushFull flushes the chunk if it is full. It returns the first failure of writing.
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
	case c.size() == 0:
		s.writer.free <- c
	default:
		s.writer.chunks <- c
	}
}

// Settle makes what has been put durable, and lets the columns read from the files what items
// have besides, for a commit. d is the descriptor of the collection, no older than any item.
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
	var rest bulk.Extras // none
	if slices.ContainsFunc(s.chunks, func(ref chunkRef) bool { return !ref.plain() }) {
		rest = &extras{s, d}
	}
	s.items.ReadFrom(rest, s.folder.FS, s.Dir())
	return nil
}

// Promise says durably that the import is the commit of this number, which is to come. Another
// goroutine may call it while the one of the spool waits.
func (s *Spool) Promise(commit uint64) error {
	p := Promise{commit, s.rows, uint64(s.items.Len())}
	err := store.ReplaceFile(s.folder.FS, s.Dir(), promiseFile, p.bytes())
	if err != nil {
		s.Withdraw()
	}
	return err
}

// Withdraw takes the promise back: there is no such commit. If that fails so does the
// database, since a later commit would be taken for this one. As for promise, another goroutine
// may call it.
func (s *Spool) Withdraw() {
	if err := removeFile(s.folder.FS, s.Dir(), promiseFile); err != nil {
		s.engine.Log.Fail(err)
	}
}

// Close makes what has been put durable, and closes the files. The import can be continued.
// Another goroutine may call it when none stages any more. It returns the first failure of
// writing.
func (s *Spool) Close() error {
	err := s.err
	if s.writer != nil && err == nil {
		s.flush()
		err = s.writer.sync()
	}
	s.closeFiles()
	return err
}

// Remove closes the files and removes the import.
func (s *Spool) Remove() error {
	s.closeFiles()
	return s.folder.Remove(s.name)
}

// closeFiles ends the writer and closes the files that have been read.
func (s *Spool) closeFiles() {
	if s.writer != nil {
		_ = s.writer.close() // close has synced; for remove failures do not matter
		s.writer = nil
	}
	for _, f := range s.files {
		f.close()
	}
}
