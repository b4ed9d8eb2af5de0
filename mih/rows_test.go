package mih

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"pgregory.net/rapid"

	_ "github.com/fddhdb/fddhdb/internal/seed"
)

// Rows are a set in each of their forms. A page keeps the set of each of its codes
// through all transitions, and earlier states stay as they were.
func TestRowsAreSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 9))
		w := NewWriter(8)
		want := make([]map[uint32]bool, 5)
		for i := range want {
			want[i] = map[uint32]bool{}
			if n, _, err := w.Number([]uint64{uint64(i)}); err != nil || n != uint32(i) {
				t.Fatal(n, err)
			}
			w.Add(uint32(i), uint32(i))
			want[i][uint32(i)] = true
		}
		check := func(table *Table, want []map[uint32]bool) {
			filter := roaring.New()
			for row := range uint32(400) {
				if rng.IntN(2) == 0 {
					filter.Add(row)
				}
			}
			items := 0
			for i, set := range want {
				rows := slices.Sorted(maps.Keys(set))
				items += len(rows)
				for _, r := range []Rows{table.Rows(uint32(i)), RowsOf(slices.Clone(rows)...)} {
					var in []uint32
					for _, row := range rows {
						if filter.Contains(row) {
							in = append(in, row)
						}
						if !r.Contains(row) {
							t.Fatalf("row %d of code %d is missing", row, i)
						}
					}
					if r.Len() != len(rows) || r.LenIn(nil) != len(rows) || r.LenIn(filter) != len(in) ||
						r.Contains(1<<30) ||
						!slices.Equal(slices.Collect(r.All()), rows) ||
						!slices.Equal(r.AppendTo([]uint32{5}, nil)[1:], rows) ||
						!slices.Equal(r.AppendTo([]uint32{5}, filter)[1:], in) {
						t.Fatalf("rows of code %d: %v, want %v", i, slices.Collect(r.All()), rows)
					}
					first := uint32(rng.IntN(420))
					behind, _ := slices.BinarySearch(rows, first)
					behindIn, _ := slices.BinarySearch(in, first)
					if !slices.Equal(slices.Collect(r.From(first)), rows[behind:]) ||
						r.LenFrom(first, nil) != len(rows)-behind ||
						r.LenFrom(first, filter) != len(in)-behindIn {
						t.Fatalf("rows of code %d from %d on: %v, want %v", i, first,
							slices.Collect(r.From(first)), rows[behind:])
					}
					for want, filter := range map[*[]uint32]*roaring.Bitmap{&rows: nil, &in: filter} {
						var got []uint32
						err := r.Parts(make([]uint32, 1+rng.IntN(50)), filter, func(part []uint32) error {
							got = append(got, part...)
							return nil
						})
						if err != nil || !slices.Equal(got, *want) {
							t.Fatalf("parts of the rows of code %d: %v, want %v", i, got, *want)
						}
					}
				}
			}
			if table.Items() != items {
				t.Fatalf("%d items, want %d", table.Items(), items)
			}
		}
		type state struct {
			table *Table
			want  []map[uint32]bool
		}
		var states []state
		row := uint32(5)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			i := rng.IntN(len(want))
			switch n := []int{1, 2, 30, 70}[rng.IntN(4)]; rng.IntN(3) {
			case 0: // take out, but for the last
				for r := range want[i] {
					if n--; n < 0 || len(want[i]) == 1 {
						break
					}
					w.Remove(uint32(i), r)
					delete(want[i], r)
				}
			default:
				for range n {
					r := rng.Uint32N(400)
					if _, taken := w.Table().CodeOf(r); taken {
						r = 400 + row
						row++
					}
					if _, taken := w.Table().CodeOf(r); !taken {
						w.Add(uint32(i), r)
						want[i][r] = true
					}
				}
			}
			if rng.IntN(3) == 0 {
				then := make([]map[uint32]bool, len(want))
				for i := range want {
					then[i] = maps.Clone(want[i])
				}
				states = append(states, state{w.Publish(), then})
			}
		}
		check(w.Table(), want)
		for _, s := range states {
			check(s.table, s.want)
		}
	})
}
