package db

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/bulk"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// A spool is the files of a staged import: one for each time that it was begun or resumed,
// of chunks one after the other. A file ends where a chunk is not whole, and the next one
// goes on there: each chunk says how many rows are before it.
type spool struct {
	fs  vfs.FS
	dir string

	files  []*spoolFile
	chunks []chunkRef

	rows, items uint64
	bytes       uint64 // see chunk
	extras      bool   // some item has more than key and code

	// What decoding needs.
	descriptor *record.Descriptor
	labels     *state.Labels
}

// A spoolFile is a file of chunks, open for reading once somebody has read.
type spoolFile struct {
	path string
	mu   sync.Mutex
	file vfs.File
}

// A chunkRef is a chunk in a file.
type chunkRef struct {
	chunkHeader
	file *spoolFile
	at   int64
}

const (
	spoolSuffix    = ".items"
	spoolSyncBytes = 32 << 20 // after so many what is written is made durable
)

func (f *spoolFile) open(fsys vfs.FS) (vfs.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		file, err := fsys.Open(f.path)
		if err != nil {
			return nil, err
		}
		f.file = file
	}
	return f.file, nil
}

// close closes the files that have been read.
func (s *spool) close() {
	for _, f := range s.files {
		if f.file != nil {
			_ = f.file.Close()
			f.file = nil
		}
	}
}

// add takes note of a chunk that comes next.
func (s *spool) add(ref chunkRef) {
	s.chunks = append(s.chunks, ref)
	s.rows += uint64(ref.items) + uint64(ref.skips)
	s.items += uint64(ref.items)
	s.bytes += ref.bytes
	s.extras = s.extras || ref.lens[chunkRecords]+ref.lens[chunkVectors] > 0
}

// resume finds the chunks that are there, up to the first that does not follow, and calls
// found with each and its parts. What is behind that is removed, so that it cannot be
// taken for what is staged from now on.
func (s *spool) resume(ctx context.Context, found func(h *chunkHeader, parts *[chunkParts][]byte) error) error {
	names, err := s.fs.List(s.dir)
	if err != nil {
		return err
	}
	slices.Sort(names)
	var buf [chunkParts][]byte
	broken, removed := false, false
	for _, name := range names {
		if name == importHead || name == importPledge {
			continue
		}
		path := s.fs.PathJoin(s.dir, name)
		counts := false
		if strings.HasSuffix(name, spoolSuffix) && !broken {
			f := &spoolFile{path: path}
			if counts, err = s.scan(ctx, f, &buf, found); err != nil {
				s.close()
				return err
			}
			broken = !counts
		}
		if !counts {
			if err := s.fs.Remove(path); err != nil {
				return err
			}
			removed = true
		}
	}
	if removed {
		return store.SyncDir(s.fs, s.dir)
	}
	return nil
}

// scan reads the chunks of a file, and reports whether there is one that counts.
func (s *spool) scan(ctx context.Context, f *spoolFile, buf *[chunkParts][]byte, found func(*chunkHeader, *[chunkParts][]byte) error) (any bool, err error) {
	file, err := f.open(s.fs)
	if err != nil {
		return false, err
	}
	defer func() {
		if !any {
			err = errors.Join(err, file.Close())
			f.file = nil
		}
	}()
	info, err := file.Stat()
	if err != nil {
		return false, err
	}
	header := make([]byte, chunkHeaderBytes)
	for at := int64(0); at+chunkHeaderBytes <= info.Size(); {
		if ctx.Err() != nil {
			return any, context.Cause(ctx)
		}
		if err := readAt(file, header, at); err != nil {
			return any, err
		}
		h, err := decodeChunkHeader(header)
		if err != nil || h.rows != s.rows || h.start != s.items || at+chunkHeaderBytes+h.size() > info.Size() {
			break
		}
		ref := chunkRef{h, f, at}
		for part := range buf {
			if err = s.readPart(&ref, part, &buf[part]); err != nil {
				break
			}
		}
		if err == nil {
			err = found(&h, buf)
		}
		if errors.Is(err, codec.ErrCorrupt) {
			break // it, and what follows, is staged again
		}
		if err != nil {
			return any, err
		}
		if !any {
			s.files, any = append(s.files, f), true
		}
		s.add(ref)
		at += chunkHeaderBytes + h.size()
	}
	return any, nil
}

// readPart reads a part of a chunk into buf.
func (s *spool) readPart(ref *chunkRef, part int, buf *[]byte) error {
	file, err := ref.file.open(s.fs)
	if err != nil {
		return err
	}
	n := int(ref.lens[part])
	*buf = slices.Grow((*buf)[:0], n)[:n]
	if err := readAt(file, *buf, ref.at+ref.offset(part)); err != nil {
		return err
	}
	return ref.sound(part, *buf)
}

func readAt(file vfs.File, b []byte, at int64) error {
	if len(b) == 0 {
		return nil
	}
	_, err := file.ReadAt(b, at)
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// spool is the Extras of its items.

func (s *spool) Blocks() int { return len(s.chunks) }

func (s *spool) BlockOf(i int) int {
	return sort.Search(len(s.chunks), func(j int) bool { return s.chunks[j].start > uint64(i) }) - 1
}

func (s *spool) NewReader() bulk.Reader { return &spoolReader{of: s} }

// A spoolReader reads items of a spool, in its own memory.
type spoolReader struct {
	of  *spool
	buf itemBuffer
}

func (r *spoolReader) Read(block int, parts bulk.Parts) (from int, items []*record.Item, err error) {
	s, buf := r.of, &r.buf
	ref := &s.chunks[block]
	items = buf.prepare(int(ref.items))
	part := func(p int) ([]byte, error) {
		err := s.readPart(ref, p, &buf.parts[p])
		return buf.parts[p], err
	}
	var b []byte
	if parts&bulk.RecordPart != 0 && ref.lens[chunkRecords] > 0 {
		if b, err = part(chunkRecords); err == nil {
			err = ref.decodeRecords(b, s.descriptor, s.labels.Name, items)
		}
	}
	if err == nil && parts&bulk.VectorPart != 0 && ref.lens[chunkVectors] > 0 {
		if b, err = part(chunkVectors); err == nil {
			err = ref.decodeVectors(b, s.descriptor, items, buf)
		}
	}
	if err != nil {
		return 0, nil, s.unreadable(err)
	}
	return int(ref.start), items, nil
}

// unreadable says what to do where staged items cannot be read.
func (s *spool) unreadable(err error) error {
	if errors.Is(err, codec.ErrCorrupt) {
		return &stagedDamage{fault.CorruptionError{What: s.dir + ": nothing of it is stored: begin the import again, which stages the damaged ones anew", Err: err}}
	}
	return fmt.Errorf("fddhdb: read staged items: %w", err)
}

// A stagedDamage is an ErrStaged.
type stagedDamage struct{ fault.CorruptionError }

func (e *stagedDamage) Error() string {
	return fmt.Sprintf("%v: %s: %v", fault.ErrStaged, e.What, e.Err)
}

func (e *stagedDamage) Is(target error) bool {
	return target == fault.ErrStaged || target == fault.ErrCorrupt
}

// A spoolWriter writes chunks to a new file of a spool, in a goroutine of its own.
type spoolWriter struct {
	fs    vfs.FS
	file  vfs.File
	of    *spoolFile
	admit func(bytes int64) error

	chunks chan *chunk   // to be written; nil asks for what is written to be made durable
	free   chan *chunk   // that have been written
	synced chan struct{} // answers it
	ended  chan struct{} // closed when all has been written

	mu   sync.Mutex
	err  error // the first
	refs []chunkRef
}

// newSpoolWriter makes the next file of a spool.
func (s *spool) newWriter(admit func(bytes int64) error) (*spoolWriter, error) {
	number := 1
	if n := len(s.files); n > 0 {
		_, err := fmt.Sscanf(s.fs.PathBase(s.files[n-1].path), "%d", &number)
		if err != nil {
			return nil, err
		}
		number++
	}
	of := &spoolFile{path: s.fs.PathJoin(s.dir, fmt.Sprintf("%06d%s", number, spoolSuffix))}
	file, err := s.fs.Create(of.path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	if err := store.SyncDir(s.fs, s.dir); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	w := &spoolWriter{
		fs: s.fs, file: file, of: of, admit: admit,
		chunks: make(chan *chunk, 1), free: make(chan *chunk, 3),
		synced: make(chan struct{}), ended: make(chan struct{}),
	}
	for range cap(w.free) {
		w.free <- &chunk{}
	}
	s.files = append(s.files, of)
	go w.run()
	return w, nil
}

// run writes what comes.
func (w *spoolWriter) run() {
	defer close(w.ended)
	at, unsynced := int64(0), 0
	for c := range w.chunks {
		err := w.failed()
		if c == nil {
			if err == nil && unsynced > 0 {
				unsynced = 0
				w.fail(w.file.Sync())
			}
			w.synced <- struct{}{}
			continue
		}
		if err == nil {
			err = w.write(c, &at)
		}
		if unsynced += c.size(); err == nil && unsynced >= spoolSyncBytes {
			unsynced = 0
			err = w.file.Sync()
		}
		w.fail(err)
		w.free <- c
	}
	w.fail(w.file.Close())
}

func (w *spoolWriter) write(c *chunk, at *int64) error {
	if err := w.admit(int64(c.size())); err != nil {
		return err
	}
	header := c.header()
	h, err := decodeChunkHeader(header)
	if err != nil {
		return err
	}
	if _, err := w.file.Write(header); err != nil {
		return err
	}
	for _, part := range c.parts {
		if len(part) == 0 {
			continue
		}
		if _, err := w.file.Write(part); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refs = append(w.refs, chunkRef{h, w.of, *at})
	*at += chunkHeaderBytes + h.size()
	return nil
}

func (w *spoolWriter) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

func (w *spoolWriter) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// sync waits until everything is written and durable.
func (w *spoolWriter) sync() error {
	w.chunks <- nil
	<-w.synced
	return w.failed()
}

// written returns the chunks that have been written since it was called last.
func (w *spoolWriter) written() []chunkRef {
	w.mu.Lock()
	defer w.mu.Unlock()
	refs := w.refs
	w.refs = nil
	return refs
}

// close ends the writing, of what has come so far.
func (w *spoolWriter) close() error {
	close(w.chunks)
	<-w.ended
	return w.failed()
}
