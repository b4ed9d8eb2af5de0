package state

import (
	"context"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// Watching runs f, in the caller's goroutine, and collects the rows of the collection whose items are
// replaced or deleted meanwhile. So f can read items of a view before a request, and reread only the changed
// ones in the request. It does not collect rows of new items, or of items that only get another label by a
// merge. changed belongs to the committer: f reads it only in requests.
func (c Collection) Watching(ctx context.Context, f func(changed *roaring.Bitmap) error) error {
	changed := roaring.New()
	err := c.Look(ctx, func(s *CollectionState) error {
		s.watches = append(s.watches, changed)
		return nil
	})
	if err != nil {
		return err
	}
	// This fails only if the database has failed or the collection was dropped: then it is not needed.
	defer func() {
		_ = c.Look(context.WithoutCancel(ctx), func(s *CollectionState) error {
			s.watches = slices.DeleteFunc(s.watches, func(w *roaring.Bitmap) bool { return w == changed })
			return nil
		})
	}()
	return f(changed)
}
