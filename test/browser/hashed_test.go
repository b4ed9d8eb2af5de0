package browser

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A painting has soft colours that depend on the seed.
func painting(t *testing.T, seed, side int) []byte {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, side, side))
	for y := range side {
		for x := range side {
			u, v := 12*x/side, 12*y/side
			m.SetNRGBA(x, y, color.NRGBA{uint8((u*seed + v*v*7) * 37), uint8((v*seed + u*u*5) * 23),
				uint8(u * v * seed), 255})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// exploreHashed has the codes of pictures in collection main, and those of texts in collection texts. No
// program makes vectors.
func exploreHashed(t *testing.T) *url.URL {
	t.Helper()
	folder := t.TempDir()
	dir := filepath.Join(folder, "hashed.db")
	write := func(name string, body []byte) {
		if err := os.WriteFile(filepath.Join(folder, name), body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for seed, name := range []string{"", "red.png", "green.png", "blue.png"} {
		if name != "" {
			write(name, painting(t, seed, 300))
		}
	}
	write("texts.txt", []byte("The meeting of the garden club is on Monday at seven in the old town hall\n"+
		"Bring your own tools and some water for the plants\n"))
	fddhdb(t, "import", dir, "--init", "--pictures", folder, "--hash", "pdq")
	fddhdb(t, "import", dir, "--init", "--collection", "texts", "--texts", filepath.Join(folder, "texts.txt"))
	return explore(t, dir, "--pictures", folder, "--write")
}

// A picture finds its copies by its hash, and words find texts, without a program that makes vectors.
func TestHashedCollections(t *testing.T) {
	b := browse(t, exploreHashed(t))
	b.open("/")
	b.until(`document.querySelectorAll(".card").length === 3`)
	b.do(chromedp.Click(`input[name=by][value=picture] + span`))
	b.until(`document.querySelector("#pictureName").checkVisibility()`)
	if eval[bool](b, `document.querySelector("#noPictureEncoder").checkVisibility() || document.querySelector("input[name=by][value=text] + span").checkVisibility()`) {
		t.Error("the page asks for programs")
	}
	b.drop("body", "copy of green.png", painting(t, 2, 200))
	b.until(`document.querySelector(".query h1")?.textContent === "copy of green.png" && document.querySelector(".query img")?.naturalWidth > 0`)
	if got := b.keys(); len(got) != 3 || got[0] != "green.png" {
		t.Errorf("cards %q", got)
	}
	b.until(`document.querySelector("#histogram rect")`)
	if hint := eval[string](b, `document.querySelector("#orderHint").textContent`); strings.Contains(hint, "vector") {
		t.Errorf("codes of pictures: %q", hint)
	}
	b.accessible("hashed")
	b.shot("hashed")
	eval[bool](b, `((box) => { box.click(); return true })(document.querySelector("#within"))`)
	b.until(`document.querySelectorAll(".card").length === 1`)
	if near := eval[string](b, `document.querySelector("#radiusValue").textContent`); near != "31 of 256 bits" {
		t.Error(near)
	}

	// The picture that was dropped can be stored.
	eval[bool](b, `((button) => { button.click(); return true })([...document.querySelectorAll("button")].find((e) => e.textContent === "Store this picture"))`)
	b.until(`document.querySelector("dialog img")?.naturalWidth > 0 && document.querySelector("dialog #edit0").value === "copy of green.png"`)
	b.accessible("store a picture")
	b.shot("store")
	b.press(b.button("Store"), kb.Enter)
	b.until(`!document.querySelector("dialog") && document.querySelectorAll(".card").length === 2 && document.querySelector(".query img")?.naturalWidth === 200`)
	if shown := eval[string](b, `document.querySelector(".query .about").textContent`); !strings.Contains(shown, "width200") {
		t.Errorf("what was stored is %q", shown)
	}
	if got := b.keys(); !slices.Contains(got, "green.png") {
		t.Errorf("what was stored finds %q", got)
	}

	b.drop("body", "broken.png", painting(t, 2, 200)[:200])
	b.until(`document.querySelector("#pictureName").textContent.match(/^broken.png: .*cut short/)`)

	b.open("/?collection=texts")
	b.until(`document.querySelector("#text").checkVisibility() && !document.querySelector("#text").disabled`)
	if eval[bool](b, `document.querySelector("#noEncoder").checkVisibility() || document.querySelector("input[name=by][value=picture] + span").checkVisibility()`) {
		t.Error("the page asks for programs")
	}
	const words = "The meeting of the garden club is on Tuesday at seven in the old town hall"
	b.open("/?" + url.Values{"collection": {"texts"}, "text": {words}}.Encode())
	b.until(`document.querySelectorAll(".card").length === 2`)
	if got := b.keys(); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("cards %q", got)
	}
	if title := eval[string](b, `document.querySelector(".query h1").textContent`); !strings.Contains(title, "Tuesday") {
		t.Error(title)
	}
	b.quiet()
}
