package chart

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// CheckPath returns an error unless a path ends in .svg, or is empty for no plot.
func CheckPath(path string) error {
	switch ext := strings.ToLower(filepath.Ext(path)); {
	case path == "", ext == ".svg":
		return nil
	default:
		return fmt.Errorf("--plot %s: a .svg file is drawn", path)
	}
}

// A Figure is panels in rows. Each row has its legend beside it, where it covers no
// curve. Sizes are in points.
type Figure struct {
	Columns       int
	Width, Height vg.Length // of a panel
	Panels        []*plot.Plot
	Legend        []CurveStyle // of every row
	LegendWidth   vg.Length
}

// Sizes of a panel of curves, and of the margins around it, in points.
const (
	PanelWidth  = 285
	PanelHeight = 220
	panelGap    = 10
	panelMargin = 6
	LegendWidth = 88 // for styles with short names
)

// Write draws the figure as SVG. Equal figures give equal bytes.
func (f *Figure) Write(w io.Writer) error {
	rows := (len(f.Panels) + f.Columns - 1) / f.Columns
	width, height := vg.Length(f.Columns)*f.Width+f.LegendWidth, vg.Length(rows)*f.Height
	var b bytes.Buffer
	c := vgsvg.New(width, height)
	if err := f.draw(draw.New(c)); err != nil {
		return err
	}
	if _, err := c.WriteTo(&b); err != nil {
		return err
	}
	// If the font is missing a reader shows a similar one.
	_, err := w.Write(bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")))
	return err
}

func (f *Figure) draw(c draw.Canvas) error {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	for i, p := range f.Panels {
		column, top := i%f.Columns, c.Max.Y-vg.Length(i/f.Columns)*f.Height
		left := vg.Length(column) * f.Width
		p.Draw(draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
			Min: vg.Point{X: left + panelMargin, Y: top - f.Height + panelMargin},
			Max: vg.Point{X: left + f.Width - panelGap, Y: top - panelMargin},
		}})
		if column > 0 {
			continue
		}
		l, err := curveLegend(f.Legend)
		if err != nil {
			return err
		}
		l.Draw(draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
			Min: vg.Point{X: c.Max.X - f.LegendWidth, Y: top - f.Height},
			Max: vg.Point{X: c.Max.X, Y: top - 28},
		}})
	}
	return nil
}

// NewPanel returns an empty panel. Its axes take their range from the curves that are
// added to it.
func NewPanel(title, x, y string) *plot.Plot {
	p := plot.New()
	Sans(&p.Title.TextStyle.Font, 11)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		Sans(&a.Label.TextStyle.Font, 10)
		Sans(&a.Tick.Label.Font, 9)
	}
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.Padding = 6
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{225}, color.Gray{225}
	p.Add(grid)
	return p
}

// Sans is the typeface of all figures.
func Sans(f *font.Font, size vg.Length) { f.Typeface, f.Variant, f.Size = "Liberation", "Sans", size }
