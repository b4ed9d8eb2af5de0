package explore

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
)

// A payload is shown with its type, and can do nothing.
func TestMedia(t *testing.T) {
	d := sharedDatabase(t)
	s := newServer(t, d)
	for i, want := range []struct{ kind, disposition string }{
		{"image/png", ""}, {"image/svg+xml", "attachment"}, {plainText, ""}, {anyBytes, "attachment"},
	} {
		key := "item " + string(rune('0'+i))
		w := do(s, request("GET", "/api/media?id="+url.QueryEscape(key), nil))
		h := w.Header()
		if w.Code != 200 || h.Get("Content-Type") != want.kind || h.Get("Content-Disposition") != want.disposition || !bytes.Equal(w.Body.Bytes(), payload(t, i)) {
			t.Errorf("%s: %d, %s, %q", key, w.Code, h.Get("Content-Type"), h.Get("Content-Disposition"))
		}
		protected(t, h)
		if csp := h.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "sandbox; default-src 'none'") {
			t.Errorf("%s: %s", key, csp)
		}
		it := get[itemForm](t, s, "/api/item?id="+url.QueryEscape(key))
		picture := strings.HasPrefix(want.kind, "image/")
		if it.PayloadType != want.kind || it.PayloadBytes != len(payload(t, i)) || (it.Picture != "") != picture || (it.Text != "") != (want.kind == plainText) || it.Payload != nil {
			t.Errorf("%s: %+v", key, it)
		}
		if picture {
			if w := do(s, request("GET", it.Picture, nil)); w.Header().Get("Content-Type") != want.kind {
				t.Errorf("%s: at %s there is %s", key, it.Picture, w.Header().Get("Content-Type"))
			}
		}
	}
}

// The picture of an item may be a data: URL in a field.
func TestPictureInAField(t *testing.T) {
	d, c := ownDatabase(t)
	image := payload(t, 0)
	for key, title := range map[string]string{
		"base64": "data:image/png;base64," + base64.StdEncoding.EncodeToString(image),
		"text":   "data:image/svg+xml," + url.PathEscape(svgPicture),
		"lie":    "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte("<script>alert(1)</script>")),
		"broken": "data:image/png;base64,!!!",
		"link":   "https://example.com/a.png",
	} {
		_, err := c.Put(t.Context(), &db.Item{Key: key, Fields: map[string]any{"title": title}})
		check(t, err)
	}
	s := newServer(t, d)
	for key, want := range map[string]string{"base64": "image/png", "text": svgType, "lie": "", "broken": "", "link": ""} {
		it := get[itemForm](t, s, "/api/item?id="+key)
		if (it.Picture != "") != (want != "") {
			t.Errorf("%s: picture %q", key, it.Picture)
		}
		if want == "" {
			continue
		}
		if w := do(s, request("GET", it.Picture, nil)); w.Code != 200 || w.Header().Get("Content-Type") != want {
			t.Errorf("%s: %d, %s", key, w.Code, w.Header().Get("Content-Type"))
		}
	}
}

// Nothing gets a type that a browser would run.
func FuzzSniff(f *testing.F) {
	for i := range 4 {
		f.Add(payload(f, i))
	}
	f.Add([]byte("<html><script>"))
	f.Add([]byte("<!doctype svg><svg>"))
	f.Add([]byte("%PDF-1.4"))
	f.Fuzz(func(t *testing.T, b []byte) {
		switch kind := sniff(b); kind {
		case "image/png", "image/jpeg", "image/gif", "image/webp", anyBytes:
		case svgType, plainText:
			if !isText(b) {
				t.Errorf("%q is no text, but %s", b, kind)
			}
		default:
			t.Errorf("%q is %s", b, kind)
		}
	})
}
