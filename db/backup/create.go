package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// A Source is a file to back up. It must not change until Create returns.
type Source struct {
	Path string // relative, with '/'; see File.Path
	Size int64  // in bytes

	// Open opens the file for reading. Several goroutines call it, several times.
	Open func() (SourceFile, error)

	// Pieces are the pieces of an earlier backup of a file with the same contents; nil
	// if unknown. Pieces that the repository still has are not read again.
	Pieces []Piece
}

// A SourceFile is an open file of a Source.
type SourceFile interface {
	io.ReaderAt
	io.Closer
}

// CreateOptions are the options of Create.
type CreateOptions struct {
	// Progress is called with the number of bytes done of all bytes, in the stages below.
	Progress event.Progress
}

// Stages of a backup, for Progress.
const (
	StageStore = "store" // finding new pieces and storing them
	StageCheck = "check" // storing again what a prune has deleted meanwhile, or waiting for a prune
)

// Create makes a backup of files. It keeps these fields of about: Database, Format,
// Sequence, Collection and IndexOnly. An empty store becomes a repository; a store with
// something else gives ErrNotRepository. Create returns the manifest once the backup is
// complete and durable.
//
// With an error there is no backup, with one exception: there may be one if the last
// check of the store has failed, was cancelled, or has met a prune that did not end.
// The next backup uses the pieces that are already stored, or a Prune collects them.
// Create holds at most eight pieces of 16 MiB in memory, and about 200 bytes for each
// object of the repository.
func Create(ctx context.Context, to Store, about Manifest, files []Source,
	opt CreateOptions) (*Manifest, error) {
	ctx, ended := work.Hearing(ctx, &opt.Progress)
	defer ended()
	m, err := create(ctx, to, about, files, opt)
	if err != nil {
		return nil, annotate(err, "backup")
	}
	return m, nil
}

// A writer makes one backup. Nothing depends on a clock, neither its own nor the
// store's:
//
//  1. It puts running/ID.json, and again every minute, so that prunes spare the objects
//     that it stores. That is a courtesy, which saves it from storing them twice.
//  2. It lists the objects that are there, and stores the missing pieces. Names of
//     objects contain the id of the backup. So a name is put once, and never again
//     after it was deleted.
//  3. It puts the whole manifest as running/ID.json and checks: it lists the plans,
//     then the objects. Each object of the manifest must be there, and in no plan. It
//     stores the others again under another name, and repeats this step. That is a
//     courtesy, too: no prune that sees this running backup deletes any of its objects
//     from now on.
//  4. It puts backups/ID.json, and checks in the same way. While objects are in a plan
//     it checks again, until that prune has ended. If nothing is missing and nothing is
//     in a plan, the backup is complete, for good. If something is missing, it deletes
//     the manifest, and the backup has failed.
//
// A prune (see pruner) puts the names that it is about to delete as a plan, which never
// changes. After that it lists and reads manifests. It deletes the objects of its plan
// that no manifest names. It removes the plan when everything is deleted.
//
// Claim: let a manifest in backups/ name an object X. Let someone then list plans and
// find no plan with X, and then list objects and find X. Then X is not lost as long as
// the manifest is there. Proof: say a prune deletes X. It has put its plan with X after
// the plans were listed, or before. If after, it has listed manifests later still, has
// found this one, and does not delete X. If before, that plan had been removed when
// plans were listed. Its own prune had removed it: then X was deleted by then or never
// will be. Or another prune had removed it, which had not found X among the objects any
// more. So if X was deleted, it was not there when objects were listed, as names do not
// come back.
//
// Step 4 rests on this claim. So does a prune: it counts a backup as kept only after
// the same check, complete or not. A writer deletes its manifest only if something is
// missing. A prune cannot have counted such a backup, so no complete backup was deleted
// in its favour.
type writer struct {
	store Store // the repository
	opt   CreateOptions
	files []Source  // what to back up
	m     *Manifest // the manifest in the making; a worker writes its own pieces of Files

	round   int              // how often something had to be stored again
	present map[Hash]present // objects of the repository; not written to while workers run

	mu      sync.Mutex       // guards storing and added
	storing map[Hash]*stored // pieces that are being stored, or have been
	added   int64            // bytes stored

	hearing sync.Mutex // guards done, and serialises calls of Progress
	done    int64      // bytes
}

// present is an object of the repository.
type present struct {
	piece Piece
	size  int64 // as stored
}

// stored is a piece that one worker stores. Workers with the same piece wait for it.
type stored struct {
	ready chan struct{} // closed when piece and err are set
	piece Piece
	err   error
}

// create is Create without the checks of its arguments.
func create(ctx context.Context, to Store, about Manifest, files []Source,
	opt CreateOptions) (m *Manifest, err error) {
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
	nothing := m.brief() // the first lease names no files
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

// storeAll stores the pieces that the repository lacks.
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

// progress reports n more bytes.
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

// piece returns piece i of file f, and stores it if the repository lacks it.
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

// has returns the repository's piece with a hash. A piece of the wrong size is damaged;
// it returns false, so that the piece is stored again.
func (w *writer) has(h Hash, size int) (Piece, bool) {
	o, ok := w.present[h] // which does not change meanwhile
	if !ok || o.size != int64(size) {
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
	p := newPiece(h, w.m.ID, w.round)
	if err := putBytes(ctx, w.store, p.object(), b); err != nil {
		return "", err
	}
	w.mu.Lock()
	w.added += int64(len(b))
	w.mu.Unlock()
	return p, nil
}

// settle puts the manifest of the running backup. It stores again the pieces that prunes have deleted
// meanwhile, until nothing is missing.
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

// errCondemned says that it is unknown whether a backup will stay whole. Its manifest
// stays: a prune may have found it whole by now, and have deleted others in its favour.
var errCondemned = errors.New("a prune that was killed, or stands still, was about to delete a part of it")

// complete puts the manifest of the backup. It returns nil when no prune can delete any
// part of it.
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

// lost returns the pieces of the manifest that are in a plan or missing, and whether
// each is still there.
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

// A Choice selects a backup. The zero value selects the newest.
type Choice struct {
	// ID is an id, or the unique beginning of one. Before and Database are ignored
	// then.
	ID string

	// Before, if not zero, excludes backups that began after it.
	Before time.Time

	// Database is the UUID of a database. If it is empty, the repository must not hold
	// backups of several databases.
	Database string
}

// Find reads the manifest of a backup. Without an id it finds the newest backup of a whole database, or the
// newest backup of a part if there is none. No match gives ErrNotFound, and several matches ErrInvalid.
func Find(ctx context.Context, from Store, c Choice) (*Manifest, error) {
	m, err := find(ctx, from, c)
	return m, annotate(err, "find a backup")
}

func find(ctx context.Context, from Store, c Choice) (*Manifest, error) {
	if c.ID == "" {
		return newest(ctx, from, c)
	}
	if err := readMarker(ctx, from); err != nil {
		return nil, err
	}
	found, err := ids(ctx, from, backups)
	if err != nil {
		return nil, err
	}
	id, err := match(sorted(found), c.ID)
	if err != nil {
		return nil, err
	}
	m, err := readManifest(ctx, from, backups, id)
	if notThere(err) {
		err = fmt.Errorf("%w: %s has been pruned", ErrNotFound, id)
	}
	return m, err
}

// match returns the only id that begins with begin.
func match(all []string, begin string) (string, error) {
	first, _ := slices.BinarySearch(all, begin)
	found := all[first:]
	for i, id := range found {
		if !strings.HasPrefix(id, begin) {
			found = found[:i]
			break
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%w: none of the %d in the repository has an id that begins with %s",
			ErrNotFound, len(all), begin)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%w: %s is the beginning of %d ids, %s and %s among them: give more of it",
		ErrInvalid, begin, len(found), found[0], found[1])
}

func newest(ctx context.Context, from Store, c Choice) (*Manifest, error) {
	all, err := list(ctx, from)
	if err != nil {
		return nil, err
	}
	n := len(all)
	all = slices.DeleteFunc(all, func(m *Manifest) bool {
		return c.Database != "" && m.Database != c.Database || !c.Before.IsZero() && m.Time.After(c.Before)
	})
	if len(all) == 0 {
		return nil, c.noneOf(n)
	}
	best := all[len(all)-1]
	for _, m := range all {
		if m.Database != best.Database {
			return nil, fmt.Errorf("%w: the repository holds backups of several databases, %s and %s among them: say which",
				ErrInvalid, m.Database, best.Database)
		}
	}
	for _, m := range slices.Backward(all) {
		if m.Collection == "" && !m.IndexOnly {
			best = m
			break
		}
	}
	found, err := readManifest(ctx, from, backups, best.ID)
	if notThere(err) {
		err = fmt.Errorf("%w: %s has been pruned", ErrNotFound, best.ID)
	}
	return found, err
}

// noneOf returns the error for a choice without a match among n backups.
func (c *Choice) noneOf(n int) error {
	if n == 0 {
		return fmt.Errorf("%w: the repository holds none", ErrNotFound)
	}
	var want []string
	if c.Database != "" {
		want = append(want, "is of the database "+c.Database)
	}
	if !c.Before.IsZero() {
		want = append(want, "began by "+c.Before.UTC().Format(time.RFC3339))
	}
	return fmt.Errorf("%w: none of the %d in the repository %s", ErrNotFound, n, strings.Join(want, " and "))
}

// parallel runs tasks on n goroutines until one fails or the context ends. It returns
// the first error.
func parallel(ctx context.Context, n int, tasks iter.Seq[func(context.Context) error]) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan func(context.Context) error)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for do := range queue {
				if ctx.Err() != nil {
					continue
				}
				if err := do(ctx); err != nil {
					cancel(err)
				}
			}
		})
	}
	for do := range tasks {
		if ctx.Err() != nil {
			break
		}
		queue <- do
	}
	close(queue)
	wg.Wait()
	return context.Cause(ctx)
}
