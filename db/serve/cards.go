package serve

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"hash/crc32"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/internal/rest"
)

// Pictures finds files of pictures that items name. It is safe for concurrent use.
type Pictures interface {
	// Find returns the name of the file of an item's picture, "" if there is none.
	Find(item *db.Item) string

	// Read returns the bytes of a file that Find has named.
	Read(name string) ([]byte, error)
}

// Bounds of cards.
const (
	maxCards  = 1000
	shownText = 1000 // bytes of a text on a card
)

// registerCards adds the routes that show items to people.
func registerCards(t *router) {
	on(t, "POST", ofCollection+":cards", Read,
		"Show items, without vectors and with long texts cut: by their keys, or those that match",
		func(ctx context.Context, c api.Collection, r *request, in *rest.CardQuery) (*rest.Cards, error) {
			if in.Limit == 0 {
				in.Limit = 24
			}
			if n := max(in.Limit, len(in.Keys)); n > maxCards || in.Limit < 0 {
				return nil, fault.Invalid("keys and limit: 1 to %d cards are possible", maxCards)
			}
			longest := shownText
			if in.Whole {
				longest = math.MaxInt
			}
			out := &rest.Cards{Cards: []rest.Card{}}
			if in.Keys != nil {
				for _, key := range in.Keys {
					it, err := c.Get(ctx, key)
					if errors.Is(err, db.ErrNotFound) {
						continue // deleted since it was found
					}
					if err != nil {
						return nil, err
					}
					out.Cards = append(out.Cards, r.s.card(it, longest))
				}
				out.Total = len(out.Cards)
				return out, nil
			}
			chosen := c.Items(ctx, in.Where, in.Args...)
			if in.Seed != nil {
				chosen = c.Sample(ctx, in.Limit, *in.Seed, in.Where, in.Args...)
			}
			for it, err := range first(chosen, in.Limit) {
				if err != nil {
					return nil, err
				}
				out.Cards = append(out.Cards, r.s.card(it, longest))
			}
			var err error
			out.Total, err = c.Count(ctx, in.Where, in.Args...)
			return out, err
		}, inSpace...)
	media := on(t, "GET", ofCollection+"/items/{key}/media", Read,
		"Read the payload of an item, or its picture in a field or a file, as bytes of their type",
		func(context.Context, api.Collection, *request, *none) (*none, error) { return nil, nil },
		parameter{"field", "the picture in this string field, a data: URL", "string", 0},
		parameter{"file", "the file that the item names", "boolean", 0},
		parameter{"version", "of the contents, for whoever keeps them: ignored", "string", 0})
	media.produces, media.status = append(slices.Clone(pictureTypes), plainText, octets), http.StatusOK
	media.run = sendMedia
}

// card returns what is shown of an item, with texts of so many bytes.
func (s *Server) card(it *db.Item, longest int) rest.Card {
	card := rest.Card{Key: it.Key, Labels: it.Labels, Code: it.Code, CodeFrom: it.CodeFrom,
		Modalities: it.Modalities}
	if card.Modalities == nil {
		card.Modalities = slices.Concat(slices.Collect(maps.Keys(it.Vectors)),
			slices.Collect(maps.Keys(it.Sparse)))
		slices.Sort(card.Modalities)
	}
	cut := func(text string) string {
		if len(text) <= longest {
			return text
		}
		n := longest
		for !utf8.RuneStart(text[n]) {
			n--
		}
		return text[:n] + "…"
	}
	for name, v := range it.Fields {
		if card.Fields == nil {
			card.Fields = make(rest.Fields, len(it.Fields))
		}
		if text, is := v.(string); is {
			v = cut(text)
		}
		card.Fields[name] = v
	}
	if len(it.Payload) > 0 {
		card.PayloadBytes, card.PayloadType = len(it.Payload), sniff(it.Payload)
		if card.PayloadType == plainText {
			card.Text = cut(string(it.Payload))
		}
	}
	card.Picture = s.pictureOf(it)
	return card
}

// pictureOf returns the parameters of media for the picture of an item, "" if it has none: its payload,
// the first field by name that is a picture as a data: URL, or a file.
func (s *Server) pictureOf(it *db.Item) string {
	if isPicture(it.Payload) {
		return "media?" + url.Values{"version": {version(it.Payload)}}.Encode()
	}
	for _, name := range slices.Sorted(maps.Keys(it.Fields)) {
		if text, is := it.Fields[name].(string); is && strings.HasPrefix(text, "data:image/") {
			if b, ok := dataURL(text); ok && isPicture(b) {
				return "media?" + url.Values{"field": {name}, "version": {version(b)}}.Encode()
			}
		}
	}
	if s.opt.Pictures != nil && s.opt.Pictures.Find(it) != "" {
		return "media?file=true"
	}
	return ""
}

// version names contents, so that a browser that keeps a picture asks for another one under another address.
func version(b []byte) string { return strconv.FormatUint(uint64(crc32.ChecksumIEEE(b)), 16) }

// sendMedia sends a payload, or the picture in a field or a file. The content can do nothing: it runs no
// script, loads nothing and has no origin. Anything but a picture or text is for download, and so is an SVG,
// which pages only show as a picture.
func sendMedia(ctx context.Context, r *request) error {
	c, err := r.collection(ctx)
	if err != nil {
		return err
	}
	it, err := c.Get(ctx, r.PathValue("key"))
	if err != nil {
		return err
	}
	body := it.Payload
	switch field := r.text("field"); {
	case r.flag("file"):
		if body, err = r.s.file(it); err != nil {
			return err
		}
	case field != "":
		text, _ := it.Fields[field].(string)
		body, _ = dataURL(text)
	}
	if len(body) == 0 {
		return fault.NotFound("item %q: it has nothing there", it.Key)
	}
	kind := sniff(body)
	h := r.w.Header()
	h.Set("Content-Security-Policy",
		"sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if r.text("version") != "" {
		h.Set("Cache-Control", "private, max-age=60")
	} else {
		h.Set("Cache-Control", "no-cache")
	}
	h.Set("Content-Type", kind)
	if kind == svgType || kind == octets {
		h.Set("Content-Disposition", "attachment")
	}
	r.leave()
	_, _ = r.w.Write(body) // the client may have gone
	return nil
}

// file returns the picture in the file that an item names, nil if there is none.
func (s *Server) file(it *db.Item) ([]byte, error) {
	if s.opt.Pictures == nil {
		return nil, nil
	}
	name := s.opt.Pictures.Find(it)
	if name == "" {
		return nil, nil
	}
	b, err := s.opt.Pictures.Read(name)
	if err != nil {
		return nil, fault.NotFound("item %q: its picture cannot be read: %v", it.Key, err)
	}
	return b, nil
}

// Types of payloads, besides octets.
const (
	plainText = "text/plain; charset=utf-8"
	svgType   = "image/svg+xml"
)

// pictureTypes are the types that browsers display as pictures.
var pictureTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp", svgType}

func isPicture(b []byte) bool { return len(b) > 0 && slices.Contains(pictureTypes, sniff(b)) }

// PictureType returns the type of a picture that begins so, "" if it is none that browsers display.
func PictureType(head []byte) string {
	for n := range min(utf8.UTFMax, len(head)) { // the last character may be cut
		if t := sniff(head[:len(head)-n]); slices.Contains(pictureTypes, t) {
			return t
		}
	}
	return ""
}

// sniff returns the type of bytes by their content: a picture that browsers display, text, or octets.
func sniff(b []byte) string {
	if t := http.DetectContentType(b); slices.Contains(pictureTypes, t) {
		return t
	}
	if !utf8.Valid(b) || bytes.ContainsFunc(b,
		func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' && r != '\r' }) {
		return octets
	}
	if isSVG(b) {
		return svgType
	}
	return plainText
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
