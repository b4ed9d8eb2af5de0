// Package bounds compares what the paper proves about FDDH with what a trained model does:
//
//	experiments bounds SET [--bits 16,32,64,128] [--plot FILE.svg]
//
// # Distances
//
// The columns of C are orthonormal, so C y_i and C y_j are as far apart as y_i and y_j. A code is sgn(C y).
// With the unit vectors u = C y/|C y| and v = h/sqrt(q), and the rounding e = |v - u| of an item,
//
//	| |v_i - v_j| - |u_i - u_j| | <= e_i + e_j
//
// for each pair of items. The Hamming distance of two codes is q/4 |v_i - v_j|^2. Without rounding it would
// be q/2 (1 - cos(y_i, y_j)), the distance of their labels. Figure 2 of the paper shows the difference, and
// distances by the number of labels that two items share.
//
// # Streams
//
// P minimises sum |h - P phi|^2 + gamma |P|^2 over the n items of a training and m of a stream. Let |phi| <=
// d and |h - P phi| <= M. If another item takes the place of one in the stream, the gradient at P changes by
// at most 4 M d, and the objective is strongly convex with 2 gamma. So |P' - P| <= 2 M d/gamma, and no
// projected value P phi changes by more than 2 d^2 M/gamma. That is Theorem 1 of the paper: its gamma is that
// of the mean over the items, gamma/(n + m) here.
package bounds

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/experiments/chart"
	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/experiments/sets"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

// A config has the values of the flags.
type config struct {
	bits    common.Ints
	pairs   int // of items that are compared
	changes int // items that are replaced, at each length of the stream
	seed    uint64
	plot    string
}

// Command returns the experiment.
func Command() *cobra.Command {
	c := &config{bits: common.Ints{16, 32, 64, 128}, pairs: 200_000, changes: 3, seed: 1}
	cmd := common.New("bounds SET", "Compare what the paper proves about FDDH with a trained model",
		"A SET is a folder of files as makeset writes it, or a published .mat file. The settings are those of the authors, the bits of streams the most.",
		cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
			return c.run(cmd.Context(), args[0], cmd.OutOrStdout())
		})
	f := common.FlagsOf(cmd)
	f.Counts(&c.bits, "bits", "lengths of codes")
	f.Count(&c.pairs, "pairs", "pairs of items that are compared")
	f.Count(&c.changes, "changes", "items that are replaced, at each length of the stream")
	f.Seed(&c.seed)
	f.StringVar(&c.plot, "plot", "", "draw what was measured to `FILE`.svg")
	return cmd
}

// run measures and prints the tables.
func (c *config) run(ctx context.Context, folder string, stdout io.Writer) error {
	if err := chart.CheckPath(c.plot); err != nil {
		return err
	}
	s, err := sets.Read(folder)
	if err != nil {
		return err
	}
	part, _ := s.Split(c.seed, 1)
	items := s.Examples(part)
	if len(items) < 20 {
		return fmt.Errorf("%s has %d labelled items: give at least 20", folder, len(items))
	}
	var lengths []*distances
	for _, bits := range c.bits {
		if bits < s.LabelCount() {
			fmt.Fprintf(stdout, "%d bits: left out, as the set has %d labels\n\n", bits, s.LabelCount())
			continue
		}
		r, err := c.train(ctx, s, items, bits)
		if err != nil {
			return err
		}
		lengths = append(lengths, c.distances(r.Model, items))
	}
	if len(lengths) == 0 {
		return fmt.Errorf("--bits: give at least as many as there are labels, %d", s.LabelCount())
	}
	printDistances(stdout, lengths)
	steps, err := c.stream(ctx, s, items)
	if err != nil {
		return err
	}
	printSteps(stdout, s, steps)
	if c.plot == "" {
		return nil
	}
	figure, err := draw(s, lengths, steps)
	if err != nil {
		return err
	}
	return figure.Save(c.plot)
}

// train learns from items with the settings of the authors.
func (c *config) train(ctx context.Context, s *sets.Set, items sets.Examples, bits int) (*fit.Result, error) {
	opt := sets.Published(s.Modalities, bits, min(sets.PublishedAnchors, len(items)))
	opt.Seed = c.seed
	return fit.Train(ctx, s.ModelModalities(), items, opt)
}

// distances are the distances between items under one model.
type distances struct {
	bits     int
	rounding []float64   // e of each item, ascending
	errors   []float64   // of each pair: its Hamming distance less that of the labels
	used     float64     // the largest difference of a pair, as a share of its bound
	shared   [][]float64 // by the number of shared labels: Hamming distances

}

// distances compares pairs of items, drawn with the seed.
func (c *config) distances(m *model.Model, items sets.Examples) *distances {
	q, p := m.Bits(), m.Parts()
	d := &distances{bits: q}
	u, v := make([][]float64, len(items)), make([]codec.Code, len(items))
	rounding := make([]float64, len(items))
	for i, ex := range items {
		v[i], u[i] = codec.NewCode(q), make([]float64, q)
		m.LabelCode(v[i], ex.Labels)
		for _, l := range ex.Labels {
			at, _ := slices.BinarySearch(p.Labels, l)
			for j := range u[i] {
				u[i][j] += p.C[at*q+j]
			}
		}
		scale, sum := 1/math.Sqrt(dot(u[i], u[i])), 0.0
		for j := range u[i] {
			u[i][j] *= scale
			sum += math.Abs(u[i][j]) // the sign is that of the code
		}
		rounding[i] = math.Sqrt(max(0, 2-2*sum/math.Sqrt(float64(q))))
	}
	rng := rand.New(rand.NewPCG(c.seed, 31))
	for range c.pairs {
		i, j := rng.IntN(len(items)), rng.IntN(len(items)-1)
		if j >= i {
			j++
		}
		hamming := float64(codec.Distance(v[i], v[j]))
		labels := math.Sqrt(max(0, 2-2*dot(u[i], u[j])))
		d.errors = append(d.errors, hamming-float64(q)/4*labels*labels)
		if bound := rounding[i] + rounding[j]; bound > 0 {
			d.used = max(d.used, math.Abs(math.Sqrt(4*hamming/float64(q))-labels)/bound)
		}
		n := shared(items[i].Labels, items[j].Labels)
		for len(d.shared) <= n {
			d.shared = append(d.shared, nil)
		}
		d.shared[n] = append(d.shared[n], hamming)

	}
	for _, list := range append(d.shared, d.errors, rounding) {
		slices.Sort(list)
	}
	d.rounding = rounding
	return d
}

func dot(a, b []float64) (sum float64) {
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}

// shared returns how many labels two items have in common.
func shared(a, b []uint32) (n int) {
	for _, l := range a {
		if _, is := slices.BinarySearch(b, l); is {
			n++
		}
	}
	return n
}

// at returns the value that a share p of sorted values does not exceed.
func at(sorted []float64, p float64) float64 {
	return sorted[max(0, int(math.Ceil(p*float64(len(sorted))))-1)]
}

func mean(values []float64) (sum float64) {
	for _, v := range values {
		sum += v / float64(len(values))
	}
	return sum
}

func printDistances(w io.Writer, lengths []*distances) {
	fmt.Fprint(w, "Hamming distance less the distance of the labels, in bits, and the largest share of the bound:\n\n")
	common.Head(w, 0, "bits", "rounding e", "5 %", "median", "95 %", "of the bound")
	for _, d := range lengths {
		common.Row(w, strconv.Itoa(d.bits), number(mean(d.rounding)), number(at(d.errors, .05)),
			number(at(d.errors, .5)), number(at(d.errors, .95)), number(d.used))
	}
	fmt.Fprint(w, "\nHamming distance by the number of labels that two items share:\n\n")
	common.Head(w, 0, "bits", "shared", "pairs", "5 %", "mean", "95 %")
	for _, d := range lengths {
		for n, list := range d.shared {
			if len(list) > 0 {
				common.Row(w, strconv.Itoa(d.bits), strconv.Itoa(n), strconv.Itoa(len(list)),
					number(at(list, .05)), number(mean(list)), number(at(list, .95)))
			}
		}
	}
}

// number returns three digits of x; what rounding has left of a zero is zero.
func number(x float64) string {
	if math.Abs(x) < 1e-9 {
		x = 0
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// A step is a modality after so many items of the stream.
type step struct {
	t, n, m int
	change  float64 // largest change of P phi, of all items and replacements
	bound   float64 // 2 d^2 M/gamma
}

// stream trains on half of the items and goes on with more and more of the others. Each time it replaces the
// last item of the stream by another one, and compares all projections.
func (c *config) stream(ctx context.Context, s *sets.Set, items sets.Examples) (steps []step, err error) {
	n := len(items) / 2
	r, err := c.train(ctx, s, items[:n], slices.Max(c.bits))
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(c.seed, 32))
	for m := max(1, n/16); m < len(items)-n; m *= 2 {
		learned, err := follow(ctx, r, items[n:n+m])
		if err != nil {
			return nil, err
		}
		at := len(steps)
		for t := range s.Modalities {
			d, residual, err := sizes(learned, t, items) // of all that may come in
			if err != nil {
				return nil, err
			}
			steps = append(steps, step{t: t, n: n, m: m, bound: 2 * d * d * residual / learned.Gamma(t)})
		}
		for range c.changes {
			replaced := append(slices.Clone(items[n:n+m-1]), items[n+m+rng.IntN(len(items)-n-m)])
			other, err := follow(ctx, r, replaced)
			if err != nil {
				return nil, err
			}
			for t := range s.Modalities {
				change, err := apart(learned, other, t, items)
				if err != nil {
					return nil, err
				}
				steps[at+t].change = max(steps[at+t].change, change)
			}
		}
	}
	return steps, nil
}

// follow returns the model after a stream of labelled items.
func follow(ctx context.Context, r *fit.Result, stream sets.Examples) (*model.Model, error) {
	o, err := model.NewOnline(r.Model, r.Statistics.Clone())
	if err != nil {
		return nil, err
	}
	if _, err := o.Learn(ctx, stream, model.TeacherLabels, 0); err != nil {
		return nil, err
	}
	return o.Revision()
}

// sizes returns the largest |phi| and |h - P phi| of items in a modality.
func sizes(m *model.Model, t int, items sets.Examples) (d, residual float64, err error) {
	e, q := m.NewEncoder(), m.Bits()
	phi, z, code := make([]float32, m.Features(t)), make([]float64, q), codec.NewCode(q)
	for _, ex := range items {
		if err := e.MapVector(phi, t, ex.Vectors[t]); err != nil {
			return 0, 0, err
		}
		norm := 0.0
		for _, x := range phi {
			norm += float64(x) * float64(x)
		}
		if err := e.ProjectVectors(z, t, ex.Vectors[t:t+1]); err != nil {
			return 0, 0, err
		}
		if !m.LabelCode(code, ex.Labels) {
			continue // it teaches nothing
		}
		miss := 0.0
		for j := range z {
			h := -1.0
			if code.Bit(j) {
				h = 1
			}
			miss += (h - z[j]) * (h - z[j])
		}
		d, residual = max(d, math.Sqrt(norm)), max(residual, math.Sqrt(miss))
	}
	return d, residual, nil
}

// apart returns the largest |P phi - P' phi| of items in a modality.
func apart(a, b *model.Model, t int, items sets.Examples) (most float64, err error) {
	ea, eb := a.NewEncoder(), b.NewEncoder()
	za, zb := make([]float64, a.Bits()), make([]float64, b.Bits())
	for _, ex := range items {
		if err := ea.ProjectVectors(za, t, ex.Vectors[t:t+1]); err != nil {
			return 0, err
		}
		if err := eb.ProjectVectors(zb, t, ex.Vectors[t:t+1]); err != nil {
			return 0, err
		}
		for j := range za {
			za[j] -= zb[j]
		}
		most = max(most, math.Sqrt(dot(za, za)))
	}
	return most, nil
}

func printSteps(w io.Writer, s *sets.Set, steps []step) {
	fmt.Fprint(w, "\nOne item of a stream is replaced: the largest change of a projection P phi, and the bound:\n\n")
	common.Head(w, 1, "modality", "n", "m", "change", "bound")
	for _, x := range steps {
		common.Row(w, s.Modalities[x.t], strconv.Itoa(x.n), strconv.Itoa(x.m), number(x.change),
			number(x.bound))
	}
}

// draw returns the figure: errors, distances and changes.
func draw(s *sets.Set, lengths []*distances, steps []step) (*chart.Figure, error) {
	errors := chart.NewPanel("Hamming distance less that of labels", "difference, of a code's length",
		"share of pairs")
	apart := chart.NewPanel("Hamming distance", "shared labels", "of a code's length")
	changes := chart.NewPanel("One item of the stream is replaced", "items of the stream", "change of P phi")
	f := &chart.Figure{Columns: 3, Width: chart.PanelWidth, Height: chart.PanelHeight,
		Panels: []*plot.Plot{errors, apart, changes}, LegendWidth: 96}
	styles := []chart.CurveStyle{{Color: chart.Blue}, {Color: chart.Vermillion, Dashes: []vg.Length{6, 3}},
		{Color: chart.Green, Dashes: []vg.Length{2, 2}},
		{Color: chart.Purple, Dashes: []vg.Length{8, 2, 2, 2}}, {Color: chart.Orange},
		{Color: chart.Blue, Dashes: []vg.Length{1, 3}}}
	add := func(p *plot.Plot, i int, name string, points plotter.XYs) error {
		style := styles[i%len(styles)]
		if style.Name = name; name != "" {
			f.Legend = append(f.Legend, style)
		}
		return chart.AddCurve(p, style, points)
	}
	for i, d := range lengths {
		const bins = 40 // from -half to half of the length of a code
		var histogram, byShared plotter.XYs
		counts := make([]float64, bins+1)
		for _, e := range d.errors {
			counts[int(math.Round((e/float64(d.bits)+.5)*bins))]++
		}
		for b, n := range counts {
			histogram = append(histogram, plotter.XY{X: float64(b)/bins - .5, Y: n / float64(len(d.errors))})
		}
		for n, list := range d.shared {
			if len(list) > 0 {
				byShared = append(byShared, plotter.XY{X: float64(n), Y: mean(list) / float64(d.bits)})
			}
		}
		if err := add(errors, i, fmt.Sprint(d.bits, " bits"), histogram); err != nil {
			return nil, err
		}
		if err := add(apart, i, "", byShared); err != nil {
			return nil, err
		}
	}
	for t, name := range s.Modalities {
		var points plotter.XYs
		for _, x := range steps {
			if x.t == t {
				points = append(points, plotter.XY{X: float64(x.m), Y: x.change})
			}
		}
		if err := add(changes, len(lengths)+t, name, points); err != nil {
			return nil, err
		}
	}
	changes.Y.Min = 0
	return f, nil
}
