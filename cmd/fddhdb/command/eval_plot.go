package command

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/model"
)

// checkPlot refuses what is neither .svg nor .png; "" is no plot.
func checkPlot(path string) error {
	switch ext := strings.ToLower(filepath.Ext(path)); {
	case path == "", ext == ".svg", ext == ".png":
		return nil
	default:
		return usageErrorf("--plot %s: a .svg or .png file is drawn", path)
	}
}

// The size of a figure in points: for each pair of modalities a row of two panels
// and a legend beside them, so that it covers no curve.
const (
	panelWidth  = 285
	panelHeight = 220
	legendWidth = 88
	panelGap    = 10
	panelMargin = 6
)

// writePlot draws the curves of an evaluation. Equal figures give equal bytes.
func writePlot(w io.Writer, path string, found []db.Retrieval) error {
	width, height := vg.Length(2*panelWidth+legendWidth), vg.Length(panelHeight*len(found))
	var b bytes.Buffer
	if strings.EqualFold(filepath.Ext(path), ".png") {
		c := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(144))}
		if err := drawRetrievals(draw.New(c), found); err != nil {
			return err
		}
		if _, err := c.WriteTo(&b); err != nil {
			return err
		}
	} else {
		c := vgsvg.New(width, height)
		if err := drawRetrievals(draw.New(c), found); err != nil {
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

func drawRetrievals(c draw.Canvas, found []db.Retrieval) error {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	for i, r := range found {
		top := c.Max.Y - vg.Length(i*panelHeight)
		for panel, draws := range []func(db.Retrieval) (*plot.Plot, error){radiusPanel, topPanel} {
			p, err := draws(r)
			if err != nil {
				return err
			}
			left := vg.Length(panel * panelWidth)
			p.Draw(draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
				Min: vg.Point{X: left + panelMargin, Y: top - panelHeight + panelMargin},
				Max: vg.Point{X: left + panelWidth - panelGap, Y: top - panelMargin},
			}})
		}
		l, err := curveLegend()
		if err != nil {
			return err
		}
		l.Draw(draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
			Min: vg.Point{X: 2 * panelWidth, Y: top - panelHeight},
			Max: vg.Point{X: c.Max.X, Y: top - 28},
		}})
	}
	return nil
}

// A curveStyle keeps curves apart without colour, too.
type curveStyle struct {
	name   string
	color  color.Color
	dashes []vg.Length
	glyph  draw.GlyphDrawer // nil for none
}

// Colours that most people can tell apart (Okabe and Ito).
var (
	hammingStyle    = curveStyle{"Hamming", color.RGBA{0, 114, 178, 255}, nil, draw.CircleGlyph{}}
	asymmetricStyle = curveStyle{"asymmetric", color.RGBA{213, 94, 0, 255}, []vg.Length{6, 3}, draw.TriangleGlyph{}}
	chanceStyle     = curveStyle{"chance", color.Gray{110}, []vg.Length{2, 3}, nil}
)

// radiusPanel is precision against recall, a point a radius.
func radiusPanel(r db.Retrieval) (*plot.Plot, error) {
	p := newPanel(direction(r)+": within each radius", "recall")
	p.X.Min, p.X.Max, p.X.Tick.Marker = 0, 1, shareTicks
	var line plotter.XYs
	for _, point := range r.Hamming.ByRadius {
		xy := plotter.XY{X: point.Recall, Y: point.Precision}
		// Nothing has no precision, and most radii add nothing to the one before.
		if point.Retrieved > 0 && (len(line) == 0 || line[len(line)-1] != xy) {
			line = append(line, xy)
		}
	}
	if err := addCurve(p, chanceStyle, plotter.XYs{{X: 0, Y: chance(r)}, {X: 1, Y: chance(r)}}); err != nil {
		return nil, err
	}
	return p, addCurve(p, hammingStyle, line)
}

// topPanel is precision of the first K.
func topPanel(r db.Retrieval) (*plot.Plot, error) {
	p := newPanel(direction(r)+": the first K", "K")
	p.X.Scale = plot.LogScale{}
	// Room for the K of a small database as for those of a large one: figures
	// compare at a glance.
	p.X.Min, p.X.Max = 1, 1000
	p.X.Tick.Marker = kTicks
	if err := addCurve(p, chanceStyle, plotter.XYs{{X: 1, Y: chance(r)}, {X: 1000, Y: chance(r)}}); err != nil {
		return nil, err
	}
	if err := addCurve(p, hammingStyle, topLine(r.Hamming.ByTop)); err != nil {
		return nil, err
	}
	return p, addCurve(p, asymmetricStyle, topLine(r.Asymmetric.ByTop))
}

func topLine(points []model.TopPoint) plotter.XYs {
	var line plotter.XYs
	for _, p := range points {
		line = append(line, plotter.XY{X: float64(p.K), Y: p.Precision})
	}
	return line
}

// chance is the precision of any order that knows nothing: that of all items.
func chance(r db.Retrieval) float64 {
	if n := len(r.Hamming.ByRadius); n > 0 {
		return r.Hamming.ByRadius[n-1].Precision
	}
	return 0
}

// direction names the pair; names that would run into the next panel are cut.
func direction(r db.Retrieval) string {
	cut := func(name string) string {
		const most = 10
		if runes := []rune(name); len(runes) > most {
			return string(runes[:most-1]) + "…"
		}
		return name
	}
	return fmt.Sprintf("%s → %s", cut(plain(r.From)), cut(plain(r.To)))
}

func newPanel(title, x string) *plot.Plot {
	p := plot.New()
	sans := func(f *font.Font, size vg.Length) { f.Typeface, f.Variant, f.Size = "Liberation", "Sans", size }
	sans(&p.Title.TextStyle.Font, 11)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		sans(&a.Label.TextStyle.Font, 10)
		sans(&a.Tick.Label.Font, 9)
	}
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, "precision"
	p.Title.Padding = 6
	p.Y.Min, p.Y.Max, p.Y.Tick.Marker = 0, 1, shareTicks
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{225}, color.Gray{225}
	p.Add(grid)
	return p
}

// addCurve draws a line through points, if there are any.
func addCurve(p *plot.Plot, s curveStyle, points plotter.XYs) error {
	if len(points) == 0 {
		return nil
	}
	l, marks, err := s.plotters(points)
	if err != nil {
		return err
	}
	p.Add(l)
	if marks != nil {
		p.Add(marks)
	}
	return nil
}

func (s curveStyle) plotters(points plotter.XYs) (*plotter.Line, *plotter.Scatter, error) {
	l, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		return nil, nil, err
	}
	l.LineStyle = draw.LineStyle{Color: s.color, Width: 1.5, Dashes: s.dashes}
	if s.glyph == nil {
		return l, nil, nil
	}
	marks.GlyphStyle = draw.GlyphStyle{Color: s.color, Radius: 2.2, Shape: s.glyph}
	return l, marks, nil
}

// curveLegend is the same beside every row.
func curveLegend() (*plot.Legend, error) {
	legend := plot.NewLegend()
	f := &legend.TextStyle.Font
	f.Typeface, f.Variant, f.Size = "Liberation", "Sans", 10
	legend.Top, legend.Left, legend.ThumbnailWidth, legend.Padding = true, true, 24, 3
	for _, s := range []curveStyle{hammingStyle, asymmetricStyle, chanceStyle} {
		l, marks, err := s.plotters(plotter.XYs{{}})
		if err != nil {
			return nil, err
		}
		if marks == nil {
			legend.Add(s.name, l)
		} else {
			legend.Add(s.name, l, marks)
		}
	}
	return &legend, nil
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
