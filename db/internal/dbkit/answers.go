package dbkit

import (
	"context"
	"iter"

	"github.com/fddhdb/fddhdb/db"
)

// AllPlans are the plans of a search; all have the same answer.
var AllPlans = []db.Plan{db.PlanAuto, db.PlanMemory, db.PlanScan, db.PlanFilter, db.PlanDisk, db.PlanBlockScan}

// FirstWithin returns the first q.K items within a radius.
func FirstWithin(c *db.Collection, q db.Query, radius int) (*db.Result, error) {
	runs, err := c.SearchRadius(ctx, q, radius)
	if err != nil {
		return nil, err
	}
	defer runs.Close()
	return runs.First(ctx, q.K)
}

// CountWithin returns how many items are within radius bits of a query.
func CountWithin(c *db.Collection, q db.Query, radius int) (int, error) {
	runs, err := c.SearchRadius(context.Background(), q, radius)
	if err != nil {
		return 0, err
	}
	return runs.Total(), runs.Close()
}

// Collect returns all hits of a sequence.
func Collect(seq iter.Seq2[db.Hit, error]) ([]db.Hit, error) {
	var hits []db.Hit
	for h, err := range seq {
		if err != nil {
			return hits, err
		}
		hits = append(hits, h)
	}
	return hits, nil
}
