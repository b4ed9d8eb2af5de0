package browser

import (
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// filters returns the conditions above the cards.
func (b *tab) filters() []string {
	b.Helper()
	return eval[[]string](b, `[...document.querySelectorAll(".facet button.chosen")].map((e) => e.dataset.test)`)
}

// A click on a count filters, a click on the condition takes it away, by the keyboard as well, where
// nothing is found, too; and what was written into the filter counts as it does for the database.
func TestFacets(t *testing.T) {
	b := browse(t, exploreEmoji(t))
	b.open("/?collection=emoji&text=cat+face&from=words&to=picture")
	const mammal, nature = "label = 'animal-mammal'", "label = 'Animals & Nature'"
	chip := func(test string) string { return `.facet button[data-test="` + test + `"]` }
	b.until(`document.querySelector("` + strings.ReplaceAll(chip(mammal), `"`, `\"`) + `")`)
	before := b.keys()
	b.do(chromedp.Click(chromedp.CSS(chip(mammal))))
	b.until(`document.querySelectorAll(".card").length === 24 && document.querySelector(".chosen") && [...document.querySelectorAll(".card")].every((c) => c.textContent.includes("animal-mammal"))`)
	b.until(`new URL(location).searchParams.get("where") === "` + mammal +
		`" && document.querySelector("#where").value === "` + mammal + `"`)

	// By the keyboard: the focus is on the condition that was added, and Enter takes it away.
	b.until(`document.activeElement.dataset.test === "` + mammal + `"`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(`!document.querySelector(".chosen") && !new URL(location).searchParams.has("where")`)
	b.until(`document.activeElement.dataset.test === "` + mammal + `"`)
	if got := b.keys(); !slices.Equal(got, before) {
		t.Errorf("without the filter: %q, want %q", got, before)
	}

	// A filter with OR is one condition beside those of clicks; quotes and parentheses hold together.
	written := `label = 'animal-bird' OR label = 'a AND b' OR label = 'animal-mammal'`
	b.do(chromedp.SendKeys(chromedp.CSS("#where"), written+"\r"))
	b.until(`document.querySelectorAll(".chosen").length === 1 && document.querySelectorAll(".facet").length > 1`)
	b.until(`document.querySelector("` + strings.ReplaceAll(chip(mammal), `"`, `\"`) + `")`)
	b.do(chromedp.Click(chromedp.CSS(chip(mammal))))
	b.until(`document.querySelectorAll(".chosen").length === 2`)
	if got := b.filters(); !slices.Equal(got, []string{"(" + written + ")", mammal}) {
		t.Errorf("filters %q", got)
	}
	b.accessible("chosen")

	// Where nothing is found a condition can be taken away, too.
	b.open("/?collection=emoji&text=cat+face&from=words&to=picture&where=label+%3D+%27none%27+and+" +
		"label+%3D+%27Animals+%26+Nature%27")
	b.until(`document.querySelector(".nothing")?.textContent === "No item matches the filter."`)
	b.do(chromedp.Click(chromedp.CSS(chip("label = 'none'"))))
	b.until(`document.querySelectorAll(".card").length === 24`)
	if got := b.filters(); !slices.Equal(got, []string{nature}) {
		t.Errorf("filters %q", got)
	}

	// The counts stay while a slider moves: what is below them does not jump.
	b.until(`document.querySelectorAll(".facet").length > 1`)
	moved := eval[float64](b, `(async () => {
  const top = () => document.querySelector(".cards").getBoundingClientRect().top, before = top();
  let most = 0;
  for (const k of [20, 22, 21, 23]) {
    const slider = document.querySelector("#k");
    slider.value = k;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    while (document.querySelectorAll(".card").length !== k) {
      await new Promise(requestAnimationFrame);
      most = Math.max(most, Math.abs(top() - before));
    }
  }
  return most;
})()`)
	if moved > 40 { // a line of counts may come or go
		t.Errorf("the cards jump by %.0f pixels", moved)
	}
	b.quiet()
}
