package paper

import (
	"context"
	"fmt"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/model"
)

// convergenceSweeps is the default number of sweeps of convergence.
const convergenceSweeps = 20

// methods are the methods that differ.
var methods = []model.Method{model.MethodLabels, model.MethodJoint, model.MethodPaper}

// convergence follows the objective and mAP from sweep to sweep. A training of fewer
// sweeps is the beginning of one of more, with the same seed and settings.
func convergence() *kind {
	return &kind{
		name:  "convergence",
		short: "Follow the objective and mAP from sweep to sweep, by each method",
		long:  `Sweeps are 1 to --sweeps (20). Features, map and gamma are chosen once a seed and method.`,
		sets:  []string{"method"},
		run:   runConvergence,
		lead:  []term.Column{term.Left("method"), term.Left("aim"), term.Right("sweeps"), term.Right("objective"), term.Right("constant bits"), term.Right("distinct codes")},
		cells: func(_ *lab, m *measurement) []any {
			return []any{m.Row, m.Aim.String(), m.Sweeps, fmt.Sprintf("%.9g", m.Objective), term.Setting(m.Constant), term.Setting(m.Distinct)}
		},
		draw: drawConvergence,
	}
}

func runConvergence(ctx context.Context, l *lab) error {
	l.total = len(methods) * l.seeds * (l.base.Sweeps + 1)
	for _, m := range methods {
		opt := l.by(m)
		choose := opt
		choose.Sweeps = fit.DefaultSweeps // as in train
		settings, err := l.settle(ctx, m.String(), choose)
		if err != nil {
			return err
		}
		for s := 1; s <= opt.Sweeps && settings != nil; s++ {
			if err := l.measure(ctx, m.String(), func(i int) db.TrainOptions {
				settled := settings[i]
				settled.Sweeps = s
				return settled
			}); err != nil {
				return err
			}
		}
	}
	return nil
}
