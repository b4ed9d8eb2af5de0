package db_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// Codes that are too long for tables and postings are found by every plan, while they load, too, and the
// database is sound.
func TestLongCodes(t *testing.T) {
	const bytes = 65
	rng := rand.New(rand.NewPCG(11, 12))
	items := codedItems(rng, "a", 3000, bytes)
	blur(rng, items, nil)
	for _, it := range items {
		it.Fields = nil
	}
	dir := t.TempDir()
	d, c := openNew(t, dir, nil, db.Schema{Bits: 8 * bytes}, items[:2500]...)
	putEach(t, c, items[2500:2520])
	putAll(t, c, items[2520:])
	look := func(when string) {
		for _, radius := range []int{0, 5} {
			for i := range 20 {
				q := db.Query{Code: items[i*140].Code, K: 5}
				want := 0
				for _, it := range items {
					if apart(it, items[i*140]) <= radius {
						want++
					}
				}
				for _, plan := range []db.Plan{db.PlanAuto, db.PlanMemory, db.PlanScan, db.PlanDisk,
					db.PlanBlockScan} {
					q.Plan = plan
					within := need(dbkit.FirstWithin(c, q, radius))(t, when, plan)
					failIf(t, within.Total != want, "%s: %d within %d by %v, want %d", when, within.Total, radius,
						plan, want)
					nearest := need(c.Search(ctx, q))(t, when, plan)
					failIf(t, len(nearest.Hits) != 5 || nearest.Hits[0].Distance != 0, "%s: %v", when,
						nearest.Hits)
				}
			}
		}
	}
	look("new")
	d, c = reopen(t, d, dir, nil)
	look("reopened")
	must(t, d.WaitForIndex(ctx))
	look("indexed")
	need(c.Delete(ctx, "a0", "a1"))(t)
	dbkit.CheckSound(t, d, "at the end")
	findings, _ := dbkit.Findings(t, d, db.VerifyOptions{Deep: true})
	failIf(t, len(findings) > 0, "%s", fmt.Sprint(findings))
	dbkit.MustClose(t, d)
}
