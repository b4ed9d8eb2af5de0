package state

import (
	"fmt"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
)

// However many filters searches have, a view keeps few, and those that were used last.
func TestFiltersAreFew(t *testing.T) {
	f := new(Filters)
	f.Keep("often", roaring.BitmapOf(1))
	for i := range 10_000 {
		f.Keep(fmt.Sprint("owner = ", i), roaring.BitmapOf(uint32(i)))
		if rows := f.Rows("often"); rows == nil || !rows.Contains(1) {
			t.Fatalf("a filter that is used is gone after %d others", i)
		}
	}
	if rows := f.Rows("owner = 9999"); rows == nil || rows.GetCardinality() != 1 || !rows.Contains(9999) {
		t.Error("the last filter is not there")
	}
	if f.Rows("owner = 1") != nil {
		t.Error("the first filter is still there")
	}
	if len(f.last) > filtersKept || f.bytes > filterBytes {
		t.Errorf("%d filters of %d bytes are kept", len(f.last), f.bytes)
	}

	large := roaring.New()
	for i := range uint32(1 << 24) { // every second row: 2 MiB
		if i%2 == 0 {
			large.Add(i)
		}
	}
	for i := range 5 {
		f.Keep(fmt.Sprint("large ", i), large)
	}
	if f.bytes > filterBytes || f.Rows("large 4") == nil || f.Rows("large 0") != nil {
		t.Errorf("large filters: %d bytes", f.bytes)
	}
	sum := 0
	for _, x := range f.last {
		sum += x.bytes
	}
	if sum != f.bytes {
		t.Errorf("%d bytes counted, %d kept", f.bytes, sum)
	}
}
