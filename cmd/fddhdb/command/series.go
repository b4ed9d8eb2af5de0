package command

import (
	"image/color"

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

// A deviation is a point with the standard deviation of its height.
type deviation struct {
	plotter.XY
	std float64
}

// addDeviations draws a curve and, where there are several seeds, its bars.
func addDeviations(p *plot.Plot, s curveStyle, points []deviation) error {
	var line plotter.XYs
	var errors plotter.YErrors
	bars := false
	for _, d := range points {
		line = append(line, d.XY)
		errors = append(errors, struct{ Low, High float64 }{d.std, d.std})
		bars = bars || d.std > 0
	}
	if bars {
		b, err := plotter.NewYErrorBars(struct {
			plotter.XYs
			plotter.YErrors
		}{line, errors})
		if err != nil {
			return err
		}
		b.LineStyle = draw.LineStyle{Color: faint(s.color), Width: 1}
		p.Add(b)
	}
	return addCurve(p, s, line)
}
