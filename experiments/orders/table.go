package orders

import (
	"fmt"
	"io"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/experiments/common"
)

func header(w io.Writer) {
	common.Head(w, 4, "set", "case", "items, codes", "", "mAP: none", "projection", "asymmetric", "gain",
		"P@10: projection", "asymmetric", "auto", "P@50: projection", "asymmetric", "auto",
		"itself: projection", "asymmetric", "auto", "us: projection", "asymmetric", "auto")
}

// print writes a row for each direction, with means over the runs.
func print(w io.Writer, set, of string, runs [][]*pair) {
	for i, first := range runs[0] {
		mean := func(f func(p *pair) float64) (mean, std float64) {
			var values []float64
			for _, r := range runs {
				values = append(values, f(r[i]))
			}
			return common.MeanStd(values)
		}
		codes, _ := mean(func(p *pair) float64 { return float64(p.codes) })
		row := []string{set, of, fmt.Sprintf("%d, %.0f", first.searched, codes),
			first.from + " to " + first.to}
		add := func(orders []db.Rerank, format func(float64) string, f func(f *figures) float64) {
			for _, order := range orders {
				x, _ := mean(func(p *pair) float64 { return f(p.by[order]) })
				row = append(row, format(x))
			}
		}
		add(orders[:3], common.Share, func(f *figures) float64 { return f.ap })
		gain, std := mean(func(p *pair) float64 {
			return p.by[db.RerankAsymmetric].ap - p.by[db.RerankProjection].ap
		})
		cell := fmt.Sprintf("%+.4f", gain)
		if len(runs) > 1 {
			cell += fmt.Sprintf(" +- %.4f", std)
		}
		row = append(row, cell)
		add(orders[1:], common.Share, func(f *figures) float64 { return f.p10 })
		add(orders[1:], common.Share, func(f *figures) float64 { return f.p50 })
		add(orders[1:], common.Share, func(f *figures) float64 { return f.itself })
		add(orders[1:], whole, func(f *figures) float64 { return f.micros })
		common.Row(w, row...)
	}
}

// whole formats a number without a fraction.
func whole(x float64) string { return fmt.Sprintf("%.0f", x) }
