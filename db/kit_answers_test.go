package db

import (
	"iter"
)

var allPlans = []Plan{PlanAuto, PlanMemory, PlanScan, PlanFilter, PlanDisk, PlanBlockScan}

// firstWithin returns the first q.K items within a radius.
func firstWithin(c *Collection, q Query, radius int) (*Result, error) {
	runs, err := c.SearchRadius(ctx, q, radius)
	if err != nil {
		return nil, err
	}
	defer runs.Close()
	return runs.First(ctx, q.K)
}

func collect(seq iter.Seq2[Hit, error]) ([]Hit, error) {
	var hits []Hit
	for h, err := range seq {
		if err != nil {
			return hits, err
		}
		hits = append(hits, h)
	}
	return hits, nil
}
