package paper

import (
	"context"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/experiments/chart"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

// A kind is one kind of experiment. Each has a file.
type kind struct {
	name        string
	short, long string   // what it measures, for help
	axes        []axis   // which --grid can set
	sets        []string // flags of settings that the experiment varies itself
	// run measures all rows.
	run func(ctx context.Context, l *lab) error
	// lead are the first columns of the table, and cells their values of a row.
	lead  []term.Column
	cells func(l *lab, m *measurement) []any
	draw  func(l *lab) (*chart.Figure, error)
}

// An axis is a list of numbers that an experiment varies.
type axis struct {
	name   string
	values []float64 // defaults for --grid; nil: they depend on the items
	least  float64   // least allowed number
}

// axisNames returns the names of the axes.
func (x *kind) axisNames() []string {
	var names []string
	for _, a := range x.axes {
		names = append(names, a.name)
	}
	return names
}

// kinds returns all kinds.
func kinds() []*kind {
	return []*kind{ablation(), convergence(), sensitivity()}
}

// parse reads numbers, and returns them ascending, each once.
func (a axis) parse(list []string) ([]float64, error) {
	var values []float64
	for _, s := range list {
		v, err := strconv.ParseFloat(s, 64)
		switch {
		case err != nil:
			return nil, fmt.Errorf("--grid %s: %q is not a number", a.name, s)
		case !(v >= a.least):
			return nil, fmt.Errorf("--grid %s: %s: %s or more is possible", a.name, s, term.Setting(a.least))
		}
		values = append(values, v)
	}
	if len(values) == 0 {
		return nil, fmt.Errorf("--grid %s: numbers with commas between them are expected", a.name)
	}
	slices.Sort(values)
	return slices.Compact(values), nil
}

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
		run: runAblation,
		lead: []term.Column{term.Left(""), term.Left("method"), term.Left("aim"), term.Right("prior"),
			term.Right("constant bits"), term.Right("seconds")},
		cells: func(_ *lab, m *measurement) []any {
			var prior any = term.NoCell
			if m.Aim != model.AimCodes {
				prior = term.Setting(m.Prior)
			}
			return []any{m.Row, m.Method.String(), m.Aim.String(), prior, term.Setting(m.Constant),
				fmt.Sprintf("%.2f", m.Seconds)}
		},
		draw: drawAblation,
	}
}

func runAblation(ctx context.Context, l *lab) error {
	def := func() db.TrainOptions { return l.base } // the defaults
	// but returns options with a change. It is made once the modalities are known.
	but := func(of func() db.TrainOptions, change func(o *db.TrainOptions)) func() db.TrainOptions {
		return func() db.TrainOptions {
			o := of()
			change(&o)
			return o
		}
	}
	rows := []struct {
		name string
		opt  func() db.TrainOptions
	}{
		{"full", def},
		{"joint", func() db.TrainOptions { return l.by(model.MethodJoint) }},
		{"paper", func() db.TrainOptions { return l.by(model.MethodPaper) }},
		{"codes", but(def, func(o *db.TrainOptions) { o.Aim, o.Prior, o.Centre = model.AimCodes, nil, nil })},
		{"prior", but(def, func(o *db.TrainOptions) { o.Prior = new(float64) })},
		{"anchors", but(def, func(o *db.TrainOptions) {
			if n := l.fewAnchors(); n < l.fewest { // else these are all that there are
				o.Anchors = n
			}
		})},
		{"raw", but(def, func(o *db.TrainOptions) { o.Features = all(l, model.FeaturesRaw) })},
		{"rbf", but(def, func(o *db.TrainOptions) { o.Map = all(l, model.MapRBF) })},
		{"width", but(def, func(o *db.TrainOptions) { o.Width = all[float64](l, fit.DefaultWidth) })},
		{"gamma", but(def, func(o *db.TrainOptions) { o.Gamma = all(l, fit.DefaultGamma) })},
		{"start", but(def, func(o *db.TrainOptions) { o.Start = 1 })},
		{"fixed", but(def, func(o *db.TrainOptions) {
			o.Features, o.Map = all(l, model.FeaturesRaw), all(l, model.MapRBF)
			o.Width, o.Gamma = all[float64](l, fit.DefaultWidth), all(l, fit.DefaultGamma)
		})},
		{"FDDH", l.published},
		{"FDDH_NR", but(l.published, func(o *db.TrainOptions) { o.Delta = math.Inf(1) })},
		{"FDDH_NRM", but(l.published, func(o *db.TrainOptions) {
			o.Delta, o.Map = math.Inf(1), all(l, model.MapLinear)
			if !l.rotates(o.Bits) {
				o.Method = model.MethodLabels
			}
		})},
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
		lead: []term.Column{term.Left("method"), term.Left("aim"), term.Right("sweeps"),
			term.Right("objective"), term.Right("constant bits"), term.Right("distinct codes")},
		cells: func(_ *lab, m *measurement) []any {
			return []any{m.Row, m.Aim.String(), m.Sweeps, fmt.Sprintf("%.9g", m.Objective),
				term.Setting(m.Constant), term.Setting(m.Distinct)}
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

// print prints the rows as a table.
func (l *lab) print(p *term.Printer) {
	columns := slices.Clone(l.kind.lead)
	for _, pair := range l.pairs {
		columns = append(columns, term.Right(pair), term.Right("by score"))
	}
	var rows [][]any
	for _, m := range l.rows {
		row := l.kind.cells(l, m)
		for _, pair := range l.pairs {
			r := m.Retrieval[pair]
			row = append(row, l.figure(r.MAP, r.MAPStd), l.figure(r.MAPAsym, r.MAPAsymStd))
		}
		rows = append(rows, row)
	}
	p.PrintTable(columns, rows)
}

// figure returns a cell with a mean and, if there are several seeds, its standard
// deviation.
func (l *lab) figure(mean, std float64) any {
	if l.seeds == 1 {
		return term.NumberCell(mean, 4)
	}
	return fmt.Sprintf("%.4f +- %.4f", mean, std)
}

// warnings returns a text for each length of codes and reason for which rows were left
// out.
func (l *lab) warnings() (texts []string) {
	list := l.leftOut
	for len(list) > 0 {
		rows, first, more := list[0].row, list[0], list[1:]
		list = nil
		for _, left := range more {
			if left.bits == first.bits && left.reason.Error() == first.reason.Error() {
				rows += ", " + left.row
			} else {
				list = append(list, left)
			}
		}
		texts = append(texts, fmt.Sprintf("%s left out: %v", rows, first.reason))
	}
	return texts
}
