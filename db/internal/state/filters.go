package state

import (
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
)

// Filters caches the rows of the last filters that searches have evaluated in a view of a collection.
// Searches often repeat a filter, and evaluating it may take longer than the search. Views never change, so
// cached rows stay right; a write makes a new view, with empty Filters. Safe for concurrent use.
// number of goroutines.
type Filters struct {
	mu    sync.Mutex
	last  []filter // the most recently used first
	bytes int
}

type filter struct {
	text  string
	rows  *roaring.Bitmap
	bytes int
}

// Bounds of the cache of one view: number of filters, and bytes.
const (
	filtersKept = 32
	filterBytes = 4 << 20
)

// Rows returns the cached rows of a filter, nil if there are none. Do not write to them.
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

// Keep caches the rows of a filter. They must not be written to any more.
func (f *Filters) Keep(text string, rows *roaring.Bitmap) {
	x := filter{text, rows, len(text) + int(rows.GetSizeInBytes())}
	if x.bytes > filterBytes {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.ContainsFunc(f.last, func(x filter) bool { return x.text == text }) {
		return // another search has cached it
	}
	for f.bytes += x.bytes; f.bytes > filterBytes || len(f.last) == filtersKept; {
		n := len(f.last) - 1
		f.bytes -= f.last[n].bytes
		f.last = slices.Delete(f.last, n, n+1)
	}
	f.last = slices.Insert(f.last, 0, x)
}
