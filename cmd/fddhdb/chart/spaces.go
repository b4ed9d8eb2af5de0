package chart

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"maps"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/db"
)

// plottedSpaces bounds the spaces that are drawn, each in up to three rows.
const plottedSpaces = 8

// WriteSpaces draws the training and the revisions of the latest spaces.
func WriteSpaces(w io.Writer, path string, spaces []db.SpaceInfo) error {
	f := &Figure{Columns: 2, Width: PanelWidth, Height: PanelHeight, LegendWidth: LegendWidth, rowLegends: [][]CurveStyle{}}
	var some []*db.SpaceInfo
	for i := range spaces {
		if s := &spaces[i]; trainingIsKnown(s) || len(driftNames(s)) > 0 {
			some = append(some, s)
		}
	}
	if n := len(some); n > plottedSpaces {
		f.caption = fmt.Sprintf("the latest %d of %d spaces; --space N draws another", plottedSpaces, n)
		some = some[n-plottedSpaces:]
	}
	for _, s := range some {
		if err := f.addTraining(s); err != nil {
			return err
		}
		if err := f.addDrift(s); err != nil {
			return err
		}
	}
	if len(some) == 0 {
		return exit.Failedf("--plot: no space has figures of a training, or of revisions: there is nothing to draw")
	}
	return f.Write(w, path)
}

// trainingStyle is the style of values that are not by modality.
var trainingStyle = CurveStyle{"", color.Gray{70}, nil, draw.SquareGlyph{}}

// addTraining adds a row about the sweeps of a training: objective and mAP.
func (f *Figure) addTraining(s *db.SpaceInfo) error {
	t := s.Training
	if !trainingIsKnown(s) {
		return nil
	}
	objective := NewPanel(fmt.Sprintf("space %d: training", s.Space), "sweep", "objective")
	if err := addCurve(objective, trainingStyle, sweepLine(t.Objective)); err != nil {
		return err
	}
	objective.Y.Tick.Marker = briefTicks{}
	Widen(&objective.Y, 1e-3*max(objective.Y.Max, 1))
	f.Panels = append(f.Panels, objective, nil)
	if len(t.SweepMAP) > 0 {
		retrieval := NewPanel(fmt.Sprintf("space %d: items held out", s.Space), "sweep", "mAP")
		if err := addCurve(retrieval, trainingStyle, sweepLine(t.SweepMAP)); err != nil {
			return err
		}
		Widen(&retrieval.Y, LeastSpan)
		f.Panels[len(f.Panels)-1] = retrieval
	}
	last := len(t.Objective)
	for _, p := range f.Panels[len(f.Panels)-2:] {
		if p != nil {
			p.X.Min, p.X.Max, p.X.Tick.Marker = 1, float64(max(last, 2)), SweepTicks(last)
		}
	}
	f.rowLegends = append(f.rowLegends, nil)
	return nil
}

func trainingIsKnown(s *db.SpaceInfo) bool { return s.Training != nil && len(s.Training.Objective) > 0 }

// sweepLine returns a point a sweep, from the first.
func sweepLine(values []float64) (line plotter.XYs) {
	for i, v := range values {
		line = append(line, plotter.XY{X: float64(i + 1), Y: v})
	}
	return line
}

// briefTicks writes large numbers briefly.
type briefTicks struct{}

// Ticks implements plot.Ticker.
func (briefTicks) Ticks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = briefly(ticks[i].Value)
		}
	}
	return ticks
}

// driftPanels show the new items of each revision of a space: how badly the projections
// knew them, their distances to others, how well they found each other, and the balance
// of the bits of their codes.
type driftPanels struct{ residual, nearest, retrieval, balance *plot.Plot }

// addDrift adds two rows about new items.
func (f *Figure) addDrift(s *db.SpaceInfo) error {
	names := driftNames(s)
	if len(names) == 0 {
		return nil
	}
	title := fmt.Sprintf("space %d: items that came", s.Space)
	panels := driftPanels{
		NewPanel(title, "revision", "residual"), NewPanel(title, "revision", "bits to the nearest: p50, bar to p90"),
		NewPanel(title, "revision", "mAP"), NewPanel(title, "revision", "bit balance"),
	}
	var legend []CurveStyle
	for i, name := range names {
		style := seriesStyle(i, name)
		legend = append(legend, style)
		// Bars stand beside each other, so that none hides another.
		beside := (float64(i) - float64(len(names)-1)/2) * min(.15, .6/float64(len(names)))
		if err := panels.add(style, s.Revisions, name, beside); err != nil {
			return err
		}
	}
	first, last := s.Revisions[0].Revision, s.Revisions[len(s.Revisions)-1].Revision
	all := []*plot.Plot{panels.residual, panels.nearest, panels.retrieval, panels.balance}
	for _, p := range all {
		p.X.Min, p.X.Max = float64(first)-.4, float64(max(last, first+1))+.4
		p.X.Tick.Marker = revisionTicks(s.Revisions)
		p.Y.Min, p.Y.Max = 0, max(p.Y.Max*1.06, .01)
	}
	panels.nearest.Y.Max = max(panels.nearest.Y.Max, 1)
	for _, p := range all[2:] {
		p.Y.Max, p.Y.Tick.Marker = 1, shareTicks
	}
	f.Panels = append(f.Panels, all...)
	f.rowLegends = append(f.rowLegends, append(legend, overallStyle(CurveStyle{Name: "overall", Color: color.Gray{110}})), legend)
	return nil
}

// RevisionModalities returns the modalities for which a revision has figures, "" if
// there are none.
func RevisionModalities(r *db.RevisionInfo) []string {
	known := map[string]bool{}
	for name := range r.Residual {
		known[name] = true
	}
	if r.Drift != nil {
		for name := range r.Drift.Modalities {
			known[name] = true
		}
	}
	if len(known) == 0 {
		return []string{""}
	}
	return slices.Sorted(maps.Keys(known))
}

// driftNames returns the modalities with something to draw.
func driftNames(s *db.SpaceInfo) []string {
	known := map[string]bool{}
	for i := range s.Revisions {
		for _, name := range RevisionModalities(&s.Revisions[i]) {
			known[name] = name != ""
		}
	}
	maps.DeleteFunc(known, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(known))
}

// overallStyle is the style of the residual over all items that have taught. The residual
// over new items has style s.
func overallStyle(s CurveStyle) CurveStyle {
	s.Dashes, s.Glyph, s.Color = []vg.Length{1, 3}, nil, Faint(s.Color)
	return s
}

// add draws one modality. The values that a training has measured on its own items are
// separate marks: no later item is as near.
func (d *driftPanels) add(style CurveStyle, revisions []db.RevisionInfo, modality string, beside float64) error {
	var overall plotter.XYs
	// [0] is of the training's items, [1] of new items.
	var residual, retrieval, balance [2]plotter.XYs
	var nearest [2][]Spread
	for i := range revisions {
		r := &revisions[i]
		at := func(y float64) plotter.XY { return plotter.XY{X: float64(r.Revision), Y: y} }
		if x, has := r.Residual[modality]; has {
			overall = append(overall, at(x))
		}
		if r.Drift == nil {
			continue
		}
		of, came := r.Drift.Modalities[modality], 1
		if r.Drift.Trained {
			came = 0
		}
		if of.Residual != nil {
			residual[came] = append(residual[came], at(*of.Residual))
		}
		if of.MAP != nil {
			retrieval[came] = append(retrieval[came], at(*of.MAP))
		}
		if of.Balance != nil {
			balance[came] = append(balance[came], at(of.Balance.BitBalance))
		}
		if of.Nearest != nil {
			half := at(float64(of.Nearest.P50))
			half.X += beside
			nearest[came] = append(nearest[came], Spread{half, float64(of.Nearest.P90)})
		}
	}
	if err := addCurve(d.residual, overallStyle(style), overall); err != nil {
		return err
	}
	for came := range 2 {
		err := errors.Join(addCurve(d.residual, style, residual[came]), addCurve(d.retrieval, style, retrieval[came]),
			addCurve(d.balance, style, balance[came]), AddSpreads(d.nearest, style, nearest[came]))
		if err != nil {
			return err
		}
	}
	return nil
}

// revisionTicks returns ticks at the revisions, as there is room. The first
// revision has a name if a training or a reindex has made it.
func revisionTicks(revisions []db.RevisionInfo) plot.ConstantTicks {
	first, last := float64(revisions[0].Revision), float64(revisions[len(revisions)-1].Revision)
	name := TicksAt([]float64{first})[0]
	if d := revisions[0].Drift; d != nil && d.Trained {
		name.Label += " (trained)"
	}
	// The name takes some room.
	return append(plot.ConstantTicks{name}, slices.DeleteFunc(CountTicks(int(first), int(last)), func(t plot.Tick) bool {
		return t.Value-first < max(1, (last-first)/4)
	})...)
}
