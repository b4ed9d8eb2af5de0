package paper

import (
	"context"
	"maps"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/model"
)

// sensitivity varies the weights of the objective. The paper has two modalities, and
// calls the weights of their parts mu and theta:
//
//	|H - C Y|^2 + mu |phi_1 - R_1 C Y|^2 + theta |phi_2 - R_2 C Y|^2 + delta |Y|^2
//
// Here mu is the weight of the first learned modality. All other modalities have the weight
// theta.
func sensitivity() *kind {
	return &kind{
		name:  "sensitivity",
		short: "Measure mAP over a grid of mu, theta and delta, the weights of the paper",
		long: `The method is paper, or joint if asked for. mu is that of the first modality (--mu), theta that of the others, delta --delta.
Features, map and gamma are chosen once a seed.`,
		sets: []string{"mu", "delta"},
		axes: []axis{
			{name: "mu", values: []float64{1e-5, 1e-3, 1e-1, 1e1}},
			{name: "theta", values: []float64{1e-5, 1e-3, 1e-1, 1e1}},
			{name: "delta", values: []float64{1e-2, 1, 1e2, 1e4}, least: 1e-300},
		},
		run:  runSensitivity,
		lead: []term.Column{term.Right("mu"), term.Right("theta"), term.Right("delta")},
		cells: func(l *lab, m *measurement) []any {
			mu, theta := l.weights(m)
			return []any{term.Setting(mu), term.Setting(theta), m.Delta.String()}
		},
		draw: drawSensitivity,
	}
}

func runSensitivity(ctx context.Context, l *lab) error {
	opt := l.base
	if opt.Method != model.MethodJoint {
		opt = l.by(model.MethodPaper) // labels has no such weights
	}
	cells := len(l.grid["mu"]) * len(l.grid["theta"]) * len(l.grid["delta"])
	l.total = (cells + 1) * l.seeds
	settings, err := l.settle(ctx, opt.Method.String(), opt)
	if err != nil || settings == nil {
		return err
	}
	if len(l.modalities) == 1 { // there is no theta
		l.grid["theta"] = l.grid["theta"][:1]
	}
	for _, delta := range l.grid["delta"] {
		for _, mu := range l.grid["mu"] {
			for _, theta := range l.grid["theta"] {
				weights := all(l, theta)
				weights[l.modalities[0]] = mu
				if err := l.measure(ctx, opt.Method.String(), func(i int) db.TrainOptions {
					settled := settings[i]
					settled.Mu, settled.Delta = maps.Clone(weights), delta
					return settled
				}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// weights returns mu and theta of a row; theta is 0 if there is none.
func (l *lab) weights(m *measurement) (mu, theta float64) {
	mu = m.Mu[l.modalities[0]]
	if len(l.modalities) > 1 {
		theta = m.Mu[l.modalities[1]]
	}
	return mu, theta
}
