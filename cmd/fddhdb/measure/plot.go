package measure

import (
	"cmp"
	"fmt"
	"image/color"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/chart"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// tierStyles are the styles of the curves of tiers.
var tierStyles = map[string]chart.CurveStyle{
	"auto":      {Name: "auto", Color: chart.Blue, Glyph: draw.CircleGlyph{}},
	FullScan:    {Name: FullScan, Color: color.Gray{90}, Dashes: []vg.Length{2, 3}, Glyph: draw.CrossGlyph{}},
	"scan":      {Name: "scan", Color: chart.Green, Dashes: []vg.Length{2, 2}, Glyph: draw.SquareGlyph{}},
	"memory":    {Name: "memory", Color: chart.Vermillion, Dashes: []vg.Length{6, 3}, Glyph: draw.TriangleGlyph{}},
	"disk":      {Name: "disk", Color: chart.Purple, Dashes: []vg.Length{8, 2, 2, 2}, Glyph: draw.PyramidGlyph{}},
	"blockscan": {Name: "blockscan", Color: color.Black, Dashes: []vg.Length{10, 3}, Glyph: draw.BoxGlyph{}},
}

// A Run is the measurements of one database.
type Run struct {
	database string
	items    int
	lines    []*line
}

// newFigure draws the times by tier: against k and radius, or for several databases
// each k and radius against their items.
func newFigure(runs []Run) (*chart.Figure, error) {
	f := &chart.Figure{Width: chart.PanelWidth, Height: chart.PanelHeight, LegendWidth: chart.LegendWidth}
	var err error
	if len(runs) > 1 {
		err = addSizes(f, runs)
	} else {
		err = addOps(f, &runs[0])
	}
	f.Columns = min(len(f.Panels), 2)
	for _, name := range Tiers {
		if slices.ContainsFunc(runs[0].lines, func(l *line) bool { return l.tier == name }) {
			f.Legend = append(f.Legend, tierStyles[name])
		}
	}
	return f, err
}

// opNames are the operations and their descriptions.
var opNames = []struct{ op, what string }{
	{"knn", "the k nearest"},
	{"radius", "all within r bits"},
	{"hits", fmt.Sprintf("the first %d within r bits", firstHits)},
	{"count", "count within r bits"},
}

// addOps adds a panel for each measured operation.
func addOps(f *chart.Figure, run *Run) error {
	for _, name := range opNames {
		var lines []*line
		for _, l := range run.lines {
			if l.Kind == name.op {
				lines = append(lines, l)
			}
		}
		if len(lines) == 0 {
			continue
		}
		x := "radius r (bits)"
		if name.op == "knn" {
			x = "k (items)"
		}
		p := chart.NewPanel(name.what+" of "+term.Plural(run.items, "item", "items"), x, timeLabel(name.op))
		err := addTimes(p, lines, name.op == "knn", func(l *line) float64 { return float64(l.N) })
		if err != nil {
			return err
		}
		f.Panels = append(f.Panels, p)
	}
	return nil
}

// timeLabel returns the label of the axis of times of an operation. Bars reach from p50
// to p99.
func timeLabel(op string) string {
	if op == "hits" {
		return "µs: median, bar to p99"
	}
	return "µs to find the codes: median, bar to p99"
}

// drawn returns the times to draw: those of finding the codes, the only part in which
// tiers differ. For hits, which the yardstick does not find, they are the whole times.
func (l *line) drawn() []time.Duration {
	if l.Kind == "hits" {
		return l.times
	}
	return l.finding()
}

// addSizes adds a panel for each measurement, in the order of the first database.
func addSizes(f *chart.Figure, runs []Run) error {
	items := map[*line]float64{}
	by := map[Op][]*line{}
	for _, run := range runs {
		for _, l := range run.lines {
			items[l] = float64(run.items)
			by[l.Op] = append(by[l.Op], l)
		}
	}
	for _, l := range runs[0].lines {
		lines := by[l.Op]
		if lines == nil {
			continue // it has a panel
		}
		delete(by, l.Op)
		p := chart.NewPanel(l.describe(), "items", timeLabel(l.Kind))
		if err := addTimes(p, lines, true, func(l *line) float64 { return items[l] }); err != nil {
			return err
		}
		f.Panels = append(f.Panels, p)
	}
	return nil
}

// describe returns the operation in words.
func (o Op) describe() string {
	bits := term.Plural(o.N, "bit", "bits")
	switch o.Kind {
	case "knn":
		return "the " + term.Thousands(o.N) + " nearest"
	case "radius":
		return "all within " + bits
	case "hits":
		return fmt.Sprintf("the first %d within %s", firstHits, bits)
	}
	return "count within " + bits
}

// leastTime is the shortest time of an axis in microseconds. A clock may be too coarse
// for a time, and 0 has no logarithm.
const leastTime = .001

// addTimes draws the times of each tier against x. logX makes the axis of x
// logarithmic, too.
func addTimes(p *plot.Plot, lines []*line, logX bool, x func(l *line) float64) error {
	place := func(l *line) float64 {
		if logX {
			return math.Log10(max(x(l), 1))
		}
		return x(l)
	}
	curves := map[string][]chart.Spread{}
	least, most := place(lines[0]), place(lines[0])
	for _, l := range lines {
		times := l.drawn()
		at := chart.Spread{XY: plotter.XY{X: place(l), Y: math.Log10(max(quantile(times, .5), leastTime))}, High: math.Log10(max(quantile(times, .99), leastTime))}
		curves[l.tier] = append(curves[l.tier], at)
		least, most = min(least, at.X), max(most, at.X)
	}
	tiers := slices.SortedFunc(maps.Keys(curves), func(a, b string) int {
		return cmp.Compare(slices.Index(Tiers, b), slices.Index(Tiers, a)) // auto on top
	})
	for i, tier := range tiers {
		points := curves[tier]
		slices.SortStableFunc(points, func(a, b chart.Spread) int { return cmp.Compare(a.X, b.X) })
		for at := range points { // beside each other, so that no bar hides another
			points[at].X += (float64(i) - float64(len(tiers)-1)/2) * .012 * (most - least)
		}
		if err := chart.AddSpreads(p, tierStyles[tier], points); err != nil {
			return err
		}
	}
	chart.DecadeAxis(&p.Y)
	if logX {
		chart.DecadeAxis(&p.X)
		return nil
	}
	p.X.Tick.Marker = chart.CountTicks(int(least), int(most))
	p.X.Min, p.X.Max = min(p.X.Min, least), max(p.X.Max, least+1)
	return nil
}

// WritePlot draws the measurements.
func WritePlot(w io.Writer, path string, runs []Run) error {
	f, err := newFigure(runs)
	if err != nil {
		return err
	}
	return f.Write(w, path)
}
