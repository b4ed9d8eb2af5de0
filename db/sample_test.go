package db_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/dbtest"
)

// A sample has as many items as it is asked for, each once, whole and in database order, of those that
// match; each is as likely as any other.
func TestSample(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, "", nil)
	c := must1[*db.Collection](t)(d.CreateCollection(t.Context(), "main", db.Schema{Bits: 8}))
	const items = 40
	for i := range items {
		it := &db.Item{Key: fmt.Sprint(i), Code: []byte{byte(i)}}
		if i%2 == 0 {
			it.Labels = []string{"even"}
		}
		must1[string](t)(c.Put(t.Context(), it))
	}
	must1[int](t)(c.Delete(t.Context(), "8"))
	for _, where := range []string{"", "label = 'even'", "label = 'none'"} {
		all := must1[[]*db.Item](t)(collect(c.ItemsWhere(t.Context(), where)))
		drawn := map[string]int{}
		const n, seeds = 5, 600
		for seed := range uint64(seeds) {
			got := must1[[]*db.Item](t)(collect(c.Sample(t.Context(), n, seed, where)))
			if len(got) != min(n, len(all)) {
				t.Fatalf("where %q, seed %d: %d items", where, seed, len(got))
			}
			rest := all
			for _, it := range got {
				drawn[it.Key]++
				i := slices.IndexFunc(rest, func(other *db.Item) bool { return cmp.Equal(other, it) })
				if i < 0 {
					t.Fatalf("where %q, seed %d: %v is not among those that come next", where, seed, it)
				}
				rest = rest[i+1:]
			}
		}
		// Six standard deviations of a binomial distribution.
		p := float64(n) / float64(len(all))
		for _, it := range all {
			if far := math.Abs(float64(drawn[it.Key]) - seeds*p); far > 6*math.Sqrt(seeds*p*(1-p)) {
				t.Errorf("where %q: %s is drawn %d times of %d", where, it.Key, drawn[it.Key], seeds)
			}
		}
	}
	once, again := must1[[]*db.Item](t)(collect(c.Sample(t.Context(), 5, 7, ""))), must1[[]*db.Item](t)(collect(c.Sample(t.Context(), 5, 7, "")))
	if diff := cmp.Diff(once, again); diff != "" {
		t.Error(diff)
	}
	if all := must1[[]*db.Item](t)(collect(c.Sample(t.Context(), items, 1, "label = ?", "even"))); len(all) != items/2-1 {
		t.Errorf("%d of all", len(all))
	}
	for n, where := range map[int]string{0: "", -1: "", 1: "label =", 2: "label = ?"} {
		if _, err := collect(c.Sample(t.Context(), n, 1, where)); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("%d where %q: %v", n, where, err)
		}
	}
}
