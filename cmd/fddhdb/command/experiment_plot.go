package command

import (
	"fmt"
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// rowStyles are those of the rows that are drawn as curves.
var rowStyles = map[string]curveStyle{
	"labels": {"labels", blue, nil, draw.CircleGlyph{}},
	"joint":  {"joint", vermillion, []vg.Length{6, 3}, draw.TriangleGlyph{}},
	"paper":  {"paper", green, []vg.Length{2, 2}, draw.SquareGlyph{}},
	"FDDH":   {"FDDH", purple, []vg.Length{8, 2, 2, 2}, draw.PyramidGlyph{}},
}

// experimentLegend is the width of their legend.
const experimentLegend = 84

// curves returns, for the names of rows in their order, the points of each.
func (l *lab) curves(point func(m *measurement) deviation) (names []string, curves map[string][]deviation) {
	curves = map[string][]deviation{}
	for _, m := range l.rows {
		if curves[m.Row] == nil {
			names = append(names, m.Row)
		}
		curves[m.Row] = append(curves[m.Row], point(m))
	}
	return names, curves
}

// linePanel draws a curve for each row of that name, over the numbers of the
// horizontal axis, with bars of a standard deviation.
func (l *lab) linePanel(title, x, y string, point func(m *measurement) deviation) (*plot.Plot, error) {
	p := newPanel(title, x, y)
	names, curves := l.curves(point)
	for _, name := range names {
		if err := addDeviations(p, rowStyles[name], curves[name]); err != nil {
			return nil, err
		}
	}
	widen(&p.Y, leastSpan)
	return p, nil
}

// lineFigure is panels of curves, with the legend of the rows.
func (l *lab) lineFigure(panels []*plot.Plot) *figure {
	f := &figure{columns: min(len(panels), 3), width: panelWidth, height: panelHeight, panels: panels, legendWidth: experimentLegend}
	names, _ := l.curves(func(*measurement) deviation { return deviation{} })
	for _, name := range names {
		f.legend = append(f.legend, rowStyles[name])
	}
	return f
}

func drawConvergence(l *lab) (*figure, error) {
	sweeps := func(m *measurement) float64 { return float64(m.Sweeps) }
	// The objectives of the methods are not on one scale: only how they fall compares.
	first, least := map[string]float64{}, map[string]float64{}
	for _, m := range l.rows {
		if _, ok := first[m.Row]; !ok {
			first[m.Row], least[m.Row] = m.Objective, m.Objective
		}
		least[m.Row] = min(least[m.Row], m.Objective)
	}
	p, err := l.linePanel("objective", "sweeps", "1: after the first sweep, 0: least", func(m *measurement) deviation {
		part := 0.0
		if fall := first[m.Row] - least[m.Row]; fall > 0 {
			part = (m.Objective - least[m.Row]) / fall
		}
		return deviation{XY: plotter.XY{X: sweeps(m), Y: part}}
	})
	panels := []*plot.Plot{p}
	for i, pair := range l.pairs {
		if err == nil {
			p, err = l.linePanel(l.directions[i], "sweeps", "mAP", func(m *measurement) deviation {
				// Without bars, which would hide the curves: seeds differ alike in every sweep.
				return deviation{XY: plotter.XY{X: sweeps(m), Y: m.Retrieval[pair].MAP}}
			})
			panels = append(panels, p)
		}
	}
	if err != nil {
		return nil, err
	}
	last := 1
	for _, m := range l.rows {
		last = max(last, m.Sweeps)
	}
	for _, p := range panels {
		p.X.Min, p.X.Max, p.X.Tick.Marker = 1, float64(max(last, 2)), sweepTicks(last)
	}
	return l.lineFigure(panels), nil
}

func drawBits(l *lab) (*figure, error) {
	var panels []*plot.Plot
	for i, pair := range l.pairs {
		p, err := l.linePanel(l.directions[i], "bits", "mAP", func(m *measurement) deviation {
			r := m.Retrieval[pair]
			return deviation{plotter.XY{X: float64(m.Bits), Y: r.MAP}, r.MAPStd}
		})
		if err != nil {
			return nil, err
		}
		p.X.Tick.Marker = ticksAt(l.grid["bits"])
		panels = append(panels, p)
	}
	return l.lineFigure(panels), nil
}

func drawSizes(l *lab) (*figure, error) {
	items := func(m *measurement) float64 { return float64(m.TrainItems) }
	var ticks []float64
	for _, m := range l.rows {
		ticks = append(ticks, items(m))
	}
	var panels []*plot.Plot
	for i, pair := range l.pairs {
		p := newPanel(l.directions[i], "labelled items", "mAP")
		var hamming, asymmetric []deviation
		for _, m := range l.rows {
			r := m.Retrieval[pair]
			hamming = append(hamming, deviation{plotter.XY{X: items(m), Y: r.MAP}, r.MAPStd})
			asymmetric = append(asymmetric, deviation{plotter.XY{X: items(m), Y: r.MAPAsym}, r.MAPAsymStd})
		}
		if err := addDeviations(p, hammingStyle, hamming); err != nil {
			return nil, err
		}
		if err := addDeviations(p, asymmetricStyle, asymmetric); err != nil {
			return nil, err
		}
		panels = append(panels, p)
	}
	p := newPanel("training", "labelled items", "seconds")
	var seconds []deviation
	for _, m := range l.rows {
		seconds = append(seconds, deviation{plotter.XY{X: items(m), Y: m.Seconds}, m.SecondsStd})
	}
	if err := addDeviations(p, curveStyle{"", color.Gray{80}, nil, draw.SquareGlyph{}}, seconds); err != nil {
		return nil, err
	}
	panels = append(panels, p)
	for _, p := range panels {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, ticksAt(ticks)
		widen(&p.Y, leastSpan)
	}
	return &figure{
		columns: min(len(panels), 3), width: panelWidth, height: panelHeight, panels: panels,
		legend: []curveStyle{hammingStyle, asymmetricStyle}, legendWidth: legendWidth,
	}, nil
}

// drawAblation marks mAP of both orders beside the name of each row.
func drawAblation(l *lab) (*figure, error) {
	f := &figure{
		columns: min(len(l.pairs), 2), width: panelWidth, height: vg.Length(70 + 17*len(l.rows)),
		legend: []curveStyle{markOnly(hammingStyle), markOnly(asymmetricStyle)}, legendWidth: legendWidth,
	}
	var names []string
	for i := range l.rows {
		names = append(names, l.rows[len(l.rows)-1-i].Row)
	}
	for i, pair := range l.pairs {
		p := newPanel(l.directions[i], "mAP", "")
		for _, order := range []struct {
			style curveStyle
			above float64
			mean  func(r retrieval) (mean, std float64)
		}{
			{hammingStyle, .12, func(r retrieval) (float64, float64) { return r.MAP, r.MAPStd }},
			{asymmetricStyle, -.12, func(r retrieval) (float64, float64) { return r.MAPAsym, r.MAPAsymStd }},
		} {
			var points plotter.XYs
			var errors plotter.XErrors
			for i, m := range l.rows {
				mean, std := order.mean(m.Retrieval[pair])
				points = append(points, plotter.XY{X: mean, Y: float64(len(l.rows)-1-i) + order.above})
				errors = append(errors, struct{ Low, High float64 }{std, std})
			}
			bars, err := plotter.NewXErrorBars(struct {
				plotter.XYs
				plotter.XErrors
			}{points, errors})
			if err != nil {
				return nil, err
			}
			bars.LineStyle, bars.CapWidth = draw.LineStyle{Color: faint(order.style.color), Width: 1}, 0
			_, marks, err := order.style.plotters(points)
			if err != nil {
				return nil, err
			}
			p.Add(bars, marks)
		}
		widen(&p.X, leastSpan)
		p.NominalY(names...)
		p.Y.Min, p.Y.Max = -.6, float64(len(names))-.4
		f.panels = append(f.panels, p)
	}
	return f, nil
}

// drawSensitivity is a map of mu and theta for each delta.
func drawSensitivity(l *lab) (*figure, error) {
	mus, thetas, deltas := l.grid["mu"], l.grid["theta"], l.grid["delta"]
	f := &figure{
		columns: len(deltas),
		width:   max(150, vg.Length(60+27*len(thetas))), height: vg.Length(66 + 27*len(mus)),
	}
	for i, pair := range l.pairs {
		low, high := math.Inf(1), math.Inf(-1)
		for _, m := range l.rows {
			low, high = min(low, m.Retrieval[pair].MAP), max(high, m.Retrieval[pair].MAP)
		}
		rows := l.rows
		for _, delta := range deltas {
			p := newPanel(fmt.Sprintf("%s, delta %s", l.directions[i], short(delta)), "", "mu")
			n := min(len(rows), len(mus)*len(thetas))
			cells := heatCells{low: min(low, high-leastSpan), high: high}
			for j, m := range rows[:n] {
				cells.cells = append(cells.cells, heatCell{j % len(thetas), j / len(thetas), m.Retrieval[pair].MAP})
			}
			rows = rows[n:]
			p.Add(cells)
			p.X.Tick.Length, p.Y.Tick.Length = 0, 0
			p.Y.Tick.Marker = namedTicks(mus)
			p.X.Tick.Marker = plot.ConstantTicks{}
			if len(l.modalities) > 1 {
				p.X.Label.Text, p.X.Tick.Marker = "theta", namedTicks(thetas)
			}
			f.panels = append(f.panels, p)
		}
	}
	return f, nil
}

// namedTicks names the columns or rows of cells.
func namedTicks(values []float64) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for i, v := range values {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: short(v)})
	}
	return ticks
}

// short spells a number without the zeros of its exponent.
func short(x float64) string {
	return strings.NewReplacer("e-0", "e-", "e+0", "e", "e+", "e").Replace(weight(x).String())
}
