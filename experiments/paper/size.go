package paper

import (
	"context"
	"fmt"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// trainingSizes varies the number of training items: by default a 32nd of the labelled
// items, a 16th, and so on, and all of them.
func trainingSizes() *kind {
	return &kind{
		name:  "size",
		short: "Measure mAP and the time of training by the number of labelled items",
		long:  `The numbers are a 32nd of the items, a 16th and so on, and all of them, unless --grid rows gives others.`,
		axes:  []axis{{name: "rows", whole: true, least: 1}},
		run:   runSizes,
		lead:  []term.Column{term.Right("labelled items"), term.Right("seconds"), term.Right("distinct codes")},
		cells: func(_ *lab, m *measurement) []any {
			return []any{term.CountCell(m.TrainItems), fmt.Sprintf("%.2f", m.Seconds), term.Setting(m.Distinct)}
		},
		draw: drawSizes,
	}
}

func runSizes(ctx context.Context, l *lab) error {
	outcomes := func(rows int) ([]*outcome, error) {
		opt := l.base
		name := "training on all items"
		if rows > 0 {
			opt.Rows, name = rows, fmt.Sprintf("training on %d items", rows)
		}
		return l.outcomes(ctx, name, func(int) db.TrainOptions { return opt })
	}
	sizes := l.grid["rows"]
	l.total = len(sizes) * l.seeds
	var whole []*outcome // of all items; it has their number
	if sizes == nil {
		parts := []int{32, 16, 8, 4, 2}
		l.total = (len(parts) + 1) * l.seeds
		var err error
		if whole, err = outcomes(0); whole == nil {
			return err
		}
		for _, part := range parts {
			if size := whole[0].training.TrainItems / part; size >= smallestSize {
				sizes = append(sizes, float64(size))
			}
		}
	}
	row := l.base.Method.String()
	for _, size := range sizes {
		found, err := outcomes(int(size))
		if err != nil {
			return err
		}
		if found == nil {
			continue
		}
		if err := l.add(newMeasurement(l, row, l.base, found)); err != nil {
			return err
		}
	}
	if whole == nil {
		return nil
	}
	return l.add(newMeasurement(l, row, l.base, whole))
}

// smallestSize is the least default number of items.
const smallestSize = 20
