package main

import (
	"math"
	"os"
	"strconv"

	"github.com/fddhdb/fddhdb/internal/svgchart"
)

// drawFigure draws mAP against the number of items seen, with a panel for each
// direction, as SVG. Equal curves give equal bytes.
func drawFigure(path string, curves []*curve) (err error) {
	var panels []svgchart.Panel
	for direction := range directions {
		panels = append(panels, panel(direction, curves))
	}
	var legend []svgchart.Style
	for i, c := range curves {
		if i == 0 || c.labelled != curves[i-1].labelled {
			legend = append(legend, svgchart.Style{Name: heading(c) + ":"})
		}
		legend = append(legend, c.style())
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	return svgchart.Write(f, panels, len(panels), legend, 190)
}

// style returns the look of a curve with its name.
func (c *curve) style() svgchart.Style {
	s := c.look
	s.Name = c.name
	return s
}

func panel(direction int, curves []*curve) svgchart.Panel {
	p := svgchart.Panel{Title: directions[direction], X: svgchart.Axis{Label: "items seen"},
		Y: svgchart.Axis{Label: "mAP", Min: 1}}
	for _, c := range curves {
		line := svgchart.Curve{Style: c.style()}
		for _, at := range c.points {
			point := svgchart.Point{X: float64(at.items), Y: mean(at.maps[direction])}
			p.X.Max, p.Y.Min, p.Y.Max = max(p.X.Max, point.X), min(p.Y.Min, point.Y), max(p.Y.Max, point.Y)
			line.Points = append(line.Points, point)
		}
		p.Curves = append(p.Curves, line)
	}
	room := max(.05*(p.Y.Max-p.Y.Min), .005)
	p.Y.Min, p.Y.Max = p.Y.Min-room, p.Y.Max+room
	p.Y.Ticks = shareTicks(p.Y.Min, p.Y.Max)
	for i := range 5 {
		items := p.X.Max * float64(i) / 4
		p.X.Ticks = append(p.X.Ticks, svgchart.Tick{At: items, Label: strconv.Itoa(int(items))})
	}
	return p
}

// shareTicks returns three to eight round numbers from low to high.
func shareTicks(low, high float64) (ticks []svgchart.Tick) {
	step := .2
	for _, finer := range []float64{.1, .05, .02, .01, .005} {
		if (high-low)/step < 4 {
			step = finer
		}
	}
	for i := math.Ceil(low / step); i*step <= high; i++ {
		ticks = append(ticks, svgchart.Tick{At: i * step, Label: share(i * step)})
	}
	return ticks
}
