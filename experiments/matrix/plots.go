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
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// plotsCommand draws figures of the results.
func plotsCommand() *cobra.Command {
	kinds := kindList{both}
	var in, dir string
	cmd := common.New("plots", "Draw results as figures", "", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
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
	lines          []line
}

// A line goes through points in ascending order of x.
type line struct {
	name   string
	style  style
	points plotter.XYs
}

// A style keeps lines apart, also without colour.
type style struct {
	color  color.Color
	dashes []vg.Length
	glyph  draw.GlyphDrawer
	width  vg.Length
}

// These are colours that most people can tell apart (Okabe and Ito).
var (
	black      = color.RGBA{A: 255}
	orange     = color.RGBA{230, 159, 0, 255}
	green      = color.RGBA{0, 158, 115, 255}
	blue       = color.RGBA{0, 114, 178, 255}
	vermillion = color.RGBA{213, 94, 0, 255}
)

// tierStyles are the lines of a figure of one set. The line of auto is wide and comes
// first, so that the line of the plan that it follows shows on top of it.
var tierStyles = []struct {
	tier string
	style
}{
	{auto, style{color.RGBA{190, 190, 190, 255}, nil, draw.CircleGlyph{}, 7}},
	{"memory", style{blue, nil, draw.CircleGlyph{}, 1.5}},
	{"disk", style{green, []vg.Length{6, 3}, draw.SquareGlyph{}, 1.5}},
	{"scan", style{vermillion, nil, draw.TriangleGlyph{}, 1.5}},
	{"blockscan", style{orange, []vg.Length{6, 3}, draw.PyramidGlyph{}, 1.5}},
	{fullscan, style{black, []vg.Length{2, 3}, draw.CrossGlyph{}, 1.5}},
}

// setStyles are the lines of a figure of all sets.
var setStyles = map[synth.CodeSet]style{
	synth.Uniform:   {blue, nil, draw.CircleGlyph{}, 1.5},
	synth.Clustered: {vermillion, nil, draw.TriangleGlyph{}, 1.5},
	synth.Learned:   {green, nil, draw.SquareGlyph{}, 1.5},
	synth.Projected: {orange, nil, draw.PyramidGlyph{}, 1.5},
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
		for _, s := range []struct{ op, name, x string }{{"radius", "within r bits", "r, bits"}, {"knn", "k nearest", "k"}} {
			fig := &figure{
				name:  fmt.Sprintf("%s-%s-%d-%d", s.op, p.set, p.bits, p.n),
				title: fmt.Sprintf("%s, %s %s codes of %d bits", s.name, term.Thousands(p.n), set.Name(), p.bits),
				x:     s.x, logX: s.op == "knn", ticks: l.params(s.op),
			}
			for _, t := range tierStyles {
				fig.add(t.tier, t.style, fig.ticks, func(x int) *result { return l.find(p, l[0].Kind, s.op, x, t.tier) })
			}
			figs = append(figs, fig)
		}
	}
	ns := distinct(l, func(r *result) int { return r.N }, func(a, b int) int { return a - b })
	for _, bits := range distinct(l, func(r *result) int { return r.Bits }, func(a, b int) int { return a - b }) {
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
				fig.add(set.Name(), setStyles[set], ns, at(set, auto))
			}
			// The full scan reads the same amount whatever the codes are, so the times
			// over uniform codes stand for all sets.
			fig.add(fullscan, tierStyles[len(tierStyles)-1].style, ns, at(synth.Uniform, fullscan))
			figs = append(figs, fig)
		}
	}
	var some []*figure
	for _, fig := range figs {
		if len(fig.lines) > 0 && len(fig.ticks) > 1 {
			some = append(some, fig)
		}
	}
	return some
}

// add adds a line through the existing results.
func (f *figure) add(name string, s style, xs []int, at func(x int) *result) {
	ln := line{name: name, style: s}
	for _, x := range xs {
		if r := at(x); r != nil {
			ln.points = append(ln.points, plotter.XY{X: float64(x), Y: r.P50})
		}
	}
	if len(ln.points) > 0 {
		f.lines = append(f.lines, ln)
	}
}

// These are the sizes of a figure. The legend stands beside the plot.
const (
	figureWidth  = 500
	figureHeight = 300
	legendWidth  = 94
	margin       = 6
)

// save writes the figure to path as SVG.
func (f *figure) save(path string) error {
	p, legend, err := f.plot()
	if err != nil {
		return err
	}
	paint := func(c vg.CanvasSizer) {
		dc := draw.New(c)
		dc.SetColor(color.White)
		dc.Fill(dc.Rectangle.Path())
		p.Draw(draw.Crop(dc, margin, -legendWidth-2*margin, margin, -margin))
		legend.Draw(draw.Crop(dc, figureWidth-legendWidth, 0, 0, -30))
	}
	var b bytes.Buffer
	if filepath.Ext(path) == ".png" {
		c := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(figureWidth, figureHeight), vgimg.UseDPI(144))}
		paint(c)
		_, err = c.WriteTo(&b)
	} else {
		c := vgsvg.New(figureWidth, figureHeight)
		paint(c)
		_, err = c.WriteTo(&b)
	}
	if err != nil {
		return err
	}
	// If the font is not installed, the viewer shows a similar one.
	svg := bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;"))
	return os.WriteFile(path, svg, 0o666)
}

// plot returns the plot, and the legend to stand beside it.
func (f *figure) plot() (*plot.Plot, *plot.Legend, error) {
	p := plot.New()
	sans := func(t *font.Font, size vg.Length) { t.Typeface, t.Variant, t.Size = "Liberation", "Sans", size }
	sans(&p.Title.TextStyle.Font, 12)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		sans(&a.Label.TextStyle.Font, 10)
		sans(&a.Tick.Label.Font, 9)
	}
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = f.title, f.x, "median, µs"
	p.Title.Padding = 6

	var ys []float64
	for _, ln := range f.lines {
		for _, xy := range ln.points {
			ys = append(ys, xy.Y)
		}
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{225}, color.Gray{225}
	p.Add(grid)
	legend := plot.NewLegend()
	sans(&legend.TextStyle.Font, 10)
	legend.Top, legend.Left, legend.ThumbnailWidth, legend.Padding = true, true, 24, 3
	for _, ln := range f.lines {
		l, s, err := plotter.NewLinePoints(ln.points)
		if err != nil {
			return nil, nil, err
		}
		l.LineStyle = draw.LineStyle{Color: ln.style.color, Width: ln.style.width, Dashes: ln.style.dashes}
		s.GlyphStyle = draw.GlyphStyle{Color: ln.style.color, Radius: max(2.5, ln.style.width/2), Shape: ln.style.glyph}
		p.Add(l, s)
		legend.Add(ln.name, l, s)
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
	return p, &legend, nil
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
