package command

import (
	"context"
	"math"
	"time"

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

func (t collectionTier) parts(ctx context.Context, q *benchQuery, op benchOp) (benchParts, error) {
	ask, radius := q.Query, op.n
	ask.Plan = t.plan
	switch op.op {
	case "knn":
		ask.K, radius = op.n, -1
	case "radius":
		ask.K = 1 // which is not counted
	case "hits":
		ask.K = firstHits
	case "count":
		return t.countParts(ctx, q, op.n)
	}
	x, _, err := t.c.Explain(ctx, ask, radius)
	if err != nil {
		return benchParts{}, err
	}
	parts := benchParts{encode: duration(x.EncodeUS), find: duration(x.SearchUS)}
	if op.op != "radius" {
		parts.order, parts.keys = duration(x.ResolveUS-x.KeysUS), duration(x.KeysUS)
	}
	return parts, nil
}

// countParts counts by the code that a query is encoded to.
func (t collectionTier) countParts(ctx context.Context, q *benchQuery, radius int) (parts benchParts, err error) {
	if q.Code == nil {
		start := time.Now()
		if _, _, err := t.c.EncodeQuery(q.Query); err != nil {
			return parts, err
		}
		parts.encode = time.Since(start)
	}
	start := time.Now()
	_, err = t.c.CountRadius(ctx, db.Query{Code: q.code, To: q.To, Plan: t.plan}, radius)
	parts.find = time.Since(start)
	return parts, err
}

func duration(us float64) time.Duration { return time.Duration(math.Round(us * 1000)) }

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
