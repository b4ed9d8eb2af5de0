package db

import (
	"context"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// DeleteWhere deletes the items that match the expression, see Query.Where, all in
// one synced commit, and returns how many there were. args are the values of its
// placeholders, see Query.Args.
//
// What matches is decided when it is deleted: a write that comes back before DeleteWhere is called counts,
// and none comes in between. Other writers wait for as long as that takes. Where a field of the expression
// has no index, DeleteWhere reads the items before, while others write, and in the commit only those that
// have come or changed since; all of them, if the collection was altered meanwhile. More than a commit can
// hold, some millions, or with what they have taught a GiB, is an ErrInvalid: narrow the expression.
//
// The empty expression, or one of blanks, is an ErrInvalid, as most likely the caller has lost
// one. To delete all items, drop the collection and create it again, or say
//
//	NOT label = ''
func (c *Collection) DeleteWhere(ctx context.Context, where string, args ...any) (int, error) {
	if err := c.db.state.Guard.Enter(); err != nil {
		return 0, err
	}
	defer c.db.state.Guard.Leave()
	if err := c.changeable(); err != nil {
		return 0, err
	}
	if strings.TrimSpace(where) == "" {
		return 0, &fault.WhereError{Column: 1, Reason: "an empty expression would delete all items: say NOT label = '' to delete them, or drop the collection"}
	}
	if err := c.inside().Loaded(ctx); err != nil {
		return 0, err
	}
	ctx, call := c.db.state.Signals.Call(ctx, event.OpWrite, c.name)
	n, err := c.deleteWhere(ctx, where, args)
	c.db.state.Wrote(&call, n, err)
	if err != nil {
		return 0, err
	}
	c.db.state.Committer.Figures.Deleted.Add(uint64(n))
	return n, nil
}

// deleteWhere is DeleteWhere of a collection whose codes are loaded.
func (c *Collection) deleteWhere(ctx context.Context, where string, args []any) (n int, err error) {
	in := c.inside()
	scans := false
	err = in.Read(func(_ *state.View, cv *state.CollectionView) (err error) {
		scans, err = search.Scans(cv, where, args)
		return err
	})
	if err != nil {
		return 0, err
	}
	if !scans {
		return deleteMatching(ctx, in, where, args, nil, nil)
	}
	err = in.Watching(ctx, func(changed *roaring.Bitmap) error {
		var known *search.Scanned
		err := in.Read(func(v *state.View, cv *state.CollectionView) (err error) {
			known, err = search.Scan(ctx, cv, v.Snap, where, args)
			return err
		})
		if err == nil {
			n, err = deleteMatching(ctx, in, where, args, known, changed)
		}
		return err
	})
	return n, err
}

// deleteMatching deletes what matches. known, if not nil, is what an earlier view tells of it, and
// changed the rows whose items have changed since.
func deleteMatching(ctx context.Context, in state.Collection, where string, args []any, known *search.Scanned, changed *roaring.Bitmap) (n int, err error) {
	err = in.Free(ctx, func(tx *state.Tx, s *state.CollectionState) error {
		v := in.DB.Current.Load() // of the present state
		cv, err := v.Collection(s.ID, s.Name)
		if err != nil {
			return err
		}
		rows, err := known.Matching(ctx, cv, v.Snap, where, args, changed)
		if err != nil {
			return err
		}
		n, err = tx.DeleteItems(ctx, s, int(rows.GetCardinality()), func(f func(row uint32, key string) error) error {
			return search.EachKeyOf(cv, v.Snap, rows, f)
		})
		tx.Empty = n == 0
		return err
	})
	return n, err
}
