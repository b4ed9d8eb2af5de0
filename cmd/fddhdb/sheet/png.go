package sheet

import (
	"bufio"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"strings"

	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	fixpoint "golang.org/x/image/math/fixed"
	plotfont "gonum.org/v1/plot/font"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/chart"
)

// Sizes of a sheet in pixels.
const (
	cardPicture = 160 // side of the square of a picture or text
	cardGap     = 12
	cardLine    = 16 // height of a line of text
	cardLines   = 3  // below the picture: key; distance and score; labels; and perhaps the similarity
	cardWidth   = cardPicture + cardGap
	cardHeight  = cardPicture + cardLines*cardLine + 4 + cardGap
	sheetTitle  = 30 // height of the title of a row
	sheetAcross = 8  // largest number of cards side by side
)

// sheetPNG draws a sheet as one picture, strip by strip.
type sheetPNG struct {
	w      *bufio.Writer
	strips []*image.RGBA // from top to bottom
	canvas *image.RGBA   // the last strip
	face   font.Face
	across int // number of columns
	cards  int // in the current row
	height int // of the cards of the current row
}

// newSheetPNG begins a sheet with a column for each hit, as far as they fit.
func newSheetPNG(w *bufio.Writer, hits int) *sheetPNG {
	// A query that is an item has a card, too.
	return &sheetPNG{w: w, across: min(max(hits+1, 4), sheetAcross)}
}

func (s *sheetPNG) size() int { return cardPicture }

// grow adds a white strip below.
func (s *sheetPNG) grow(height int) {
	top := 0
	if s.canvas != nil {
		top = s.canvas.Rect.Max.Y
	}
	s.canvas = image.NewRGBA(image.Rect(0, top, s.across*cardWidth+cardGap, top+height))
	for i := range s.canvas.Pix {
		s.canvas.Pix[i] = 255
	}
	s.strips = append(s.strips, s.canvas)
}

func (s *sheetPNG) begin(title string, _ bool, hits int, similar bool) error {
	if s.face == nil {
		var err error
		if s.face, err = sheetFace(); err != nil {
			return err
		}
	}
	s.grow(sheetTitle)
	if hits == 0 {
		title += ": no items"
	}
	s.text(title, image.Pt(cardGap, s.canvas.Rect.Min.Y+20), s.canvas.Rect.Dx()-2*cardGap, color.Black)
	s.cards, s.height = 0, cardHeight
	if similar {
		s.height += cardLine
	}
	return nil
}

func (s *sheetPNG) card(c *sheetCard) error {
	column := s.cards % s.across
	if s.cards++; column == 0 {
		s.grow(s.height)
	}
	s.draw(c, image.Pt(cardGap+column*cardWidth, s.canvas.Rect.Min.Y))
	return nil
}

// sheetFace returns the typeface of the figures.
func sheetFace() (font.Face, error) {
	var f plotfont.Font
	chart.Sans(&f, 12)
	face, err := opentype.NewFace(plotfont.DefaultCache.Lookup(f, 12).Face, &opentype.FaceOptions{Size: 12, DPI: 72, Hinting: font.HintingFull})
	return evenly{face}, err
}

// evenly is a face without kerning, which at this size removes all space after an A.
type evenly struct{ font.Face }

func (evenly) Kern(_, _ rune) fixpoint.Int26_6 { return 0 }

// draw draws a card.
func (s *sheetPNG) draw(c *sheetCard, at image.Point) {
	box := image.Rectangle{at, at.Add(image.Pt(cardPicture, cardPicture))}
	frame, below := color.Gray{225}, c.distance
	if c.isQuery {
		frame, below = color.Gray{90}, "the query"
	}
	s.frame(box, frame)
	if c.picture != nil {
		size := c.picture.Bounds().Size()
		corner := at.Add(image.Pt((cardPicture-size.X)/2, (cardPicture-size.Y)/2))
		draw.Draw(s.canvas, image.Rectangle{corner, corner.Add(size)}, c.picture, c.picture.Bounds().Min, draw.Over)
	} else {
		for i, line := range s.wrapped(c.text, cardPicture-12, (cardPicture-8)/cardLine) {
			s.text(line, at.Add(image.Pt(6, 4+(i+1)*cardLine-3)), cardPicture-12, color.Gray{60})
		}
	}
	y := cardPicture
	write := func(line string, shade uint8) {
		y += cardLine
		s.text(line, at.Add(image.Pt(0, y)), cardPicture, color.Gray{shade})
	}
	write(c.key, 0)
	if below != "" {
		write(below, 45)
	}
	if c.similarity != "" {
		write(c.similarity, 45)
	}
	write(c.labels, 90)
}

// frame draws the border of a box, inside it.
func (s *sheetPNG) frame(box image.Rectangle, c color.Color) {
	for _, side := range []image.Rectangle{
		{box.Min, image.Pt(box.Max.X, box.Min.Y+1)}, {image.Pt(box.Min.X, box.Max.Y-1), box.Max},
		{box.Min, image.Pt(box.Min.X+1, box.Max.Y)}, {image.Pt(box.Max.X-1, box.Min.Y), box.Max},
	} {
		draw.Draw(s.canvas, side, image.NewUniform(c), image.Point{}, draw.Src)
	}
}

// text writes one line, cut to width.
func (s *sheetPNG) text(line string, at image.Point, width int, c color.Color) {
	d := font.Drawer{Dst: s.canvas, Src: image.NewUniform(c), Face: s.face, Dot: fixpoint.P(at.X, at.Y)}
	d.DrawString(s.cut(line, width))
}

// cut shortens text to width.
func (s *sheetPNG) cut(line string, width int) string {
	if n := s.fitting(line, width); n < len(line) {
		return line[:s.fitting(line, width-s.width("…"))] + "…"
	}
	return line
}

func (s *sheetPNG) width(text string) int { return font.MeasureString(s.face, text).Ceil() }

// fitting returns the number of bytes of text that fit into width.
func (s *sheetPNG) fitting(text string, width int) int {
	x := fixpoint.I(0)
	for i, r := range text {
		advance, _ := s.face.GlyphAdvance(r)
		if x += advance; x > fixpoint.I(width) {
			return i
		}
	}
	return len(text)
}

// wrapped breaks text into at most so many lines, between words if possible.
func (s *sheetPNG) wrapped(text string, width, most int) (lines []string) {
	for line := range strings.Lines(text) {
		for line = strings.TrimSpace(line); line != ""; {
			n := s.fitting(line, width)
			if n < len(line) {
				if space := strings.LastIndexByte(line[:n+1], ' '); space > 0 {
					n = space
				}
			}
			if n == 0 {
				n = len(string([]rune(line)[:1])) // the first letter is wider than the box
			}
			if len(lines) == most-1 {
				return append(lines, s.cut(line, width))
			}
			lines, line = append(lines, line[:n]), strings.TrimSpace(line[n:])
		}
	}
	return lines
}

func (s *sheetPNG) end() error {
	if s.canvas == nil {
		s.grow(sheetTitle) // there was no query
	}
	return png.Encode(s.w, &stripImage{s.strips, 0})
}

// A stripImage shows strips as one image without copying them. Pixels must be read line
// by line.
type stripImage struct {
	strips []*image.RGBA
	last   int // index of the strip that was read last
}

func (s *stripImage) ColorModel() color.Model { return color.RGBAModel }

// Opaque tells the encoder that there is no transparency.
func (s *stripImage) Opaque() bool { return true }

func (s *stripImage) Bounds() image.Rectangle {
	return image.Rectangle{s.strips[0].Rect.Min, s.strips[len(s.strips)-1].Rect.Max}
}

func (s *stripImage) At(x, y int) color.Color {
	if y < s.strips[s.last].Rect.Min.Y {
		s.last = 0
	}
	for s.last < len(s.strips)-1 && y >= s.strips[s.last].Rect.Max.Y {
		s.last++
	}
	return s.strips[s.last].RGBAAt(x, y)
}
