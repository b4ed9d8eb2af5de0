package chart

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"
)

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
	return AddCurve(p, s, line)
}
