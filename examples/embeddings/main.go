package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/fddhdb/fddhdb/db"
)

const (
	dims    = 128
	topics  = 500
	queries = 200
)

func main() { run(os.Stdout, 20_000) }

// run stores items, asks them queries, and says what it found. It returns the recall of the index.
func run(w io.Writer, items int) float64 {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "fddhdb-embeddings-")
	check(err)
	defer os.RemoveAll(dir)
	d, err := db.Open(dir, nil)
	check(err)
	defer d.Close()
	c, err := d.CreateCollection(ctx, "notes", db.Schema{
		Modalities: []db.Modality{{Name: "e", Dim: dims}},
		Fields:     []db.Field{{Name: "year", Type: db.Int, Indexed: true}},
	})
	check(err)

	encoder := newEncoder(1)
	b := d.NewBatch()
	for i := range items {
		check(b.Put(c, &db.Item{
			Key: fmt.Sprint("note ", i), Fields: map[string]any{"year": 2000 + i%25},
			Vectors: map[string][]float32{"e": encoder.encode()},
		}))
	}
	check(b.Commit(ctx))

	// Nothing has to be trained.
	asked := make([][]float32, queries)
	for i := range asked {
		asked[i] = encoder.encode()
	}
	exact, took := answers(ctx, c, asked, db.Query{From: "e"})
	fmt.Fprintf(w, "all vectors compared: %v a query\n", took)

	x, err := c.IndexVectors(ctx, db.IndexOptions{Recall: .95})
	check(err)
	fmt.Fprintf(w, "%d vectors indexed in %d cells\n", x.Entries, x.Cells)
	found, took := answers(ctx, c, asked, db.Query{From: "e"})
	share := recall(exact, found)
	fmt.Fprintf(w, "by the index: %v a query, %.0f%% of the ten nearest found\n", took, 100*share)

	// The filter holds, and there are ten hits wherever so many match it.
	r, err := c.Search(ctx, db.Query{From: "e", Vector: asked[0], K: 10, Where: "year >= 2020"})
	check(err)
	fmt.Fprintf(w, "since 2020: %d notes, the nearest is %s\n", len(r.Hits), r.Hits[0].Key)

	// A note that is stored twice, with a few numbers changed, is found as a near-duplicate.
	note, err := c.Get(ctx, "note 1234")
	check(err)
	copied := slices.Clone(note.Vectors["e"])
	for i := range 5 {
		copied[i] *= .9
	}
	_, err = c.Put(ctx, &db.Item{Key: "note 1234, copied", Vectors: map[string][]float32{"e": copied}})
	check(err)
	r, err = c.Search(ctx, db.Query{From: "e", Key: "note 1234", ExcludeSelf: true, MinSimilarity: .99})
	check(err)
	for _, h := range r.Hits {
		fmt.Fprintf(w, "nearly the same as note 1234: %s\n", h.Key)
	}
	return share
}

// answers returns the hits of queries, and the time that each has taken in the median. The first is
// asked before, as vectors come into memory when they are first compared.
func answers(ctx context.Context, c *db.Collection, asked [][]float32,
	q db.Query) (all [][]db.Hit, median time.Duration) {
	q.Vector = asked[0]
	_, err := c.Search(ctx, q)
	check(err)
	var times []time.Duration
	for _, q.Vector = range asked {
		start := time.Now()
		r, err := c.Search(ctx, q)
		check(err)
		times = append(times, time.Since(start))
		all = append(all, r.Hits)
	}
	slices.Sort(times)
	return all, times[len(times)/2].Round(time.Microsecond)
}

// recall returns the part of exact answers that others have.
func recall(exact, found [][]db.Hit) float64 {
	n, of := 0, 0
	for i, hits := range exact {
		for _, h := range hits {
			of++
			if slices.ContainsFunc(found[i], func(o db.Hit) bool { return o.Row == h.Row }) {
				n++
			}
		}
	}
	return float64(n) / float64(of)
}

// An encoder stands for one that makes vectors of texts.
type encoder struct {
	*rand.Rand
	centres [][]float64
	spread  [][]float64 // by topic: how far its texts differ in each dimension
	sizes   *rand.Zipf
	offset  []float64
}

func newEncoder(seed uint64) *encoder {
	e := &encoder{Rand: rand.New(rand.NewPCG(seed, 0))}
	e.sizes = rand.NewZipf(e.Rand, 1.1, 5, topics-1)
	e.offset = e.draw(.5)
	for range topics {
		e.centres = append(e.centres, e.draw(1))
		spread := make([]float64, dims)
		for i, at := range e.Perm(dims) {
			spread[at] = 1.5 / math.Sqrt(1+float64(i)/8) // much in a few dimensions, little in most
		}
		e.spread = append(e.spread, spread)
	}
	return e
}

func (e *encoder) draw(scale float64) []float64 {
	x := make([]float64, dims)
	for i := range x {
		x[i] = scale * e.NormFloat64()
	}
	return x
}

// encode returns the vector of another text, of length 1.
func (e *encoder) encode() []float32 {
	topic := e.sizes.Uint64()
	x, sum := e.draw(1), 0.0
	for i := range x {
		x[i] = x[i]*e.spread[topic][i] + e.centres[topic][i] + e.offset[i]
		sum += x[i] * x[i]
	}
	out := make([]float32, dims)
	for i := range x {
		out[i] = float32(x[i] / math.Sqrt(sum))
	}
	return out
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
