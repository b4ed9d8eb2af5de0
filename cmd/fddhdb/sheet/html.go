package sheet

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/base64"
	"html/template"
	"image"
	"image/jpeg"
	"image/png"
)

//go:embed sheet.html
var sheetSource string

var sheetTemplate = template.Must(template.New("sheet").Parse(sheetSource))

// sheetHTML writes a sheet as one self-contained file of HTML. Pictures are encoded
// again, so hidden data of pictures is dropped.
type sheetHTML struct {
	w     *bufio.Writer
	title string
	rows  int  // number of queries so far
	list  bool // the last row has cards
}

func newSheetHTML(w *bufio.Writer, title string) *sheetHTML { return &sheetHTML{w: w, title: title} }

// size is half as much again as the displayed size, for screens with small pixels.
func (s *sheetHTML) size() int { return 240 }

func (s *sheetHTML) begin(title string, isItem bool, hits int, _ bool) error {
	if err := s.close(); err != nil {
		return err
	}
	s.rows++
	s.list = isItem || hits > 0
	return sheetTemplate.ExecuteTemplate(s.w, "begin", struct {
		Number     int
		Title      string
		Hits, List bool
	}{s.rows, title, hits > 0, s.list})
}

func (s *sheetHTML) card(c *sheetCard) error {
	card, err := newCardHTML(c)
	if err != nil {
		return err
	}
	return sheetTemplate.ExecuteTemplate(s.w, "card", card)
}

// close ends the row before, or the part before the first row.
func (s *sheetHTML) close() error {
	if s.rows == 0 {
		return sheetTemplate.ExecuteTemplate(s.w, "head", s.title)
	}
	return sheetTemplate.ExecuteTemplate(s.w, "close", s.list)
}

func (s *sheetHTML) end() error {
	if err := s.close(); err != nil {
		return err
	}
	return sheetTemplate.ExecuteTemplate(s.w, "foot", nil)
}

// cardHTML is a sheetCard in the form of the template.
type cardHTML struct {
	IsQuery                                 bool
	Key, Labels, Distance, Similarity, Text string

	Source        template.URL
	Width, Height int
}

func newCardHTML(c *sheetCard) (*cardHTML, error) {
	out := &cardHTML{IsQuery: c.isQuery, Key: c.key, Labels: c.labels, Distance: c.distance, Similarity: c.similarity, Text: c.text}
	if c.picture == nil {
		return out, nil
	}
	const shown = 160
	source, err := dataURI(c.picture)
	size := c.picture.Bounds().Size()
	out.Source, out.Width, out.Height = source, size.X, size.Y
	if most := max(size.X, size.Y); most > shown {
		out.Width, out.Height = max(1, size.X*shown/most), max(1, size.Y*shown/most)
	}
	return out, err
}

// dataURI returns an address that holds a picture: a JPEG, or a PNG if the picture is
// small or partly transparent.
func dataURI(img image.Image) (template.URL, error) {
	const small = 128 * 128
	var b bytes.Buffer
	kind := "image/png"
	var err error
	if opaque, knows := img.(interface{ Opaque() bool }); knows && opaque.Opaque() && img.Bounds().Dx()*img.Bounds().Dy() > small {
		kind = "image/jpeg"
		err = jpeg.Encode(&b, img, &jpeg.Options{Quality: 85})
	} else {
		err = png.Encode(&b, img)
	}
	return template.URL("data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(b.Bytes())), err
}
