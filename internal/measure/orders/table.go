package main

import (
	"fmt"
	"io"
	"math"

	"github.com/fddhdb/fddhdb/db"
)

func header(w io.Writer) {
	fmt.Fprintln(w, "| set | case | items, codes | | mAP: none | projection | asymmetric | gain | P@10: projection | asymmetric | features | P@50: projection | asymmetric | features | us: projection | asymmetric | features |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
}

// print writes a row for each direction, means over the runs.
func print(w io.Writer, set, of string, runs [][]*pair) {
	for i, first := range runs[0] {
		mean := func(f func(p *pair) float64) (mean, std float64) {
			for _, r := range runs {
				mean += f(r[i]) / float64(len(runs))
			}
			for _, r := range runs {
				std += (f(r[i]) - mean) * (f(r[i]) - mean)
			}
			return mean, math.Sqrt(std / float64(max(len(runs)-1, 1)))
		}
		of3 := func(f func(f *figures) float64) (cells string) {
			for _, order := range orders[1:] {
				x, _ := mean(func(p *pair) float64 { return f(p.by[order]) })
				cells += fmt.Sprintf(" %s |", share(x))
			}
			return cells
		}
		codes, _ := mean(func(p *pair) float64 { return float64(p.codes) })
		fmt.Fprintf(w, "| %s | %s | %d, %.0f | %s to %s |", set, of, first.searched, codes, first.from, first.to)
		for _, order := range orders[:3] {
			x, _ := mean(func(p *pair) float64 { return p.by[order].ap })
			fmt.Fprintf(w, " %s |", share(x))
		}
		gain, std := mean(func(p *pair) float64 { return p.by[db.RerankAsymmetric].ap - p.by[db.RerankProjection].ap })
		fmt.Fprintf(w, " %+.4f", gain)
		if len(runs) > 1 {
			fmt.Fprintf(w, " +- %.4f", std)
		}
		fmt.Fprint(w, " |")
		fmt.Fprint(w, of3(func(f *figures) float64 { return f.p10 }), of3(func(f *figures) float64 { return f.p50 }))
		for _, order := range orders[1:] {
			x, _ := mean(func(p *pair) float64 { return p.by[order].micros })
			fmt.Fprintf(w, " %.0f |", x)
		}
		fmt.Fprintln(w)
	}
}

// share spells a number below 1 without its zero.
func share(x float64) string {
	s := fmt.Sprintf("%.3f", x)
	if s[0] == '0' {
		return s[1:]
	}
	return s
}
