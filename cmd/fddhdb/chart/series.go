package chart

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"
)

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
