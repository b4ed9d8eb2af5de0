package sheet

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"image"
	"image/jpeg"
	"image/png"
)

//go:embed sheet.css
var style string

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

// printf writes markup: a format that is constant, and strings, which are text or values of attributes and are escaped.
// Later calls return the first error again, as the writer keeps it.
func (s *sheetHTML) printf(format string, args ...any) error {
	for i, a := range args {
		if text, ok := a.(string); ok {
			args[i] = html.EscapeString(text)
		}
	}
	_, err := fmt.Fprintf(s.w, format, args...)
	return err
}

func (s *sheetHTML) begin(title string, isItem bool, hits int, _ bool) error {
	s.close()
	s.rows++
	s.list = isItem || hits > 0
	err := s.printf("<section aria-labelledby=\"q%d\">\n<h2 id=\"q%[1]d\">%s</h2>\n", s.rows, title)
	if hits == 0 {
		err = s.printf("<p>no items</p>\n")
	}
	if s.list {
		err = s.printf("<ol>\n")
	}
	return err
}

func (s *sheetHTML) card(c *sheetCard) error {
	if c.isQuery {
		s.printf(`<li><figure class="query"><div class="box">`)
	} else {
		s.printf(`<li><figure><div class="box">`)
	}
	if c.picture == nil {
		s.printf(`<p dir="auto">%s</p>`, c.text)
	} else {
		source, err := dataURI(c.picture)
		if err != nil {
			return err
		}
		size := shownSize(c.picture)
		s.printf(`<img src="%s" width="%d" height="%d" alt="picture of %s">`, source, size.X, size.Y, c.key)
	}
	s.printf(`</div><figcaption><span><bdi>%s</bdi></span>`, c.key)
	if c.isQuery {
		s.printf(`<span>the query</span>`)
	}
	if c.distance != "" {
		s.printf(`<span>%s</span>`, c.distance)
	}
	if c.similarity != "" {
		s.printf(`<span>%s</span>`, c.similarity)
	}
	if c.labels != "" {
		s.printf(`<span class="soft"><bdi>%s</bdi></span>`, c.labels)
	}
	return s.printf("</figcaption></figure></li>\n")
}

// close ends the row before, or the part before the first row.
func (s *sheetHTML) close() {
	switch {
	case s.rows == 0:
		s.printf(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>fddhdb search: %s</title>
<style>
`, s.title)
		s.w.WriteString(style)
		s.printf("</style>\n</head>\n<body>\n<main>\n<h1>%s</h1>\n", s.title)
	case s.list:
		s.printf("</ol>\n</section>\n")
	default:
		s.printf("</section>\n")
	}
}

func (s *sheetHTML) end() error {
	s.close()
	return s.printf("</main>\n</body>\n</html>\n")
}

// shownSize returns the size of a picture on the sheet.
func shownSize(img image.Image) image.Point {
	const shown = 160
	size := img.Bounds().Size()
	if most := max(size.X, size.Y); most > shown {
		return image.Pt(max(1, size.X*shown/most), max(1, size.Y*shown/most))
	}
	return size
}

// dataURI returns an address that holds a picture: a JPEG, or a PNG if the picture is
// small or partly transparent.
func dataURI(img image.Image) (string, error) {
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
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(b.Bytes()), err
}
