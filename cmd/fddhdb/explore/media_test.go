package explore

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/picture"
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
		w := do(s, request("GET", "/api/media?key="+url.QueryEscape(key), nil))
		h := w.Header()
		if w.Code != 200 || h.Get("Content-Type") != want.kind || h.Get("Content-Disposition") != want.disposition || !bytes.Equal(w.Body.Bytes(), payload(t, i)) {
			t.Errorf("%s: %d, %s, %q", key, w.Code, h.Get("Content-Type"), h.Get("Content-Disposition"))
		}
		protected(t, h)
		if csp := h.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "sandbox; default-src 'none'") {
			t.Errorf("%s: %s", key, csp)
		}
		it := get[itemForm](t, s, "/api/item?key="+url.QueryEscape(key))
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
		it := get[itemForm](t, s, "/api/item?key="+key)
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

// The picture of an item may be a file that a field or the key names, below the folder and nowhere else.
// It is sent as payloads are.
func TestPictureInAFile(t *testing.T) {
	dir := t.TempDir()
	inside := filepath.Join(dir, "in")
	check(t, os.Mkdir(inside, 0o777))
	for name, body := range map[string][]byte{
		"in/a.png": payload(t, 0), "in/b.svg": []byte(svgPicture), "in/long.svg": []byte("<!--" + strings.Repeat("ü", 600) + "--><svg></svg>"),
		"in/page.html": []byte("<script>alert(1)</script>"), "out.png": payload(t, 0),
	} {
		check(t, os.WriteFile(filepath.Join(dir, name), body, 0o666))
	}
	d, c := ownDatabase(t)
	want := map[string]string{"a.png": "image/png", "2": "image/png", "b.svg": svgType, "page.html": "", "../out.png": "", "long.svg": ""}
	for key := range want {
		it := &db.Item{Key: key}
		if key == "2" {
			it.Fields = map[string]any{"title": "/home/somebody/a.png"}
		}
		_, err := c.Put(t.Context(), it)
		check(t, err)
	}
	s := newServer(t, d)
	folder, err := picture.OpenFolder(inside, IsPicture)
	check(t, err)
	t.Cleanup(folder.Close)
	for _, s.opt.Pictures = range []*picture.Folder{nil, folder} {
		for key, want := range want {
			if s.opt.Pictures == nil {
				want = ""
			}
			it := get[itemForm](t, s, "/api/item?key="+url.QueryEscape(key))
			if (it.Picture != "") != (want != "") {
				t.Errorf("%s: picture %q", key, it.Picture)
			}
			w := do(s, request("GET", "/api/media?file=true&key="+url.QueryEscape(key), nil))
			if (w.Code == 200) != (want != "") || w.Code == 200 && w.Header().Get("Content-Type") != want {
				t.Errorf("%s: %d, %s", key, w.Code, w.Header().Get("Content-Type"))
			}
			protected(t, w.Header())
		}
	}
	// A file that has gone, or become something else, since it was listed is not there.
	check(t, os.WriteFile(filepath.Join(inside, "a.png"), []byte("gone"), 0o666))
	if w := do(s, request("GET", "/api/media?file=true&key=a.png", nil)); w.Code != 404 {
		t.Errorf("%d", w.Code)
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
		if kind := pictureType(b); kind != "" && !slices.Contains(shown, kind) {
			t.Errorf("%q is a picture of type %s", b, kind)
		}
	})
}
