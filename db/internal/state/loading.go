package state

import (
	"context"
	"errors"

	"github.com/fddhdb/fddhdb/db/fault"
)

// A Loading is the loading of one code set after opening, for those who wait for it. The
// goroutine that loads the codes ends it, once. Safe for concurrent use.
type Loading struct {
	wanted chan struct{} // says that somebody waits, so that loading begins at once; holds one
	done   chan struct{} // closed when the next view has the table, or it cannot be loaded
	err    error         // why it cannot be; set before done is closed, and read after
}

// newLoading returns a loading that has not begun.
func newLoading() *Loading {
	return &Loading{wanted: make(chan struct{}, 1), done: make(chan struct{})}
}

// wait waits until the codes are in memory, and the present view has them. The error says why
// they cannot be: damage, a failure to read, ErrClosed; or it is that of the context.
func (l *Loading) wait(ctx context.Context) error {
	select {
	case <-l.done:
		return l.err
	default:
	}
	select {
	case l.wanted <- struct{}{}:
	default: // it knows
	}
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ended reports whether nobody need wait any more.
func (l *Loading) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// damage returns the error of loading the codes of a set, if that has found damage. Searches
// refuse the set then: the store could answer them without the table, but from the same
// damaged records.
func (v *CodeSetView) damage() error {
	if v.loading != nil && v.loading.ended() && errors.Is(v.loading.err, fault.ErrCorrupt) {
		return v.loading.err
	}
	return nil
}

// notLoaded ends a loading that has failed.
func notLoaded(l *Loading, err error) {
	l.err = err
	close(l.done)
}

// AppendLoading appends the loadings to wait for before the codes of the collection are in
// memory, also those that have ended. Wait for them without holding a view, which would keep
// the old state of the store.
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
