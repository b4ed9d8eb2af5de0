package main

import (
	"bytes"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// These are sizes in points. The legend stands beside the panels and covers no curve.
const (
	panelWidth  = 300
	panelHeight = 260
	legendWidth = 172
	margin      = 8
)

// These are colours that most people can tell apart (Okabe and Ito).
var (
	blue       = color.RGBA{0, 114, 178, 255}
	sky        = color.RGBA{86, 180, 233, 255}
	vermillion = color.RGBA{213, 94, 0, 255}
	green      = color.RGBA{0, 158, 115, 255}
	purple     = color.RGBA{204, 121, 167, 255}
)

// A look keeps curves apart, also without colour.
type look struct {
	color  color.Color
	dashes []vg.Length
	glyph  draw.GlyphDrawer // nil: no marks
}

// drawFigure draws mAP against the number of items seen, with a panel for each
// direction. The ending of path gives the format. Equal curves give equal bytes.
func drawFigure(path string, curves []*curve) error {
	const width, height = 2*panelWidth + legendWidth, panelHeight
	var canvas interface {
		vg.CanvasSizer
		vg.CanvasWriterTo
	}
	if strings.EqualFold(filepath.Ext(path), ".png") {
		canvas = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(144))}
	} else {
		canvas = vgsvg.New(width, height)
	}
	c := draw.New(canvas)
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	part := func(left, right vg.Length) draw.Canvas {
		return draw.Crop(draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
			Min: vg.Point{X: left}, Max: vg.Point{X: right, Y: height}}}, margin, -margin, margin, -margin)
	}
	for direction := range directions {
		p, err := panel(direction, curves)
		if err != nil {
			return err
		}
		left := vg.Length(direction) * panelWidth
		p.Draw(part(left, left+panelWidth))
	}
	if err := drawLegend(part(2*panelWidth, width), curves); err != nil {
		return err
	}
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return err
	}
	// If the font is not installed, the viewer shows a similar one.
	out := bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;"))
	return os.WriteFile(path, out, 0o666)
}

func panel(direction int, curves []*curve) (*plot.Plot, error) {
	p := plot.New()
	sans(&p.Title.TextStyle.Font, 11)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		sans(&a.Label.TextStyle.Font, 10)
		sans(&a.Tick.Label.Font, 9)
	}
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = directions[direction], "items seen", "mAP"
	p.Title.Padding = 6
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{225}, color.Gray{225}
	p.Add(grid)
	for _, c := range curves {
		var points plotter.XYs
		for _, at := range c.points {
			points = append(points, plotter.XY{X: float64(at.items), Y: mean(at.maps[direction])})
		}
		line, marks, err := plotters(c.look, points)
		if err != nil {
			return nil, err
		}
		p.Add(line)
		if marks != nil {
			p.Add(marks)
		}
	}
	p.X.Min = 0
	room := .05 * (p.Y.Max - p.Y.Min)
	p.Y.Min, p.Y.Max = p.Y.Min-room, p.Y.Max+room
	p.Y.Tick.Marker = plot.TickerFunc(shareTicks)
	return p, nil
}

// shareTicks returns three to eight round numbers from low to high.
func shareTicks(low, high float64) (ticks []plot.Tick) {
	step := .2
	for _, finer := range []float64{.1, .05, .02, .01, .005} {
		if (high-low)/step < 4 {
			step = finer
		}
	}
	for i := math.Ceil(low / step); i*step <= high; i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: share(i * step)})
	}
	return ticks
}

// plotters returns what draws a curve. marks is nil if the look has none.
func plotters(look look, points plotter.XYs) (line *plotter.Line, marks *plotter.Scatter, err error) {
	line, marks, err = plotter.NewLinePoints(points)
	if err != nil {
		return nil, nil, err
	}
	line.LineStyle = draw.LineStyle{Color: look.color, Width: 1.5, Dashes: look.dashes}
	if look.glyph == nil {
		return line, nil, nil
	}
	marks.GlyphStyle = draw.GlyphStyle{Color: look.color, Radius: 2.4, Shape: look.glyph}
	return line, marks, nil
}

// drawLegend names the curves under their headings.
func drawLegend(c draw.Canvas, curves []*curve) error {
	for len(curves) > 0 {
		n := 1
		for n < len(curves) && curves[n].labelled == curves[0].labelled {
			n++
		}
		l := plot.NewLegend()
		sans(&l.TextStyle.Font, 10)
		l.Top, l.Left, l.ThumbnailWidth, l.Padding = true, true, 24, 4
		c.Max.Y -= l.TextStyle.FontExtents().Height
		c.FillText(l.TextStyle, vg.Point{X: c.Min.X, Y: c.Max.Y}, heading(curves[0])+":")
		c.Max.Y -= l.Padding
		for _, cv := range curves[:n] {
			line, marks, err := plotters(cv.look, plotter.XYs{{}})
			if err != nil {
				return err
			}
			if marks == nil {
				l.Add(cv.name, line)
			} else {
				l.Add(cv.name, line, marks)
			}
		}
		l.Draw(c)
		c.Max.Y -= l.Rectangle(c).Size().Y + 2*margin
		curves = curves[n:]
	}
	return nil
}

// sans sets the typeface of all figures.
func sans(f *font.Font, size vg.Length) { f.Typeface, f.Variant, f.Size = "Liberation", "Sans", size }
