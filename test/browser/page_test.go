package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/fddhdb/fddhdb/db"
)

// hits returns the keys of a search among emoji.
func hits(t *testing.T, page *url.URL, query map[string]any) []string {
	t.Helper()
	var answer struct{ Hits []struct{ Key string } }
	verb := ":search"
	if query["radius"] != nil {
		verb = ":radius"
	}
	ask(t, page, "/collections/emoji"+verb, query, &answer)
	var keys []string
	for _, h := range answer.Hits {
		keys = append(keys, h.Key)
	}
	return keys
}

// Words find emoji, that an emoji finds its neighbours, and that the browser goes back.
func TestWordsAndNeighbours(t *testing.T) {
	page := exploreEmoji(t)
	b := browse(t, page)
	b.open("/?collection=emoji")
	b.until(`document.querySelectorAll(".card").length === 36`)
	b.shot("first")
	b.do(chromedp.SendKeys(chromedp.CSS("#text"), "red heart"))
	b.until(`document.querySelector(".query h1")?.textContent.includes("red heart")`)
	want := hits(t, page, map[string]any{"text": "red heart", "from": "words", "to": "picture", "k": 24})
	if got := b.keys(); !slices.Equal(got, want) {
		t.Errorf("cards %q, want %q", got, want)
	}
	b.until(`[...document.querySelectorAll(".card img")].slice(0, 5).every((i) => i.complete && i.naturalWidth > 0)`)
	b.until(`document.querySelectorAll("#histogram rect").length > 0`)
	b.until(`location.search.includes("text=red+heart")`)
	b.shot("words")

	second := want[1]
	b.do(chromedp.Click(chromedp.CSS(`.card:nth-child(2) a`)))
	b.until(`new URL(location).searchParams.get("key") === ` + quoted(second) +
		` && document.querySelector(".query img")`)
	neighbours := hits(t, page, map[string]any{"key": second, "from": "picture", "to": "picture", "k": 24})
	b.until(`document.querySelector(".card").dataset.key === ` + quoted(neighbours[0]))
	if got := b.keys(); !slices.Equal(got, neighbours) {
		t.Errorf("neighbours %q, want %q", got, neighbours)
	}
	b.shot("neighbours")

	b.do(chromedp.NavigateBack())
	b.until(`document.querySelector(".query h1")?.textContent.includes("red heart")`)
	if got := b.keys(); !slices.Equal(got, want) {
		t.Errorf("back: cards %q, want %q", got, want)
	}
	b.do(chromedp.Reload())
	b.until(`document.querySelectorAll(".card").length === 24`)
	if got := b.keys(); !slices.Equal(got, want) {
		t.Errorf("after a reload: cards %q, want %q", got, want)
	}
	b.quiet()
}

// TestWordsWithoutEncoder asks by words that fields have, and by labels that a model has learned for items
// that have none.
func TestWordsWithoutEncoder(t *testing.T) {
	folder := t.TempDir()
	dir, list := filepath.Join(folder, "words.db"), filepath.Join(folder, "items.jsonl")
	var items strings.Builder
	for i := range 60 {
		label := ""
		if i%3 < 2 {
			label = fmt.Sprintf(`"labels":["kind %d"],`, i%2)
		}
		fmt.Fprintf(&items, `{"key":"k%02d",%s"title":"a %s ball, number %d","image":[%d,%d,0.%02d]}`+"\n",
			i, label, []string{"red", "blue"}[i%2], i, i%2, 1-i%2, i)
	}
	if err := os.WriteFile(list, []byte(items.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	fddhdb(t, "import", dir, "--init", list)
	fddhdb(t, "train", dir)
	fddhdb(t, "import", dir, "--init", "--collection", "texts", list, "--index-words", "title")
	fddhdb(t, "import", dir, "--init", "--collection", "both", list, "--index-words", "title")
	fddhdb(t, "train", dir, "--collection", "both")
	fddhdb(t, "put", dir, "new", "--collection", "both", "--labels", "fresh", "--field", "title=a fresh ball",
		"--vector", "image=0,1,.5")
	page := explore(t, dir)
	b := browse(t, page)
	b.open("/")
	b.until(`document.querySelectorAll(".card").length === 36`)
	b.do(chromedp.SendKeys(chromedp.CSS("#text"), "kind 1"))
	b.until(`document.querySelector(".query h1")?.textContent.includes("kind 1")`)
	for _, key := range b.keys() {
		var n int
		if _, err := fmt.Sscanf(key, "k%d", &n); err != nil || n%2 != 1 {
			t.Errorf("%s is of another kind", key)
		}
	}
	b.shot("labels")
	b.do(chromedp.Focus(chromedp.CSS("#text")), chromedp.KeyEvent(" 0"), chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelector(".notice.bad p")?.textContent.endsWith("(labels: kind 0, kind 1)")`)
	b.open("/?collection=texts")
	b.until(`document.querySelectorAll(".card").length === 36`)
	if eval[bool](b, `document.querySelector("#within").checkVisibility()`) {
		t.Error("the page offers a radius before it has searched")
	}
	b.open("/?collection=texts&text=red+17")
	b.until(`document.querySelector(".query p")?.textContent.includes("items with these words")`)
	if got := b.keys(); len(got) != 24 || got[0] != "k17" {
		t.Errorf("%q", got)
	}
	if eval[bool](b, `document.querySelector("#within").checkVisibility()`) {
		t.Error("the page offers a radius of words")
	}
	b.shot("fields")
	b.open("/?collection=texts&text=k17")
	b.until(`document.querySelector(".nothing")?.textContent === "No item has these words. Item k17"`)
	b.accessible("no words")
	b.do(chromedp.Click(chromedp.CSS(".nothing a")))
	b.until(`new URL(location).searchParams.get("key") === "k17" && document.querySelectorAll(".card").length > 0`)
	b.fuses(page)
	b.quiet()
}

// fuses asks collection both, which has labels that a model has learned, and words in a field.
func (b *tab) fuses(page *url.URL) {
	b.Helper()
	b.open("/?collection=both")
	b.until(`document.querySelectorAll(".card").length === 36`)
	b.do(chromedp.Focus(chromedp.CSS("#text")))
	b.until(`document.querySelectorAll("#words option").length === 3`)
	b.open("/?collection=both&text=kind+1")
	b.until(`document.querySelector(".query p")?.textContent.startsWith("The 24 best by words and labels together")`)
	var want struct{ Hits []struct{ Key string } }
	ask(b.T, page, "/collections/both:search", map[string]any{"text": "kind 1", "words": "kind 1", "k": 24}, &want)
	got := b.keys()
	for i, h := range want.Hits {
		if i >= len(got) || got[i] != h.Key {
			b.Errorf("words and labels: %q, want %v", got, want.Hits)
			break
		}
	}
	if eval[bool](b, `document.querySelector(".card .far") !== null`) {
		b.Error("cards have numbers by which they are not sorted")
	}
	b.until(`document.querySelector("#histogram rect")?.checkVisibility()`)
	b.shot("fused")
	b.accessible("fused")

	// A word that no label has is looked for in the fields alone, and without a gap for the distances.
	b.open("/?collection=both&text=blue")
	b.until(`document.querySelector(".query p")?.textContent.startsWith("24 items with these words")`)
	if eval[bool](b, `document.querySelector("#histogram").checkVisibility()`) {
		b.Error("there is room for a chart that words do not have")
	}
	// So is a label that has come since the training.
	b.open("/?collection=both&text=fresh")
	b.until(`document.querySelector(".query p")?.textContent.startsWith("1 item with these words")`)
}

func quoted(s string) string { return `"` + s + `"` }

// TestKeyboard does everything from the keyboard: words, a hit, the sliders, the views.
func TestKeyboard(t *testing.T) {
	b := browse(t, exploreEmoji(t))
	b.open("/?collection=emoji")
	b.until(`document.querySelectorAll(".card").length === 36`)
	b.do(chromedp.KeyEvent("/"))
	b.until(`document.activeElement.id === "text"`)
	b.do(chromedp.KeyEvent("pizza"), chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelector(".query h1")?.textContent.includes("pizza")`)
	b.do(chromedp.Focus(chromedp.CSS("#k")), chromedp.KeyEvent(kb.Home))
	b.until(`document.querySelectorAll(".card").length === 1`)
	b.do(chromedp.KeyEvent(kb.ArrowRight))
	b.until(`document.querySelectorAll(".card").length === 2`)
	b.do(chromedp.Focus(chromedp.CSS(".card:nth-child(2) a")), chromedp.KeyEvent(kb.Enter))
	b.until(`new URL(location).searchParams.has("key")`)
	b.do(chromedp.Focus(chromedp.CSS("nav a[data-view=models]")), chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelector("h1")?.textContent === "Models" && location.pathname === "/models"`)
	b.quiet()
}

// The page tells mistakes and goes on.
func TestMistakes(t *testing.T) {
	b := browse(t, exploreEmoji(t))
	b.open("/?collection=emoji&key=nobody&from=picture&to=picture")
	b.until(`document.querySelector(".notice.bad")?.textContent.includes("not found")`)
	b.open("/?collection=emoji&key=%F0%9F%90%B1&from=picture&to=picture&radius=0")
	var distances struct{ Distances []int }
	ask(t, b.page, "/collections/emoji:radius", map[string]any{"key": "🐱", "from": "picture", "to": "picture",
		"radius": 128, "include": []string{"distances"}}, &distances)
	nearest := slices.IndexFunc(distances.Distances, func(n int) bool { return n > 0 })
	b.until(fmt.Sprintf(`document.querySelector(".nothing")?.textContent === "The nearest item is %d bits away."`, nearest))
	b.open("/?collection=emoji&text=cat&from=words&to=picture&where=year+%3C")
	b.until(`!document.querySelector("#whereError").hidden && document.querySelector("#whereError").textContent.includes("column")`)
	eval[bool](b, `(document.querySelector("#where").value = "") === ""`)
	b.do(chromedp.SendKeys(chromedp.CSS("#where"), "label = 'cat-face'\r"))
	b.until(`document.querySelector("#whereError").hidden && document.querySelectorAll(".card").length > 0`)
	for _, name := range eval[[]string](b,
		`[...document.querySelectorAll(".card h2")].map((h) => h.textContent)`) {
		if !strings.Contains(name, "cat") {
			t.Errorf("%q is no cat", name)
		}
	}
}

// firstPaint returns the milliseconds from navigation to the first paint of something.
func (b *tab) firstPaint() float64 {
	b.Helper()
	b.until(`performance.getEntriesByName("first-contentful-paint").length > 0`)
	return eval[float64](b, `performance.getEntriesByName("first-contentful-paint")[0].startTime`)
}

// aLine serves a page of one line. Its first paint is the time that Chromium itself
// takes.
func aLine(t *testing.T) *url.URL {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<!doctype html><title>a line</title><link rel=icon href=data:,><p>a line")
	}))
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// Nothing comes from elsewhere, that the page is small, and that it is there at once.
func TestFootprint(t *testing.T) {
	page := exploreEmoji(t)
	b, line := browse(t, page), browse(t, aLine(t))
	line.open("/")
	line.firstPaint()
	b.open("/?collection=emoji&text=cat&from=words&to=picture") // the first time Chromium itself is slow
	b.until(`document.querySelectorAll(".card").length === 24`)
	var paints, shown, least []float64
	for range 9 {
		line.open("/")
		least = append(least, line.firstPaint())
		b.bytes = 0
		b.open("/?collection=emoji&text=cat&from=words&to=picture&explain=true")
		b.until(`document.querySelectorAll(".card").length === 24 && document.querySelector(".panel") && document.querySelector("#histogram rect")`)
		shown = append(shown, eval[float64](b, `performance.now()`))
		paints = append(paints, b.firstPaint())
	}
	t.Logf("%.0f bytes without what /v1 answers; first paint after %.0f ms, all there after %.0f ms, in the median of %d; first paint of a page of one line after %.0f ms",
		b.bytes, median(paints), median(shown), len(paints), median(least))
	if b.bytes > 200_000 || b.bytes < 10_000 {
		t.Errorf("%.0f bytes: 200 KB at most", b.bytes)
	}
	if *budget && median(paints) > 200 {
		t.Errorf("first paint after %.0f ms: 200 ms at most", median(paints))
	}
	for _, path := range []string{"/models?collection=emoji", "/stats?collection=emoji"} {
		b.open(path)
		b.until(`document.querySelector(".panel")`)
	}
	for _, asked := range b.asked {
		if u, err := url.Parse(asked); err != nil || u.Host != page.Host {
			t.Errorf("the page asks for %s", asked)
		}
	}
	b.quiet()
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// A view is an address that is looked at, with an expression that is true once it is complete.
type view struct{ name, path, ready string }

var views = []view{
	{"search", "/?collection=emoji&text=cat+face&from=words&to=picture&radius=40&explain=true",
		`document.querySelectorAll(".card").length > 0 && document.querySelector("#histogram rect")`},
	{"item", "/?collection=emoji&key=%F0%9F%90%B1&from=picture&to=picture&k=12",
		`document.querySelectorAll(".card").length === 12 && document.querySelector(".query img")`},
	{"first", "/?collection=emoji",
		`document.querySelectorAll(".card").length === 36 && document.querySelectorAll(".facet").length === 1`},
	{"facets", "/?collection=emoji&text=cat+face&from=words&to=picture&where=label+%3D+%27Animals+%26+Nature%27+AND+label+%3D+%27animal-mammal%27", `document.querySelectorAll(".card").length > 0 && document.querySelectorAll(".facet button.chosen").length === 2`},
	{"nothing", "/?collection=emoji&text=cat+face&from=words&to=picture&where=label+%3D+%27none%27",
		`document.querySelector(".nothing")?.textContent === "No item matches the filter."`},
	{"filter", "/?collection=emoji&text=cat&from=words&to=picture&where=year+%3C",
		`document.querySelector("#whereError").checkVisibility() && document.querySelector("h1")`},
	{"wrong", "/?collection=emoji&key=nobody&from=picture&to=picture",
		`document.querySelector(".notice.bad")`},
	{"map", "/map?collection=emoji", `document.querySelectorAll(".legend li").length > 8`},
	{"models", "/models?collection=emoji", `document.querySelector(".panel table")`},
	{"duplicates", "/duplicates?collection=emoji", `document.querySelectorAll(".groups section").length > 3`},
	{"figures", "/stats?collection=emoji", `document.querySelectorAll(".panel table").length === 2`},
}

// TestViews checks every view, light and dark, wide and narrow: axe finds nothing that
// would keep a person from using it. With -shots it writes pictures of them, to be
// looked at.
func TestViews(t *testing.T) {
	page, _ := explorePictures(t, "--write")
	b := browse(t, page)
	for _, look := range []struct {
		scheme        string
		width, height int64
	}{{"light", 1360, 900}, {"dark", 1360, 900}, {"light", 390, 844}, {"dark", 390, 844}} {
		b.scheme(look.scheme, look.width, look.height)
		for _, v := range views {
			name := v.name + "-" + look.scheme
			if look.width < 500 {
				name += "-narrow"
			}
			b.open(v.path)
			b.until(v.ready)
			b.until(`[...document.images].filter((i) => i.getBoundingClientRect().top < innerHeight).every((i) => i.complete)`)
			b.shot(name)
			if wide := eval[float64](b,
				`document.documentElement.scrollWidth - document.documentElement.clientWidth`); wide > 0 {
				t.Errorf("%s: wider than the screen by %.0f pixels", name, wide)
			}
			b.accessible(name)
		}
	}
}

// accessible fails the test if axe finds anything.
func (b *tab) accessible(name string) {
	b.Helper()
	axe, err := os.ReadFile(*axeFile)
	if err != nil {
		b.Fatal(err)
	}
	b.do(chromedp.Evaluate[chromedp.Void](string(axe)))
	for _, found := range eval[[]string](b,
		`axe.run().then((r) => r.violations.map((v) => v.impact + ": " + v.id + ": " + v.help + ": " + v.nodes.map((n) => n.html + " " + n.failureSummary).slice(0, 3).join("; ")))`) {
		b.Errorf("%s: %s", name, found)
	}
}

// Items of two collections with the same keys are not taken for each other.
func TestCollections(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "two.db")
	d, err := db.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"main", "other"} {
		c, err := d.CreateCollection(ctx, name,
			db.Schema{Bits: 8, Fields: []db.Field{{Name: "title", Type: db.String}}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			it := &db.Item{Key: fmt.Sprint(i), Code: []byte{byte(i)},
				Fields: map[string]any{"title": fmt.Sprint(name, " ", i)}}
			if _, err := c.Put(ctx, it); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	b := browse(t, explore(t, dir))
	b.open("/")
	b.until(`document.querySelectorAll(".card").length === 3`)
	eval[bool](b, `((select) => { select.value = "other"; return select.dispatchEvent(new Event("change")); })(document.querySelector("#collection"))`)
	b.until(`location.search === "?collection=other" && !document.querySelector(".busy")`)
	for _, name := range eval[[]string](b,
		`[...document.querySelectorAll(".card h2")].map((h) => h.textContent)`) {
		if !strings.HasPrefix(name, "other") {
			t.Errorf("in the collection other there is a card of %q", name)
		}
	}
	b.quiet()
}

// The page says what it waits for while the encoder of words loads its model, and that
// it then answers.
func TestSlowEncoder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program is a script of a shell")
	}
	dir, err := emojiDatabase()
	if err != nil {
		t.Fatal(err)
	}
	ready := filepath.Join(t.TempDir(), "ready")
	script := filepath.Join(t.TempDir(), "encode.sh")
	text := fmt.Sprintf("until [ -e %s ]; do sleep .1; done\nexec %s --db %s --encode\n", ready, emoji, dir)
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ready, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	setEncoder(t, dir, "text", "words=sh "+script)
	if err := os.Remove(ready); err != nil {
		t.Fatal(err)
	}
	page := explore(t, dir, "--collection", "emoji")
	b := browse(t, page)
	b.open("/?collection=emoji&text=cat+face&from=words&to=picture")
	b.until(`document.querySelector(".notice.waiting")?.textContent.includes("the program that encodes words")`)
	if status := eval[string](b, `document.getElementById("status").textContent`); !strings.Contains(status,
		"Waiting") {
		t.Errorf("a screen reader hears %q", status)
	}
	b.shot("waiting")
	if err := os.WriteFile(ready, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.until(`document.querySelectorAll(".card").length > 0 && !document.querySelector(".waiting")`)
	b.quiet()
}
