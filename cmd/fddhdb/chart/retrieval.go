package chart

import (
	"image/color"
	"io"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/model"
)

var chanceStyle = CurveStyle{"chance", color.Gray{110}, []vg.Length{2, 3}, nil}

// WriteRetrieval draws the curves of an evaluation, two panels for each pair of
// modalities.
func WriteRetrieval(w io.Writer, path string, found []db.Retrieval) error {
	f := Figure{
		Columns: 2, Width: PanelWidth, Height: PanelHeight,
		Legend: []CurveStyle{HammingStyle, AsymmetricStyle, chanceStyle}, LegendWidth: LegendWidth,
	}
	for _, r := range found {
		for _, panel := range []func(db.Retrieval) (*plot.Plot, error){radiusPanel, topPanel} {
			p, err := panel(r)
			if err != nil {
				return err
			}
			f.Panels = append(f.Panels, p)
		}
	}
	return f.Write(w, path)
}

// precisionPanel returns a panel with precision on its vertical axis.
func precisionPanel(title, x string) *plot.Plot {
	p := NewPanel(title, x, "precision")
	p.Y.Min, p.Y.Max, p.Y.Tick.Marker = 0, 1, shareTicks
	return p
}

// radiusPanel draws precision against recall, a point a radius.
func radiusPanel(r db.Retrieval) (*plot.Plot, error) {
	p := precisionPanel(DirectionOf(r.From, r.To)+": within each radius", "recall")
	p.X.Min, p.X.Max, p.X.Tick.Marker = 0, 1, shareTicks
	var line plotter.XYs
	for _, point := range r.Hamming.ByRadius {
		xy := plotter.XY{X: point.Recall, Y: point.Precision}
		// An empty answer has no precision, and most radii add nothing to the one
		// before.
		if point.Retrieved > 0 && (len(line) == 0 || line[len(line)-1] != xy) {
			line = append(line, xy)
		}
	}
	if err := addCurve(p, chanceStyle, plotter.XYs{{X: 0, Y: chance(r)}, {X: 1, Y: chance(r)}}); err != nil {
		return nil, err
	}
	return p, addCurve(p, HammingStyle, line)
}

// topPanel draws precision of the first K.
func topPanel(r db.Retrieval) (*plot.Plot, error) {
	p := precisionPanel(DirectionOf(r.From, r.To)+": the first K", "K")
	p.X.Scale = plot.LogScale{}
	// All figures have the K of a large database, so that they compare at a glance.
	p.X.Min, p.X.Max = 1, 1000
	p.X.Tick.Marker = kTicks
	if err := addCurve(p, chanceStyle, plotter.XYs{{X: 1, Y: chance(r)}, {X: 1000, Y: chance(r)}}); err != nil {
		return nil, err
	}
	if err := addCurve(p, HammingStyle, topLine(r.Hamming.ByTop)); err != nil {
		return nil, err
	}
	return p, addCurve(p, AsymmetricStyle, topLine(r.Asymmetric.ByTop))
}

func topLine(points []model.TopPoint) plotter.XYs {
	var line plotter.XYs
	for _, p := range points {
		line = append(line, plotter.XY{X: float64(p.K), Y: p.Precision})
	}
	return line
}

// chance returns the precision of a random order, which is the precision of all items.
func chance(r db.Retrieval) float64 {
	if n := len(r.Hamming.ByRadius); n > 0 {
		return r.Hamming.ByRadius[n-1].Precision
	}
	return 0
}

var shareTicks, kTicks = func() (shares, ks plot.ConstantTicks) {
	for i := range 6 {
		x := float64(i) / 5
		shares = append(shares, plot.Tick{Value: x, Label: strconv.FormatFloat(x, 'f', 1, 64)})
	}
	for _, k := range []int{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000} {
		ks = append(ks, plot.Tick{Value: float64(k), Label: strconv.Itoa(k)})
	}
	return shares, ks
}()
