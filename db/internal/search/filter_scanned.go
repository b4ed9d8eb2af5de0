package search

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// A Scanned holds the results of tests on fields without an index, for the items of a view. The committer
// evaluates the filter again in a later view, and reads only the items that have changed. A Scanned takes
// memory for two sets of rows, and one more for each test.
type Scanned struct {
	schema *record.Descriptor // schema of the checked filter: under another one the tests may differ
	read   *roaring.Bitmap    // rows read
	found  []*roaring.Bitmap  // by test: rows read that pass it
}

// Scans reports whether a filter compares a field without an index, so that it has to read items.
func Scans(cv *state.CollectionView, expr string, args []any) (bool, error) {
	filter, err := checked(cv, expr, args)
	return err == nil && len(filter.Scans) > 0, err
}

// Scan evaluates a filter and returns the results of its tests. The arguments are as for EachMatching.
func Scan(ctx context.Context, cv *state.CollectionView, r pebble.Reader, expr string, args []any) (*Scanned, error) {
	filter, err := checked(cv, expr, args)
	if err != nil {
		return nil, err
	}
	out := &Scanned{schema: cv.Descriptor, read: roaring.New(), found: make([]*roaring.Bitmap, len(filter.Scans))}
	for i := range out.found {
		out.found[i] = roaring.New()
	}
	scan := newFieldScan(ctx, cv, r, filter.Scans)
	err = eachMatching(ctx, cv, r, filter, scan, func(container uint16, _ *roaring.Bitmap) bool {
		if scan != nil {
			addContainer(out.read, container, scan.read)
			for i, rows := range scan.found {
				addContainer(out.found[i], container, rows)
			}
		}
		return true
	})
	return out, err
}

// Matching is the function Matching, but reads only the items of changed and the items that s has not read;
// all items if s is nil. changed are the rows whose items were replaced since the view of s.
func (s *Scanned) Matching(ctx context.Context, cv *state.CollectionView, r pebble.Reader, expr string, args []any, changed *roaring.Bitmap) (*roaring.Bitmap, error) {
	filter, err := checked(cv, expr, args)
	if err != nil {
		return nil, err
	}
	scan := newFieldScan(ctx, cv, r, filter.Scans)
	if scan != nil && s != nil && s.schema == cv.Descriptor {
		s.read.AndNot(changed)
		scan.known = s
	}
	out := roaring.New()
	err = eachMatching(ctx, cv, r, filter, scan, func(container uint16, found *roaring.Bitmap) bool {
		addContainer(out, container, found)
		return true
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// into gives a fieldScan the known results of a container.
func (s *Scanned) into(container uint16, scan *fieldScan) {
	w := whereRows{container: container}
	scan.read = w.part(s.read)
	for i, rows := range s.found {
		scan.found[i] = w.part(rows)
		scan.found[i].And(scan.read)
	}
}

// addContainer adds the rows of a container, given as low 16 bits.
func addContainer(to *roaring.Bitmap, container uint16, rows *roaring.Bitmap) {
	to.Or(roaring.AddOffset64(rows, int64(container)<<16))
}
