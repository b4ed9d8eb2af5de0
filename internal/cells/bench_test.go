package cells

import (
	"context"
	"testing"

	"github.com/fddhdb/fddhdb/internal/synth"
)

// BenchmarkEncode measures what an index does for a vector: its coordinates, the nearest of 2,000
// centres, and the code.
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
	c, err := Train(context.Background(), g, placed, 2000, 2, 2)
	if err != nil {
		b.Fatal(err)
	}
	q := c.NewQuery()
	q.Set(placed[0])
	cell := c.Nearest(q)
	for _, part := range []struct {
		name string
		f    func(i int)
	}{
		{"place", func(i int) { g.Place(placed[i], x[i]) }},
		{"set", func(i int) { q.Set(placed[i]) }},
		{"set and nearest", func(i int) { q.Set(placed[i]); c.Nearest(q) }},
		{"encode", func(i int) {
			var entry Entry
			c.Encode(&entry, placed[i], cell)
		}},
	} {
		b.Run(part.name, func(b *testing.B) {
			for i := 0; b.Loop(); i = (i + 1) % n {
				part.f(i)
			}
		})
	}
}
