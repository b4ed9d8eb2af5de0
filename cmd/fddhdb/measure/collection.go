package measure

import (
	"context"
	"errors"
	"math"
	"strings"
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

func (t collectionTarget) Encode(ctx context.Context, q db.Query) ([]byte, []float64, error) {
	if q.Code != nil {
		return q.Code, nil, nil
	}
	return t.c.EncodeQuery(ctx, q)
}

func (t collectionTarget) Item(ctx context.Context, key string) (*db.Item, error) {
	return t.c.Get(ctx, key)
}

func (t collectionTarget) Projections(ctx context.Context, f func(key string, z []float64) error) error {
	for it, err := range t.c.Items(ctx) {
		if err != nil {
			return err
		}
		var vectors []db.Query
		for name, x := range it.Vectors {
			vectors = append(vectors, db.Query{From: name, Vector: x})
		}
		for name, x := range it.Sparse {
			vectors = append(vectors, db.Query{From: name, Sparse: &x})
		}
		var sum []float64
		for _, q := range vectors {
			_, z, err := t.c.EncodeQuery(ctx, q)
			if errors.Is(err, db.ErrNoModel) {
				continue // the modality came after the training
			}
			if err != nil {
				return err
			}
			if sum == nil {
				sum = make([]float64, len(z))
			}
			for j, x := range z {
				sum[j] += x
			}
		}
		if sum != nil {
			if err := f(it.Key, sum); err != nil {
				return err
			}
		}
	}
	return nil
}

// tierPlans are the plans of the names of --tier.
var tierPlans = map[string]db.Plan{
	"auto": db.PlanAuto, "scan": db.PlanScan, "memory": db.PlanMemory,
	"disk": db.PlanDisk, "blockscan": db.PlanBlockScan,
}

func (t collectionTarget) Explain(ctx context.Context, q db.Query) (*db.Explain, *db.Result, error) {
	return t.c.Explain(ctx, q, -1)
}

func (t collectionTarget) Items(ctx context.Context, q db.Query) (int, error) {
	q.K, q.Recall = 1, exact
	x, _, err := t.c.Explain(ctx, q, -1)
	if err != nil {
		return 0, err
	}
	var all []string
	for _, name := range x.Modalities {
		all = append(all, has(name))
	}
	all = []string{"(" + strings.Join(all, " OR ") + ")"}
	if q.To != "" {
		all = append(all, has(q.To))
	}
	if q.Where != "" {
		all = append(all, "("+q.Where+")")
	}
	return t.c.CountWhere(ctx, strings.Join(all, " AND "))
}

// has is the expression that is true of items that have a modality.
func has(name string) string { return `has("` + strings.ReplaceAll(name, `"`, `""`) + `")` }

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
	case "knn", "next":
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

func (t collectionTier) Search(ctx context.Context, q db.Query) (*db.Result, error) {
	q.Plan = t.plan
	return t.c.Search(ctx, q)
}

func (t collectionTier) Radius(ctx context.Context, q db.Query, r int) (Runs, error) {
	q.Plan = t.plan
	return t.c.SearchRadius(ctx, q, r)
}

func (t collectionTier) Count(ctx context.Context, q db.Query, r int) (int, error) {
	q.Plan = t.plan
	return t.c.CountRadius(ctx, q, r)
}
