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

// picture returns the place of an item's picture: "" for its payload, or the first
// field by name that is a picture as a data: URL.
func picture(it *db.Item) (field string, ok bool) {
	if slices.Contains(shown, sniff(it.Payload)) {
		return "", true
	}
	for _, name := range slices.Sorted(maps.Keys(it.Fields)) {
		if s, is := it.Fields[name].(string); is && strings.HasPrefix(s, "data:image/") {
			if b, ok := dataURL(s); ok && slices.Contains(shown, sniff(b)) {
				return name, true
			}
		}
	}
	return "", false
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

// media sends a payload, or the picture in a field. The content can do nothing: it runs
// no script, loads nothing and has no origin. Anything but a picture or text is for
// download, and so is an SVG, which the page only shows as a picture.
func (s *Server) media(ctx context.Context, v url.Values) (any, error) {
	p := &parameters{values: v}
	at, id, field := p.place(), p.text("id", ""), p.text("field", "")
	it, err := s.get(ctx, p, at, id)
	if err != nil {
		return nil, err
	}
	body := it.Payload
	if field != "" {
		text, _ := it.Fields[field].(string)
		body, _ = dataURL(text)
	}
	if len(body) == 0 {
		return nil, statusErrorf(http.StatusNotFound, "the item has nothing there")
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
