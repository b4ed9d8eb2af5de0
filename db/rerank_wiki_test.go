package db

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/fddhdb/fddhdb/model"
)

// BenchmarkOrders measures the orders as a user gets them, on the wiki set: mean
// average precision of the whole answer and precision of the first 50, mean of three
// seeds; where all items are labelled, and over a half of them that came without
// labels after training on the other. Ask for one round.
func BenchmarkOrders(b *testing.B) {
	const seeds = 3
	defaults := func(bits int, seed uint64) TrainOptions {
		return TrainOptions{Options: model.Options{Bits: bits, Seed: seed}}
	}
	for name, settings := range map[string]func(int, uint64) TrainOptions{"authors": authorsSettings, "defaults": defaults} {
		for _, unlabelled := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/unlabelled=%v", name, unlabelled), func(b *testing.B) {
				for range b.N {
					sums := map[string]float64{}
					for seed := range uint64(seeds) {
						c, where := openHalves(b, seed, unlabelled, settings(64, seed))
						measureOrders(b, c, where, sums)
						mustClose(b, c.db)
					}
					for what, sum := range sums {
						b.ReportMetric(sum/seeds, what)
					}
				}
			})
		}
	}
}

// openHalves trains on the wiki set; if the second half is unlabelled, on the first,
// and where finds the second.
func openHalves(b *testing.B, seed uint64, unlabelled bool, opt TrainOptions) (c *Collection, where string) {
	vectors, labels := sharedSet(b, "wiki", "train")
	d := mustOpen(b, b.TempDir(), nil)
	c, err := d.CreateCollection(ctx, "main", Schema{
		Modalities: []Modality{{Name: "image", Dim: len(vectors["image"][0])}, {Name: "text", Dim: len(vectors["text"][0])}},
		Fields:     []Field{{"new", Bool, true}},
	})
	if err != nil {
		b.Fatal(err)
	}
	var items []*Item
	for _, i := range rand.New(rand.NewPCG(seed, 9)).Perm(len(labels)) {
		items = append(items, &Item{Key: strconv.Itoa(i), Labels: labels[i], Vectors: map[string][]float32{
			"image": vectors["image"][i], "text": vectors["text"][i],
		}})
	}
	if !unlabelled {
		putAll(b, c, items)
		mustTrain(b, c, opt)
		return c, ""
	}
	half := len(items) / 2
	putAll(b, c, items[:half])
	mustTrain(b, c, opt)
	for _, it := range items[half:] {
		it.Labels, it.Fields = nil, map[string]any{"new": true}
	}
	putAll(b, c, items[half:])
	return c, "new = true"
}

// measureOrders adds the figures of one seed.
func measureOrders(b *testing.B, c *Collection, where string, sums map[string]float64) {
	_, labels := sharedSet(b, "wiki", "train")
	vectors, queryLabels := sharedSet(b, "wiki", "query")
	for _, pair := range [][2]string{{"image", "text"}, {"text", "image"}} {
		for _, order := range []Rerank{RerankNone, RerankProjection, RerankAsymmetric} {
			var queries []Query
			for _, x := range vectors[pair[0]] {
				queries = append(queries, Query{From: pair[0], To: pair[1], Vector: x, Where: where, K: len(labels), Rerank: order})
			}
			results, err := c.SearchAll(ctx, queries)
			if err != nil {
				b.Fatal(err)
			}
			mean, first := 0.0, 0.0
			for i, r := range results {
				found, ap := 0, 0.0
				for rank, h := range r.Hits {
					n, err := strconv.Atoi(h.Key)
					if err != nil {
						b.Fatal(err)
					}
					if slices.ContainsFunc(labels[n], func(l string) bool { return slices.Contains(queryLabels[i], l) }) {
						found++
						ap += float64(found) / float64(rank+1)
					}
					if rank == 49 {
						first += float64(found) / 50
					}
				}
				mean += ap / float64(max(found, 1))
			}
			what := fmt.Sprintf("%s>%s/%v", pair[0], pair[1], order)
			sums["map/"+what] += mean / float64(len(results))
			sums["p50/"+what] += first / float64(len(results))
		}
	}
}
