package matrix

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/experiments/chart"
	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// plotsCommand draws figures of the results.
func plotsCommand() *cobra.Command {
	kinds := kindList{both}
	var in, dir string
	cmd := common.New("plots", "Draw results as figures", "", cobra.NoArgs,
		func(cmd *cobra.Command, _ []string) error {
			list, err := readResults(in)
			if err != nil {
				return err
			}
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return err
			}
			for _, kind := range kinds {
				these := list.filter(func(r *result) bool { return r.Kind == kind })
				for _, fig := range these.figures() {
					path := filepath.Join(dir, fig.name+".svg")
					if kind != both {
						path = filepath.Join(dir, fig.name+"-"+kind+".svg")
					}
					if err := fig.save(path); err != nil {
						return fmt.Errorf("%s: %w", path, err)
					}
					fmt.Fprintln(cmd.OutOrStdout(), path)
				}
			}
			return nil
		})
	f := common.FlagsOf(cmd)
	f.StringVar(&in, "in", "results.jsonl", "file of results")
	f.StringVar(&dir, "dir", ".", "folder to write figures to")
	f.Var(&kinds, "kinds", "kinds of queries to draw figures of")
	return cmd
}

// A figure is a plot of times in microseconds, on a logarithmic axis.
type figure struct {
	name, title, x string
	logX           bool
	ticks          []int // ticks on the x axis
	curves         []curve
}

// tierStyles are the curves of a figure of one set. That of auto is wide and comes
// first, so that the curve of the plan that it follows shows on top of it.
var tierStyles = []chart.CurveStyle{
	{Name: auto, Color: color.Gray{190}, Glyph: draw.CircleGlyph{}, Width: 7},
	{Name: "memory", Color: chart.Blue, Glyph: draw.CircleGlyph{}},
	{Name: "disk", Color: chart.Green, Dashes: []vg.Length{6, 3}, Glyph: draw.SquareGlyph{}},
	{Name: "scan", Color: chart.Vermillion, Glyph: draw.TriangleGlyph{}},
	{Name: "blockscan", Color: chart.Orange, Dashes: []vg.Length{6, 3}, Glyph: draw.PyramidGlyph{}},
	{Name: fullscan, Color: color.Black, Dashes: []vg.Length{2, 3}, Glyph: draw.CrossGlyph{}},
}

// setStyles are the curves of a figure of all sets.
var setStyles = map[synth.CodeSet]chart.CurveStyle{
	synth.Uniform:   {Name: "uniform", Color: chart.Blue, Glyph: draw.CircleGlyph{}},
	synth.Clustered: {Name: "clustered", Color: chart.Vermillion, Glyph: draw.TriangleGlyph{}},
	synth.Learned:   {Name: "learned", Color: chart.Green, Glyph: draw.SquareGlyph{}},
	synth.Projected: {Name: "projected", Color: chart.Orange, Glyph: draw.PyramidGlyph{}},
}

// A curve goes through points in ascending order of x.
type curve struct {
	style  chart.CurveStyle
	points plotter.XYs
}

// figures returns, for each set, figures of time against r and against k; and for some
// searches figures of all sets against n. The results must have one kind of queries.
func (l results) figures() []*figure {
	var figs []*figure
	for _, p := range l.places() {
		set, err := parseCodeSet(p.set)
		if err != nil {
			continue // another program wrote it
		}
		for _, s := range []struct{ op, name, x string }{{"radius", "within r bits", "r, bits"},
			{"knn", "k nearest", "k"}} {
			fig := &figure{
				name: fmt.Sprintf("%s-%s-%d-%d", s.op, p.set, p.bits, p.n),
				title: fmt.Sprintf("%s, %s %s codes of %d bits", s.name, term.Thousands(p.n), set.Name(),
					p.bits),
				x: s.x, logX: s.op == "knn", ticks: l.params(s.op),
			}
			for _, t := range tierStyles {
				fig.add(t, fig.ticks, func(x int) *result { return l.find(p, l[0].Kind, s.op, x, t.Name) })
			}
			figs = append(figs, fig)
		}
	}
	ns := distinct(l, func(r *result) int { return r.N }, func(a, b int) int { return a - b })
	for _, bits := range distinct(l, func(r *result) int { return r.Bits },
		func(a, b int) int { return a - b }) {
		for _, s := range []struct {
			op, name string
			param    int
		}{{"radius", "within 8 bits", 8}, {"knn", "10 nearest", 10}} {
			fig := &figure{
				name:  fmt.Sprintf("n-%s%d-%d", s.op, s.param, bits),
				title: fmt.Sprintf("%s, codes of %d bits, as chosen by auto", s.name, bits),
				x:     "items", logX: true, ticks: ns,
			}
			at := func(set synth.CodeSet, tier string) func(int) *result {
				return func(n int) *result {
					return l.find(place{set.String(), bits, n}, l[0].Kind, s.op, s.param, tier)
				}
			}
			for _, set := range synth.CodeSets() {
				fig.add(setStyles[set], ns, at(set, auto))
			}
			// The full scan reads the same amount whatever the codes are, so the times
			// over uniform codes stand for all sets.
			fig.add(tierStyles[len(tierStyles)-1], ns, at(synth.Uniform, fullscan))
			figs = append(figs, fig)
		}
	}
	var some []*figure
	for _, fig := range figs {
		if len(fig.curves) > 0 && len(fig.ticks) > 1 {
			some = append(some, fig)
		}
	}
	return some
}

// add adds a curve through the existing results.
func (f *figure) add(s chart.CurveStyle, xs []int, at func(x int) *result) {
	c := curve{style: s}
	for _, x := range xs {
		if r := at(x); r != nil {
			c.points = append(c.points, plotter.XY{X: float64(x), Y: r.P50})
		}
	}
	if len(c.points) > 0 {
		f.curves = append(f.curves, c)
	}
}

// save writes the figure to path as SVG.
func (f *figure) save(path string) error {
	p := chart.NewPanel(f.title, f.x, "median, µs")
	figure := &chart.Figure{Columns: 1, Width: 400, Height: 300, Panels: []*plot.Plot{p}, LegendWidth: 100}
	var ys []float64
	for _, c := range f.curves {
		if err := chart.AddCurve(p, c.style, c.points); err != nil {
			return err
		}
		figure.Legend = append(figure.Legend, c.style)
		for _, xy := range c.points {
			ys = append(ys, xy.Y)
		}
	}
	ticks := plot.ConstantTicks{}
	for _, x := range f.ticks {
		ticks = append(ticks, plot.Tick{Value: float64(x), Label: term.Thousands(x)})
	}
	p.X.Tick.Marker = ticks
	if f.logX {
		p.X.Scale = plot.LogScale{}
	}
	p.X.Min, p.X.Max = float64(f.ticks[0]), float64(f.ticks[len(f.ticks)-1])
	p.Y.Scale = plot.LogScale{}
	p.Y.Min, p.Y.Max = decades(ys)
	p.Y.Tick.Marker = decadeTicks(p.Y.Min, p.Y.Max)
	var b bytes.Buffer
	if err := figure.Write(&b); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o666)
}

// decades returns the powers of ten below and above all values.
func decades(ys []float64) (least, most float64) {
	least, most = math.Inf(1), 0
	for _, y := range ys {
		least, most = min(least, y), max(most, y)
	}
	least, most = math.Pow(10, math.Floor(math.Log10(least))), math.Pow(10, math.Ceil(math.Log10(most)))
	if least == most {
		most *= 10
	}
	return least, most
}

// decadeTicks marks the powers of ten with labels, and their multiples without.
func decadeTicks(least, most float64) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for x := least; x <= most*1.001; x *= 10 {
		label := term.Thousands(int(x + .5))
		if x < 1 {
			label = strconv.FormatFloat(x, 'g', 3, 64)
		}
		ticks = append(ticks, plot.Tick{Value: x, Label: label})
		for m := 2.; m < 10 && x*m < most; m++ {
			ticks = append(ticks, plot.Tick{Value: x * m})
		}
	}
	return ticks
}
