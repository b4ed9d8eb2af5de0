package state

import (
	"context"
	"errors"

	"github.com/fddhdb/fddhdb/db/fault"
)

// A Loading is the loading of one code set after opening; callers wait for it. The goroutine that loads the
// codes ends it, once. Safe for concurrent use.
type Loading struct {
	wanted chan struct{} // a caller waits, so begin at once; holds one
	done   chan struct{} // closed when the next view has the table, or loading has failed
	err    error         // why loading failed; set before done is closed, read after
}

// newLoading returns a loading that has not begun.
func newLoading() *Loading {
	return &Loading{wanted: make(chan struct{}, 1), done: make(chan struct{})}
}

// wait waits until the codes are in memory and in the present view. The error says why they cannot be
// (damage, a failed read, ErrClosed), or is the error of the context.
func (l *Loading) wait(ctx context.Context) error {
	select {
	case <-l.done:
		return l.err
	default:
	}
	select {
	case l.wanted <- struct{}{}:
	default: // a signal is there already
	}
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ended reports whether loading has succeeded or failed.
func (l *Loading) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// damage returns the error of loading the codes of a set, if it is damage. Searches then refuse the set:
// without the table they would read the same damaged records.
func (v *CodeSetView) damage() error {
	if v.loading != nil && v.loading.ended() && errors.Is(v.loading.err, fault.ErrCorrupt) {
		return v.loading.err
	}
	return nil
}

// notLoaded ends a failed loading.
func notLoaded(l *Loading, err error) {
	l.err = err
	close(l.done)
}

// AppendLoading appends the loadings of the collection's codes, including finished ones. Hold no view while
// you wait for them: it would keep the old state of the store.
func (cv *CollectionView) AppendLoading(dst []*Loading) []*Loading {
	for i := range cv.Spaces {
		if l := cv.Spaces[i].Codes.loading; l != nil {
			dst = append(dst, l)
		}
	}
	return dst
}

// WaitForAll waits until all of these loadings have ended, or for the first error.
func WaitForAll(ctx context.Context, all []*Loading) error {
	for _, l := range all {
		if err := l.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}
