package state

import (
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
)

// Filters keeps the rows of the last filters that searches have evaluated in a view of a collection.
// Searches often repeat a filter, and evaluating it may take longer than the search. A view never
// changes, so its rows stay right; a write makes a new view, with empty Filters. It is safe for any
// number of goroutines.
type Filters struct {
	mu    sync.Mutex
	last  []filter // the one that was used last comes first
	bytes int
}

type filter struct {
	text  string
	rows  *roaring.Bitmap
	bytes int
}

// So many filters a view keeps, and so much memory they take.
const (
	filtersKept = 32
	filterBytes = 4 << 20
)

// Rows returns the rows of a filter, which must not be written to; nil if they are not kept.
func (f *Filters) Rows(text string) *roaring.Bitmap {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.last, func(x filter) bool { return x.text == text })
	if i < 0 {
		return nil
	}
	x := f.last[i]
	f.last = slices.Insert(slices.Delete(f.last, i, i+1), 0, x)
	return x.rows
}

// Keep keeps the rows of a filter, which nobody writes to any more.
func (f *Filters) Keep(text string, rows *roaring.Bitmap) {
	x := filter{text, rows, len(text) + int(rows.GetSizeInBytes())}
	if x.bytes > filterBytes {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.ContainsFunc(f.last, func(x filter) bool { return x.text == text }) {
		return // another search was faster
	}
	for f.bytes += x.bytes; f.bytes > filterBytes || len(f.last) == filtersKept; {
		n := len(f.last) - 1
		f.bytes -= f.last[n].bytes
		f.last = slices.Delete(f.last, n, n+1)
	}
	f.last = slices.Insert(f.last, 0, x)
}
