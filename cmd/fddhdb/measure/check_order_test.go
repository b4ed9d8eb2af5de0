package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
)

// A knownTarget has items of known projections and vectors.
type knownTarget struct {
	Target
	keys    []string
	z       [][]float64
	vectors [][]float32
}

func (k *knownTarget) Projections(_ context.Context, f func(string, []float64) error) error {
	var errs error
	for i, z := range k.z {
		if z != nil {
			errs = errors.Join(errs, f(k.keys[i], z))
		}
	}
	return errs
}

func (k *knownTarget) Item(_ context.Context, key string) (*db.Item, error) {
	it := &db.Item{Key: key}
	if x := k.vectors[slices.Index(k.keys, key)]; x != nil {
		it.Vectors = map[string][]float32{"image": x}
	}
	return it, nil
}

// knownOrder returns an oracle that has a query, and all items in the order of projections.
//
// Codes have eight bits. The query and the items a, b, c and d have the code 11111111. Item e lacks
// bit 6, item f lacks bit 7, and item g lacks both.
func knownOrder(t *testing.T) (o *checkOrder, hits []db.Hit) {
	t.Helper()
	q := &Query{Query: db.Query{From: "image", Vector: []float32{0, 0}}, Encoded: []byte{0xff}, Projection: []float64{1, 1, 1, 1, 1, 1, .5, .1}}
	scan := newCheckScan(8)
	target := &knownTarget{}
	for i, code := range []byte{0xff, 0xff, 0xff, 0xff, 0xbf, 0x7f, 0x3f} {
		key := string(rune('a' + i))
		scan.add(uint32(2*i), key, []byte{code})
		target.keys = append(target.keys, key)
		target.vectors = append(target.vectors, []float32{float32(3 - i), 0})
		// Items a, c, e and g have the projection of the query. Items b and f differ from it in the first
		// dimension, and so have a smaller cosine. Item d has no projection, see below.
		z := slices.Clone(q.Projection)
		z[0] += math.Tan(float64(i%2)) * 2
		target.z = append(target.z, z)
	}
	target.z[3] = nil // d has no features
	target.vectors[3] = nil
	o, err := newCheckOrder(t.Context(), target, scan)
	if err != nil {
		t.Fatal(err)
	}
	scan.scan(q.Encoded)
	o.scan(q)
	for _, at := range []int{0, 2, 1, 3, 5, 4, 6} {
		hits = append(hits, db.Hit{
			Key: o.keys[at], Row: o.rows[at], Distance: o.distances[at],
			Score: o.scores[o.groupOf[at]], Similarity: float32(o.similarity(at)),
		})
	}
	return o, hits
}

// Every kind of wrong order is found, and no right one.
func TestCheckOrder(t *testing.T) {
	o, all := knownOrder(t)
	if all[0].Similarity < .999 || all[2].Similarity > .9 || all[3].Similarity != 0 || math.Abs(all[4].Score-6.4) > 1e-9 {
		t.Fatalf("the example is another one: %+v", all)
	}
	for _, c := range []struct {
		name   string
		n      int
		change func(hits []db.Hit) []db.Hit
		want   string // part of the error; "" if the answer is right
	}{
		{"right", 7, nil, ""},
		{"right and short", 2, nil, ""},
		{"none", 0, nil, ""},
		{"too few", 3, func(h []db.Hit) []db.Hit { return h[:2] }, "there are 2 hits, want 3"},
		{"twice", 2, func(h []db.Hit) []db.Hit { h[1] = h[0]; return h }, "row 0 comes twice"},
		{"foreign", 1, func(h []db.Hit) []db.Hit { h[0].Row = 1; return h }, "row 1 is no item"},
		{"key", 1, func(h []db.Hit) []db.Hit { h[0].Key = "x"; return h }, `row 0 has key "a", not "x"`},
		{"distance", 1, func(h []db.Hit) []db.Hit { h[0].Distance = 1; return h }, "row 0 is 0 bits away, not 1"},
		{"score", 1, func(h []db.Hit) []db.Hit { h[0].Score += .001; return h }, "row 0 has score"},
		{"no score", 1, func(h []db.Hit) []db.Hit { h[0].Score = math.NaN(); return h }, "row 0 has score"},
		{"similarity", 1, func(h []db.Hit) []db.Hit { h[0].Similarity -= .001; return h }, "row 0 has similarity 1.0000, not 0.999"},
		{"no similarity", 1, func(h []db.Hit) []db.Hit { h[0].Similarity = float32(math.NaN()); return h }, "row 0 has similarity"},
		{"rounded similarity", 7, func(h []db.Hit) []db.Hit { h[0].Similarity -= 3e-5; h[1].Similarity -= 4e-5; return h }, ""},
		{"rounded, and in the wrong order", 7, func(h []db.Hit) []db.Hit { h[0].Similarity -= 4e-5; h[1].Similarity -= 3e-5; return h }, "row 0 of similarity 0.9999"},
		{"rows", 7, func(h []db.Hit) []db.Hit { h[0], h[1] = h[1], h[0]; return h }, "row 4 of similarity 0.9999984 comes before row 0"},
		{"left out", 2, func(h []db.Hit) []db.Hit { h[1] = all[2]; return h }, "row 4 of similarity 1.0000 is not there, and row 2"},
		{"a part of a code", 4, func(h []db.Hit) []db.Hit { h[3] = all[4]; return h }, "3 of the 4 items of the code of row 0 are there, and then others"},
		{"codes", 7, func(h []db.Hit) []db.Hit { h[4], h[5] = h[5], h[4]; return h }, "row 10 comes after row 8, whose code is worse"},
		{"code left out", 5, func(h []db.Hit) []db.Hit { h[4] = all[5]; return h }, "row 10 is not there, whose code is better than that of row 8"},
	} {
		hits := slices.Clone(all[:c.n])
		if c.change != nil {
			hits = c.change(hits)
		}
		for _, by := range []db.Rerank{db.RerankProjection, db.RerankAsymmetric} {
			if got, err := o.wrong(t.Context(), hits, c.n, -1, by); err != nil || (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("%s, %v: %q, want %q", c.name, by, got, c.want)
			}
		}
	}
	// What lies outside of a radius is not missing.
	if got, err := o.wrong(t.Context(), all[:6], 6, 1, db.RerankProjection); err != nil || got != "" {
		t.Error(got)
	}
	// By rows, and with nothing compared.
	byRow := []db.Hit{all[0], all[2], all[1]}
	if got, err := o.wrong(t.Context(), byRow, 3, -1, db.RerankNone); err != nil || !strings.Contains(got, "nothing was compared") {
		t.Errorf("%q", got)
	}
	for i := range byRow {
		byRow[i].Similarity = float32(math.NaN())
	}
	if got, err := o.wrong(t.Context(), byRow, 3, -1, db.RerankNone); err != nil || got != "" {
		t.Error(got)
	}
	if got, err := o.wrong(t.Context(), []db.Hit{byRow[0], byRow[2]}, 2, -1, db.RerankNone); err != nil || !strings.Contains(got, "row 4 comes before row 2, which is older") {
		t.Errorf("%q", got)
	}
}

func TestCheckFeatures(t *testing.T) {
	o, base := knownOrder(t)
	// By the squared distances: a 9, c 1, b 4, d has no vector; f 4 is behind the window.
	rank := func(hits ...db.Hit) []db.Hit {
		for i := range hits {
			hits[i].Similarity = map[string]float32{"a": .1, "b": .2, "c": .5}[hits[i].Key]
			if i >= 4 {
				hits[i].Similarity = float32(math.NaN())
			}
		}
		return hits
	}
	a, c, b, d, f := base[0], base[1], base[2], base[3], base[4]
	for _, x := range []struct {
		hits []db.Hit
		want string
	}{
		{rank(c, b, a, d, f), ""},
		{rank(c, b), ""},
		{rank(b, c, a, d), "row 2 comes where row 4 should, which is nearer"},
		{rank(c, b, d, a), "row 6 comes where row 0 should"},
		{rank(c, f), "row 10 is not among the first 4"},
		{rank(c, b, a, d, base[6]), "row 12 of similarity NaN is behind the window, where row 10 follows"},
		{[]db.Hit{c}, "row 4 has similarity 0.5, not 0.999"},
	} {
		got, err := o.wrongFeatures(t.Context(), x.hits, base, 4)
		if err != nil || (x.want == "") != (got == "") || !strings.Contains(got, x.want) {
			t.Errorf("%s: %q, want %q, %v", fmt.Sprint(x.hits), got, x.want, err)
		}
	}
}
