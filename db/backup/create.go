package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db/event"
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

	// Progress hears how many bytes of how many are done, in the stages below.
	Progress event.Progress
}

// The stages of a backup, for Progress.
const (
	StageStore = "store" // looking for what is new, and storing it
	StageCheck = "check" // storing again what a prune has deleted meanwhile, or waiting for one
)

// Create makes a backup of files: of about, Database, Format, Sequence, Collection and
// IndexOnly are kept. A store that is empty becomes a repository; one that holds something
// else gives ErrNotRepository. It returns the manifest once the backup is complete and
// durable. With an error there is none, but where the last look at the store has failed, was
// cancelled, or has met a prune that did not end, there may be. What has been stored is found by the next backup, or
// collected by a Prune. It holds at most eight pieces of 16 MiB in memory, and some 200
// bytes for each object of the repository.
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
//  2. It lists the objects that are there, and stores the pieces that are missing. Names of
//     objects contain its id, so that a name is put once, and never again after it has
//     been deleted.
//  3. It puts the whole manifest as running/ID.json and checks: it lists the plans, then
//     the objects. Each object of the manifest must be there, and in no plan; those that
//     are not are stored once more under another name, and this step is done again. A
//     courtesy too: no prune that takes it for living deletes any of them from now on.
//  4. It puts backups/ID.json, and checks in the same way. Where objects are in a plan, it
//     looks again, until that prune has ended. If nothing is missing, and nothing in a
//     plan, that is final, the backup is complete. If something is missing, the
//     manifest is deleted, and the backup has failed.
//
// A prune (see pruner) puts the names that it is about to delete as a plan, which never
// changes; lists and reads manifests after that; deletes of the plan what none of them
// names; and removes the plan when it has deleted everything. So an object X is not lost
// if, after a manifest in backups/ that names it was put, somebody lists plans and finds
// none with X, and then lists objects and finds X, for as long as the manifest is there.
// Say a prune deletes X. It has put its plan with X before or after those plans
// were listed. If after, it has listed manifests later still, has found this one and
// does not delete X. If before, that plan had been removed: by its prune, which has X
// deleted by then or never will; or by another one, which had not found X among the objects
// any more. So X, if deleted, was not there when objects were listed, as names do not come back.
//
// That is what step 4 rests on; and a prune, which counts a backup as kept only if it finds
// the same, be it complete yet or not. A writer deletes its manifest only where something
// is missing, which a prune cannot have counted then, so that no complete backup has made
// room for it.
type writer struct {
	store Store
	opt   CreateOptions
	files []Source
	m     *Manifest

	round   int              // how often something had to be stored again
	present map[Hash]present // what the repository has
	mu      sync.Mutex
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
	now := beginning()
	m = &Manifest{
		Version: Version, ID: newID(now), Time: now, Database: about.Database, Format: about.Format,
		Sequence: about.Sequence, Collection: about.Collection, IndexOnly: about.IndexOnly,
	}
	w := &writer{store: to, opt: opt, files: files, m: m, storing: map[Hash]*stored{}}
	for _, f := range files {
		if f.Size < 0 {
			return nil, fmt.Errorf("%w: file %q of %d bytes", ErrInvalid, f.Path, f.Size)
		}
		if f.Open == nil {
			return nil, fmt.Errorf("%w: file %q has no Open", ErrInvalid, f.Path)
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
	if err := w.complete(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

// storeAll stores what the repository has not.
func (w *writer) storeAll(ctx context.Context) error {
	w.present = map[Hash]present{}
	err := w.store.List(ctx, objects, func(o Object) error {
		if p, ok := pieceOf(o.Name); ok {
			h := p.Hash()
			if old, ok := w.present[h]; !ok || p < old.piece {
				w.present[h] = present{p, o.Size}
			}
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
		s.piece, s.err = w.put(ctx, h, b)
	}
	return s.piece, s.err
}

// has returns the piece that the repository has with a hash. One that is too short or too
// long to be it is damaged, and stored again.
func (w *writer) has(h Hash, size int) (Piece, bool) {
	o, ok := w.present[h] // which nobody changes meanwhile
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
func (w *writer) put(ctx context.Context, h Hash, b []byte) (Piece, error) {
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
	p := newPiece(h, w.m.ID, w.round, compressed)
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
	for {
		if err := alive.show(ctx, w.m); err != nil {
			return err
		}
		lost, err := w.lost(ctx)
		if err != nil || len(lost) == 0 {
			return err
		}
		w.progress(StageCheck, 0)
		for p := range lost {
			delete(w.present, p.Hash())
		}
		w.storing = map[Hash]*stored{}
		w.round++
		err = w.each(ctx, func(ctx context.Context, f, i int) error {
			old := w.m.Files[f].Pieces[i]
			if _, is := lost[old]; !is {
				return nil
			}
			p, err := w.piece(ctx, f, i)
			if err == nil && p.Hash() != old.Hash() {
				err = fmt.Errorf("fddhdb: backup: %s has changed meanwhile", w.m.Files[f].Path)
			}
			w.m.Files[f].Pieces[i] = p
			return err
		})
		if err != nil {
			return err
		}
	}
}

// errCondemned says that nobody knows whether a backup will stay whole. Its manifest stays: a
// prune may have found it whole by now, and have made room for it.
var errCondemned = errors.New("a prune that was killed, or stands still, was about to delete a part of it")

// complete puts the manifest of the backup, and returns nil when it is known that no prune
// deletes anything of it.
func (w *writer) complete(ctx context.Context) error {
	b, err := w.m.encode()
	if err != nil {
		return err
	}
	final := jsonName(backups, w.m.ID)
	if err := putBytes(ctx, w.store, final, b); err != nil {
		return err
	}
	start := time.Now()
	for pause := time.Second; ; pause = min(2*pause, refresh) {
		lost, err := w.lost(ctx)
		if err != nil || len(lost) == 0 {
			return err
		}
		for _, there := range lost {
			if !there {
				clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
				defer cancel()
				err := fmt.Errorf("fddhdb: backup %s: it stood still for so long that a prune has taken it for dead: make another one", w.m.ID)
				return errors.Join(err, w.store.Delete(clean, final))
			}
		}
		if time.Since(start) > stale {
			return fmt.Errorf("fddhdb: backup %s: %w: make another one", w.m.ID, errCondemned)
		}
		w.progress(StageCheck, 0)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// lost returns the pieces of the manifest that a plan condemns, or that are not there, and
// whether each is there.
func (w *writer) lost(ctx context.Context) (map[Piece]bool, error) {
	condemned, err := condemned(ctx, w.store)
	if err != nil {
		return nil, err
	}
	lost := map[Piece]bool{}
	for _, p := range w.m.pieces() {
		lost[p] = false
	}
	err = w.store.List(ctx, objects, func(o Object) error {
		p, ok := pieceOf(o.Name)
		if _, needed := lost[p]; !ok || !needed {
			return nil
		}
		if _, doomed := condemned[p]; doomed {
			lost[p] = true
		} else {
			delete(lost, p)
		}
		return nil
	})
	return lost, err
}
