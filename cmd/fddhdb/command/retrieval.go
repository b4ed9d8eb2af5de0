package command

import (
	"io"
	"strconv"

	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model/eval"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/internal/svgchart"
)

var (
	hamming    = svgchart.Style{Name: "Hamming", Color: svgchart.Blue, Mark: svgchart.Circle}
	asymmetric = svgchart.Style{Name: "asymmetric", Color: svgchart.Vermillion, Dashes: "6 3",
		Mark: svgchart.Triangle}
	chance = svgchart.Style{Name: "chance", Color: svgchart.Grey, Dashes: "2 3"}
)

// writeRetrieval draws the curves of an evaluation as SVG, two panels for each pair of modalities.
func writeRetrieval(w io.Writer, found []report.Retrieval) error {
	var panels []svgchart.Panel
	for _, r := range found {
		panels = append(panels, radiusPanel(r), topPanel(r))
	}
	return svgchart.Write(w, panels, 2, []svgchart.Style{hamming, asymmetric, chance}, 100)
}

// shares is an axis from 0 to 1.
func shares(label string) svgchart.Axis {
	a := svgchart.Axis{Label: label, Max: 1}
	for i := range 6 {
		x := float64(i) / 5
		a.Ticks = append(a.Ticks, svgchart.Tick{At: x, Label: strconv.FormatFloat(x, 'f', 1, 64)})
	}
	return a
}

// radiusPanel draws precision against recall, a point a radius.
func radiusPanel(r report.Retrieval) svgchart.Panel {
	var line []svgchart.Point
	for _, p := range r.Hamming.ByRadius {
		at := svgchart.Point{X: p.Recall, Y: p.Precision}
		// An empty answer has no precision, and most radii add nothing to the one
		// before.
		if p.Retrieved > 0 && (len(line) == 0 || line[len(line)-1] != at) {
			line = append(line, at)
		}
	}
	return svgchart.Panel{Title: direction(r) + ": within each radius", X: shares("recall"),
		Y:      shares("precision"),
		Curves: []svgchart.Curve{chanceCurve(r, 0, 1), {Style: hamming, Points: line}}}
}

// topPanel draws precision of the first K.
func topPanel(r report.Retrieval) svgchart.Panel {
	// All figures have the K of a large database, so that they compare at a glance.
	x := svgchart.Axis{Label: "K", Min: 1, Max: 1000, Log: true}
	for _, k := range []int{1, 10, 100, 1000} {
		x.Ticks = append(x.Ticks, svgchart.Tick{At: float64(k), Label: strconv.Itoa(k)})
	}
	return svgchart.Panel{Title: direction(r) + ": the first K", X: x, Y: shares("precision"),
		Curves: []svgchart.Curve{
			chanceCurve(r, x.Min, x.Max), {Style: hamming, Points: topLine(r.Hamming.ByTop)},
			{Style: asymmetric, Points: topLine(r.Asymmetric.ByTop)}}}
}

func topLine(points []eval.TopPoint) (line []svgchart.Point) {
	for _, p := range points {
		line = append(line, svgchart.Point{X: float64(p.K), Y: p.Precision})
	}
	return line
}

// chanceCurve is at the precision of a random order, which is the precision of all items.
func chanceCurve(r report.Retrieval, from, to float64) svgchart.Curve {
	y := 0.
	if n := len(r.Hamming.ByRadius); n > 0 {
		y = r.Hamming.ByRadius[n-1].Precision
	}
	return svgchart.Curve{Style: chance, Points: []svgchart.Point{{X: from, Y: y}, {X: to, Y: y}}}
}

// direction returns the name of a pair of modalities.
func direction(r report.Retrieval) string { return shortName(r.From) + " → " + shortName(r.To) }

// shortName shortens a name that would run into the next panel.
func shortName(name string) string {
	const most = 10
	if runes := []rune(term.Plain(name)); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return term.Plain(name)
}
