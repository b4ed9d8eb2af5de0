package command

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model/eval"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
)

// retrievals returns figures of two directions: one with long names, one with a small
// database and nothing at small radii.
func retrievals() []report.Retrieval {
	radii := func(first int) (points []eval.RadiusPoint) {
		for r := range 17 {
			p := eval.RadiusPoint{Radius: r}
			if r >= first {
				p.Recall = float64(r+1) / 17
				p.Precision, p.Retrieved = 1-.8*p.Recall, 100*p.Recall
			}
			points = append(points, p)
		}
		return points
	}
	return []report.Retrieval{
		{
			From: "image", To: "text",
			Hamming: eval.Metrics{ByRadius: radii(0),
				ByTop: []eval.TopPoint{{K: 1, Precision: .9}, {K: 10, Precision: .8}}},
			Asymmetric: eval.Metrics{ByTop: []eval.TopPoint{{K: 1, Precision: .95}, {K: 10, Precision: .85}}},
		},
		{
			From: "an exceedingly long name of a modality", To: "<&>",
			Hamming:    eval.Metrics{ByRadius: radii(4), ByTop: []eval.TopPoint{{K: 1, Precision: .2}}},
			Asymmetric: eval.Metrics{ByTop: []eval.TopPoint{{K: 1, Precision: .3}}},
		},
	}
}

func drawn(t *testing.T, found []report.Retrieval) []byte {
	t.Helper()
	var b bytes.Buffer
	clitest.Check(t, writeRetrieval(&b, found))
	return b.Bytes()
}

func TestPlot(t *testing.T) {
	clitest.OneGoroutine(t)
	found := retrievals()
	svg := drawn(t, found)
	if !bytes.Equal(svg, drawn(t, retrievals())) {
		t.Error("equal figures, different bytes")
	}
	list, x, y := clitest.Texts(t, svg)
	if len(x) != len(list) || len(y) != len(list) {
		t.Fatalf("%d texts at %d, %d places", len(list), len(x), len(y))
	}
	all := "\n" + strings.Join(list, "\n") + "\n"
	for text, times := range map[string]int{
		"image → text: within each radius": 1, "image → text: the first K": 1,
		"an exceed… → <&>: the first K": 1,
		"recall":                        2, "K": 2, "precision": 4, "1000": 2, "0.8": 6, "Hamming": 1,
		"asymmetric": 1, "chance": 1,
	} {
		if got := strings.Count(all, "\n"+text+"\n"); got != times {
			t.Errorf("%q stands there %d times, not %d", text, got, times)
		}
	}
	clitest.CheckApart(t, list, x, y)
}

// An evaluation without points gives a frame, not an error.
func TestPlotOfNothing(t *testing.T) {
	list, _, _ := clitest.Texts(t, drawn(t, []report.Retrieval{{From: "a", To: "a"}}))
	if len(list) == 0 {
		t.Error("no frame")
	}
}
