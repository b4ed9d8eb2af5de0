package command

import (
	"fmt"
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// heatCells is a plotter of squares with numbers in them.
type heatCells struct {
	cells     []heatCell
	low, high float64
}

type heatCell struct {
	column, row int
	value       float64
}

// DataRange implements plot.DataRanger.
func (h heatCells) DataRange() (xmin, xmax, ymin, ymax float64) {
	for _, c := range h.cells {
		xmax, ymax = max(xmax, float64(c.column)), max(ymax, float64(c.row))
	}
	return -.5, xmax + .5, -.5, ymax + .5
}

// Plot implements plot.Plotter.
func (h heatCells) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, cell := range h.cells {
		at := func(dx, dy float64) vg.Point {
			return vg.Point{X: x(float64(cell.column) + dx), Y: y(float64(cell.row) + dy)}
		}
		heat := (cell.value - h.low) / (h.high - h.low)
		c.FillPolygon(heatColor(heat), []vg.Point{at(-.5, -.5), at(.5, -.5), at(.5, .5), at(-.5, .5)})
		style := text.Style{Color: color.Black, XAlign: draw.XCenter, YAlign: draw.YCenter, Handler: plot.DefaultTextHandler}
		sans(&style.Font, 8)
		if heat > .5 {
			style.Color = color.White
		}
		c.FillText(style, at(0, 0), strings.TrimPrefix(fmt.Sprintf("%.3f", cell.value), "0"))
	}
}

// heatColor goes from nearly white to dark blue.
func heatColor(heat float64) color.Color {
	from, to := [3]float64{240, 246, 252}, [3]float64{8, 69, 130}
	var c [3]uint8
	for i := range c {
		c[i] = uint8(from[i] + (to[i]-from[i])*min(max(heat, 0), 1))
	}
	return color.RGBA{c[0], c[1], c[2], 255}
}
