package db

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

// A spool holds the items of one import until they are committed: keys, codes, labels and
// modalities in the columns of a bulk.Items, everything in chunks in the files of a folder. It
// belongs to one goroutine, save what the methods say. The zero spool holds nothing, and is only
// asked for numbers.
type spool struct {
	// Set by open, constant from then on.
	folder  importFolder
	name    string        // of the folder of the import, in folder
	engine  *store.Engine // of the database
	bits    int           // of the codes of a codes-only collection; 0: it has none
	earlier promise       // that an earlier process gave and kept: the import has been committed

	// What has been put and skipped. Put and Skip change these, close does not: the goroutine
	// that stages may read them while another closes the spool.
	items *bulk.Items // of the caller of open, who commits them
	rows  uint64      // items and skipped rows
	bytes uint64      // that the items are estimated to take in memory, see record.Item.Bytes

	// The way of items into files.
	chunkBytes int      // a chunk of so many bytes is full; tests set less
	named      int      // labels of items that are in a chunk
	keys       keyArena // of items
	chunk      *chunk   // being filled; nil: none
	writer     *writer  // nil: nothing has been put in this session
	err        error    // the first failure of writing, after which nothing can be put

	// The way back. Chunks that the writer has written come here by settle.
	files  []*chunkFile
	chunks []chunkRef
}

// spoolOptions say what an import needs of its database and its user.
type spoolOptions struct {
	engine     *store.Engine
	descriptor *record.Descriptor // of the collection, as it is now
	items      *bulk.Items        // empty; open adds the staged items, put the next
	bytes      int64              // that all items will take in memory; 0: not known
	restart    bool               // forget what is staged

	// skipped, unless nil, hears of the rows that earlier sessions have skipped, in order.
	skipped func(row int, why string)
}

// open begins an import, or continues the staged one of the same origin. It reads what is
// staged; where a part of it is damaged, the items from there on are forgotten. Too little
// space for the items is a DiskFullError, a damaged promise an ErrStaged.
func (f importFolder) open(ctx context.Context, origin importOrigin, o spoolOptions) (*spool, error) {
	s := &spool{folder: f, name: origin.name(), engine: o.engine, items: o.items, chunkBytes: chunkBytes}
	if o.descriptor.CodesOnly() {
		s.bits = o.descriptor.Bits
	}
	if err := s.open(ctx, headerOf(origin), &o); err != nil {
		s.closeFiles()
		return nil, err
	}
	return s, nil
}

func (s *spool) open(ctx context.Context, head header, o *spoolOptions) error {
	found, err := s.folder.readHeader(s.name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	begins := found != head || o.restart
	if begins {
		if err := s.begin(head, o.bytes); err != nil {
			return err
		}
	}
	if s.earlier, err = s.folder.promised(s.name); err != nil {
		return err
	}
	if err := s.resume(ctx, o); err != nil {
		return err
	}
	if begins || s.committed() {
		return nil
	}
	left := max(o.bytes-int64(s.bytes), 0)
	return s.engine.Admit(left+o.bytes, false)
}

// begin makes the folder of an import, in place of one that there may be. It wants room for
// the items twice: in the spool, and in the store.
func (s *spool) begin(head header, bytes int64) error {
	if err := s.folder.remove(s.name); err != nil {
		return err
	}
	if err := s.engine.Admit(2*bytes, false); err != nil {
		return err
	}
	if err := store.MakeDir(s.folder.fs, s.dir()); err != nil {
		return err
	}
	return s.folder.writeHeader(s.name, head)
}

// dir returns the folder of the import.
func (s *spool) dir() string { return s.folder.path(s.name) }

// committed reports whether an earlier process has committed the import, and ended before it
// could remove what was staged. Nothing may be put then.
func (s *spool) committed() bool { return s.earlier.commit > 0 }

// rowCount returns the number of rows that have been put or skipped, in all sessions.
func (s *spool) rowCount() int { return int(max(s.rows, s.earlier.rows)) }

// itemCount returns the number of items that have been put, in all sessions.
func (s *spool) itemCount() int {
	if s.items == nil { // the zero spool
		return 0
	}
	return max(s.items.Len(), int(s.earlier.items))
}

// byteCount estimates what the items take in memory.
func (s *spool) byteCount() int64 { return int64(s.bytes) }

// failure returns the failure after which nothing can be put any more; nil: there is none.
func (s *spool) failure() error { return s.err }

// put stages a copy of an item that suits the collection and has been checked. It changes
// it.Key to an equal string that the columns can keep.
func (s *spool) put(it *record.Item) error {
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

// skip stages that a row is not an item, and why, up to maxSkipBytes of it.
func (s *spool) skip(why string) error {
	c, err := s.filling()
	if err != nil {
		return err
	}
	c.addSkip(strings.ToValidUTF8(why[:min(len(why), maxSkipBytes)], ""))
	s.rows++
	return s.flushFull()
}

// register numbers labels that are new, in this order.
func (s *spool) register(labels []string) error {
	c, err := s.filling()
	if err != nil {
		return err
	}
	s.items.Register(labels)
	s.nameLabels(c)
	return s.flushFull()
}

// filling returns the chunk that is being filled, a new one where there is none.
func (s *spool) filling() (*chunk, error) {
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
func (s *spool) nameLabels(c *chunk) {
	if s.items.Labels.Count() == s.named {
		return
	}
	for _, name := range s.items.Labels.All()[s.named:] {
		c.addLabel(name)
		s.named++
	}
}

// flushFull flushes the chunk if it is full. It returns the first failure of writing.
func (s *spool) flushFull() error {
	if s.chunk.full(s.chunkBytes) {
		s.flush()
		s.err = s.writer.failed()
	}
	return s.err
}

// flush hands the chunk that is being filled to the writer.
func (s *spool) flush() {
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

// settle makes what has been put durable, and lets the columns read from the files what items
// have besides, for a commit. d is the descriptor of the collection, no older than any item.
func (s *spool) settle(d *record.Descriptor) error {
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
	s.items.ReadFrom(rest, s.folder.fs, s.dir())
	return nil
}

// promise says durably that the import is the commit of this number, which is to come. Another
// goroutine may call it while the one of the spool waits.
func (s *spool) promise(commit uint64) error {
	p := promise{commit, s.rows, uint64(s.items.Len())}
	err := store.ReplaceFile(s.folder.fs, s.dir(), promiseFile, p.bytes())
	if err != nil {
		s.withdraw()
	}
	return err
}

// withdraw takes the promise back: there is no such commit. If that fails so does the
// database, since a later commit would be taken for this one. As for promise, another goroutine
// may call it.
func (s *spool) withdraw() {
	if err := removeFile(s.folder.fs, s.dir(), promiseFile); err != nil {
		s.engine.Log.Fail(err)
	}
}

// close makes what has been put durable, and closes the files. The import can be continued.
// Another goroutine may call it when none stages any more. It returns the first failure of
// writing.
func (s *spool) close() error {
	err := s.err
	if s.writer != nil && err == nil {
		s.flush()
		err = s.writer.sync()
	}
	s.closeFiles()
	return err
}

// remove closes the files and removes the import.
func (s *spool) remove() error {
	s.closeFiles()
	return s.folder.remove(s.name)
}

// closeFiles ends the writer and closes the files that have been read.
func (s *spool) closeFiles() {
	if s.writer != nil {
		_ = s.writer.close() // close has synced; for remove failures do not matter
		s.writer = nil
	}
	for _, f := range s.files {
		f.close()
	}
}
