package db_test

import (
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// openMixed makes a learned collection of labelled and unlabelled items, some of
// which lack a modality: many codes, some of them shared.
func openMixed(t testing.TB, bits int) (c *db.Collection, items []*db.Item) {
	t.Helper()
	_, c, items = openMixedDB(t, bits)
	return c, items
}

// openMixedDB is openMixed with the database.
func openMixedDB(t testing.TB, bits int) (d *db.DB, c *db.Collection, items []*db.Item) {
	t.Helper()
	d, c = dbkit.OpenPairs(t)
	items = dbkit.Pairs(240, synth.Config{Classes: 5, Noise: 2})
	for i, it := range items {
		if i%2 == 1 {
			it.Labels = nil
		}
		if i%10 == 3 {
			delete(it.Vectors, "text")
		}
	}
	putAll(t, c, items)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: bits}})
	return d, c, items
}

// Explain says what was read, and predicts what can be chosen.
func TestExplainAsymmetric(t *testing.T) {
	c, items := openMixed(t, 16)
	q := db.Query{From: "text", Vector: items[0].Vectors["text"], Rerank: db.RerankAsymmetric, Plan: db.PlanDisk}
	e, _, err := c.Explain(ctx, q, -1)
	if err != nil || e.Plan != "blockscan" || e.Scanned != e.Distinct || e.Codes == 0 || e.Predicted["disk"] != 0 {
		t.Errorf("%+v, %v", e, err)
	}
	q.Plan = db.PlanAuto
	if e, _, err = c.Explain(ctx, q, -1); err != nil || e.Plan != "scan" || e.Predicted["scan"] == 0 {
		t.Errorf("%+v, %v", e, err)
	}
}
