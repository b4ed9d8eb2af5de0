package learn

import (
	"context"
	"errors"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// A training works on its view, in which a dropped collection can still be read. So it would go on
// to its end, and fail at its commit. The context that it works with ends earlier.

// errDropped is the cause with which untilDropped ends a context.
var errDropped = errors.New("collection dropped")

// untilDropped returns a context that also ends when the collection is dropped. stop ends it
// and its goroutine; the caller must call it.
func (c Collection) untilDropped(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var gone <-chan struct{}
	err := c.Read(func(_ *state.View, cv *state.CollectionView) error {
		// The commit that drops the collection closes Gone. TestDropCollectionEndsItsTraining of db.
		gone = cv.Gone
		return nil
	})
	if err != nil {
		return ctx, func() { cancel(nil) } // the next call on the collection fails likewise
	}
	go func() {
		select {
		case <-gone:
			cancel(errDropped)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// dropped returns ErrNotFound for an err that comes of a context of untilDropped that ended
// because the collection was dropped. It returns other errors as they are.
func (c Collection) dropped(ctx context.Context, err error) error {
	if err != nil && context.Cause(ctx) == errDropped {
		return fault.NotFound("collection %q: it has been dropped", c.Name)
	}
	return err
}
