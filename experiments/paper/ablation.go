package paper

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/model"
)

// ablation removes the parts of the method one by one. Parts that only this program has are
// removed from the method of train; parts that the paper has, from the published method.
func ablation() *kind {
	return &kind{
		name:  "ablation",
		short: "Measure what train loses without its parts",
		long: `Rows are the methods joint and paper in place of labels; projections that learn codes in place of labels; the prior 0; 800
anchors; raw features, the rbf map, width 1, gamma .01 or the first random start in place of what is chosen, or all of these
(fixed); FDDH as it was published (method paper, raw, rbf, gamma 1e-4, and 800 anchors unless --anchors says otherwise);
that without the relaxation of labels (FDDH_NR: an infinite delta), and without the rbf map, too (FDDH_NRM: the linear map).
Where a vector has fewer numbers than a code has bits, that has no solution by the method paper, and is done by labels. What
the flags have taken out already has no row.`,
		run:  runAblation,
		lead: []term.Column{term.Left(""), term.Left("method"), term.Left("aim"), term.Right("prior"), term.Right("constant bits"), term.Right("seconds")},
		cells: func(_ *lab, m *measurement) []any {
			var prior any = term.NoCell
			if m.Aim != model.AimCodes {
				prior = term.Setting(m.Prior)
			}
			return []any{m.Row, m.Method.String(), m.Aim.String(), prior, term.Setting(m.Constant), fmt.Sprintf("%.2f", m.Seconds)}
		},
		draw: drawAblation,
	}
}

func runAblation(ctx context.Context, l *lab) error {
	rows := []struct {
		name string
		opt  func() db.TrainOptions // called once the modalities are known
	}{
		{"full", func() db.TrainOptions { return l.base }},
		{"joint", func() db.TrainOptions { return l.by(model.MethodJoint) }},
		{"paper", func() db.TrainOptions { return l.by(model.MethodPaper) }},
		{"codes", func() db.TrainOptions {
			opt := l.base
			opt.Aim, opt.Prior, opt.Centre = model.AimCodes, nil, nil
			return opt
		}},
		{"prior", func() db.TrainOptions {
			opt := l.base
			opt.Prior = new(float64)
			return opt
		}},
		{"anchors", func() db.TrainOptions {
			opt := l.base
			if n := l.fewAnchors(); n < l.fewest { // else these are all that there are
				opt.Anchors = n
			}
			return opt
		}},
		{"raw", func() db.TrainOptions {
			opt := l.base
			opt.Features = all(l, model.FeaturesRaw)
			return opt
		}},
		{"rbf", func() db.TrainOptions {
			opt := l.base
			opt.Map = all(l, model.MapRBF)
			return opt
		}},
		{"width", func() db.TrainOptions {
			opt := l.base
			opt.Width = all[float64](l, fit.DefaultWidth)
			return opt
		}},
		{"gamma", func() db.TrainOptions {
			opt := l.base
			opt.Gamma = all(l, fit.DefaultGamma)
			return opt
		}},
		{"start", func() db.TrainOptions {
			opt := l.base
			opt.Start = 1
			return opt
		}},
		{"fixed", func() db.TrainOptions {
			opt := l.base
			opt.Features, opt.Map = all(l, model.FeaturesRaw), all(l, model.MapRBF)
			opt.Width, opt.Gamma = all[float64](l, fit.DefaultWidth), all(l, fit.DefaultGamma)
			return opt
		}},
		{"FDDH", func() db.TrainOptions { return l.published(l.base.Bits) }},
		{"FDDH_NR", func() db.TrainOptions {
			opt := l.published(l.base.Bits)
			opt.Delta = math.Inf(1)
			return opt
		}},
		{"FDDH_NRM", func() db.TrainOptions {
			opt := l.published(l.base.Bits)
			opt.Delta, opt.Map = math.Inf(1), all(l, model.MapLinear)
			if !l.rotates(opt.Bits) {
				opt.Method = model.MethodLabels
			}
			return opt
		}},
	}
	l.total = len(rows) * l.seeds
	for i, r := range rows {
		opt := r.opt()
		// What the flags have taken out already cannot be taken out.
		if i > 0 && (reflect.DeepEqual(opt, l.base) || opt.Aim == model.AimCodes && opt.Prior != nil) {
			l.total -= l.seeds
			continue
		}
		if err := l.same(ctx, r.name, opt); err != nil {
			return err
		}
	}
	return nil
}

// by returns the options of the flags with a method, and what projections learn with it.
func (l *lab) by(m model.Method) db.TrainOptions {
	opt := l.base
	if opt.Method == m {
		return opt
	}
	if opt.Method, opt.Aim = m, aimOf(m); opt.Aim == model.AimCodes {
		opt.Prior, opt.Centre = nil, nil
	}
	return opt
}

// rotates reports whether the linear maps have as many features as codes have bits.
// Without that R_t'R_t = I is impossible.
func (l *lab) rotates(bits int) bool {
	for t, name := range l.set.Modalities {
		if slices.Contains(l.modalities, name) && l.set.Dims[t]+1 < bits {
			return false
		}
	}
	return true
}
