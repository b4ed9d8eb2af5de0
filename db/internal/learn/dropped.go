package learn

import (
	"context"
	"errors"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// errDropped is why what works on a collection for long is told to end.
var errDropped = errors.New("collection dropped")

// untilDropped returns a context that also ends when the collection is dropped; stop
// frees what it takes.
func (c Collection) untilDropped(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var gone <-chan struct{}
	err := c.Read(func(_ *state.View, cv *state.CollectionView) error {
		gone = cv.Gone
		return nil
	})
	if err != nil {
		return ctx, func() { cancel(nil) } // what is done next finds out
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

// dropped words the error of what has ended because the collection was dropped.
func (c Collection) dropped(ctx context.Context, err error) error {
	if err != nil && context.Cause(ctx) == errDropped {
		return fault.NotFound("collection %q: it has been dropped", c.Name)
	}
	return err
}
