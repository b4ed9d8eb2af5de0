// Package svgchart draws line charts as SVG: panels in rows, with one legend beside them.
//
// It imports the standard library alone. Equal charts give equal bytes, texts are escaped, and curves differ
// by dashes and marks, too, so that they can be told apart without colour.
package svgchart

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// A Mark is drawn at the points of a curve.
type Mark string

// Marks, as paths around the point.
const (
	NoMark   Mark = ""
	Circle   Mark = "M-2.2,0a2.2,2.2 0 1,0 4.4,0a2.2,2.2 0 1,0 -4.4,0z"
	Triangle Mark = "M0,-2.7l2.5,4.4h-5z"
	Square   Mark = "M-2,-2h4v4h-4z"
	Diamond  Mark = "M0,-2.8l2.8,2.8l-2.8,2.8l-2.8,-2.8z"
)

// Colours that most people can tell apart (Okabe and Ito).
const (
	Blue       = "#0072b2"
	Sky        = "#56b4e9"
	Vermillion = "#d55e00"
	Green      = "#009e73"
	Purple     = "#cc79a7"
	Grey       = "#6e6e6e"
)

// A Style tells a curve from others.
type Style struct {
	Name   string // in the legend; a style without a colour is a heading there
	Color  string
	Dashes string // lengths of dashes and gaps, such as "6 3"; empty: a solid line
	Mark   Mark
	Alone  bool // marks without a line
}

// A Point is a point of a curve.
type Point struct{ X, Y float64 }

// A Curve goes through points.
type Curve struct {
	Style
	Points []Point
}

// A Tick is a place on an axis, with its label.
type Tick struct {
	At    float64
	Label string
}

// An Axis goes from Min to Max.
type Axis struct {
	Label    string
	Min, Max float64
	Log      bool
	Ticks    []Tick
}

// at returns the place of a value, from 0 to 1.
func (a *Axis) at(x float64) float64 {
	low, high := a.Min, a.Max
	if a.Log {
		x, low, high = math.Log(x), math.Log(low), math.Log(high)
	}
	return (x - low) / (high - low)
}

// A Panel is one chart. The first curves lie below the others.
type Panel struct {
	Title  string
	X, Y   Axis
	Curves []Curve
}

// Sizes in pixels.
const (
	width, height            = 285, 220 // of a panel
	left, right, top, bottom = 46, 14, 28, 40
)

// Write draws panels, so many in a row, and to the right of them the legend.
func Write(w io.Writer, panels []Panel, columns int, legend []Style, legendWidth int) error {
	rows := (len(panels) + columns - 1) / columns
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d"`, columns*width+legendWidth, rows*height)
	b.WriteString(` font-family="Liberation Sans,Arial,Helvetica,sans-serif" font-size="10">` + "\n" +
		`<rect width="100%" height="100%" fill="#fff"/>` + "\n")
	for i := range panels {
		panels[i].draw(&b, float64(i%columns*width), float64(i/columns*height))
	}
	x, y := float64(columns*width), 38.
	for _, s := range legend {
		if s.Color == "" {
			y += 8
			text(&b, x, y, "start", s.Name)
		} else {
			Curve{s, nil}.draw(&b, []Point{{x, y - 3.5}, {x + 24, y - 3.5}}, []Point{{x + 12, y - 3.5}})
			text(&b, x+30, y, "start", s.Name)
		}
		y += 16
	}
	b.WriteString("</svg>\n")
	_, err := w.Write(b.Bytes())
	return err
}

// draw draws a panel whose upper left corner is at x, y.
func (p *Panel) draw(b *bytes.Buffer, x, y float64) {
	x0, x1, y0, y1 := x+left, x+width-right, y+height-bottom, y+top
	place := func(at Point) Point {
		return Point{x0 + (x1-x0)*p.X.at(at.X), y0 + (y1-y0)*p.Y.at(at.Y)}
	}
	var grid strings.Builder
	for _, t := range p.X.Ticks {
		at := place(Point{t.At, p.Y.Min})
		fmt.Fprintf(&grid, "M%.2f,%.2fV%.2f", at.X, y0, y1)
		text(b, at.X, y0+13, "middle", t.Label)
	}
	for _, t := range p.Y.Ticks {
		at := place(Point{p.X.Min, t.At})
		fmt.Fprintf(&grid, "M%.2f,%.2fH%.2f", x0, at.Y, x1)
		text(b, x0-5, at.Y+3.5, "end", t.Label)
	}
	fmt.Fprintf(b, `<path d="%s" stroke="#e1e1e1"/>`+"\n", grid.String())
	fmt.Fprintf(b, `<path d="M%.2f,%.2fV%.2fH%.2f" stroke="#000" fill="none"/>`+"\n", x0, y1, y0, x1)
	text(b, (x0+x1)/2, y+16, "middle", p.Title)
	text(b, (x0+x1)/2, y0+29, "middle", p.X.Label)
	fmt.Fprintf(b, `<text x="%.2f" y="%.2f" transform="rotate(-90 %[1]g %[2]g)" text-anchor="middle">%[3]s</text>`+"\n",
		x+13, (y0+y1)/2, html.EscapeString(p.Y.Label))
	for _, c := range p.Curves {
		var points []Point
		for _, at := range c.Points {
			points = append(points, place(at))
		}
		c.draw(b, points, points)
	}
}

// draw draws a line through points on the sheet, and marks at others.
func (c Curve) draw(b *bytes.Buffer, line, marks []Point) {
	if len(line) > 1 && !c.Alone {
		fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="1.5" stroke-dasharray="%s" points="`,
			c.Color, c.Dashes)
		for _, at := range line {
			fmt.Fprintf(b, "%.2f,%.2f ", at.X, at.Y)
		}
		b.WriteString("\"/>\n")
	}
	if c.Mark == NoMark {
		return
	}
	for _, at := range marks {
		fmt.Fprintf(b, `<path transform="translate(%.2f,%.2f)" fill="%s" d="%s"/>`+"\n", at.X, at.Y, c.Color,
			c.Mark)
	}
}

// text writes a text, whose anchor (start, middle or end) is at x.
func text(b *bytes.Buffer, x, y float64, anchor, s string) {
	fmt.Fprintf(b, `<text x="%.2f" y="%.2f" text-anchor="%s">%s</text>`+"\n", x, y, anchor,
		html.EscapeString(s))
}
