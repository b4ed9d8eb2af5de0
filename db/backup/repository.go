package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// workers is the number of objects that are read or written at a time.
const workers = 4

// marker is the first object of a repository.
type marker struct {
	FDDHDB  string `json:"fddhdb"`
	Version int    `json:"version"`
}

// readMarker checks that a store holds a repository that this version can read.
func readMarker(ctx context.Context, s Store) error {
	if s == nil {
		return errNoStore
	}
	b, err := read(ctx, s, markerName, 1<<12)
	if notThere(err) {
		return fmt.Errorf("%w: there is no %s in it", ErrNotRepository, markerName)
	}
	if err != nil {
		return err
	}
	var m marker
	if err := json.Unmarshal(b, &m); err != nil || m.FDDHDB != "backups" {
		return &markerError{}
	}
	return checkVersion("repository", m.Version)
}

// A markerError says that the marker of a repository is damaged, or belongs to something else.
// It is an ErrNotRepository and an ErrDamaged.
type markerError struct{}

func (*markerError) Error() string {
	return fmt.Sprintf(`%v: its %s is damaged: where backups are kept it holds {"fddhdb":"backups","version":%d}, and can be written again`,
		ErrDamaged, markerName, Version)
}

func (*markerError) Is(target error) bool { return target == ErrNotRepository || target == ErrDamaged }

// errSeen ends a list at its first object.
var errSeen = errors.New("there is an object")

// prepare makes a repository of an empty store.
func prepare(ctx context.Context, s Store) error {
	err := readMarker(ctx, s)
	if !errors.Is(err, ErrNotRepository) {
		return err
	}
	switch seen := s.List(ctx, "", func(o Object) error {
		if o.Name == markerName { // another process was first, or the marker is damaged
			return nil
		}
		return errSeen
	}); {
	case errors.Is(seen, errSeen):
		if again := readMarker(ctx, s); again == nil { // another process was first
			return nil
		}
		if errors.Is(err, ErrDamaged) {
			return err
		}
		return fmt.Errorf("%w: it holds something else", err)
	case seen != nil:
		return seen
	}
	return writeJSON(ctx, s, markerName, marker{"backups", Version})
}

func writeJSON(ctx context.Context, s Store, name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return putBytes(ctx, s, name, b)
}

// read returns an object of at most so many bytes.
func read(ctx context.Context, s Store, name string, most int64) (b []byte, err error) {
	r, err := s.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	b, err = io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(b)) > most {
		err = damaged("%s: more than %d bytes", name, most)
	}
	return b, err
}

// readManifest reads a manifest from a folder of the repository.
func readManifest(ctx context.Context, s Store, folder, id string) (*Manifest, error) {
	name := jsonName(folder, id)
	b, err := read(ctx, s, name, maxManifest)
	if err != nil {
		return nil, err
	}
	m, err := DecodeManifest(b)
	if err != nil {
		return nil, fmt.Errorf("%w (in %s)", err, name)
	}
	if m.ID != id {
		return nil, damaged("%s holds the manifest of %s", name, m.ID)
	}
	return m, nil
}

// ids lists the manifests or plans in a folder, and the time at which each was last
// put.
func ids(ctx context.Context, s Store, folder string) (map[string]time.Time, error) {
	found := map[string]time.Time{}
	err := s.List(ctx, folder, func(o Object) error {
		if id, ok := idOf(folder, o.Name); ok {
			found[id] = o.Modified
		}
		return nil
	})
	return found, err
}

// List returns the complete backups of a repository, oldest first, without their files.
// It leaves out running and interrupted ones. It reads their manifests, about 100 bytes
// for each piece of 16 MiB. A store without a repository gives ErrNotRepository, an
// unreadable manifest ErrDamaged or ErrVersion, and a repository with pieces of backups
// but no manifest ErrNoBackup.
func List(ctx context.Context, from Store) ([]*Manifest, error) {
	all, err := list(ctx, from)
	return all, annotate(err, "list backups")
}

func list(ctx context.Context, from Store) ([]*Manifest, error) {
	if err := readMarker(ctx, from); err != nil {
		return nil, err
	}
	found, err := ids(ctx, from, backups)
	if err != nil {
		return nil, err
	}
	var all []*Manifest
	for _, id := range sorted(found) {
		m, err := readManifest(ctx, from, backups, id)
		if notThere(err) {
			continue // pruned meanwhile
		}
		if err != nil {
			return nil, err
		}
		all = append(all, m.brief())
	}
	if len(all) == 0 {
		return nil, manifestsLost(ctx, from)
	}
	return all, nil
}

// manifestsLost returns ErrNoBackup if a repository without a complete backup has a
// piece of a backup that is neither running nor interrupted.
func manifestsLost(ctx context.Context, from Store) error {
	begun, err := ids(ctx, from, running)
	if err != nil {
		return err
	}
	err = from.List(ctx, objects, func(o Object) error {
		if p, ok := pieceOf(o.Name); ok && begun[p.owner()].IsZero() {
			return ErrNoBackup
		}
		return nil
	})
	if !errors.Is(err, ErrNoBackup) {
		return err
	}
	if made, err := ids(ctx, from, backups); err != nil || len(made) > 0 { // completed just now
		return err
	}
	return fmt.Errorf("%w: it holds pieces of backups and no manifest in %s: none was completed, or the manifests are out of reach: bring them back", ErrNoBackup, backups)
}

func sorted[K ~string, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// A Store holds a repository of backups: a flat set of objects, each with a name and
// bytes. Folder makes a store of a folder, and package db/s3 one of a bucket. To keep
// backups elsewhere, implement these four methods, and run the tests of package
// storetest on them.
//
// Names consist of lower-case letters, digits, '-', '.' and '/', at most 200 bytes.
// They do not begin or end with '/'. None of their elements is empty, begins or ends
// with '.', or is the name of a device of Windows such as nul or com1.txt. No name is a
// folder of another name, such as a and a/b: a store may keep objects as files in
// folders. Several goroutines, and several processes on several machines, may use it.
//
// The promises of a repository rest on this:
//
//   - Put is atomic and durable. When it has returned nil, Get and List of anyone find
//     the whole object, also after a crash. Before that, and if it fails or its process
//     is killed, they find the earlier object.
//   - List finds every object that was there when it was called and is still there when
//     it returns.
//   - List finds the same objects as Get, and nothing else. If a store cannot tell
//     whether an object is there, both fail, and not with fs.ErrNotExist: an object
//     that is not found counts as deleted, and a Prune deletes objects that no manifest
//     needs.
//
// When the context ends, methods return promptly with its error. They retry temporary
// failures of a network themselves; an error that they return ends the backup.
type Store interface {
	// Put stores size bytes of r under the name, and replaces an earlier object. r
	// stands at the first of them; Put may go back there to try again.
	Put(ctx context.Context, name string, r io.ReadSeeker, size int64) error

	// Get opens an object for reading from its beginning. The caller closes it. If
	// there is no such object the error wraps fs.ErrNotExist.
	Get(ctx context.Context, name string) (io.ReadCloser, error)

	// List calls f for each object whose name begins with prefix, in any order. An
	// error of f ends List, which returns it.
	List(ctx context.Context, prefix string, f func(Object) error) error

	// Delete deletes an object. If there is no such object it does nothing.
	Delete(ctx context.Context, name string) error
}

// An Object describes an object, for List.
type Object struct {
	Name     string
	Size     int64     // in bytes
	Modified time.Time // time of the last Put, by the clock of the store
}

const (
	refresh = time.Minute      // interval in which a running backup shows that it runs
	stale   = 30 * time.Minute // without a sign for so long, by the clock of the store, it counts as dead
)

// A lease is the manifest of a running backup: an object that is put again and again.
type lease struct {
	store Store
	name  string

	one chan struct{} // guards b: it holds one element while b is written or put
	b   []byte        // the manifest
}

// keep shows m, and shows it again until stop is called, which removes it. If it cannot
// be shown, keep calls failed.
func (l *lease) keep(ctx context.Context, m *Manifest,
	failed context.CancelCauseFunc) (stop func(), err error) {
	if err := l.show(ctx, m); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var gone sync.WaitGroup
	gone.Go(func() {
		t := time.NewTicker(refresh)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				if err := l.put(ctx, nil); err != nil && ctx.Err() == nil {
					failed(err)
				}
			}
		}
	})
	return func() {
		cancel()
		gone.Wait()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_ = l.store.Delete(ctx, l.name) // a stale leftover is collected
	}, nil
}

// show replaces the manifest from now on.
func (l *lease) show(ctx context.Context, m *Manifest) error {
	b, err := m.encode()
	if err != nil {
		return err
	}
	return l.put(ctx, b)
}

// put puts the manifest; the last one if b is nil.
func (l *lease) put(ctx context.Context, b []byte) error {
	select {
	case l.one <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-l.one }()
	if b != nil {
		l.b = b
	}
	return putBytes(ctx, l.store, l.name, l.b)
}

func putBytes(ctx context.Context, s Store, name string, b []byte) error {
	return s.Put(ctx, name, bytes.NewReader(b), int64(len(b)))
}

// errMissing is about a missing object. It is an ErrDamaged.
var errMissing = fmt.Errorf("%w: an object is missing", ErrDamaged)

// buffers hold pieces.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, pieceBytes); return &b }}

func sum(b []byte) Hash { return sha256.Sum256(b) }

// readPiece reads a piece of size bytes, verifies it against its name, and passes it to
// use. It returns the number of stored bytes. Damage is an ErrDamaged.
func readPiece(ctx context.Context, s Store, p Piece, size int,
	use func([]byte) error) (stored int64, err error) {
	r, err := s.Get(ctx, p.object())
	if notThere(err) {
		return 0, fmt.Errorf("%w: %s", errMissing, p.object())
	}
	if err != nil {
		return 0, err
	}
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	b := (*buf)[:size]
	n, err := io.ReadFull(r, b)
	if err == nil && n == size { // there must be no further byte
		var more [1]byte
		if k, _ := io.ReadFull(r, more[:]); k > 0 {
			err = damaged("%s: more than %d bytes", p.object(), size)
		}
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	if err = errors.Join(err, r.Close()); err != nil {
		return 0, err
	}
	b, stored = b[:n], int64(n)
	if len(b) != size {
		return stored, damaged("%s: %d bytes of a piece of %d", p.object(), len(b), size)
	}
	if sum(b) != p.Hash() {
		return stored, damaged("%s: its SHA-256 is another one", p.object())
	}
	return stored, use(b)
}

// A Target is a file that Fetch writes.
type Target interface {
	io.Writer
	Sync() error
	Close() error
}

// FetchOptions are the options of Fetch.
type FetchOptions struct {
	// Progress is called with the number of bytes written of all bytes, in StageFetch.
	Progress event.Progress
}

// StageFetch is the stage of Fetch, for Progress.
const StageFetch = "fetch"

// Fetch writes the files of a backup, several at a time. create makes the file of a
// path; DecodeManifest has checked the path, and its folders may be missing. Fetch
// checks each piece against its SHA-256 and its size before it writes it, and syncs the
// files. A missing or damaged object gives ErrDamaged; the caller then removes what was
// written. Fetch holds at most eight pieces of 16 MiB in memory.
func Fetch(ctx context.Context, from Store, m *Manifest, create func(path string) (Target, error),
	opt FetchOptions) error {
	switch {
	case from == nil:
		return errNoStore
	case m == nil || create == nil:
		return fmt.Errorf("%w: a manifest to fetch, and a function that creates files, are needed",
			ErrInvalid)
	}
	if err := m.check(); err != nil {
		return err
	}
	for _, f := range m.Files {
		for _, p := range f.Pieces {
			if !validPiece.MatchString(string(p)) {
				return damaged("%s: piece %.120q", f.Path, p)
			}
		}
	}
	ctx, ended := work.Hearing(ctx, &opt.Progress)
	defer ended()
	var mu sync.Mutex
	var done int64
	err := parallel(ctx, workers, func(yield func(func(context.Context) error) bool) {
		for i := range m.Files {
			if !yield(func(ctx context.Context) error {
				return fetchFile(ctx, from, &m.Files[i], create, func(n int) {
					mu.Lock()
					defer mu.Unlock()
					if done += int64(n); opt.Progress != nil {
						opt.Progress(StageFetch, done, m.BytesTotal)
					}
				})
			}) {
				return
			}
		}
	})
	if errors.Is(err, ErrDamaged) {
		return fmt.Errorf("%w (backup %s)", err, m.ID)
	}
	return annotate(err, "fetch backup %s", m.ID)
}

func fetchFile(ctx context.Context, from Store, f *File, create func(path string) (Target, error),
	wrote func(n int)) (err error) {
	t, err := create(f.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	for i, p := range f.Pieces {
		if _, err := readPiece(ctx, from, p, f.pieceSize(i), func(b []byte) error {
			_, err := t.Write(b)
			wrote(len(b))
			return err
		}); err != nil {
			return err
		}
	}
	return t.Sync()
}
