package chart

import (
	"cmp"
	"image/color"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

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
	AsymmetricStyle = CurveStyle{Name: "asymmetric", Color: Vermillion, Dashes: []vg.Length{6, 3}, Glyph: draw.TriangleGlyph{}}
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
