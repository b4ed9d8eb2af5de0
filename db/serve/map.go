package serve

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/internal/rest"
)

// Bounds of a map.
const (
	maxDots    = 10_000  // items
	maxNumbers = 8 << 20 // of their vectors, in memory at a time
)

// registerMap adds the route that draws a map of items.
func registerMap(t *router) {
	on(t, "POST", ofCollection+":map", Read, "Place items in a plane, near what is like them",
		func(ctx context.Context, c api.Collection, _ *request, in *rest.MapQuery) (*rest.Map, error) {
			if in.Limit == 0 {
				in.Limit = maxDots
			}
			if in.Limit < 1 || in.Limit > maxDots {
				return nil, fault.Invalid("limit: %d items: 1 to %d are possible", in.Limit, maxDots)
			}
			return drawMap(ctx, c, in)
		}, inSpace...)
}

// drawMap places a sample of items by the two principal components of their codes or vectors.
func drawMap(ctx context.Context, c api.Collection, in *rest.MapQuery) (*rest.Map, error) {
	by, dim, cosine, err := basisOf(ctx, c, in.By)
	if err != nil {
		return nil, err
	}
	total, err := c.Count(ctx, in.Where, in.Args...)
	if err != nil {
		return nil, err
	}
	out := &rest.Map{By: by, Keys: []string{}, Labels: []string{}, Total: total}
	var rows [][]float32
	var labels []string
	if dim > 0 {
		in.Limit = min(in.Limit, max(1, maxNumbers/dim))
	}
	for it, err := range c.Sample(ctx, in.Limit, in.Seed, in.Where, in.Args...) {
		if err != nil {
			return nil, err
		}
		x := it.Vectors[by]
		if by == "" {
			x = signs(it.Code)
		}
		if len(x) == 0 || len(rows) > 0 && len(x) != len(rows[0]) {
			continue // it has no code, or no vector of this modality
		}
		label := ""
		if len(it.Labels) > 0 {
			label = it.Labels[0]
		}
		out.Keys, rows, labels = append(out.Keys, it.Key), append(rows, x), append(labels, label)
	}
	out.Labels, out.Label = byFrequency(labels)
	if cosine {
		for _, x := range rows {
			shrink([][]float32{x})
			scale(x)
		}
	} else {
		shrink(rows)
	}
	out.X, out.Y, out.Shown, err = project(ctx, rows)
	return out, err
}

// basisOf returns what a map is drawn by: a modality with its dimensions, or "" for codes; and whether only
// the directions of its vectors count.
func basisOf(ctx context.Context, c api.Collection, by string) (_ string, dim int, cosine bool, _ error) {
	schema, err := c.Schema(ctx)
	if err != nil {
		return "", 0, false, err
	}
	if by == "" {
		stats, err := c.Stats(ctx)
		if err != nil {
			return "", 0, false, err
		}
		if stats.Trained {
			return "", stats.Bits, false, nil
		}
	}
	for _, m := range schema.Modalities {
		if !m.Sparse && (by == "" || m.Name == by) {
			return m.Name, m.Dim, m.Metric == "" || m.Metric == db.Cosine, nil
		}
	}
	if by == "" {
		return "", 0, false, fault.Invalid("there is nothing to draw: the collection has neither codes nor dense vectors")
	}
	return "", 0, false, fault.Invalid("by: %q: the collection has no dense modality of this name", by)
}

// signs returns the bits of a code as -1 and 1.
func signs(code []byte) []float32 {
	x := make([]float32, 8*len(code))
	for i := range x {
		x[i] = float32(code[i/8]>>(i%8)&1)*2 - 1
	}
	return x
}

// shrink divides rows by their largest number, so that no sum of squares is infinite or vanishes.
func shrink(rows [][]float32) {
	most := float32(0)
	for _, x := range rows {
		for _, v := range x {
			most = max(most, v, -v)
		}
	}
	if most == 0 {
		return
	}
	for _, x := range rows {
		for i := range x {
			x[i] /= most
		}
	}
}

// scale gives a vector the length 1.
func scale(x []float32) {
	if n := math.Sqrt(dot(x, x)); n > 0 {
		for i := range x {
			x[i] = float32(float64(x[i]) / n)
		}
	}
}

func dot(a, b []float32) float64 {
	var sum0, sum1, sum2, sum3 float32
	i := 0
	for ; i+4 <= len(a) && i+4 <= len(b); i += 4 {
		sum0 += a[i] * b[i]
		sum1 += a[i+1] * b[i+1]
		sum2 += a[i+2] * b[i+2]
		sum3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		sum0 += a[i] * b[i]
	}
	return float64(sum0 + sum1 + sum2 + sum3)
}

// byFrequency returns the labels, the most frequent first, and the place of each item's label among them; -1
// for no label.
func byFrequency(of []string) (labels []string, places []int) {
	count := map[string]int{}
	for _, l := range of {
		if l != "" {
			count[l]++
		}
	}
	labels = make([]string, 0, len(count))
	for l := range count {
		labels = append(labels, l)
	}
	slices.SortFunc(labels, func(a, b string) int { return cmp.Or(count[b]-count[a], cmp.Compare(a, b)) })
	place := map[string]int{"": -1}
	for i, l := range labels {
		place[l] = i
	}
	places = make([]int, len(of))
	for i, l := range of {
		places[i] = place[l]
	}
	return labels, places
}

const (
	fitted = 2000 // rows that the components are computed of
	rounds = 24   // of the power iteration
)

// project returns the coordinates of rows along their two principal components, fitted to -1 to 1, and the
// share of the variance that these have. The components are those of the first rows, which are a sample.
func project(ctx context.Context, rows [][]float32) (x, y []float32, shown float64, _ error) {
	x, y = make([]float32, len(rows)), make([]float32, len(rows))
	if len(rows) == 0 {
		return x, y, 0, nil
	}
	some := rows[:min(fitted, len(rows))]
	dim := len(rows[0])
	mean := make([]float32, dim)
	for _, r := range some {
		for i, v := range r {
			mean[i] += v / float32(len(some))
		}
	}
	variance := 0.0
	for _, r := range some {
		for i, v := range r {
			d := float64(v - mean[i])
			variance += d * d
		}
	}
	var first []float32
	for _, to := range [][]float32{x, y} {
		along, size := component(some, mean, first)
		at := dot(mean, along)
		if err := work.Parallel(ctx, len(rows), func(i int) error {
			to[i] = float32(dot(rows[i], along) - at)
			return nil
		}); err != nil {
			return nil, nil, 0, err
		}
		if variance > 0 {
			shown += size / variance
		}
		first = along
	}
	fit(x)
	fit(y)
	spread(x, y)
	return x, y, min(shown, 1), nil
}

// fit moves and scales coordinates to -1 to 1. The middle 96 % of them take four fifths of that, so that a
// few far ones do not press the others together. The far ones stay apart: they share the rest by logarithm.
func fit(x []float32) {
	order := slices.Sorted(slices.Values(x))
	low, high := order[len(order)/50], order[len(order)-1-len(order)/50]
	middle, far := low+(high-low)/2, (high-low)/2
	if far == 0 {
		far = max(order[len(order)-1]-middle, middle-order[0], 1e-30)
	}
	farthest := math.Log(float64(max(order[len(order)-1]-middle, middle-order[0]) / far))
	for i, v := range x {
		v = (v - middle) / far
		if d := math.Abs(float64(v)); d > 1 {
			v = float32(math.Copysign(1+.25*math.Log(d)/farthest, float64(v)))
		}
		x[i] = .8 * v
	}
}

// spread places points that lie on one place, such as those of one code, around it: as the seeds of a
// sunflower, so that the disc shows how many they are. Where a disc grows beyond -1 to 1, it draws
// all points closer together.
func spread(x, y []float32) {
	step := min(.01, .4/math.Sqrt(float64(len(x))))
	seen, most := map[[2]float32]int{}, float32(1)
	for i := range x {
		at := [2]float32{x[i], y[i]}
		n := float64(seen[at])
		seen[at]++
		sin, cos := math.Sincos(n * 2.399963) // the golden angle
		x[i] += float32(step * math.Sqrt(n) * cos)
		y[i] += float32(step * math.Sqrt(n) * sin)
		most = max(most, x[i], -x[i], y[i], -y[i])
	}
	for i := range x {
		x[i], y[i] = x[i]/most, y[i]/most
	}
}

// component returns the direction in which rows vary most, orthogonal to another one if that is not nil, and
// how much they do: the sum of squares along it. It is found by power iteration.
func component(rows [][]float32, mean, other []float32) ([]float32, float64) {
	along := make([]float32, len(mean))
	for i := range along { // any start that is not orthogonal to the direction
		along[i] = float32(math.Sin(float64(i+1) * 12.9898))
	}
	size := 0.0
	direct := func() {
		if other != nil {
			d := float32(dot(along, other))
			for i := range along {
				along[i] -= d * other[i]
			}
		}
		scale(along)
	}
	direct()
	for range rounds {
		at := dot(mean, along)
		next := make([]float32, len(along))
		size = 0
		for _, r := range rows {
			d := dot(r, along) - at
			size += d * d
			for i, v := range r {
				next[i] += float32(d) * (v - mean[i])
			}
		}
		if size == 0 {
			break
		}
		along = next
		direct()
	}
	return along, size
}
