package chart

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// seriesStyles tell series without a style of their own apart, by colour, dashes and
// marks. They repeat after the last.
var seriesStyles = []CurveStyle{
	{"", Blue, nil, draw.CircleGlyph{}},
	{"", Vermillion, []vg.Length{6, 3}, draw.TriangleGlyph{}},
	{"", Green, []vg.Length{2, 2}, draw.SquareGlyph{}},
	{"", Purple, []vg.Length{8, 2, 2, 2}, draw.PyramidGlyph{}},
	{"", color.Gray{70}, []vg.Length{4, 4}, draw.CrossGlyph{}},
	{"", color.RGBA{86, 180, 233, 255}, []vg.Length{10, 3}, draw.RingGlyph{}},
	{"", color.RGBA{200, 140, 0, 255}, []vg.Length{1, 2}, draw.BoxGlyph{}},
	{"", color.Black, nil, draw.PlusGlyph{}},
}

// seriesStyle returns the style of series i.
func seriesStyle(i int, name string) CurveStyle {
	s := seriesStyles[i%len(seriesStyles)]
	s.Name = shortName(name)
	return s
}

// A Spread is a point of a curve with a bar above it, up to the largest value of
// similar measurements.
type Spread struct {
	plotter.XY
	High float64 // upper end of the bar
}

// AddSpreads draws a curve with bars from its points upwards.
func AddSpreads(p *plot.Plot, s CurveStyle, points []Spread) error {
	var line plotter.XYs
	var bars struct {
		plotter.XYs
		plotter.YErrors
	}
	for _, at := range points {
		line = append(line, at.XY)
		if at.High > at.Y {
			bars.XYs = append(bars.XYs, at.XY)
			bars.YErrors = append(bars.YErrors, struct{ Low, High float64 }{0, at.High - at.Y})
		}
	}
	if len(bars.XYs) > 0 {
		b, err := plotter.NewYErrorBars(bars)
		if err != nil {
			return err
		}
		b.LineStyle = draw.LineStyle{Color: Faint(s.Color), Width: 1}
		b.CapWidth = 4
		p.Add(b)
	}
	return addCurve(p, s, line)
}

// A Deviation is a point with the standard deviation of its height.
type Deviation struct {
	plotter.XY
	Std float64
}

// AddDeviations draws a curve, with bars if there are several seeds.
func AddDeviations(p *plot.Plot, s CurveStyle, points []Deviation) error {
	var line plotter.XYs
	var errors plotter.YErrors
	bars := false
	for _, d := range points {
		line = append(line, d.XY)
		errors = append(errors, struct{ Low, High float64 }{d.Std, d.Std})
		bars = bars || d.Std > 0
	}
	if bars {
		b, err := plotter.NewYErrorBars(struct {
			plotter.XYs
			plotter.YErrors
		}{line, errors})
		if err != nil {
			return err
		}
		b.LineStyle = draw.LineStyle{Color: Faint(s.Color), Width: 1}
		p.Add(b)
	}
	return addCurve(p, s, line)
}
