package db_test

import (
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/metamorphic"
	"github.com/fddhdb/fddhdb/internal/seed"
)

// Whatever is done to collections and their spaces, in any order: the database agrees with
// the model, every space has the codes that its model gives to the items, and the statistics
// of what they have taught, and what is in memory is what is stored.
func TestRandomHistoriesOfSpaces(t *testing.T) {
	effort.Slow(t)
	const runs = 4
	start, counts := time.Now(), metamorphic.Counts{}
	first := seed.From(t, 0)
	for s := first; s < first+runs || time.Since(start) < *dbkit.Soak; s++ {
		p := metamorphic.Generate(s, metamorphic.Profile{Ops: effort.Of(100, 40), Spaces: true, Lanes: s%2 == 1, Bulk: s%4 == 2})
		n, err := metamorphic.RunUnder(p, inconsistency)
		if counts.Add(n); err != nil {
			t.Fatalf("seed %d: %v\n%s", s, err, p)
		}
	}
	t.Logf("%d operations:%s", counts.All(), counts)
}
