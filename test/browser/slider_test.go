package browser

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/fddhdb/fddhdb/db"
)

// move moves a slider to values one after the other. For each it measures the
// milliseconds from the move to the frame that shows the answer. The number of cards,
// or the headline, tells that the answer is shown.
const move = `(async (id, values) => {
  const slider = document.getElementById(id), took = [];
  for (const value of values) {
    const before = document.querySelector(".query p").textContent;
    const start = performance.now();
    slider.value = value;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    while (document.querySelector(".query p").textContent === before) await new Promise(requestAnimationFrame);
    took.push(performance.now() - start);
    await new Promise((done) => setTimeout(done, 50));
  }
  return took;
})`

func (b *tab) slide(id, values string, most float64) {
	b.Helper()
	eval[[]float64](b, move+`("`+id+`", `+values+`)`) // the codes of a search are read once
	took := eval[[]float64](b, move+`("`+id+`", `+values+`)`)
	b.Logf("%s: %d moves, %.0f ms in the median, %.0f ms at worst", id, len(took), median(took),
		slices.Max(took))
	if *budget && median(took) > most {
		b.Errorf("%s: %.0f ms in the median: %.0f at most", id, median(took), most)
	}
}

// Sliders answer within 50 ms over 1,900 items while they move.
func TestSliderOverEmoji(t *testing.T) {
	page := exploreEmoji(t)
	b := browse(t, page)
	b.open("/?collection=emoji&text=cat+face&from=words&to=picture&radius=30")
	b.until(`document.querySelectorAll(".card").length > 0`)
	b.slide("radius", `[0, 20, 40, 60, 35, 10, 50, 25]`, 50)
	b.slide("k", `[5, 60, 20, 40, 10, 30]`, 50)
	want := hits(t, page, map[string]any{"text": "cat face", "from": "words", "to": "picture", "k": 30,
		"radius": 25})
	if got := b.keys(); !slices.Equal(got, want) {
		t.Errorf("in the end there are the cards %q, want %q", got, want)
	}
	b.quiet()
}

// TestLatestWins moves a slider faster than it is answered: the page shows the answer
// to its last place.
func TestLatestWins(t *testing.T) {
	page := exploreEmoji(t)
	b := browse(t, page)
	b.open("/?collection=emoji&text=cat+face&from=words&to=picture&radius=30")
	b.until(`document.querySelectorAll(".card").length > 0`)
	eval[bool](b, `(() => {
  const slider = document.getElementById("k");
  for (let k = 2; k <= 100; k++) {
    slider.value = k;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  }
  slider.value = 7;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  return true;
})()`)
	b.until(`document.querySelectorAll(".card").length === 7`)
	b.until(`location.search.includes("k=7")`) // the address follows when the slider rests
	if got := len(b.keys()); got != 7 {
		t.Errorf("%d cards at last", got)
	}
	b.quiet()
}

// A slider answers within 100 ms over a million codes.
func TestSliderOverAMillion(t *testing.T) {
	if testing.Short() {
		t.Skip("a million codes are stored")
	}
	dir := filepath.Join(t.TempDir(), "million.db")
	storeCodes(t, dir, 1_000_000)
	page := explore(t, dir)
	b := browse(t, page)
	b.open("/?key=500000&radius=8")
	b.until(`document.querySelectorAll(".card").length > 0 && document.querySelector("#histogram rect")`)
	b.slide("radius", `[0, 4, 8, 16, 12, 20, 2, 10]`, 100)
	b.slide("k", `[5, 60, 20, 40, 10, 30]`, 100)
	b.shot("million")
	b.quiet()
}

// storeCodes stores n codes of 64 bits, in clusters of a hundred, each a few bits from
// the centre of its cluster.
func storeCodes(t *testing.T, dir string, n int) {
	t.Helper()
	ctx := context.Background()
	d, err := db.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.CreateCollection(ctx, "main", db.Schema{Bits: 64})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	batch := d.NewBatch()
	var centre uint64
	for i := range n {
		if i%100 == 0 {
			centre = r.Uint64()
		}
		code := centre
		for range r.IntN(20) {
			code ^= 1 << r.IntN(64)
		}
		if err := batch.Put(c, &db.Item{Key: strconv.Itoa(i),
			Code: binary.LittleEndian.AppendUint64(nil, code)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := batch.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}
