package command

import (
	"image/color"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A curveStyle keeps curves apart without colour, too.
type curveStyle struct {
	name   string
	color  color.Color
	dashes []vg.Length
	glyph  draw.GlyphDrawer // nil for none
}

// Colours that most people can tell apart (Okabe and Ito).
var (
	blue       = color.RGBA{0, 114, 178, 255}
	vermillion = color.RGBA{213, 94, 0, 255}
	green      = color.RGBA{0, 158, 115, 255}
	purple     = color.RGBA{204, 121, 167, 255}
)

var (
	hammingStyle    = curveStyle{"Hamming", blue, nil, draw.CircleGlyph{}}
	asymmetricStyle = curveStyle{"asymmetric", vermillion, []vg.Length{6, 3}, draw.TriangleGlyph{}}
)

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

func curveLegend(styles []curveStyle) (*plot.Legend, error) {
	legend := plot.NewLegend()
	sans(&legend.TextStyle.Font, 10)
	legend.Top, legend.Left, legend.ThumbnailWidth, legend.Padding = true, true, 24, 3
	for _, s := range styles {
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

// markOnly is the style of points without a line.
func markOnly(s curveStyle) curveStyle {
	s.dashes = []vg.Length{0, 1000}
	return s
}

// faint is a colour nearer to white.
func faint(c color.Color) color.Color {
	r, g, b, _ := c.RGBA()
	mix := func(x uint32) uint8 { return uint8((x>>8 + 255) / 2) }
	return color.RGBA{mix(r), mix(g), mix(b), 255}
}

// directionOf names a pair of modalities.
func directionOf(from, to string) string { return shortName(from) + " → " + shortName(to) }

// shortName cuts a name that would run into the next panel.
func shortName(name string) string {
	const most = 10
	if runes := []rune(term.Plain(name)); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return term.Plain(name)
}
