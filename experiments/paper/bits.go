package paper

import (
	"context"
	"fmt"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// codeLengths compares the methods at several lengths of codes.
func codeLengths() *kind {
	return &kind{
		name:  "bits",
		short: "Measure mAP by the length of codes",
		long:  `Rows are each method, and FDDH as it was published. Lengths below the number of labels are left out.`,
		sets:  []string{"bits", "method"},
		axes:  []axis{{name: "bits", values: []float64{16, 32, 48, 64, 96, 128}, whole: true, least: 8}},
		run:   runBits,
		lead:  []term.Column{term.Right("bits"), term.Left(""), term.Left("aim"), term.Right("constant bits"), term.Right("seconds")},
		cells: func(_ *lab, m *measurement) []any {
			return []any{m.Bits, m.Row, m.Aim.String(), term.Setting(m.Constant), fmt.Sprintf("%.2f", m.Seconds)}
		},
		draw: drawBits,
	}
}

func runBits(ctx context.Context, l *lab) error {
	lengths := l.grid["bits"]
	l.total = len(lengths) * (len(methods) + 1) * l.seeds
	for _, bits := range lengths {
		measure := func(row string, opt db.TrainOptions) error {
			opt.Bits = int(bits)
			return l.same(ctx, row, opt)
		}
		for _, m := range methods {
			if err := measure(m.String(), l.by(m)); err != nil {
				return err
			}
		}
		if err := measure("FDDH", l.published(int(bits))); err != nil {
			return err
		}
	}
	return nil
}
