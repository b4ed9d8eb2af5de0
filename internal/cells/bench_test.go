package cells

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/internal/synth"
)

// BenchmarkEncode measures what an index does for a vector, but for BenchmarkNearest.
func BenchmarkEncode(b *testing.B) {
	const n, d = 4096, 384
	e, err := synth.NewEmbeddingSource(synth.EmbeddingSets()[0], d, 1)
	if err != nil {
		b.Fatal(err)
	}
	g := NewGeometry(Cosine, d, 1)
	x, placed := make([][]float32, n), make([][]float32, n)
	parallel(n, func(i int) {
		x[i], placed[i] = e.Vector(i), make([]float32, g.Size())
		g.Place(placed[i], x[i])
	})
	c := around(g, placed[:1])
	q := c.NewQuery()
	var entry Entry
	for _, part := range []struct {
		name string
		f    func(i int)
	}{
		{"place", func(i int) { g.Place(placed[i], x[i]) }},
		{"set", func(i int) { q.Set(placed[i]) }},
		{"encode", func(i int) { c.Encode(&entry, placed[i], 0) }},
	} {
		b.Run(part.name, func(b *testing.B) {
			for i := 0; b.Loop(); i = (i + 1) % n {
				part.f(i)
			}
		})
	}
}

// Nearest, with the query that it takes: what an index costs a vector, besides its entry.
func BenchmarkNearest(b *testing.B) {
	const d, count = 384, 2000
	for _, set := range synth.EmbeddingSets() {
		e, err := synth.NewEmbeddingSource(set, d, 1)
		if err != nil {
			b.Fatal(err)
		}
		g := NewGeometry(Cosine, d, 1)
		sample := make([][]float32, 10*count)
		parallel(len(sample), func(i int) {
			sample[i] = make([]float32, g.Size())
			g.Place(sample[i],
				e.Vector(i))
		})
		c, err := Train(b.Context(), g, sample, count, 2, 2)
		if err != nil {
			b.Fatal(err)
		}
		for _, k := range sets {
			b.Run(fmt.Sprintf("%s/%v", set, k), func(b *testing.B) {
				use(b, k)
				q := g.NewQuery()
				i := 0
				for b.Loop() {
					q.Set(sample[i%len(sample)])
					c.Nearest(q)
					i++
				}
			})
		}
	}
}

// Pages as a table has them: a few, which stay in the caches, and more than fit there.
func BenchmarkScan(b *testing.B) {
	const pages = 8192
	r := rand.New(rand.NewPCG(1, 2))
	for _, d := range []int{128, 384, 768, 1536} {
		g := NewGeometry(L2, d, 1)
		x := make([]float32, g.Size())
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		all := make([]byte, pages*pageGroups*groupBytes(d))
		for group := range slices.Chunk(all, groupBytes(d)) {
			for i := range d { // the numbers behind are 0
				group[i] = byte(r.Uint32())
			}
		}
		for _, k := range sets {
			for _, n := range []int{4, pages} {
				b.Run(fmt.Sprintf("%d/%dpages/%v", d, n, k), func(b *testing.B) {
					use(b, k)
					q := g.NewQuery()
					q.Set(x)
					s := q.scaleFor(d, 3, 2, 0)
					found, hits := q.room(pageLanes)
					page := func(i int) []byte { return all[i*7919%n*pageGroups*groupBytes(d):] }
					i := 0
					for b.Loop() {
						groups := page(i)
						i++
						q.scan(found, hits, groups, &s, page(i))
					}
					b.ReportMetric(float64(b.Elapsed())/float64(b.N)/pageLanes, "ns/code")
				})
			}
		}
	}
}
