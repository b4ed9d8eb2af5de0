package command

import (
	"bytes"
	"image/color"
	"io"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
)

// checkPlot refuses what is neither .svg nor .png; "" is no plot.
func checkPlot(path string) error {
	switch ext := strings.ToLower(filepath.Ext(path)); {
	case path == "", ext == ".svg", ext == ".png":
		return nil
	default:
		return exit.Usagef("--plot %s: a .svg or .png file is drawn", path)
	}
}

// A figure is panels in rows, each row with a legend beside it, so that it covers no
// curve. Sizes are in points.
type figure struct {
	caption       string // above it; "" is none
	columns       int
	width, height vg.Length      // of a panel
	panels        []*plot.Plot   // nil leaves a place free
	legend        []curveStyle   // of every row; nil: none
	rowLegends    [][]curveStyle // in its place, where they differ
	legendWidth   vg.Length
}

// The size of a panel of curves in points, and what is left free around it.
const (
	panelWidth  = 285
	panelHeight = 220
	panelGap    = 10
	panelMargin = 6
	captionSize = 24
	legendWidth = 88 // of styles with short names
)

// write draws the figure in the format of the ending of path. Equal figures give
// equal bytes.
func (f *figure) write(w io.Writer, path string) error {
	rows := (len(f.panels) + f.columns - 1) / f.columns
	width, height := vg.Length(f.columns)*f.width+f.legendWidth, vg.Length(rows)*f.height
	if f.caption != "" {
		height += captionSize
	}
	var b bytes.Buffer
	if strings.EqualFold(filepath.Ext(path), ".png") {
		c := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(144))}
		if err := f.draw(draw.New(c)); err != nil {
			return err
		}
		if _, err := c.WriteTo(&b); err != nil {
			return err
		}
	} else {
		c := vgsvg.New(width, height)
		if err := f.draw(draw.New(c)); err != nil {
			return err
		}
		if _, err := c.WriteTo(&b); err != nil {
			return err
		}
	}
	// Who has not got the font is to see one like it.
	_, err := w.Write(bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")))
	return err
}

func (f *figure) draw(c draw.Canvas) error {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	if f.caption != "" {
		style := draw.TextStyle{Color: color.Black, Font: plot.DefaultFont, Handler: plot.DefaultTextHandler}
		sans(&style.Font, 10)
		c.FillText(style, vg.Point{X: panelMargin, Y: c.Max.Y - captionSize + panelMargin}, f.caption)
		c.Max.Y -= captionSize
	}
	for i, p := range f.panels {
		column, top := i%f.columns, c.Max.Y-vg.Length(i/f.columns)*f.height
		left := vg.Length(column) * f.width
		if p != nil {
			p.Draw(draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
				Min: vg.Point{X: left + panelMargin, Y: top - f.height + panelMargin},
				Max: vg.Point{X: left + f.width - panelGap, Y: top - panelMargin},
			}})
		}
		legend := f.legend
		if f.rowLegends != nil {
			legend = f.rowLegends[i/f.columns]
		}
		if column > 0 || legend == nil {
			continue
		}
		l, err := curveLegend(legend)
		if err != nil {
			return err
		}
		l.Draw(draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
			Min: vg.Point{X: c.Max.X - f.legendWidth, Y: top - f.height},
			Max: vg.Point{X: c.Max.X, Y: top - 28},
		}})
	}
	return nil
}

// newPanel returns an empty panel; its axes take their range from what is added.
func newPanel(title, x, y string) *plot.Plot {
	p := plot.New()
	sans(&p.Title.TextStyle.Font, 11)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		sans(&a.Label.TextStyle.Font, 10)
		sans(&a.Tick.Label.Font, 9)
	}
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.Padding = 6
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{225}, color.Gray{225}
	p.Add(grid)
	return p
}

// sans is the typeface of all figures.
func sans(f *font.Font, size vg.Length) { f.Typeface, f.Variant, f.Size = "Liberation", "Sans", size }
