package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

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
func Fetch(ctx context.Context, from Store, m *Manifest, create func(path string) (Target, error), opt FetchOptions) error {
	switch {
	case from == nil:
		return errNoStore
	case m == nil || create == nil:
		return fmt.Errorf("%w: a manifest to fetch, and a function that creates files, are needed", ErrInvalid)
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

func fetchFile(ctx context.Context, from Store, f *File, create func(path string) (Target, error), wrote func(n int)) (err error) {
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
