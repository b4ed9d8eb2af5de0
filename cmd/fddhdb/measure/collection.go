package measure

import (
	"context"
	"math"
	"time"

	"github.com/fddhdb/fddhdb/db"
)

// OfCollection returns a target that searches a collection for a target modality.
func OfCollection(d *db.DB, c *db.Collection, to string) Target {
	return collectionTarget{d, c, to}
}

// A collectionTarget is a collection, with the target modality of its searches.
type collectionTarget struct {
	d  *db.DB
	c  *db.Collection
	to string
}

func (t collectionTarget) Settle(ctx context.Context) error { return t.d.WaitForIndex(ctx) }

func (t collectionTarget) Each(ctx context.Context, f func(row uint32, key string, code []byte) error) error {
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

func (t collectionTarget) Code(ctx context.Context, q db.Query) ([]byte, error) {
	if q.Code != nil {
		return q.Code, nil
	}
	code, _, err := t.c.EncodeQuery(ctx, q)
	return code, err
}

// tierPlans are the plans of the names of --tier.
var tierPlans = map[string]db.Plan{
	"auto": db.PlanAuto, "scan": db.PlanScan, "memory": db.PlanMemory,
	"disk": db.PlanDisk, "blockscan": db.PlanBlockScan,
}

func (t collectionTarget) Tier(name string) Tier { return collectionTier{t.c, tierPlans[name]} }

// collectionTier searches a collection by one plan.
type collectionTier struct {
	c    *db.Collection
	plan db.Plan
}

func (t collectionTier) Parts(ctx context.Context, q *Query, op Op) (Parts, error) {
	ask, radius := q.Query, op.N
	ask.Plan = t.plan
	switch op.Kind {
	case "knn":
		ask.K, radius = op.N, -1
	case "radius":
		ask.K = 1 // not counted
	case "hits":
		ask.K = firstHits
	case "count":
		return t.countParts(ctx, q, op.N)
	}
	x, _, err := t.c.Explain(ctx, ask, radius)
	if err != nil {
		return Parts{}, err
	}
	parts := Parts{Encode: duration(x.EncodeUS), Find: duration(x.SearchUS)}
	if op.Kind != "radius" {
		parts.Order, parts.Keys = duration(x.ResolveUS-x.KeysUS), duration(x.KeysUS)
	}
	return parts, nil
}

// countParts counts by the code of a query.
func (t collectionTier) countParts(ctx context.Context, q *Query, radius int) (parts Parts, err error) {
	if q.Code == nil {
		start := time.Now()
		if _, _, err := t.c.EncodeQuery(ctx, q.Query); err != nil {
			return parts, err
		}
		parts.Encode = time.Since(start)
	}
	start := time.Now()
	_, err = t.c.CountRadius(ctx, db.Query{Code: q.Encoded, To: q.To, Plan: t.plan}, radius)
	parts.Find = time.Since(start)
	return parts, err
}

func duration(us float64) time.Duration { return time.Duration(math.Round(us * 1000)) }

func (t collectionTier) Search(ctx context.Context, q db.Query) ([]db.Hit, error) {
	q.Plan = t.plan
	r, err := t.c.Search(ctx, q)
	if err != nil {
		return nil, err
	}
	return r.Hits, nil
}

func (t collectionTier) Radius(ctx context.Context, q db.Query, r int) (Runs, error) {
	q.Plan = t.plan
	return t.c.SearchRadius(ctx, q, r)
}

func (t collectionTier) Count(ctx context.Context, q db.Query, r int) (int, error) {
	q.Plan = t.plan
	return t.c.CountRadius(ctx, q, r)
}
