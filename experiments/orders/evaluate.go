package orders

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/experiments/sets"
)

// These are the cases.
const (
	labelled   = "labelled"
	unlabelled = "unlabelled"
	mixed      = "mixed"
)

var cases = []string{labelled, unlabelled, mixed}

// orders are the compared orders.
var orders = []db.Rerank{db.RerankNone, db.RerankProjection, db.RerankAsymmetric, db.RerankAuto}

// A pair is the result of one direction in one database.
type pair struct {
	from, to        string
	searched, codes int // numbers of searched items and of distinct codes
	by              map[db.Rerank]*figures
}

// figures are the figures of one order.
type figures struct {
	ap, p10, p50 float64
	itself       float64 // mean reciprocal rank of an item, asked for by its own vector; see known
	micros       float64
}

// evaluate makes the database of the case of and measures all directions.
func evaluate(ctx context.Context, s *sets.Set, of string, seed uint64, bits,
	most int) (pairs []*pair, err error) {
	err = sets.WithDatabase(nil, func(d *db.DB) error {
		pairs, err = evaluateIn(ctx, d, s, of, seed, bits, most)
		return err
	})
	return pairs, err
}

func evaluateIn(ctx context.Context, d *db.DB, s *sets.Set, of string, seed uint64, bits,
	most int) (pairs []*pair, err error) {
	items, queries := s.Split(seed, most)
	c, err := build(ctx, s, d, items, of != labelled, db.TrainOptions{Options: fit.Options{
		Bits: max(bits, (s.LabelCount()+7)/8*8), Seed: seed,
	}})
	if err != nil {
		return nil, err
	}
	stats, err := c.Stats(ctx)
	if err != nil {
		return nil, err
	}
	where := ""
	if of == unlabelled {
		where = "new = true"
	}
	searched, err := c.Count(ctx, where)
	if err != nil {
		return nil, err
	}
	for from, name := range s.Modalities {
		for to, target := range s.Modalities {
			if from == to {
				continue
			}
			p := &pair{from: name, to: target, searched: int(searched), codes: stats.DistinctCodes,
				by: map[db.Rerank]*figures{}}
			query := db.Query{From: name, To: target, Where: where}
			for _, order := range orders {
				query.Rerank = order
				if p.by[order], err = quality(ctx, c, query, queries.Vectors[from], queries.Labels,
					items.Labels, int(searched)); err != nil {
					return nil, err
				}
			}
			if err := known(ctx, c, query, items.Vectors[from], p); err != nil {
				return nil, err
			}
			if err := times(ctx, c, query, queries.Vectors[from], p); err != nil {
				return nil, err
			}
			pairs = append(pairs, p)
		}
	}
	return pairs, nil
}

// build stores the items, with their numbers as keys, and trains. It trains on all of
// them, or with half on the first half, before the others come without labels.
func build(ctx context.Context, s *sets.Set, d *db.DB, items *sets.Part, half bool,
	opt db.TrainOptions) (*db.Collection, error) {
	schema := s.Schema()
	schema.Fields = []db.Field{{Name: "new", Type: db.Bool, Indexed: true}}
	c, err := d.CreateCollection(ctx, "main", schema)
	if err != nil {
		return nil, err
	}
	put := func(from, to int, known bool) error {
		var list []*db.Item
		for i := from; i < to; i++ {
			it := s.Item(items, i)
			if known {
				it.Labels = items.Labels[i]
			} else {
				it.Fields = map[string]any{"new": true}
			}
			list = append(list, it)
		}
		return sets.Put(ctx, d, c, list)
	}
	n := len(items.Labels)
	seen := n
	if half {
		seen = n / 2
	}
	if err := put(0, seen, true); err != nil {
		return nil, err
	}
	if _, err := c.Train(ctx, opt); err != nil {
		return nil, err
	}
	return c, put(seen, n, false)
}

// quality searches for every query.
func quality(ctx context.Context, c *db.Collection, q db.Query, vectors [][]float32, wanted,
	labels [][]string, items int) (*figures, error) {
	q.K = items
	f := &figures{}
	const run = 64 // queries at once: answers are large
	for from := 0; from < len(vectors); from += run {
		to := min(from+run, len(vectors))
		var queries []db.Query
		for _, x := range vectors[from:to] {
			q.Vector = x
			queries = append(queries, q)
		}
		results, err := c.SearchAll(ctx, queries)
		if err != nil {
			return nil, err
		}
		for i, r := range results {
			relevant := make([]bool, len(r.Hits))
			for rank, h := range r.Hits {
				item, err := strconv.Atoi(h.Key)
				if err != nil {
					return nil, err
				}
				relevant[rank] = slices.ContainsFunc(labels[item],
					func(l string) bool { return slices.Contains(wanted[from+i], l) })
			}
			ap, p10, p50 := judge(relevant)
			f.ap += ap / float64(len(vectors))
			f.p10 += p10 / float64(len(vectors))
			f.p50 += p50 / float64(len(vectors))
		}
	}
	return f, nil
}

// judge returns the average precision of an answer, and the precision of its first 10
// and of its first 50. relevant says of each hit whether it is relevant.
func judge(relevant []bool) (ap, p10, p50 float64) {
	found := 0
	for i, r := range relevant {
		if !r {
			continue
		}
		found++
		ap += float64(found) / float64(i+1)
		if i < 10 {
			p10 += .1
		}
		if i < 50 {
			p50 += .02
		}
	}
	return ap / float64(max(found, 1)), p10, p50
}

// known searches for items, at most 100, evenly from those that are searched, by their own vectors,
// and sets the mean of 1/rank, where an item behind the first 200 counts nothing.
func known(ctx context.Context, c *db.Collection, q db.Query, vectors [][]float32, p *pair) error {
	const most, deepest = 100, 200
	first := len(vectors) - p.searched // what is searched came last
	n := min(most, p.searched)
	for i := range n {
		row := first + i*p.searched/n
		for _, order := range orders {
			q.Vector, q.Rerank, q.K = vectors[row], order, deepest
			r, err := c.Search(ctx, q)
			if err != nil {
				return err
			}
			if rank := slices.IndexFunc(r.Hits,
				func(h db.Hit) bool { return h.Key == strconv.Itoa(row) }); rank >= 0 {
				p.by[order].itself += 1 / float64(rank+1) / float64(n)
			}
		}
	}
	return nil
}

// times measures searches for 10. The orders take turns, so that other work of the
// machine affects all of them.
func times(ctx context.Context, c *db.Collection, q db.Query, vectors [][]float32, p *pair) error {
	taken := map[db.Rerank][]float64{}
	for i, x := range vectors[:min(200, len(vectors))] {
		for _, order := range orders {
			q.Vector, q.Rerank, q.K = x, order, 10
			start := time.Now()
			if _, err := c.Search(ctx, q); err != nil {
				return err
			}
			if i >= 10 || len(vectors) < 20 { // the first ones warm the caches
				taken[order] = append(taken[order], float64(time.Since(start).Nanoseconds())/1000)
			}
		}
	}
	for order, t := range taken {
		p.by[order].micros = common.Median(t)
	}
	return nil
}
