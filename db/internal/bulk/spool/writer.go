package spool

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/internal/store"
)

// Items come from a caller that reads and parses its source. Writing and syncing them in another
// goroutine lets both go on at the same time. Three chunks are under way: one is filled, one waits,
// one is written.

// A writer writes chunks to a new file of a Spool, in a goroutine of its own: see run. The
// goroutine of the Spool fills chunks, hands them over, and ends it by close.
type writer struct {
	engine *store.Engine // admits each chunk
	file   vfs.File      // for run alone
	of     *chunkFile    // the same file, for reading

	// A chunk goes from free to the goroutine of the Spool, by chunks to run, and back to free,
	// which has room for all of them: run never waits for it.
	chunks chan *chunk   // to be written; nil asks for a sync
	free   chan *chunk   // to be filled
	synced chan struct{} // run answers a nil
	ended  chan struct{} // run closes it at its end

	mu   sync.Mutex // guards the fields below
	err  error      // the first failure
	refs []chunkRef // written since the last call of written
}

// writerSyncBytes is how much is written before it is made durable.
const writerSyncBytes = 32 << 20

// newWriter makes the next file of the Spool, and starts its writer.
func (s *Spool) newWriter() (*writer, error) {
	fsys, dir := s.folder.FS, s.Dir()
	// Each session writes a file of its own, with the next number: a file that a crash has cut is
	// never written to again.
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
	// The name of the file must be durable before its content counts.
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

// run writes chunks until close. After a failure it only gives them back.
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
		// Sync now and then, so that a crash costs little, and Settle need not wait for all of it.
		if unsynced += c.size(); err == nil && unsynced >= writerSyncBytes {
			unsynced = 0
			err = w.file.Sync()
		}
		w.fail(err)
		// A chunk that could not be written goes back, too: Put must not wait for ever. It sees the
		// failure in flushFull.
		w.free <- c
	}
	w.fail(w.file.Close())
}

// write writes a chunk at the offset at, and moves at behind it.
func (w *writer) write(c *chunk, at *int64) error {
	// The disk may have filled up since Open.
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
	// Only a chunk that is written as a whole is one to read.
	w.refs = append(w.refs, chunkRef{h, w.of, *at})
	*at += chunkHeaderBytes + h.size()
	return nil
}

// fail keeps err if it is the first failure; nil is none.
func (w *writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

// failed returns the first failure, or nil.
func (w *writer) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// sync waits until all chunks that were handed over are durable.
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

// close writes the chunks that were handed over and ends the goroutine. It does not sync.
func (w *writer) close() error {
	close(w.chunks)
	<-w.ended
	return w.failed()
}
