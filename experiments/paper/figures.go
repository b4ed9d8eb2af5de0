package paper

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/fddhdb/fddhdb/experiments/chart"
)

// rowStyles are the styles of rows that are drawn as curves.
var rowStyles = []chart.CurveStyle{
	{Name: "labels", Color: chart.Blue, Glyph: draw.CircleGlyph{}},
	{Name: "joint", Color: chart.Vermillion, Dashes: []vg.Length{6, 3}, Glyph: draw.TriangleGlyph{}},
	{Name: "paper", Color: chart.Green, Dashes: []vg.Length{2, 2}, Glyph: draw.SquareGlyph{}},
}

func drawConvergence(l *lab) (*chart.Figure, error) {
	// The objectives of the methods have different scales: only their fall compares.
	first, least := map[string]float64{}, map[string]float64{}
	for _, m := range l.rows {
		if _, ok := first[m.Row]; !ok {
			first[m.Row], least[m.Row] = m.Objective, m.Objective
		}
		least[m.Row] = min(least[m.Row], m.Objective)
	}
	f := &chart.Figure{Columns: min(1+len(l.pairs), 3), Width: chart.PanelWidth, Height: chart.PanelHeight,
		LegendWidth: 84}
	// Bars of deviations would hide the curves: seeds differ alike in every sweep.
	for i := range 1 + len(l.pairs) {
		title, y := "objective", "1: after the first sweep, 0: least"
		if i > 0 {
			title, y = l.directions[i-1], "mAP"
		}
		p, last := chart.NewPanel(title, "sweeps", y), 1
		for _, style := range rowStyles {
			var points plotter.XYs
			for _, m := range l.rows {
				if m.Row != style.Name {
					continue
				}
				part := (m.Objective - least[m.Row]) / max(first[m.Row]-least[m.Row], 1e-300)
				if i > 0 {
					part = m.Retrieval[l.pairs[i-1]].MAP
				}
				points, last = append(points, plotter.XY{X: float64(m.Sweeps), Y: part}), max(last, m.Sweeps)
			}
			if err := chart.AddCurve(p, style, points); err != nil {
				return nil, err
			}
			if i == 0 && len(points) > 0 {
				f.Legend = append(f.Legend, style)
			}
		}
		chart.Widen(&p.Y, chart.LeastSpan)
		p.X.Min, p.X.Max = 0, float64(max(last, 4)) // 4: whole numbers at the ticks
		f.Panels = append(f.Panels, p)
	}
	return f, nil
}

// drawAblation marks the mAP of both orders beside the name of each row.
func drawAblation(l *lab) (*chart.Figure, error) {
	f := &chart.Figure{
		Columns: min(len(l.pairs), 2), Width: chart.PanelWidth, Height: vg.Length(70 + 17*len(l.rows)),
		Legend: []chart.CurveStyle{chart.MarkOnly(chart.HammingStyle),
			chart.MarkOnly(chart.AsymmetricStyle)},
		LegendWidth: chart.LegendWidth,
	}
	var names []string
	for i := range l.rows {
		names = append(names, l.rows[len(l.rows)-1-i].Row)
	}
	for i, pair := range l.pairs {
		p := chart.NewPanel(l.directions[i], "mAP", "")
		for _, order := range []struct {
			style chart.CurveStyle
			above float64
			mean  func(r retrieval) (mean, std float64)
		}{
			{chart.HammingStyle, .12, func(r retrieval) (float64, float64) { return r.MAP, r.MAPStd }},
			{chart.AsymmetricStyle, -.12, func(r retrieval) (float64, float64) {
				return r.MAPAsym,
					r.MAPAsymStd
			}},
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
			bars.LineStyle, bars.CapWidth = draw.LineStyle{Color: chart.Faint(order.style.Color), Width: 1}, 0
			_, marks, err := order.style.Plotters(points)
			if err != nil {
				return nil, err
			}
			p.Add(bars, marks)
		}
		chart.Widen(&p.X, chart.LeastSpan)
		p.NominalY(names...)
		p.Y.Min, p.Y.Max = -.6, float64(len(names))-.4
		f.Panels = append(f.Panels, p)
	}
	return f, nil
}

// drawSensitivity draws a heat map of mu and theta for each delta.
func drawSensitivity(l *lab) (*chart.Figure, error) {
	mus, thetas, deltas := l.grid["mu"], l.grid["theta"], l.grid["delta"]
	f := &chart.Figure{
		Columns: len(deltas),
		Width:   max(150, vg.Length(60+27*len(thetas))), Height: vg.Length(66 + 27*len(mus)),
	}
	for i, pair := range l.pairs {
		low, high := math.Inf(1), math.Inf(-1)
		for _, m := range l.rows {
			low, high = min(low, m.Retrieval[pair].MAP), max(high, m.Retrieval[pair].MAP)
		}
		rows := l.rows
		for _, delta := range deltas {
			p := chart.NewPanel(fmt.Sprintf("%s, delta %s", l.directions[i], short(delta)), "", "mu")
			n := min(len(rows), len(mus)*len(thetas))
			cells := chart.HeatCells{Low: min(low, high-chart.LeastSpan), High: high}
			for j, m := range rows[:n] {
				cells.Cells = append(cells.Cells, chart.HeatCell{Column: j % len(thetas),
					Row: j / len(thetas), Value: m.Retrieval[pair].MAP})
			}
			rows = rows[n:]
			p.Add(cells)
			p.X.Tick.Length, p.Y.Tick.Length = 0, 0
			p.Y.Tick.Marker = namedTicks(mus)
			p.X.Tick.Marker = plot.ConstantTicks{}
			if len(l.modalities) > 1 {
				p.X.Label.Text, p.X.Tick.Marker = "theta", namedTicks(thetas)
			}
			f.Panels = append(f.Panels, p)
		}
	}
	return f, nil
}

// namedTicks returns the names of the columns or rows of cells.
func namedTicks(values []float64) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for i, v := range values {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: short(v)})
	}
	return ticks
}

// short returns a number without zeros in its exponent.
func short(x float64) string {
	return strings.NewReplacer("e-0", "e-", "e+0", "e", "e+", "e").Replace(weight(x).String())
}
