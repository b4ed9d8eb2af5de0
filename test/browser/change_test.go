package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/fddhdb/fddhdb/db"
)

// press moves the focus to an element, and presses a key there.
func (b *tab) press(selector, key string) {
	b.Helper()
	b.do(chromedp.Focus(chromedp.CSS(selector)), chromedp.KeyEvent(key))
}

// button is the selector of the button with a text, which it marks.
func (b *tab) button(text string) string {
	b.Helper()
	b.until(fmt.Sprintf(`(() => {
  document.querySelectorAll("[data-found]").forEach((e) => e.removeAttribute("data-found"));
  const all = [...(document.querySelector("dialog") ?? document).querySelectorAll("button")];
  const found = all.find((e) => e.textContent === %q);
  found?.setAttribute("data-found", "");
  return Boolean(found);
})()`, text))
	return "[data-found]"
}

// An item is inserted, changed, labelled and deleted by the keyboard alone. A change that somebody else has
// made meanwhile is not lost, and numbers that a browser rounds stay as they are.
func TestChanges(t *testing.T) {
	page, _ := explorePictures(t, "--write")
	b := browse(t, page)
	b.open("/?collection=emoji")
	b.until(`document.querySelectorAll(".card").length === 36`)
	b.press(b.button("New item"), kb.Enter)
	b.until(`document.querySelector("dialog[open]")`)
	b.accessible("new item")
	b.shot("new")
	b.do(chromedp.SendKeys(chromedp.CSS("dialog #edit0"), "<b>my heart</b>"),
		chromedp.SendKeys(chromedp.CSS("dialog #edit1"), "heart\nmine"))
	words := eval[string](b, `[...document.querySelectorAll("dialog label")].find((l) => l.textContent === "Vector of words").htmlFor`)
	b.do(chromedp.SendKeys(chromedp.CSS("dialog #"+words), "red heart\r"))
	b.until(`!document.querySelector("dialog") && document.querySelector(".query h1")?.textContent.includes("<b>my heart</b>")`)
	var item struct {
		Labels  []string
		Vectors map[string]any
	}
	at := "/collections/emoji/items/" + url.PathEscape("<b>my heart</b>")
	ask(t, page, at, nil, &item)
	if !slices.Equal(item.Labels, []string{"heart", "mine"}) || item.Vectors["words"] == nil {
		t.Errorf("stored is %v", item)
	}

	b.press(b.button("Edit"), kb.Enter)
	b.until(`document.querySelector("dialog #edit1")?.value === "heart\nmine"`)
	b.do(chromedp.SendKeys(chromedp.CSS("dialog #edit1"), "\nyours"))
	b.press(b.button("Store"), kb.Enter)
	b.until(`!document.querySelector("dialog") && document.querySelector(".query .tags")?.textContent.includes("yours")`)
	ask(t, page, at, nil, &item)
	if !slices.Equal(item.Labels, []string{"heart", "mine", "yours"}) || item.Vectors["words"] == nil {
		t.Errorf("changed is %v", item)
	}

	b.press(b.button("Edit"), kb.Enter)
	b.until(`document.querySelector("dialog #edit1")`)
	b.until(`fetch("/v1/emoji` + at + `", {method: "PATCH", body: '{"labels": ["theirs"]}'}).then((r) => r.ok)`)
	b.do(chromedp.SendKeys(chromedp.CSS("dialog #edit1"), "\nlost"))
	b.press(b.button("Store"), kb.Enter)
	b.until(`document.querySelector("dialog .bad")?.textContent.includes("Somebody else has changed this item")`)
	b.accessible("conflict")
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until(`!document.querySelector("dialog")`)
	ask(t, page, at, nil, &item)
	if !slices.Equal(item.Labels, []string{"theirs"}) {
		t.Errorf("after a conflict: %v", item.Labels)
	}

	b.press(b.button("Delete"), kb.Enter)
	b.until(`document.querySelector("dialog[open]")`)
	b.press(b.button("Delete"), kb.Enter)
	b.until(`!document.querySelector("dialog") && !location.search.includes("heart") && document.querySelectorAll(".card").length === 36`)
	var n struct{ Count int }
	ask(t, page, "/collections/emoji:count", map[string]any{"where": "label = 'theirs'"}, &n)
	if n.Count != 0 {
		t.Error("the item is still there")
	}
	b.quiet()
}

// What a form does not change stays to the last digit.
func TestExactNumbers(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "exact.db")
	d, err := db.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "x", Dim: 3}},
		Fields: []db.Field{{Name: "n", Type: db.Int}, {Name: "title", Type: db.String},
			{Name: "lines", Type: db.String}}})
	if err != nil {
		t.Fatal(err)
	}
	labels, lines := []string{"dog", " padded ", "two\nlines"}, "one\r\ntwo\n"+strings.Repeat("long ", 500)
	const odd = int64(9007199254740993)
	want := []float32{.1, 1e-30, 16777217.5}
	if _, err := c.Put(ctx, &db.Item{Key: "a b/c", Labels: labels,
		Fields:  map[string]any{"n": odd, "title": "before", "lines": lines},
		Vectors: map[string][]float32{"x": want}, Payload: []byte{0, 255}}); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	b := browse(t, explore(t, dir, "--write"))
	b.open("/?key=a+b%2Fc")
	b.press(b.button("Edit"), kb.Enter)
	b.until(`document.querySelector("dialog")`)
	if got := eval[string](b, `document.querySelector("#edit2").value`); got != fmt.Sprint(odd) {
		t.Errorf("n is shown as %s", got)
	}
	b.do(chromedp.SendKeys(chromedp.CSS("dialog #edit3"), " and after\r"))
	b.until(`!document.querySelector("dialog") && document.querySelector(".query h1")?.textContent.includes("before and after")`)
	b.quiet()
	out, err := exec.Command(program, "get", dir, "a b/c", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var stored struct {
		Labels []string
		Fields map[string]any
	}
	if err := json.Unmarshal(out, &stored); err != nil || !slices.Equal(stored.Labels, labels) ||
		stored.Fields["lines"] != lines {
		t.Errorf("%v, %v", stored, err)
	}
	for _, part := range []string{fmt.Sprint(odd), `"payload":"AP8="`, `[0.1,1e-30,16777218]`} {
		if !strings.Contains(string(out), part) {
			t.Errorf("stored is %s, without %s", out, part)
		}
	}
}

// Items that are chosen on the map are labelled together. What is stored as JSON has whole texts. A training
// is followed, and what it has made can be used at once.
func TestManyAtOnce(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "many.db")
	d, err := db.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "x", Dim: 8}},
		Fields: []db.Field{{Name: "story", Type: db.String}}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 120 {
		x := make([]float32, 8)
		for j := range x {
			x[j] = float32((i*7+j*j)%13) / 13
		}
		x[i%2] += 3
		if _, err := c.Put(ctx, &db.Item{Key: fmt.Sprintf("key %03d", i),
			Labels: []string{fmt.Sprint("class ", i%2)}, Vectors: map[string][]float32{"x": x},
			Fields:  map[string]any{"story": strings.Repeat("long ", 999)},
			Payload: []byte{byte(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	page := explore(t, dir, "--write")
	b := browse(t, page)
	b.open("/models")
	b.press(b.button("Train"), kb.Enter)
	b.until(`document.querySelector(".job")?.textContent.includes("done") && document.querySelector(".badge.active")`)
	b.shot("job")
	b.accessible("job")
	b.do(chromedp.Click(chromedp.CSS(`nav a[data-view=search]`)))
	b.until(`document.querySelectorAll(".card").length === 36 && document.querySelector("#radius").checkVisibility()`)

	b.open("/map")
	b.until(`document.querySelectorAll(".legend li").length === 2`)
	b.lasso()
	b.until(`document.querySelectorAll("#chosen .card").length === 60`)
	b.press(b.button("Label"), kb.Enter)
	b.do(chromedp.SendKeys(chromedp.CSS("#newLabel"), "chosen\r"))
	b.until(`!document.querySelector("dialog")`)
	var n struct{ Count int }
	ask(t, page, "/collections/main:count", map[string]any{"where": "label = 'chosen' AND label IN ('class 0', 'class 1')"}, &n)
	if n.Count != 120 {
		t.Errorf("%d items are labelled", n.Count)
	}
	b.open("/?key=key+001&k=5&from=x&to=x")
	b.until(`document.querySelectorAll(".card").length === 5`)
	eval[bool](b, `(() => {
  window.saved = [];
  URL.createObjectURL = (blob) => (window.saved.push(blob.text()), "blob:none");
  return true;
})()`)
	b.press(b.button("JSON"), kb.Enter)
	b.until(`window.saved.length === 1`)
	var rows []struct {
		Key    string
		Labels []string
		Fields map[string]string
	}
	saved := eval[string](b, `window.saved[0]`)
	if err := json.Unmarshal([]byte(saved), &rows); err != nil || len(rows) != 5 ||
		len(rows[4].Fields["story"]) != 5*999 || !slices.Contains(rows[4].Labels, "chosen") {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// Whoever may only look sees no button that changes something. The page asks for the token.
func TestReader(t *testing.T) {
	dir, err := emojiDatabase()
	if err != nil {
		t.Fatal(err)
	}
	tokens := filepath.Join(t.TempDir(), "tokens")
	token := func(scope string) string {
		out, err := exec.Command(program, "token", tokens, "--name", scope, "--scope", scope).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	reader, writer := token("read"), token("write")
	cmd := exec.Command(program, "serve", dir, "--address", "127.0.0.1:0", "--tokens", tokens)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address, _, _ := strings.Cut(line, " ")
	page, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	for token, may := range map[string]bool{reader: false, writer: true} {
		b := browse(t, page)
		b.open("/?collection=emoji&key=%F0%9F%90%B1&from=picture&to=picture")
		b.until(`document.activeElement.id === "token"`)
		b.accessible("token")
		b.shot("token")
		b.do(chromedp.SendKeys(chromedp.CSS("#token"), "fddhdb_nonsense\r"))
		b.until(`document.querySelector("#token")?.value === ""`)
		b.do(chromedp.SendKeys(chromedp.CSS("#token"), token+"\r"))
		b.until(`document.querySelectorAll(".card").length === 24 && document.querySelector(".query img")?.naturalWidth > 0`)
		for path, ready := range map[string]string{
			"/?collection=emoji&key=%F0%9F%90%B1&from=picture&to=picture": `document.querySelector(".about")`,
			"/?collection=emoji":       `document.querySelectorAll(".card").length === 36`,
			"/models?collection=emoji": `document.querySelector(".panel table")`,
		} {
			b.open(path)
			b.until(ready)
			changing := eval[[]string](b, `[...document.querySelectorAll("button")].map((e) => e.textContent).filter((t) => ["New item", "Edit", "Delete", "Train", "Learn from new items", "Label"].includes(t))`)
			if (len(changing) > 0) != may {
				t.Errorf("%s: buttons %q, may write: %v", path, changing, may)
			}
		}
	}
}

// The map shows all items; a click searches from one, a line around some chooses them, and so do keys.
func TestMap(t *testing.T) {
	b := browse(t, exploreEmoji(t))
	b.open("/map?collection=emoji")
	b.until(`document.querySelectorAll(".legend li").length === 9`)
	if !eval[bool](b, `document.querySelector("#status").textContent === "Map of 1,900 items"`) {
		t.Error("the status does not tell")
	}
	b.press("canvas", kb.ArrowRight)
	b.until(`document.querySelector(".tip").textContent !== ""`)
	b.do(chromedp.KeyEvent(kb.ArrowUp), chromedp.KeyEvent(" "))
	b.until(`document.querySelectorAll("#chosen .card").length === 1`)
	b.accessible("map-chosen")
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until(`!document.querySelector("#chosen .card")`)

	b.lasso()
	b.until(`document.querySelectorAll("#chosen .card").length === 60`)
	b.shot("map-lasso")
	b.do(chromedp.Click(chromedp.CSS("#chosen .card:nth-child(3) a")))
	b.until(`location.pathname === "/" && new URL(location).searchParams.has("key")`)
	b.do(chromedp.NavigateBack())
	b.until(`location.pathname === "/map" && document.querySelectorAll("#chosen .card").length === 60`)
	b.do(chromedp.SendKeys(chromedp.CSS("#mapWhere"), "label = 'Flags'\r"))
	b.until(`document.querySelector(".legend li button")?.textContent.startsWith("Flags")`)
	b.quiet()
}

// lasso draws around all items of the map.
func (b *tab) lasso() {
	b.Helper()
	box := eval[map[string]float64](b, `(({x, y, width, height}) => ({x, y, width, height}))(document.querySelector("canvas").getBoundingClientRect())`)
	mouse := func(kind input.DispatchMouseEventType, x, y float64) {
		call(b, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind,
			X: box["x"] + x*box["width"], Y: box["y"] + y*box["height"], Button: input.MouseButtonLeft,
			ClickCount: 1})
	}
	mouse(input.DispatchMouseEventTypeMousePressed, .02, .02)
	for _, p := range [][2]float64{{.98, .02}, {.98, .98}, {.02, .98}} {
		mouse(input.DispatchMouseEventTypeMouseMoved, p[0], p[1])
	}
	mouse(input.DispatchMouseEventTypeMouseReleased, .02, .9)
}

// What is stored as .csv is no formula to a spreadsheet, and quoted where it has to be.
func TestDownloads(t *testing.T) {
	b := browse(t, exploreEmoji(t))
	b.open("/?collection=emoji")
	b.until(`document.querySelectorAll(".card").length === 36`)
	got := eval[string](b, `import("/item.js").then((m) => m.csv([
  {key: "=1+1", labels: ["a", "b"], fields: {n: -5, title: 'x "y", z'}},
  {key: "b", fields: {title: "@SUM(A1)", key: 7}, distance: null}]))`)
	if want := "key,labels,n,title,fields.key\r\n'=1+1,a;b,-5,\"x \"\"y\"\", z\",\r\nb,,,'@SUM(A1),7\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	b.quiet()
}

// Duplicates are shown in groups. What is not to be kept is deleted, and nothing else.
func TestDuplicates(t *testing.T) {
	page, _ := explorePictures(t, "--write")
	b := browse(t, page)
	// Codes that are learned from labels say that items are of one kind: the page compares vectors, unless
	// somebody asks for codes.
	b.open("/duplicates?collection=emoji")
	b.until(`document.querySelector("#alikeBy")?.value === "picture" && document.querySelector("#near").value === "0.95"`)
	b.until(`document.querySelector("#going p") && !document.querySelector(".alike + .hint")`)
	eval[bool](b, `((select) => { select.value = ""; return select.dispatchEvent(new Event("change")); })(document.querySelector("#alikeBy"))`)
	b.until(`document.querySelector(".alike + .hint")?.textContent === "Items with the same labels have the same code; these need not be copies." && new URL(location).searchParams.has("radius")`)
	b.open("/duplicates?collection=emoji&radius=0")
	b.until(`document.querySelectorAll(".groups section").length === 12`)
	b.do(chromedp.Click(chromedp.CSS(".groups + .more")))
	b.until(`document.querySelectorAll(".groups section").length > 12`)
	if again := eval[int](b, `(() => {
		const keys = [...document.querySelectorAll(".groups .card")].map((li) => li.dataset.key);
		return keys.length - new Set(keys).size;
	})()`); again > 0 {
		t.Errorf("%d items are in two groups", again)
	}
	b.open("/duplicates?collection=emoji&radius=0&where=" + url.QueryEscape("label = 'keycap'"))
	b.until(`document.querySelectorAll(".groups section").length === 1`)
	n := eval[int](b, `document.querySelectorAll(".groups .card").length`)
	gone := eval[string](b, `document.querySelectorAll(".groups .card")[2].dataset.key`)
	// All are kept but the third one.
	b.do(chromedp.Evaluate[chromedp.Void](
		`document.querySelectorAll(".groups .card:not(:nth-child(3)) input:not(:checked)").forEach((x) => x.click())`))
	b.until(`document.querySelector("#going button").textContent === "Delete 1 item"`)
	b.accessible("duplicates")
	b.do(chromedp.Click(chromedp.CSS("#going button")))
	b.until(`document.querySelector("dialog") !== null`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(fmt.Sprintf(`document.querySelectorAll(".groups .card").length === %d`, n-1))
	if eval[bool](b, fmt.Sprintf(`[...document.querySelectorAll(".groups .card")].some((li) => li.dataset.key === %q)`,
		gone)) {
		t.Errorf("%s is still there", gone)
	}
	b.open("/duplicates?collection=emoji&modality=words&least=.999")
	b.until(`document.querySelectorAll(".groups section").length > 0`)
	b.quiet()
}
