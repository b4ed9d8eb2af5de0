package command

import (
	"context"

	"github.com/fddhdb/fddhdb/db"
)

// newBenchTarget lets bench measure a collection.
func newBenchTarget(d *db.DB, c *db.Collection, to string) benchTarget {
	return collectionTarget{d, c, to}
}

type collectionTarget struct {
	d  *db.DB
	c  *db.Collection
	to string
}

func (t collectionTarget) settle(ctx context.Context) error { return t.d.WaitForIndex(ctx) }

func (t collectionTarget) each(ctx context.Context, f func(row uint32, key string, code []byte) error) error {
	for x, err := range t.c.Codes(ctx, t.to) {
		if err == nil {
			err = f(x.Row, x.Key, x.Code)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t collectionTarget) code(_ context.Context, q db.Query) ([]byte, error) {
	if q.Code != nil {
		return q.Code, nil
	}
	code, _, err := t.c.EncodeQuery(q)
	return code, err
}

// benchPlans are the plans behind the names of --tier.
var benchPlans = map[string]db.Plan{
	"auto": db.PlanAuto, "scan": db.PlanScan, "memory": db.PlanMemory,
	"disk": db.PlanDisk, "blockscan": db.PlanBlockScan,
}

func (t collectionTarget) tier(name string) benchTier { return collectionTier{t.c, benchPlans[name]} }

// collectionTier searches a collection by one plan.
type collectionTier struct {
	c    *db.Collection
	plan db.Plan
}

func (t collectionTier) search(ctx context.Context, q db.Query) ([]db.Hit, error) {
	q.Plan = t.plan
	r, err := t.c.Search(ctx, q)
	if err != nil {
		return nil, err
	}
	return r.Hits, nil
}

func (t collectionTier) radius(ctx context.Context, q db.Query, r int) (benchRuns, error) {
	q.Plan = t.plan
	return t.c.SearchRadius(ctx, q, r)
}

func (t collectionTier) count(ctx context.Context, q db.Query, r int) (int, error) {
	q.Plan = t.plan
	return t.c.CountRadius(ctx, q, r)
}
