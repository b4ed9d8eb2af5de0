package bulk

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/fddhdb/fddhdb/internal/seed"
)

func TestEachDecimal(t *testing.T) {
	check := func(from, to uint64) {
		t.Helper()
		var want, got []string
		for n := from; n < to; n++ {
			want = append(want, strconv.FormatUint(n, 10))
		}
		slices.Sort(want)
		err := eachDecimal(from, to, func(digits []byte, n uint64) error {
			if string(digits) != fmt.Sprint(n) {
				t.Fatalf("%s is %d", digits, n)
			}
			got = append(got, string(digits))
			return nil
		})
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("from %d to %d: %d numbers, not %d: %.300v, %v", from, to, len(got), len(want), got, err)
		}
	}
	for from := range uint64(25) {
		for to := from; to < 130; to++ {
			check(from, to)
		}
	}
	r := seed.Rand(t, 1, 1)
	for range 300 {
		from := r.Uint64() >> r.IntN(64)
		if n := uint64(r.IntN(300)); from <= math.MaxUint64-n {
			check(from, from+n)
		}
	}
	check(math.MaxUint64-100, math.MaxUint64)
	check(9_999_999_999_999_999_900, 10_000_000_000_000_000_050)
}
