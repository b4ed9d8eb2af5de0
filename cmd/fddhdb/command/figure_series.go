package command

import (
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// seriesStyles keep series apart that have no style of their own, by colour, dashes and
// marks. After the last the first comes again.
var seriesStyles = []curveStyle{
	{"", blue, nil, draw.CircleGlyph{}},
	{"", vermillion, []vg.Length{6, 3}, draw.TriangleGlyph{}},
	{"", green, []vg.Length{2, 2}, draw.SquareGlyph{}},
	{"", purple, []vg.Length{8, 2, 2, 2}, draw.PyramidGlyph{}},
	{"", color.Gray{70}, []vg.Length{4, 4}, draw.CrossGlyph{}},
	{"", color.RGBA{86, 180, 233, 255}, []vg.Length{10, 3}, draw.RingGlyph{}},
	{"", color.RGBA{200, 140, 0, 255}, []vg.Length{1, 2}, draw.BoxGlyph{}},
	{"", color.Black, nil, draw.PlusGlyph{}},
}

// seriesStyle is the style of series i.
func seriesStyle(i int, name string) curveStyle {
	s := seriesStyles[i%len(seriesStyles)]
	s.name = shortName(name)
	return s
}

// A spread is a point, and how far up what is like it reaches.
type spread struct {
	plotter.XY
	high float64
}

// addSpreads draws a curve with bars from its points upwards.
func addSpreads(p *plot.Plot, s curveStyle, points []spread) error {
	var line plotter.XYs
	var bars struct {
		plotter.XYs
		plotter.YErrors
	}
	for _, at := range points {
		line = append(line, at.XY)
		if at.high > at.Y {
			bars.XYs = append(bars.XYs, at.XY)
			bars.YErrors = append(bars.YErrors, struct{ Low, High float64 }{0, at.high - at.Y})
		}
	}
	if len(bars.XYs) > 0 {
		b, err := plotter.NewYErrorBars(bars)
		if err != nil {
			return err
		}
		b.LineStyle = draw.LineStyle{Color: faint(s.color), Width: 1}
		b.CapWidth = 4
		p.Add(b)
	}
	return addCurve(p, s, line)
}

// decadeAxis finishes an axis of decimal logarithms: at least a decade long, with ticks
// at 1, 2 and 5 or at powers of ten as there is room. (With plot.LogScale a long label
// would take the room of the curves.)
func decadeAxis(a *plot.Axis) {
	middle := (a.Min + a.Max) / 2
	a.Min, a.Max = min(a.Min-.1, middle-.5), max(a.Max+.1, middle+.5)
	a.Tick.Marker = decadeTicks(a.Min, a.Max)
}

// decadeTicks are between two logarithms.
func decadeTicks(low, high float64) plot.ConstantTicks {
	const most = 9
	between := func(every int, steps ...string) (ticks plot.ConstantTicks) {
		for decade := int(math.Floor(low)); decade <= int(high); decade++ {
			for _, s := range steps {
				x, _ := strconv.ParseFloat(s+"e"+strconv.Itoa(decade), 64)
				if at := math.Log10(x); at >= low && at <= high && decade%every == 0 {
					ticks = append(ticks, plot.Tick{Value: at, Label: briefly(x)})
				}
			}
		}
		return ticks
	}
	for _, steps := range [][]string{{"1", "2", "5"}, {"1", "3"}} {
		if ticks := between(1, steps...); len(ticks) <= most {
			return ticks
		}
	}
	return between(1+int(high-low)/most, "1")
}

// briefly spells a number for an axis: 20k, 3M.
func briefly(x float64) string {
	unit := ""
	for _, u := range []string{"k", "M", "G"} {
		if x < 1000 {
			break
		}
		x, unit = x/1000, u
	}
	return strconv.FormatFloat(x, 'g', 4, 64) + unit
}

// countTicks puts ticks at whole numbers, a few of them.
func countTicks(low, high int) plot.ConstantTicks {
	step := 1
	for decade := 1; (high-low)/step > 8; decade *= 10 {
		for _, m := range []int{2, 5, 10} {
			if (high-low)/step > 8 {
				step = m * decade
			}
		}
	}
	var ticks []float64
	for x := (low + step - 1) / step * step; x <= high; x += step {
		ticks = append(ticks, float64(x))
	}
	return ticksAt(ticks)
}
