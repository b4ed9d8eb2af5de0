package mih

import (
	"maps"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"pgregory.net/rapid"

	"github.com/fddhdb/fddhdb/codec"
)

// contents reads a table back as code -> rows, through every accessor.
func contents(t *rapid.T, table *Table) map[string][]uint32 {
	got := map[string][]uint32{}
	items, used := 0, 0
	for i := range table.Codes().Len() {
		rows := table.Rows(uint32(i))
		list := slices.Collect(rows.All())
		if !slices.IsSorted(list) || len(list) != rows.Len() || table.Cardinality(uint32(i)) != len(list) {
			t.Fatalf("rows of code %d: %v, length %d", i, list, rows.Len())
		}
		if app := rows.AppendTo([]uint32{9}, nil); !slices.Equal(app[1:], list) {
			t.Fatalf("AppendTo gives %v, All %v", app[1:], list)
		}
		if len(list) > 0 {
			got[table.Codes().At(i).Hex(table.Codes().Bits())] = list
			used++
		}
		items += len(list)
	}
	if items != table.Items() || used != table.Distinct() {
		t.Fatalf("%d items and %d codes counted, %d and %d reported", items, used, table.Items(), table.Distinct())
	}
	return got
}

// A writer agrees with a map from code to rows, and what it published before
// stays as it was whatever comes after.
func TestTableIsAMapAndPublishedOnesStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := NewWriter(16, 0)
		want := map[string]map[uint32]bool{}
		numbers := map[string]uint32{}
		type published struct {
			table *Table
			want  map[string][]uint32
		}
		var history []published
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			// Few codes, so that some collect enough rows to change their form.
			c := codec.Code{uint64(rapid.IntRange(0, 5).Draw(t, "code"))}
			n, isNew, err := w.Number(c)
			if err != nil {
				t.Fatal(err)
			}
			key := c.Hex(16)
			if old, known := numbers[key]; known == isNew || (known && old != n) {
				t.Fatalf("code %s was number %d, is %d, new: %v", key, old, n, isNew)
			}
			numbers[key] = n
			if want[key] == nil {
				want[key] = map[uint32]bool{}
			}
			from := uint32(rapid.IntRange(0, 200).Draw(t, "row"))
			add := rapid.IntRange(0, 2).Draw(t, "op") > 0
			for row := from; row < from+uint32(rapid.IntRange(1, 90).Draw(t, "count")); row++ {
				if add {
					w.Add(n, row)
					want[key][row] = true
				} else {
					w.Remove(n, row)
					delete(want[key], row)
				}
			}
			if rapid.Bool().Draw(t, "publish") {
				p := published{w.Publish(), map[string][]uint32{}}
				for k, rows := range want {
					if len(rows) > 0 {
						p.want[k] = slices.Sorted(maps.Keys(rows))
					}
				}
				history = append(history, p)
			}
		}
		for i, p := range history {
			if got := contents(t, p.table); !maps.EqualFunc(got, p.want, slices.Equal) {
				t.Fatalf("table %d of %d: %v, want %v", i, len(history), got, p.want)
			}
		}
	})
}

func TestRowsThroughAFilter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := NewWriter(8, 0)
		n, _, _ := w.Number(codec.Code{1})
		for range rapid.IntRange(0, 150).Draw(t, "rows") {
			w.Add(n, uint32(rapid.IntRange(0, 300).Draw(t, "row")))
		}
		filter := roaring.New()
		for range rapid.IntRange(0, 100).Draw(t, "filter") {
			filter.Add(uint32(rapid.IntRange(0, 300).Draw(t, "in")))
		}
		rows := w.Publish().Rows(n)
		var want []uint32
		for row := range rows.All() {
			if filter.Contains(row) {
				want = append(want, row)
			}
		}
		if got := rows.AppendTo(nil, filter); !slices.Equal(got, want) {
			t.Fatalf("AppendTo gives %v, want %v", got, want)
		}
		if got := rows.LenIn(filter); got != len(want) {
			t.Fatalf("LenIn gives %d, want %d", got, len(want))
		}
	})
}

func TestManyCodesKeepTheirNumbers(t *testing.T) {
	w := NewWriter(64, 0)
	for i := range uint64(5000) {
		if n, isNew, _ := w.Number(codec.Code{i * 0x9e3779b97f4a7c15}); n != uint32(i) || !isNew {
			t.Fatalf("code %d got number %d, new: %v", i, n, isNew)
		}
	}
	for i := range uint64(5000) {
		if n, isNew, _ := w.Number(codec.Code{i * 0x9e3779b97f4a7c15}); n != uint32(i) || isNew {
			t.Fatalf("code %d is number %d, new: %v", i, n, isNew)
		}
	}
}
