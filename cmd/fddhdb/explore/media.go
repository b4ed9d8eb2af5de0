package explore

import (
	"bytes"
	"context"
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/db"
)

// Types of payloads that are no pictures.
const (
	plainText = "text/plain; charset=utf-8"
	svgType   = "image/svg+xml"
	anyBytes  = "application/octet-stream"
)

// shown are the types that browsers display as pictures.
var shown = []string{"image/png", "image/jpeg", "image/gif", "image/webp", svgType}

// sniff returns the type of bytes by their content: a picture that browsers display,
// text, or bytes.
func sniff(b []byte) string {
	if t := http.DetectContentType(b); slices.Contains(shown, t) {
		return t
	}
	if !isText(b) {
		return anyBytes
	}
	if isSVG(b) {
		return svgType
	}
	return plainText
}

func isText(b []byte) bool {
	return utf8.Valid(b) && !bytes.ContainsFunc(b, func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' && r != '\r' })
}

// isSVG reports whether the first element of a text is an svg.
func isSVG(b []byte) bool {
	b = bytes.TrimPrefix(b, []byte("\uFEFF"))
	for {
		b = bytes.TrimSpace(b)
		end := ""
		switch {
		case bytes.HasPrefix(b, []byte("<?")):
			end = "?>"
		case bytes.HasPrefix(b, []byte("<!--")):
			end = "-->"
		case bytes.HasPrefix(b, []byte("<!")):
			end = ">"
		default:
			rest, ok := bytes.CutPrefix(b, []byte("<svg"))
			return ok && len(rest) > 0 && bytes.ContainsRune([]byte(" \t\r\n>/"), rune(rest[0]))
		}
		i := bytes.Index(b, []byte(end))
		if i < 0 {
			return false
		}
		b = b[i+len(end):]
	}
}

// IsPicture reports whether a file that begins so is a picture that browsers display.
func IsPicture(head []byte) bool { return pictureType(head) != "" }

// pictureType returns the type of a picture that begins so, "" if it is none that browsers display.
func pictureType(head []byte) string {
	for n := range min(utf8.UTFMax, len(head)) { // the last character may be cut
		if t := sniff(head[:len(head)-n]); slices.Contains(shown, t) {
			return t
		}
	}
	return ""
}

// pictureOf returns the parameters of media for the picture of an item, nil if it has none: its payload,
// or the first field by name that is a picture as a data: URL, or a file.
func (s *Server) pictureOf(it *db.Item) url.Values {
	if slices.Contains(shown, sniff(it.Payload)) {
		return url.Values{}
	}
	for _, name := range slices.Sorted(maps.Keys(it.Fields)) {
		if s, is := it.Fields[name].(string); is && strings.HasPrefix(s, "data:image/") {
			if b, ok := dataURL(s); ok && slices.Contains(shown, sniff(b)) {
				return url.Values{"field": {name}}
			}
		}
	}
	if file, _ := s.opt.Pictures.Find(it); file != nil { // one that cannot be read is not shown
		file.Close()
		return url.Values{"file": {"true"}}
	}
	return nil
}

// dataURL returns the bytes of a data: URL.
func dataURL(s string) ([]byte, bool) {
	head, data, ok := strings.Cut(s, ",")
	if !ok {
		return nil, false
	}
	if strings.HasSuffix(head, ";base64") {
		b, err := base64.StdEncoding.DecodeString(data)
		return b, err == nil
	}
	text, err := url.PathUnescape(data)
	return []byte(text), err == nil
}

// media sends a payload, the picture in a field or a file, or a picture that was sent. The
// content can do nothing: it runs no script, loads nothing and has no origin. Anything but a
// picture or text is for download, and so is an SVG, which the page only shows as a picture.
func (s *Server) media(ctx context.Context, v url.Values) (any, error) {
	var body []byte
	var err error
	if p := (&parameters{values: v}); v.Has("picture") {
		body, err = s.uploads.pictureBytes(p)
	} else {
		body, err = s.mediaOf(ctx, p)
	}
	if err != nil {
		return nil, err
	}
	out := &reply{body: body, header: map[string]string{
		"Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
		"Content-Type":            sniff(body),
		"Cache-Control":           "private, max-age=60",
	}}
	if kind := out.header["Content-Type"]; kind == svgType || kind == anyBytes {
		out.header["Content-Disposition"] = "attachment"
	}
	return out, nil
}

// mediaOf returns the payload of an item, or the picture in a field or a file.
func (s *Server) mediaOf(ctx context.Context, p *parameters) ([]byte, error) {
	at, key, field, file := p.place(), p.text("key", ""), p.text("field", ""), p.flag("file")
	it, err := s.get(ctx, p, at, key)
	if err != nil {
		return nil, err
	}
	body := it.Payload
	switch {
	case file:
		if body, err = s.file(it); err != nil {
			return nil, err
		}
	case field != "":
		text, _ := it.Fields[field].(string)
		body, _ = dataURL(text)
	}
	if len(body) == 0 {
		return nil, statusErrorf(http.StatusNotFound, "the item has nothing there")
	}
	return body, nil
}

// file returns the picture in the file that an item names, nil if there is none.
func (s *Server) file(it *db.Item) ([]byte, error) {
	file, err := s.opt.Pictures.Find(it)
	if err == nil && file != nil {
		var body []byte
		if body, err = file.Bytes(); err == nil {
			return body, nil
		}
	}
	if err != nil {
		return nil, statusErrorf(http.StatusNotFound, "the picture cannot be read: %v", err)
	}
	return nil, nil
}
