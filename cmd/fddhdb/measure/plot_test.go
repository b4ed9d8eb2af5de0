package measure

import (
	"bytes"
	"image/png"
	"strings"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
)

// timedRun returns a database of so many items with made-up times.
func timedRun(items int, ops []Op, tiers ...string) Run {
	run := Run{database: "some.db", items: items}
	for i, op := range ops {
		for j, tier := range tiers {
			l := &line{Op: op, tier: tier}
			for k := range 10 {
				find := time.Duration(items*(i+1)*(j+1)+k*k*100) * time.Nanosecond
				l.times = append(l.times, 2*find)
				l.parts = append(l.parts, Parts{Encode: find / 2, Find: find, Keys: find / 2})
			}
			run.lines = append(run.lines, l)
		}
	}
	return run
}

// benchDrawn draws runs twice and returns the texts of the figure.
func benchDrawn(t *testing.T, runs ...Run) string {
	t.Helper()
	draw := func(path string) []byte {
		var b bytes.Buffer
		if err := WritePlot(&b, path, runs); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	svg := draw("a.svg")
	if !bytes.Equal(svg, draw("a.svg")) || strings.Contains(string(svg), "NaN") {
		t.Error("equal times, other bytes, or no numbers")
	}
	if _, err := png.DecodeConfig(bytes.NewReader(draw("a.png"))); err != nil {
		t.Error(err)
	}
	list, x, y := clitest.Texts(t, svg)
	clitest.CheckApart(t, list, x, y)
	return "\n" + strings.Join(list, "\n") + "\n"
}

// One database gives a panel for each operation.
func TestBenchPlot(t *testing.T) {
	clitest.OneGoroutine(t)
	ops := []Op{{"knn", 1}, {"knn", 10}, {"knn", 100}, {"radius", 0}, {"hits", 0}, {"count", 0}, {"radius", 16}, {"hits", 16}, {"count", 16}}
	clitest.CheckTexts(t, benchDrawn(t, timedRun(12345, ops, "auto", FullScan, "disk")), map[string]int{
		"the k nearest of 12,345 items": 1, "all within r bits of 12,345 items": 1, "the first 100 within r bits of 12,345 items": 1,
		"count within r bits of 12,345 items": 1, "k (items)": 1, "radius r (bits)": 3, "µs to find the codes: median, bar to p99": 3, "µs: median, bar to p99": 1,
		"auto": 2, "fullscan": 2, "disk": 2, "memory": 0,
	})
}

// Several databases give a panel for each measurement, against their items.
func TestBenchPlotOfSizes(t *testing.T) {
	ops := []Op{{"knn", 10}, {"radius", 1}}
	var runs []Run
	for _, items := range []int{1_000_000, 1000, 100_000} {
		runs = append(runs, timedRun(items, ops, "memory", "scan"))
	}
	clitest.CheckTexts(t, benchDrawn(t, runs...), map[string]int{
		"the 10 nearest": 1, "all within 1 bit": 1, "items": 2, "1k": 4, "1M": 2, "memory": 1, "scan": 1, "auto": 0,
	})
}

// One measurement, of no time, is a figure, too.
func TestBenchPlotOfLittle(t *testing.T) {
	run := timedRun(1, []Op{{"count", 0}}, "auto")
	run.lines[0].times, run.lines[0].parts = []time.Duration{0}, []Parts{{}}
	clitest.CheckTexts(t, benchDrawn(t, run), map[string]int{"count within r bits of 1 item": 1, "0": 1})
	clitest.CheckTexts(t, benchDrawn(t, run, run), map[string]int{"count within 0 bits": 1})
}
