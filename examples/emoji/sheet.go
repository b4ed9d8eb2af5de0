package main

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"strings"

	"golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// A sheetRow is one query of a contact sheet, with its hits.
type sheetRow struct {
	query   string      // the words of the query, or the name of its picture
	picture *image.RGBA // the picture of the query; nil for a query by words
	hits    []sheetHit  // best first
}

// A sheetHit is drawn as its picture with its name below. If picture is nil, it is
// drawn as its name alone.
type sheetHit struct {
	name    string
	picture *image.RGBA
	verdict verdict
}

// A verdict gives the line under a hit its colour.
type verdict int

const (
	unjudged verdict = iota // a free query has no right answer: no line
	right                   // green
	wrong                   // red
)

const (
	sheetMargin = 16
	queryWidth  = 176
	hitWidth    = 104
	rowHeight   = 116
)

var (
	ink       = color.RGBA{0x22, 0x22, 0x22, 0xff}
	fadedInk  = color.RGBA{0x66, 0x66, 0x66, 0xff}
	ruleGrey  = color.RGBA{0xdd, 0xdd, 0xdd, 0xff}
	wordPaper = color.RGBA{0xf2, 0xf2, 0xee, 0xff}
	rightInk  = color.RGBA{0x2e, 0x9e, 0x4f, 0xff}
	wrongInk  = color.RGBA{0xd6, 0x45, 0x3c, 0xff}
)

// writeSheet draws a title and, below it, the rows, and writes the sheet as PNG.
func writeSheet(w io.Writer, title string, rows []sheetRow) error {
	p, err := newPen()
	if err != nil {
		return err
	}
	columns := 0
	for _, row := range rows {
		columns = max(columns, len(row.hits))
	}
	const top = 56
	width := max(2*sheetMargin+queryWidth+columns*hitWidth, 2*sheetMargin+p.title.width(title))
	p.sheet = image.NewRGBA(image.Rect(0, 0, width, top+len(rows)*rowHeight+sheetMargin))
	draw.Draw(p.sheet, p.sheet.Bounds(), image.White, image.Point{}, draw.Src)
	p.line(p.title, ink, title, sheetMargin, 36)
	for i, row := range rows {
		p.row(row, image.Pt(sheetMargin, top+i*rowHeight))
	}
	if err := png.Encode(w, p.sheet); err != nil {
		return fmt.Errorf("writing the contact sheet: %w", err)
	}
	return nil
}

// A pen draws on a sheet.
type pen struct {
	sheet              *image.RGBA
	title, body, small typeface
}

func newPen() (*pen, error) {
	f, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return nil, fmt.Errorf("reading the sheet's font: %w", err)
	}
	p := new(pen)
	for _, t := range []struct {
		face *typeface
		size float64
	}{{&p.title, 20}, {&p.body, 15}, {&p.small, 11}} {
		t.face.height = int(t.size * 1.25)
		if t.face.Face, err = opentype.NewFace(f, &opentype.FaceOptions{Size: t.size, DPI: 72,
			Hinting: font.HintingFull}); err != nil {
			return nil, fmt.Errorf("scaling the sheet's font: %w", err)
		}
	}
	return p, nil
}

func (p *pen) row(row sheetRow, at image.Point) {
	p.fill(image.Rect(at.X, at.Y, p.sheet.Rect.Max.X-sheetMargin, at.Y+1), ruleGrey)
	cell := image.Rectangle{Min: at, Max: at.Add(image.Pt(queryWidth-16, rowHeight))}
	if row.picture != nil {
		p.captioned(row.picture, row.query, cell)
	} else {
		p.paragraph(p.body, ink, "“"+row.query+"”", cell, 4)
	}
	for i, hit := range row.hits {
		left := at.X + queryWidth + i*hitWidth
		p.hit(hit, image.Rect(left, at.Y, left+hitWidth, at.Y+rowHeight))
	}
}

func (p *pen) hit(hit sheetHit, cell image.Rectangle) {
	inner := image.Rect(cell.Min.X+4, cell.Min.Y+8, cell.Max.X-4, cell.Max.Y-8)
	if hit.picture != nil {
		p.captioned(hit.picture, hit.name, cell)
	} else {
		p.fill(inner, wordPaper)
		p.paragraph(p.small, ink, hit.name, inner, 5)
	}
	under := image.Rect(inner.Min.X, cell.Max.Y-8, inner.Max.X, cell.Max.Y-5)
	switch hit.verdict {
	case right:
		p.fill(under, rightInk)
	case wrong:
		p.fill(under, wrongInk)
	}
}

// captioned draws a picture at the top of a cell, with its name below.
func (p *pen) captioned(picture *image.RGBA, name string, cell image.Rectangle) {
	at := image.Pt((cell.Min.X+cell.Max.X-pictureSide)/2, cell.Min.Y+8)
	draw.Draw(p.sheet, image.Rectangle{Min: at, Max: at.Add(image.Pt(pictureSide, pictureSide))}, picture,
		image.Point{}, draw.Over)
	below := image.Rect(cell.Min.X+4, at.Y+pictureSide+2, cell.Max.X-4, cell.Max.Y-10)
	p.paragraph(p.small, fadedInk, name, below, 2)
}

// paragraph draws centred text in a cell, in at most maxLines lines.
func (p *pen) paragraph(t typeface, ink color.Color, text string, cell image.Rectangle, maxLines int) {
	lines := t.wrap(text, cell.Dx()-4, maxLines)
	baseline := (cell.Min.Y+cell.Max.Y-len(lines)*t.height)/2 + t.height*4/5
	for i, line := range lines {
		p.line(t, ink, line, (cell.Min.X+cell.Max.X-t.width(line))/2, baseline+i*t.height)
	}
}

func (p *pen) line(t typeface, ink color.Color, text string, x, baseline int) {
	d := font.Drawer{Dst: p.sheet, Src: image.NewUniform(ink), Face: t, Dot: fixed.P(x, baseline)}
	d.DrawString(text)
}

func (p *pen) fill(r image.Rectangle, c color.Color) {
	draw.Draw(p.sheet, r, image.NewUniform(c), image.Point{}, draw.Src)
}

// A typeface is a font in one size. height is the height of a line in pixels.
type typeface struct {
	font.Face
	height int
}

func (t typeface) width(s string) int { return font.MeasureString(t, s).Ceil() }

// wrap breaks text between words into lines of at most width pixels. It cuts what does
// not fit into maxLines, and words that are wider than a line; these end in "…".
func (t typeface) wrap(text string, width, maxLines int) []string {
	var lines []string
	words := strings.Fields(text)
	for len(words) > 0 {
		n := 1
		for n < len(words) && t.width(strings.Join(words[:n+1], " ")) <= width {
			n++
		}
		line, rest := strings.Join(words[:n], " "), words[n:]
		if len(lines) == maxLines-1 && len(rest) > 0 {
			line, rest = strings.Join(words, " "), nil
		}
		lines = append(lines, t.shorten(line, width))
		words = rest
	}
	return lines
}

// shorten cuts s to width pixels.
func (t typeface) shorten(s string, width int) string {
	if t.width(s) <= width {
		return s
	}
	letters := []rune(s)
	for len(letters) > 0 && t.width(string(letters)+"…") > width {
		letters = letters[:len(letters)-1]
	}
	return strings.TrimRight(string(letters), " ") + "…"
}
