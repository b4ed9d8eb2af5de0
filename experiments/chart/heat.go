package chart

import (
	"fmt"
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// HeatCells is a plotter of squares with numbers in them.
type HeatCells struct {
	Cells     []HeatCell
	Low, High float64
}

// A HeatCell is one square: its place, counted from the lower left, and its number.
type HeatCell struct {
	Column, Row int
	Value       float64
}

// DataRange implements plot.DataRanger.
func (h HeatCells) DataRange() (xmin, xmax, ymin, ymax float64) {
	for _, c := range h.Cells {
		xmax, ymax = max(xmax, float64(c.Column)), max(ymax, float64(c.Row))
	}
	return -.5, xmax + .5, -.5, ymax + .5
}

// Plot implements plot.Plotter.
func (h HeatCells) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, cell := range h.Cells {
		at := func(dx, dy float64) vg.Point {
			return vg.Point{X: x(float64(cell.Column) + dx), Y: y(float64(cell.Row) + dy)}
		}
		heat := (cell.Value - h.Low) / (h.High - h.Low)
		c.FillPolygon(heatColor(heat), []vg.Point{at(-.5, -.5), at(.5, -.5), at(.5, .5), at(-.5, .5)})
		style := text.Style{Color: color.Black, XAlign: draw.XCenter, YAlign: draw.YCenter, Handler: plot.DefaultTextHandler}
		Sans(&style.Font, 8)
		if heat > .5 {
			style.Color = color.White
		}
		c.FillText(style, at(0, 0), strings.TrimPrefix(fmt.Sprintf("%.3f", cell.Value), "0"))
	}
}

// heatColor returns a colour from nearly white to dark blue.
func heatColor(heat float64) color.Color {
	from, to := [3]float64{240, 246, 252}, [3]float64{8, 69, 130}
	var c [3]uint8
	for i := range c {
		c[i] = uint8(from[i] + (to[i]-from[i])*min(max(heat, 0), 1))
	}
	return color.RGBA{c[0], c[1], c[2], 255}
}
