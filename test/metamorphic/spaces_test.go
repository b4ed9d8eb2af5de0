package metamorphic

import (
	"flag"
	"strconv"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/seed"
)

var soak = flag.Duration("soak", 0, "how long random histories of spaces go on; a few if 0")

// Whatever is done to collections and their spaces, in any order: the database agrees with
// the model, and every space has the codes that its model gives to the items, and the statistics
// of what they have taught.
func TestRandomHistoriesOfSpaces(t *testing.T) {
	const runs = 4
	start, counts := time.Now(), Counts{}
	first := seed.From(t, 0)
	for s := first; s < first+runs || time.Since(start) < *soak; s++ {
		p := Generate(s, Profile{Ops: effort.Of(100, 40), Spaces: true, Lanes: s%2 == 1, Bulk: s%4 == 2})
		n, err := Run(p)
		if counts.Add(n); err != nil {
			fail(t, "seed "+strconv.FormatUint(s, 10), p, err)
		}
	}
	t.Logf("%d operations:%s", counts.All(), counts)
}
