package labels

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/experiments/sets"
	"github.com/fddhdb/fddhdb/model"
)

// A row has the figures of one space.
type row struct {
	share    string // of the items that have labels
	labelled int
	codes    string // method and bits
	figures  []figure
}

// A figure is one column of a row.
type figure struct {
	name  string
	value float64
}

// evaluate makes a database and measures it without labels, and with each share of them, in percent.
func evaluate(ctx context.Context, s *sets.Set, seed uint64, bits int,
	shares []int) (rows []*row, err error) {
	err = sets.WithDatabase(nil, func(d *db.DB) error {
		rows, err = evaluateIn(ctx, d, s, seed, bits, shares)
		return err
	})
	return rows, err
}

func evaluateIn(ctx context.Context, d *db.DB, s *sets.Set, seed uint64, bits int,
	shares []int) (rows []*row, err error) {
	items, queries := s.Split(seed, math.MaxInt)
	n := len(items.Labels)
	all := make([]*db.Item, n)
	for i := range all {
		all[i] = s.Item(items, i)
	}
	c, err := d.CreateCollection(ctx, "main", s.Schema())
	if err != nil {
		return nil, err
	}
	measured := func(share, labelled int, opt fit.Options) error {
		opt.Seed = seed
		t, err := c.Train(ctx, db.TrainOptions{Options: opt})
		if err != nil {
			return fmt.Errorf("%d %% labelled: %w", share, err)
		}
		in, err := c.InSpace(t.Space, 0)
		if err != nil {
			return err
		}
		r := &row{share: fmt.Sprintf("%d %%", share), labelled: labelled,
			codes: fmt.Sprintf("%v, %d bits", t.Method, t.Bits)}
		if r.figures, err = figures(ctx, in, s.Modalities, items, queries); err != nil {
			return err
		}
		rows = append(rows, r)
		if t.Active {
			return nil
		}
		return c.DropSpace(ctx, t.Space)
	}
	if err := sets.Put(ctx, d, c, all); err != nil {
		return nil, err
	}
	if err := measured(0, 0, fit.Options{Method: model.MethodCCAITQ}); err != nil {
		return nil, err
	}
	// Any order but that of rows: of items at one distance the oldest counts as the first.
	order := rand.New(rand.NewPCG(seed, 11)).Perm(n)
	for _, share := range shares {
		labelled := order[:(n*share+50)/100]
		var known []*db.Item
		for _, i := range labelled {
			all[i].Labels = items.Labels[i]
			known = append(known, all[i])
		}
		if err := sets.Put(ctx, d, c, known); err != nil {
			return nil, err
		}
		if err := measured(share, len(labelled),
			fit.Options{Bits: max(bits, (s.LabelCount()+7)/8*8)}); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// figures measures the queries in the space of c. A query that the space refuses, as it is far from
// all that was learned from, counts as one that finds nothing.
func figures(ctx context.Context, c *db.Collection, modalities []string, items,
	queries *sets.Part) ([]figure, error) {
	var across, same, near []figure
	for t, name := range modalities {
		var kept [][]float32
		var labels [][]string
		for i, x := range queries.Vectors[t] {
			if _, _, err := c.EncodeQuery(ctx, db.Query{From: name, Vector: x}); err == nil {
				kept, labels = append(kept, x), append(labels, queries.Labels[i])
			} else if !errors.Is(err, db.ErrInvalid) {
				return nil, err
			}
		}
		of := float64(len(kept)) / float64(len(queries.Labels))
		vectors := map[string][][]float32{name: kept}
		found, err := c.Evaluate(ctx, db.Evaluation{Queries: vectors, Labels: labels, Truth: items.Labels})
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			across = append(across, figure{"mAP " + r.From + " to " + r.To, of * r.Hamming.MAP})
		}
		m, err := within(ctx, c, name, kept, labels, items)
		if err != nil {
			return nil, err
		}
		same = append(same, figure{"mAP " + name + " to " + name, of * m})
		recall, err := neighbours(ctx, c, name, kept)
		if err != nil {
			return nil, err
		}
		near = append(near, figure{"neighbours, " + name, of * recall})
	}
	return slices.Concat(across, same, near), nil
}

// neighbours returns the mean share of the ten nearest by vectors that is among the first 100 by codes.
func neighbours(ctx context.Context, c *db.Collection, modality string, vectors [][]float32) (mean float64,
	err error) {
	for _, x := range vectors {
		q := db.Query{From: modality, To: modality, Vector: x, K: 10, Recall: 1}
		truth, err := c.Search(ctx, q)
		if err != nil {
			return 0, err
		}
		q.K, q.Recall, q.Rerank = 100, 0, db.RerankNone
		byCodes, err := c.Search(ctx, q)
		if err != nil {
			return 0, err
		}
		found := map[string]bool{}
		for _, h := range byCodes.Hits {
			found[h.Key] = true
		}
		for _, h := range truth.Hits {
			if found[h.Key] {
				mean += 1 / float64(len(truth.Hits)*len(vectors))
			}
		}
	}
	return mean, nil
}

// within returns the mAP of searches from a modality to itself: by vectors, where codes know no labels.
func within(ctx context.Context, c *db.Collection, modality string, vectors [][]float32, labels [][]string,
	items *sets.Part) (mean float64, err error) {
	const run = 64 // queries at once: answers are large
	stats, err := c.Stats(ctx)
	if err != nil {
		return 0, err
	}
	recall := 0.
	if stats.LabelFree {
		recall = 1
	}
	for from := 0; from < len(vectors); from += run {
		var list []db.Query
		for _, x := range vectors[from:min(from+run, len(vectors))] {
			list = append(list, db.Query{From: modality, To: modality, Vector: x, K: len(items.Labels),
				Recall: recall})
		}
		results, err := c.SearchAll(ctx, list)
		if err != nil {
			return 0, err
		}
		for i, r := range results {
			relevant := make([]bool, len(r.Hits))
			for rank, h := range r.Hits {
				item, err := strconv.Atoi(h.Key)
				if err != nil {
					return 0, err
				}
				relevant[rank] = slices.ContainsFunc(items.Labels[item],
					func(l string) bool { return slices.Contains(labels[from+i], l) })
			}
			mean += averagePrecision(relevant) / float64(len(vectors))
		}
	}
	return mean, nil
}

// averagePrecision returns the mean precision at the relevant items of an answer.
func averagePrecision(relevant []bool) float64 {
	found, sum := 0, 0.
	for i, r := range relevant {
		if r {
			found++
			sum += float64(found) / float64(i+1)
		}
	}
	return sum / float64(max(found, 1))
}
