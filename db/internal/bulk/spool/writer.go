package spool

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/internal/store"
)

// A writer writes chunks to a new file of a spool. Its goroutine, which run is, ends with
// close.
type writer struct {
	// Set by newWriter, constant from then on.
	engine *store.Engine
	file   vfs.File   // of the goroutine
	of     *chunkFile // the same file, for reading

	chunks chan *chunk   // to write; nil asks to make what is written durable
	free   chan *chunk   // written, to be filled again; never blocks the goroutine
	synced chan struct{} // answers nil
	ended  chan struct{} // closed by the goroutine at its end

	mu   sync.Mutex // guards these
	err  error      // the first failure
	refs []chunkRef // written since the last call of written
}

// writerSyncBytes is how much is written before it is made durable.
const writerSyncBytes = 32 << 20

// newWriter makes the next file of the spool.
func (s *Spool) newWriter() (*writer, error) {
	fsys, dir := s.folder.FS, s.Dir()
	number := 1
	if n := len(s.files); n > 0 {
		if _, err := fmt.Sscanf(fsys.PathBase(s.files[n-1].path), "%d", &number); err != nil {
			return nil, err
		}
		number++
	}
	of := &chunkFile{fs: fsys, path: fsys.PathJoin(dir, fmt.Sprintf("%06d%s", number, chunksSuffix))}
	file, err := fsys.Create(of.path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	if err := store.SyncDir(fsys, dir); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	w := &writer{
		engine: s.engine, file: file, of: of,
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

// run writes the chunks that come. After a failure it only gives them back.
func (w *writer) run() {
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
		if unsynced += c.size(); err == nil && unsynced >= writerSyncBytes {
			unsynced = 0
			err = w.file.Sync()
		}
		w.fail(err)
		w.free <- c
	}
	w.fail(w.file.Close())
}

// write writes a chunk, whose header is at the offset at.
func (w *writer) write(c *chunk, at *int64) error {
	if err := w.engine.Admit(int64(c.size()), false); err != nil {
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

// fail keeps the first failure; nil is none.
func (w *writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

// failed returns the first failure; nil: there is none.
func (w *writer) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// sync waits until the chunks that were handed over are durable.
func (w *writer) sync() error {
	w.chunks <- nil
	<-w.synced
	return w.failed()
}

// written returns the chunks that have been written since the last call.
func (w *writer) written() []chunkRef {
	w.mu.Lock()
	defer w.mu.Unlock()
	refs := w.refs
	w.refs = nil
	return refs
}

// close writes the chunks that were handed over, and ends the goroutine.
func (w *writer) close() error {
	close(w.chunks)
	<-w.ended
	return w.failed()
}
