package browser

import (
	"context"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
)

// The page shows stored text as it is, and runs none of it.
func TestHostileItems(t *testing.T) {
	const (
		key     = `<img src=x onerror="window.hacked=1">`
		label   = `"><script>window.hacked=2</script>`
		caption = `</a><iframe src="javascript:parent.hacked=3"></iframe>`
		picture = `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="parent.hacked=4"><script>window.hacked=5</script><image href="http://elsewhere.example/a.png"/></svg>`
	)
	story := strings.Repeat(`Words, <b onmouseover="window.hacked=6">bold</b> and long. `, 40)
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "hostile.db")
	d, err := db.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.CreateCollection(ctx, "main",
		db.Schema{Bits: 8, Fields: []db.Field{{Name: "caption", Type: db.String},
			{Name: "story", Type: db.String}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range []*db.Item{
		{Key: key, Code: []byte{1}, Labels: []string{label}, Fields: map[string]any{"story": story},
			Payload: []byte(picture)},
		{Key: "html", Code: []byte{3}, Fields: map[string]any{"caption": caption},
			Payload: []byte(`<html><script>window.hacked=7</script></html>`)},
	} {
		if _, err := c.Put(ctx, it); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	page := explore(t, dir)
	b := browse(t, page)
	b.open("/?" + url.Values{"key": {key}}.Encode())
	b.until(`document.querySelectorAll(".card").length === 2 && [...document.images].every((i) => i.complete)`)
	text := eval[string](b, `document.body.innerText`)
	for _, want := range []string{key, label, caption, "window.hacked=7",
		`<b onmouseover="window.hacked=6">bold</b>`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not show %s", want)
		}
	}
	b.accessible("hostile items")
	b.open("/v1/hostile/collections/main/items/html/media") // also by itself
	if kind := eval[string](b, `document.contentType`); kind != "text/plain" {
		t.Errorf("the payload is %s", kind)
	}
	b.open("/")
	b.until(`document.querySelectorAll(".card").length === 2`)
	if hacked := eval[string](b, `String(window.hacked)`); hacked != "undefined" {
		t.Errorf("script %s has run", hacked)
	}
	for _, asked := range b.asked {
		if u, err := url.Parse(asked); err != nil || u.Host != page.Host {
			t.Errorf("the page asks for %s", asked)
		}
	}
}
