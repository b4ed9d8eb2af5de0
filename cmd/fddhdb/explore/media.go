package explore

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
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
	return utf8.Valid(b) && !bytes.ContainsFunc(b,
		func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' && r != '\r' })
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
	if s.opt.Pictures.Find(it) != "" {
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
	name := s.opt.Pictures.Find(it)
	if name == "" {
		return nil, nil
	}
	body, err := s.opt.Pictures.Read(name)
	if err != nil {
		return nil, statusErrorf(http.StatusNotFound, "the picture cannot be read: %v", err)
	}
	return body, nil
}

// pictureForm describes a picture that was sent.
type pictureForm struct {
	Picture string `json:"picture"` // id for searches
	Name    string `json:"name"`
	Media   string `json:"media"` // path at which it is served
}

// asPicture tells by the first bytes of the body what kind of picture it is, and refuses what is
// none. It returns all of the body, bounded, and the extension of its type.
func (u *upload) asPicture(body io.Reader) (whole io.Reader, ext string, err error) {
	head := make([]byte, 512) // so many http.DetectContentType looks at
	n, err := io.ReadFull(body, head)
	if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, "", bodyError(err)
	}
	if u.picture = pictureType(head[:n]); u.picture == "" {
		_, _ = io.Copy(io.Discard, body) // a browser that cannot send all of it may show no answer
		return nil, "", badRequest(
			"%.100q is neither a file of vectors, by its name (%s), nor a picture, by its first bytes (PNG, JPEG, GIF, WebP, SVG)",
			u.base(), strings.Join(extensions, ", "))
	}
	whole = io.MultiReader(bytes.NewReader(head[:n]), body)
	return http.MaxBytesReader(nil, io.NopCloser(whole), maxPicture),
		"." + strings.TrimSuffix(path.Base(u.picture), "+xml"), nil
}

// picture returns a picture that was sent. The caller gives it back with done.
func (l *uploads) picture(id string) (*upload, error) {
	u, err := l.use(id)
	if err == nil && u.picture == "" {
		l.done(u)
		return nil, badRequest("%s is a file of vectors: give it as upload, not as picture", u.base())
	}
	return u, err
}

// pictureVector makes the vector of the picture of a query, of dim dimensions, by the encoder that the
// collection has for files.
func (s *Server) pictureVector(ctx context.Context, q *query, dim int) (encoder.Vector, error) {
	if !s.encoders.Has(q.collection, q.from, db.InputFile) {
		return encoder.Vector{}, badRequest(
			"there is no encoder of pictures for %q: store one by fddhdb encoder DIR --input file --set %s=COMMAND", q.from, q.from)
	}
	u, err := s.uploads.picture(q.picture)
	if err != nil {
		return encoder.Vector{}, err
	}
	defer s.uploads.done(u)
	q.file = u.base()
	x, err := s.encode(ctx, q, db.InputFile, dim, u.path)
	var with *statusError
	if errors.As(err, &with) { // what the program says of the file names its path
		err = statusErrorf(with.status, "%s", strings.ReplaceAll(err.Error(), u.path, q.file))
	}
	return x, err
}

// pictureBytes returns the picture that the parameters name.
func (l *uploads) pictureBytes(p *parameters) ([]byte, error) {
	id := p.text("picture", "")
	if err := p.end(); err != nil {
		return nil, err
	}
	u, err := l.picture(id)
	if err != nil {
		return nil, err
	}
	defer l.done(u)
	return os.ReadFile(u.path)
}
