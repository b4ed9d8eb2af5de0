package chart

import (
	"bytes"
	"cmp"
	"fmt"
	"image/color"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/outfile"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
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
	_, err := w.Write(bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")))
	return err
}

// Save writes the figure to a file, whole or not at all; the path "" writes nothing.
func (f *Figure) Save(path string) error {
	if path == "" {
		return nil
	}
	var out outfile.Set
	defer out.Discard()
	file, err := out.Create(path)
	if err == nil {
		err = f.Write(file)
	}
	if err != nil {
		return err
	}
	return out.Commit()
}

func (f *Figure) draw(c draw.Canvas) error {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	for i, p := range f.Panels {
		round(&p.X)
		round(&p.Y)
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

// TicksAt returns a tick at each value.
func TicksAt(values []float64) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for _, v := range values {
		ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', -1, 64)})
	}
	return ticks
}

// LeastSpan is the least difference in mAP that an axis, or the colours of a heat map,
// span: noise must not look like structure.
const LeastSpan = .03

// Widen makes an axis span at least least.
func Widen(a *plot.Axis, least float64) {
	room := max(0, (least-(a.Max-a.Min))/2)
	a.Min, a.Max = a.Min-room, a.Max+room
}

// round lets an axis without ticks of its own begin and end at round numbers, with ticks between.
func round(a *plot.Axis) {
	if _, none := a.Tick.Marker.(plot.DefaultTicks); none {
		ticks := RoundTicks(a.Min, a.Max)
		a.Tick.Marker, a.Min, a.Max = ticks, ticks[0].Value, ticks[len(ticks)-1].Value
	}
}

// RoundTicks returns 4 to 7 ticks at equal distances, from low or less to high or more. Their step is 1, 2,
// 2.5 or 5 times a power of ten. It is the step that leaves the least room at the ends, and of such the
// smallest.
func RoundTicks(low, high float64) (ticks plot.ConstantTicks) {
	if !(high > low) {
		low, high = low-.5, low+.5
	}
	decade := math.Floor(math.Log10((high - low) / 10))
	step, first, last, least := 0., 0., 0., math.Inf(1)
	for i := range 12 { // 12 steps, the first at most a tenth of the span, the last at least as long
		s := []float64{1, 2, 2.5, 5}[i%4] * math.Pow(10, decade+float64(i/4))
		const close = 1e-9 // what rounding leaves of a whole number of steps
		from, to := math.Floor(low/s+close), math.Ceil(high/s-close)
		room := (to-from)*s - (high - low)
		if n := to - from + 1; n >= 4 && n <= 7 && room < least-close*(high-low) {
			step, first, last, least = s, from, to, room
		}
	}
	decimals := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	if s := step * math.Pow(10, float64(decimals)); math.Abs(s-math.Round(s)) > 1e-6 {
		decimals++ // 2.5
	}
	for i := first; i <= last; i++ {
		at := i * step
		ticks = append(ticks, plot.Tick{Value: at, Label: strconv.FormatFloat(at, 'f', decimals, 64)})
	}
	return ticks
}

// A CurveStyle tells a curve from others, even without colour.
type CurveStyle struct {
	Name   string
	Color  color.Color
	Dashes []vg.Length
	Glyph  draw.GlyphDrawer // nil: none
	Width  vg.Length        // 0: that of most
}

// Colours that most people can tell apart (Okabe and Ito).
var (
	Blue       = color.RGBA{0, 114, 178, 255}
	Orange     = color.RGBA{230, 159, 0, 255}
	Vermillion = color.RGBA{213, 94, 0, 255}
	Green      = color.RGBA{0, 158, 115, 255}
	Purple     = color.RGBA{204, 121, 167, 255}
)

// Styles of the two orders of hits.
var (
	HammingStyle    = CurveStyle{Name: "Hamming", Color: Blue, Glyph: draw.CircleGlyph{}}
	AsymmetricStyle = CurveStyle{Name: "asymmetric", Color: Vermillion, Dashes: []vg.Length{6, 3},
		Glyph: draw.TriangleGlyph{}}
)

// AddCurve draws a line through points, if there are any.
func AddCurve(p *plot.Plot, s CurveStyle, points plotter.XYs) error {
	if len(points) == 0 {
		return nil
	}
	l, marks, err := s.Plotters(points)
	if err != nil {
		return err
	}
	p.Add(l)
	if marks != nil {
		p.Add(marks)
	}
	return nil
}

// Plotters returns the line through points and the marks at them; nil if the style has
// none.
func (s CurveStyle) Plotters(points plotter.XYs) (*plotter.Line, *plotter.Scatter, error) {
	l, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		return nil, nil, err
	}
	l.LineStyle = draw.LineStyle{Color: s.Color, Width: cmp.Or(s.Width, 1.5), Dashes: s.Dashes}
	if s.Glyph == nil {
		return l, nil, nil
	}
	marks.GlyphStyle = draw.GlyphStyle{Color: s.Color, Radius: max(2.2, s.Width/2), Shape: s.Glyph}
	return l, marks, nil
}

func curveLegend(styles []CurveStyle) (*plot.Legend, error) {
	legend := plot.NewLegend()
	Sans(&legend.TextStyle.Font, 10)
	legend.Top, legend.Left, legend.ThumbnailWidth, legend.Padding = true, true, 24, 3
	for _, s := range styles {
		l, marks, err := s.Plotters(plotter.XYs{{}})
		if err != nil {
			return nil, err
		}
		if marks == nil {
			legend.Add(s.Name, l)
		} else {
			legend.Add(s.Name, l, marks)
		}
	}
	return &legend, nil
}

// MarkOnly returns the style of points without a line.
func MarkOnly(s CurveStyle) CurveStyle {
	s.Dashes = []vg.Length{0, 1000}
	return s
}

// Faint returns a colour nearer to white.
func Faint(c color.Color) color.Color {
	r, g, b, _ := c.RGBA()
	mix := func(x uint32) uint8 { return uint8((x>>8 + 255) / 2) }
	return color.RGBA{mix(r), mix(g), mix(b), 255}
}

// DirectionOf returns the name of a pair of modalities.
func DirectionOf(from, to string) string { return shortName(from) + " → " + shortName(to) }

// shortName shortens a name that would run into the next panel.
func shortName(name string) string {
	const most = 10
	if runes := []rune(term.Plain(name)); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return term.Plain(name)
}

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
		style := text.Style{Color: color.Black, XAlign: draw.XCenter, YAlign: draw.YCenter,
			Handler: plot.DefaultTextHandler}
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
