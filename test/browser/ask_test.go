package browser

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A row of a file, and a code, find the same items as the item that has this row and
// code, and that "More" goes on where the hits end.
func TestFileCodeAndMore(t *testing.T) {
	page := exploreEmoji(t)
	b := browse(t, page)
	var item struct {
		Code    string
		Vectors map[string][]float32
	}
	ask(t, page, "/collections/emoji/items/"+url.PathEscape("🐱"), nil, &item)
	var row []string
	for _, x := range item.Vectors["picture"] {
		row = append(row, strconv.FormatFloat(float64(x), 'g', -1, 32))
	}
	file := filepath.Join(t.TempDir(), "my pictures.csv")
	zeros := strings.Repeat("0,", len(row)-1) + "1\n"
	if err := os.WriteFile(file, []byte(zeros+strings.Join(row, ",")+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	b.open("/?collection=emoji&key=%F0%9F%90%B1&from=picture&to=words&k=10")
	b.until(`document.querySelectorAll(".card").length === 10`)
	want := hits(t, page, map[string]any{"key": "🐱", "from": "picture", "to": "words", "k": 30})

	b.do(chromedp.Click(chromedp.CSS(`input[value=row]`)))
	b.until(`document.getElementById("ask").dataset.mode === "row"`)
	b.do(chromedp.SetUploadFiles(chromedp.CSS("#file"), []string{file}))
	b.until(`document.querySelector(".query h1")?.textContent.includes("Row 0 of my pictures.csv")`)
	b.do(chromedp.SendKeys(chromedp.CSS("#row"), kb.ArrowUp))
	b.until(`document.querySelector(".query h1")?.textContent.includes("Row 1 of")`)
	if got := b.keys(); !slices.Equal(got, want[:10]) {
		t.Errorf("by its row: %q, want %q", got, want[:10])
	}
	for shown := 20; shown <= 30; shown += 10 {
		b.do(chromedp.Click(chromedp.CSS(".more")))
		b.until(`document.querySelectorAll(".card").length === ` + strconv.Itoa(shown))
		if got := b.keys(); !slices.Equal(got, want[:shown]) {
			t.Errorf("more: %q, want %q", got, want[:shown])
		}
		b.tellsDistances("nearest", shown)
	}

	b.do(chromedp.Click(chromedp.CSS(`input[value=code]`)))
	b.do(chromedp.SendKeys(chromedp.CSS("#code"), item.Code+"\r"))
	b.until(`document.querySelector(".query h1")?.textContent === "A code"`)
	want = hits(t, page, map[string]any{"code": item.Code, "to": "words", "k": 10})
	if got := b.keys(); !slices.Equal(got, want) {
		t.Errorf("by its code: %q, want %q", got, want)
	}
	b.quiet()
}

// tellsDistances checks the extremes of the distances on the n cards against the
// headline, which names the items with word, and against the marks of the histogram. It
// returns the distances.
func (b *tab) tellsDistances(word string, n int) []int {
	b.Helper()
	b.until(`document.querySelectorAll("#histogram rect.in").length > 0`)
	distances := eval[[]int](b,
		`[...document.querySelectorAll(".card .far b")].map((e) => parseInt(e.textContent))`)
	if len(distances) != n {
		b.Fatalf("%d cards have a distance, want %d", len(distances), n)
	}
	least, most := slices.Min(distances), slices.Max(distances)
	want := fmt.Sprintf("The %s %d items, %d to %d bits away", word, n, least, most)
	if least == most {
		want = fmt.Sprintf("The %s %d items, %d bits away", word, n, least)
	}
	if got := eval[string](b, `document.querySelector(".query p").textContent`); !strings.HasPrefix(got,
		want) {
		b.Errorf("the headline is %q, want %q", got, want)
	}
	bars := eval[[]int](b, `[...document.querySelectorAll("#histogram rect")].map((r) => Number(r.dataset.d))`)
	marked := eval[[]int](b, `[...document.querySelectorAll("#histogram rect.in")].map((r) => Number(r.dataset.d))`)
	bars = slices.DeleteFunc(bars, func(d int) bool { return d < least || d > most })
	if !slices.Equal(marked, bars) {
		b.Errorf("the histogram marks %v, want %v", marked, bars)
	}
	return distances
}

// Headline and histogram tell the nearest and the farthest distance of the hits, also
// in orders that are not by distance.
func TestDistancesInAnyOrder(t *testing.T) {
	b := browse(t, exploreEmoji(t))
	for _, order := range []struct {
		rerank, word string
		sorted       bool
	}{{"projection", "nearest", true}, {"asymmetric", "best", false}} {
		b.open("/?collection=emoji&key=%F0%9F%90%B1&from=picture&to=picture&k=60&rerank=" + order.rerank)
		b.until(`document.querySelectorAll(".card").length === 60`)
		b.shot("order-" + order.rerank)
		distances := b.tellsDistances(order.word, 60)
		if sorted := slices.IsSorted(distances); sorted != order.sorted {
			t.Errorf("%s: the distances are %v: another query is needed", order.rerank, distances)
		}
		similar := eval[[]string](b,
			`[...document.querySelectorAll(".card .similar :last-child")].map((e) => e.textContent)`)
		if len(similar) != 60 {
			t.Errorf("%s: the similarities are %q", order.rerank, similar)
		}
	}
	// A least similarity leaves out what is less similar, and stands in the address.
	b.open("/?collection=emoji&key=%F0%9F%90%B1&from=picture&to=picture&k=60&rerank=asymmetric")
	b.until(`document.querySelectorAll(".card").length === 60`)
	b.do(chromedp.SendKeys(chromedp.CSS("#min-similarity"), "0.9"))
	b.until(`[...document.querySelectorAll(".card")].length < 60 && document.querySelector(".card") && new URL(location).searchParams.get("min-similarity") === "0.9"`)
	// In an order that compares nothing there is no similarity, on cards or to ask for.
	b.open("/?collection=emoji&key=%F0%9F%90%B1&from=picture&to=picture&min-similarity=1&rerank=none")
	b.until(`document.querySelectorAll(".card").length === 24 && !document.querySelector(".similar") && document.querySelector("#min-similarity").disabled`)
	b.quiet()
}
