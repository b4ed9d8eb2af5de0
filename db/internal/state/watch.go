package state

import (
	"context"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// Watching runs f, in the goroutine of the caller, and meanwhile collects the rows of the collection
// whose items are replaced or deleted. So f can read items of a view before a request, and in the
// request only those that have changed. The rows of new items are not collected, nor those of items that
// only get another label, by a merge. changed belongs to the committer: f reads it in requests only.
func (c Collection) Watching(ctx context.Context, f func(changed *roaring.Bitmap) error) error {
	changed := roaring.New()
	err := c.Look(ctx, func(s *CollectionState) error {
		s.watches = append(s.watches, changed)
		return nil
	})
	if err != nil {
		return err
	}
	// A database that has failed cannot end it, and need not, nor one whose collection was dropped.
	defer func() {
		_ = c.Look(context.WithoutCancel(ctx), func(s *CollectionState) error {
			s.watches = slices.DeleteFunc(s.watches, func(w *roaring.Bitmap) bool { return w == changed })
			return nil
		})
	}()
	return f(changed)
}
