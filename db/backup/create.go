package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// A Source is a file that is to be backed up. It must not change until Create returns.
type Source struct {
	Path string // relative, with '/'; see File
	Size int64  // in bytes

	// Open opens the file for reading. It is called several times, by several goroutines.
	Open func() (SourceFile, error)

	// Pieces are those of an earlier backup of a file with the same contents; nil where
	// that is not known. Pieces that the repository has are not read then.
	Pieces []Piece
}

// A SourceFile is an open file of a Source.
type SourceFile interface {
	io.ReaderAt
	io.Closer
}

// CreateOptions are those of Create.
type CreateOptions struct {
	// Compress stores with zstd what that makes smaller. What the repository has is not
	// stored again, in whatever form it is there.
	Compress bool

	// Progress, if not nil, hears what is being done and how many bytes of how many are.
	// Calls come one at a time, from any goroutine.
	Progress func(stage string, done, total int64)
}

// The stages of a backup, for Progress.
const (
	StageStore = "store" // looking for what is new, and storing it
	StageCheck = "check" // storing again what a prune has deleted meanwhile
)

// Create makes a backup of files: of about, Database, Format, Sequence, Collection and
// IndexOnly are kept. A store that is empty becomes a repository; one that holds something
// else gives ErrNotRepository. It returns the manifest once the backup is complete and
// durable; with an error there is none, unless the last look at the store failed, and
// what has been stored is found by the next backup, or collected by a Prune. It holds at most eight pieces of 16 MiB in memory,
// and some 200 bytes for each object of the repository.
func Create(ctx context.Context, to Store, about Manifest, files []Source, opt CreateOptions) (*Manifest, error) {
	m, err := create(ctx, to, about, files, opt)
	if err != nil {
		return nil, annotate(err, "backup")
	}
	return m, nil
}

// A writer makes one backup. Nothing it does depends on a clock, its own or that of the
// store:
//
//  1. It puts running/ID.json, again every minute, so that prunes leave alone what it
//     stores: a courtesy, which keeps it from having to do things twice.
//  2. It lists the objects that are there, without those that a plan in pruning/ is about
//     to delete, and stores the pieces that are missing. Names of objects contain its id,
//     so that a name is put once, and never again after it has been deleted.
//  3. It puts the whole manifest as running/ID.json and checks: it lists the plans, then
//     the objects. Each object of the manifest must be there, and in no plan; those that
//     are not are stored once more under another name, and this step is done again.
//  4. It puts backups/ID.json, and checks in the same way. That is final, the backup
//     is complete; if something is missing, the manifest is deleted, and the backup has
//     failed.
//
// A prune (see pruner) puts the names that it is about to delete as its plan; lists and
// reads manifests after that; deletes of the plan what none of them names; and removes the
// plan when it has deleted everything. So no object of a backup that is complete is lost:
// say a prune deletes X, which such a backup names. It has put its plan with X before
// or after the backup listed plans in step 4. If after, it has listed manifests later
// still, has found this one and does not delete X. If before, either the plan was still
// there, and the check has found X in it; or it had been removed, so X had been deleted,
// and the check has not found X. In neither case the backup was completed. Nobody else
// deletes X later for that plan: a plan that another prune removes, because its own was
// killed or sleeps, has nothing left in the store to delete, and names do not come back.
//
// Between putting backups/ID.json and the end of its check a backup may name what is
// deleted, but only if it had been taken for dead before. A prune does not count as kept a
// backup of which something is missing, so no complete one has to make room for it.
type writer struct {
	store Store
	opt   CreateOptions
	files []Source
	m     *Manifest

	mu      sync.Mutex
	present map[Hash]present // what the repository has, but what is condemned
	storing map[Hash]*stored // what is being stored, or has been
	added   int64            // bytes

	hearing sync.Mutex // one call of Progress at a time
	done    int64      // bytes
}

// present is an object that is there.
type present struct {
	piece Piece
	size  int64 // as stored
}

// stored is a piece that one worker stores, for whoever needs it.
type stored struct {
	ready chan struct{}
	piece Piece
	err   error
}

func create(ctx context.Context, to Store, about Manifest, files []Source, opt CreateOptions) (m *Manifest, err error) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	m = &Manifest{
		Version: Version, ID: newID(now), Time: now, Database: about.Database, Format: about.Format,
		Sequence: about.Sequence, Collection: about.Collection, IndexOnly: about.IndexOnly,
	}
	w := &writer{store: to, opt: opt, files: files, m: m, storing: map[Hash]*stored{}}
	for _, f := range files {
		if f.Size < 0 {
			return nil, fmt.Errorf("%w: file %q of %d bytes", ErrInvalid, f.Path, f.Size)
		}
		m.Files = append(m.Files, File{Path: f.Path, Size: f.Size, Pieces: make([]Piece, pieces(f.Size))})
		m.BytesTotal += f.Size
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := prepare(ctx, to); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alive := &lease{store: to, name: jsonName(running, m.ID), one: make(chan struct{}, 1)}
	nothing := m.brief() // to name yet
	nothing.BytesTotal = 0
	stop, err := alive.keep(ctx, nothing, cancel)
	if err != nil {
		return nil, err
	}
	defer stop()
	if err := w.storeAll(ctx); err != nil {
		return nil, err
	}
	if err := w.settle(ctx, alive); err != nil {
		return nil, err
	}
	m.BytesNew = w.added
	b, err := m.encode()
	if err != nil {
		return nil, err
	}
	final := jsonName(backups, m.ID)
	if err := putBytes(ctx, to, final, b); err != nil {
		return nil, err
	}
	lost, err := w.lost(ctx)
	if err != nil {
		return nil, err
	}
	if len(lost) > 0 {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err := fmt.Errorf("fddhdb: backup %s: it stood still for so long that a prune has taken it for dead: make another one", m.ID)
		return nil, errors.Join(err, to.Delete(clean, final))
	}
	return m, nil
}

// storeAll stores what the repository has not.
func (w *writer) storeAll(ctx context.Context) error {
	condemned, err := condemned(ctx, w.store)
	if err != nil {
		return err
	}
	w.present = map[Hash]present{}
	err = w.store.List(ctx, objects, func(o Object) error {
		p, ok := pieceOf(o.Name)
		if _, doomed := condemned[p]; !ok || doomed {
			return nil
		}
		h := p.Hash()
		if old, ok := w.present[h]; !ok || p < old.piece {
			w.present[h] = present{p, o.Size}
		}
		return nil
	})
	if err != nil {
		return err
	}
	w.progress(StageStore, 0)
	return w.each(ctx, func(ctx context.Context, f, i int) error {
		p, err := w.piece(ctx, f, i)
		if err != nil {
			return err
		}
		w.m.Files[f].Pieces[i] = p
		w.progress(StageStore, int64(w.m.Files[f].pieceSize(i)))
		return nil
	})
}

// progress tells that so many more bytes are done.
func (w *writer) progress(stage string, n int64) {
	w.hearing.Lock()
	defer w.hearing.Unlock()
	if w.done += n; w.opt.Progress != nil {
		w.opt.Progress(stage, w.done, w.m.BytesTotal)
	}
}

// each calls do for every piece of every file, several at a time.
func (w *writer) each(ctx context.Context, do func(ctx context.Context, f, i int) error) error {
	return parallel(ctx, workers, func(yield func(func(context.Context) error) bool) {
		for f := range w.m.Files {
			for i := range w.m.Files[f].Pieces {
				if !yield(func(ctx context.Context) error { return do(ctx, f, i) }) {
					return
				}
			}
		}
	})
}

// piece returns piece i of file f, which the repository then has.
func (w *writer) piece(ctx context.Context, f, i int) (Piece, error) {
	size := w.m.Files[f].pieceSize(i)
	if known := w.files[f].Pieces; i < len(known) && validPiece.MatchString(string(known[i])) {
		if p, ok := w.has(known[i].Hash(), size); ok {
			return p, nil
		}
	}
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	b := (*buf)[:size]
	if err := w.readSource(b, f, i); err != nil {
		return "", err
	}
	h := sum(b)
	w.mu.Lock()
	s, working := w.storing[h]
	if !working {
		s = &stored{ready: make(chan struct{})}
		w.storing[h] = s
	}
	w.mu.Unlock()
	if working {
		select {
		case <-s.ready:
			return s.piece, s.err
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	defer close(s.ready)
	if p, ok := w.has(h, size); ok {
		s.piece = p
	} else {
		s.piece, s.err = w.put(ctx, h, b, 0)
	}
	return s.piece, s.err
}

// has returns the piece that the repository has with a hash. One that is too short or too
// long to be it is damaged, and stored again.
func (w *writer) has(h Hash, size int) (Piece, bool) {
	o, ok := w.present[h] // which nobody changes any more
	if !ok || o.size == 0 || (!o.piece.compressed() && o.size != int64(size)) {
		return "", false
	}
	return o.piece, true
}

func (w *writer) readSource(b []byte, f, i int) error {
	r, err := w.files[f].Open()
	if err != nil {
		return err
	}
	n, err := r.ReadAt(b, int64(i)*pieceBytes)
	if err == io.EOF && n == len(b) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", w.files[f].Path, err)
	}
	return errors.Join(err, r.Close())
}

// put stores a piece.
func (w *writer) put(ctx context.Context, h Hash, b []byte, round int) (Piece, error) {
	compressed := false
	if w.opt.Compress {
		buf := buffers.Get().(*[]byte)
		defer buffers.Put(buf)
		small, err := compress(*buf, b)
		if err != nil {
			return "", err
		}
		if small != nil {
			b, compressed = small, true
		}
	}
	p := newPiece(h, w.m.ID, round, compressed)
	if err := putBytes(ctx, w.store, p.object(), b); err != nil {
		return "", err
	}
	w.mu.Lock()
	w.added += int64(len(b))
	w.mu.Unlock()
	return p, nil
}

// settle makes the manifest known as that of a running backup, and stores again what
// prunes have taken away meanwhile, until nothing is missing.
func (w *writer) settle(ctx context.Context, alive *lease) error {
	for round := 1; ; round++ {
		if err := alive.show(ctx, w.m); err != nil {
			return err
		}
		lost, err := w.lost(ctx)
		if err != nil || len(lost) == 0 {
			return err
		}
		w.progress(StageCheck, 0)
		again := map[Hash]Piece{}
		for f := range w.m.Files {
			for i, p := range w.m.Files[f].Pieces {
				if _, is := lost[p]; !is {
					continue
				}
				h := p.Hash()
				if _, done := again[h]; !done {
					b := make([]byte, w.m.Files[f].pieceSize(i))
					if err := w.readSource(b, f, i); err != nil {
						return err
					}
					if sum(b) != h {
						return fmt.Errorf("fddhdb: backup: %s has changed meanwhile", w.m.Files[f].Path)
					}
					if again[h], err = w.put(ctx, h, b, round); err != nil {
						return err
					}
				}
				w.m.Files[f].Pieces[i] = again[h]
			}
		}
	}
}

// lost returns the pieces of the manifest that a plan condemns, or that are not there.
func (w *writer) lost(ctx context.Context) (map[Piece]struct{}, error) {
	condemned, err := condemned(ctx, w.store)
	if err != nil {
		return nil, err
	}
	lost := map[Piece]struct{}{}
	for f := range w.m.Files {
		for _, p := range w.m.Files[f].Pieces {
			lost[p] = struct{}{}
		}
	}
	err = w.store.List(ctx, objects, func(o Object) error {
		if p, ok := pieceOf(o.Name); ok {
			if _, doomed := condemned[p]; !doomed {
				delete(lost, p)
			}
		}
		return nil
	})
	return lost, err
}
