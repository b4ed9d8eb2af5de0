package command

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

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// tierStyles are those of the curves of bench.
var tierStyles = map[string]curveStyle{
	"auto":       {"auto", blue, nil, draw.CircleGlyph{}},
	fullScanTier: {fullScanTier, color.Gray{90}, []vg.Length{2, 3}, draw.CrossGlyph{}},
	"scan":       {"scan", green, []vg.Length{2, 2}, draw.SquareGlyph{}},
	"memory":     {"memory", vermillion, []vg.Length{6, 3}, draw.TriangleGlyph{}},
	"disk":       {"disk", purple, []vg.Length{8, 2, 2, 2}, draw.PyramidGlyph{}},
	"blockscan":  {"blockscan", color.Black, []vg.Length{10, 3}, draw.BoxGlyph{}},
}

// A benchRun is what was measured of one database.
type benchRun struct {
	database string
	items    int
	lines    []*benchLine
}

// benchFigure draws the times by tier: against k and radius, or, of several
// databases, each k and radius against their items.
func benchFigure(runs []benchRun) (*figure, error) {
	f := &figure{width: panelWidth, height: panelHeight, legendWidth: legendWidth}
	var err error
	if len(runs) > 1 {
		err = addSizes(f, runs)
	} else {
		err = addOps(f, &runs[0])
	}
	f.columns = min(len(f.panels), 2)
	for _, name := range benchTiers {
		if slices.ContainsFunc(runs[0].lines, func(l *benchLine) bool { return l.tier == name }) {
			f.legend = append(f.legend, tierStyles[name])
		}
	}
	return f, err
}

// opNames are the operations and what they find.
var opNames = []struct{ op, what string }{
	{"knn", "the k nearest"},
	{"radius", "all within r bits"},
	{"hits", fmt.Sprintf("the first %d within r bits", firstHits)},
	{"count", "count within r bits"},
}

// addOps adds a panel for each operation that was measured.
func addOps(f *figure, run *benchRun) error {
	for _, name := range opNames {
		var lines []*benchLine
		for _, l := range run.lines {
			if l.op == name.op {
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
		p := newPanel(name.what+" of "+term.Plural(run.items, "item", "items"), x, timeLabel(name.op))
		err := addTimes(p, lines, name.op == "knn", func(l *benchLine) float64 { return float64(l.n) })
		if err != nil {
			return err
		}
		f.panels = append(f.panels, p)
	}
	return nil
}

// timeLabel names the axis of the times of an operation; bars reach from p50 to p99.
func timeLabel(op string) string {
	if op == "hits" {
		return "µs: median, bar to p99"
	}
	return "µs to find the codes: median, bar to p99"
}

// drawn returns the times that are drawn of a measurement: those in which the codes are found,
// as tiers differ in that alone; of hits, which the yardstick does not find, the whole.
func (l *benchLine) drawn() []time.Duration {
	if l.op == "hits" {
		return l.times
	}
	return l.finding()
}

// addSizes adds a panel for each measurement, in the order of the first database.
func addSizes(f *figure, runs []benchRun) error {
	items := map[*benchLine]float64{}
	by := map[benchOp][]*benchLine{}
	for _, run := range runs {
		for _, l := range run.lines {
			items[l] = float64(run.items)
			by[l.benchOp] = append(by[l.benchOp], l)
		}
	}
	for _, l := range runs[0].lines {
		lines := by[l.benchOp]
		if lines == nil {
			continue // it is there already
		}
		delete(by, l.benchOp)
		p := newPanel(l.describe(), "items", timeLabel(l.op))
		if err := addTimes(p, lines, true, func(l *benchLine) float64 { return items[l] }); err != nil {
			return err
		}
		f.panels = append(f.panels, p)
	}
	return nil
}

// describe says in words what is measured.
func (o benchOp) describe() string {
	bits := term.Plural(o.n, "bit", "bits")
	switch o.op {
	case "knn":
		return "the " + term.Thousands(o.n) + " nearest"
	case "radius":
		return "all within " + bits
	case "hits":
		return fmt.Sprintf("the first %d within %s", firstHits, bits)
	}
	return "count within " + bits
}

// leastTime is the shortest that an axis shows, in microseconds: a clock may be too coarse
// for what it times, and 0 has no logarithm.
const leastTime = .001

// addTimes draws the times of each tier against x, which is drawn logarithmically, too, if
// logX says so.
func addTimes(p *plot.Plot, lines []*benchLine, logX bool, x func(l *benchLine) float64) error {
	place := func(l *benchLine) float64 {
		if logX {
			return math.Log10(max(x(l), 1))
		}
		return x(l)
	}
	curves := map[string][]spread{}
	least, most := place(lines[0]), place(lines[0])
	for _, l := range lines {
		times := l.drawn()
		at := spread{plotter.XY{X: place(l), Y: math.Log10(max(quantile(times, .5), leastTime))}, math.Log10(max(quantile(times, .99), leastTime))}
		curves[l.tier] = append(curves[l.tier], at)
		least, most = min(least, at.X), max(most, at.X)
	}
	tiers := slices.SortedFunc(maps.Keys(curves), func(a, b string) int {
		return cmp.Compare(slices.Index(benchTiers, b), slices.Index(benchTiers, a)) // auto on top
	})
	for i, tier := range tiers {
		points := curves[tier]
		slices.SortStableFunc(points, func(a, b spread) int { return cmp.Compare(a.X, b.X) })
		for at := range points { // beside each other, so that no bar hides another
			points[at].X += (float64(i) - float64(len(tiers)-1)/2) * .012 * (most - least)
		}
		if err := addSpreads(p, tierStyles[tier], points); err != nil {
			return err
		}
	}
	decadeAxis(&p.Y)
	if logX {
		decadeAxis(&p.X)
		return nil
	}
	p.X.Tick.Marker = countTicks(int(least), int(most))
	p.X.Min, p.X.Max = min(p.X.Min, least), max(p.X.Max, least+1)
	return nil
}

// writeBenchPlot draws what was measured.
func writeBenchPlot(w io.Writer, path string, runs []benchRun) error {
	f, err := benchFigure(runs)
	if err != nil {
		return err
	}
	return f.write(w, path)
}
