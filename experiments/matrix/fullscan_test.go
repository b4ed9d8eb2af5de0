package matrix

import (
	"cmp"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/db"
)

// The yardstick finds the same as sorting all items, in whatever order they come.
func TestFullScan(t *testing.T) {
	clitest.OneGoroutine(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, q := range []int{8, 24, 64, 128, 200} {
		for _, n := range []int{1, 63, 64, 65, 130, 5000, 9000} {
			for _, order := range []string{"any", "nearest first", "nearest last", "all the same"} {
				t.Run(fmt.Sprint(q, n, order), func(t *testing.T) {
					items := make([][]byte, n)
					for i := range items {
						items[i] = make([]byte, q/8)
						for range rng.IntN(q) {
							j := rng.IntN(q)
							items[i][j/8] |= 1 << (j % 8)
						}
						if order == "all the same" {
							copy(items[i], items[0])
						}
					}
					query := items[rng.IntN(n)]
					distance := func(code []byte) int {
						d := 0
						for i, x := range code {
							d += bits.OnesCount8(x ^ query[i])
						}
						return d
					}
					slices.SortStableFunc(items, func(a, b []byte) int {
						switch order {
						case "nearest first":
							return distance(a) - distance(b)
						case "nearest last":
							return distance(b) - distance(a)
						}
						return 0
					})
					f := newFullScan(q)
					var want []db.Hit
					for i, code := range items {
						row := uint32(3*i + i%2)
						f.add(row, code)
						want = append(want, db.Hit{Row: row, Distance: distance(code)})
					}
					slices.SortStableFunc(want,
						func(a, b db.Hit) int { return cmp.Compare(a.Distance, b.Distance) })
					testFullScan(t, f, query, want)
				})
			}
		}
	}
}

func testFullScan(t *testing.T, f *fullScan, query []byte, want []db.Hit) {
	equal := func(a, b db.Hit) bool { return a.Row == b.Row && a.Distance == b.Distance }
	for _, k := range []int{1, 2, 10, 1000, 20_000} {
		r, err := f.Search(t.Context(), db.Query{Code: query, K: k})
		got := r.Hits
		if err != nil || !slices.EqualFunc(got, want[:min(k, len(want))], equal) {
			t.Fatalf("k = %d: %d hits, %v", k, len(got), err)
		}
	}
	for _, r := range []int{0, 1, 8, 24, 500} {
		n, _ := slices.BinarySearchFunc(want, r+1, func(h db.Hit, d int) int { return h.Distance - d })
		runs, err := f.Radius(t.Context(), db.Query{Code: query}, r)
		if err != nil {
			t.Fatal(err)
		}
		var got []db.Hit
		for h, err := range runs.Hits(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, h)
		}
		if !slices.EqualFunc(got, want[:n], equal) || runs.Total() != n {
			t.Fatalf("r = %d: %d hits of %d, want %d", r, len(got), runs.Total(), n)
		}
	}
}
