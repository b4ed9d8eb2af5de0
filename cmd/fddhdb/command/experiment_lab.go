package command

import (
	"context"
	"encoding/json"
	"errors"
	"math"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/chart"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/model"
)

// A lab is where an experiment measures.
type lab struct {
	experiment *experiment
	collection *db.Collection
	schema     db.Schema
	queries    db.Evaluation
	base       db.TrainOptions // of the flags
	seeds      int
	grid       map[string][]float64
	emit       func(*measurement) error // is given each row; may be nil

	bar         *term.Progress
	done, total int // trainings

	modalities []string // that training has learned of, in their order; nil before the first
	pairs      []string // FROM->TO, as eval has them
	directions []string // the same, for figures
	rows       []*measurement
	leftOut    []leftOut
}

// leftOut is a row that cannot be measured, and why.
type leftOut struct {
	row    string
	bits   int
	err    error
	reason error // the part of it that says why
}

// An outcome is one training and what it is worth.
type outcome struct {
	training *db.Training
	found    []db.Retrieval
}

// try trains once, with the i-th seed.
func (l *lab) try(ctx context.Context, opt db.TrainOptions, i int) (*outcome, error) {
	l.bar.Report(l.experiment.name, int64(l.done), int64(l.total))
	opt.Seed = l.base.Seed + uint64(i)
	t, found, err := l.collection.EvaluateTraining(ctx, opt, l.queries)
	if err != nil {
		return nil, err
	}
	l.done++
	if l.modalities == nil {
		for _, m := range l.schema.Modalities {
			if _, learned := t.Chosen[m.Name]; learned {
				l.modalities = append(l.modalities, m.Name)
			}
		}
		for _, r := range found {
			l.pairs = append(l.pairs, r.From+"->"+r.To)
			l.directions = append(l.directions, chart.DirectionOf(r.From, r.To))
		}
	}
	return &outcome{t, found}, nil
}

// outcomes trains with every seed; opt gives the options of the i-th. Where that cannot
// work, it remembers why and returns none.
func (l *lab) outcomes(ctx context.Context, row string, opt func(i int) db.TrainOptions) ([]*outcome, error) {
	var outcomes []*outcome
	for i := range l.seeds {
		o, err := l.try(ctx, opt(i), i)
		if why := impossible(err); why != nil {
			l.done += l.seeds - i
			l.leftOut = append(l.leftOut, leftOut{row, opt(i).Bits, err, why})
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		outcomes = append(outcomes, o)
	}
	return outcomes, nil
}

// impossible returns the part of an error that says that one setting cannot work where
// others can; nil for any other error.
func impossible(err error) error {
	var bits *model.BitsError
	var features *model.FeaturesError
	var anchors *model.AnchorsError
	switch {
	case errors.Is(err, model.ErrOneClass):
		return model.ErrOneClass
	case errors.As(err, &anchors):
		return anchors
	case errors.As(err, &bits):
		return bits
	case errors.As(err, &features):
		return features
	}
	return nil
}

// measure adds the row of that name, if there is one.
func (l *lab) measure(ctx context.Context, row string, opt func(i int) db.TrainOptions) error {
	outcomes, err := l.outcomes(ctx, row, opt)
	if outcomes == nil {
		return err
	}
	return l.add(newMeasurement(l, row, opt(0), outcomes))
}

// settle returns, for each seed, the options with what a training chooses for
// features, map and gamma; nil where there can be none.
func (l *lab) settle(ctx context.Context, row string, opt db.TrainOptions) ([]db.TrainOptions, error) {
	outcomes, err := l.outcomes(ctx, row, func(int) db.TrainOptions { return opt })
	var settled []db.TrainOptions
	for _, o := range outcomes {
		settled = append(settled, fixed(opt, o.training))
	}
	return settled, err
}

// same is measure with the same options for all seeds.
func (l *lab) same(ctx context.Context, row string, opt db.TrainOptions) error {
	return l.measure(ctx, row, func(int) db.TrainOptions { return opt })
}

// add adds a row that was measured.
func (l *lab) add(m *measurement) error {
	l.rows = append(l.rows, m)
	if l.emit == nil {
		return nil
	}
	return l.emit(m)
}

// all returns a setting for every modality that training has learned of.
func all[T any](l *lab, value T) map[string]T {
	m := map[string]T{}
	for _, name := range l.modalities {
		m[name] = value
	}
	return m
}

// published are the settings of the authors' experiments with FDDH. Items without
// labels get, in each modality, the code of its projection alone.
func (l *lab) published(bits int) db.TrainOptions {
	opt := db.TrainOptions{Rows: l.base.Rows}
	opt.Bits, opt.Anchors, opt.Method = bits, l.base.Anchors, model.MethodPaper
	opt.Features, opt.Map, opt.Gamma = all(l, model.FeaturesRaw), all(l, model.MapRBF), all(l, 1e-4)
	opt.Views, opt.Fusion = model.ViewsTarget, model.Fusion{Rule: model.FusionTarget}
	return opt
}

// fixed returns the options with what a training has chosen.
func fixed(opt db.TrainOptions, t *db.Training) db.TrainOptions {
	opt.Features, opt.Map, opt.Gamma = map[string]model.FeatureKind{}, map[string]model.MapKind{}, map[string]float64{}
	if t.Start != nil {
		opt.Start = t.Start.Chosen
	}
	for name, c := range t.Chosen {
		opt.Features[name], opt.Map[name], opt.Gamma[name] = c.FeatureMap, c.Map, c.Gamma
	}
	return opt
}

// A measurement is a row of an experiment: means over the seeds, and the standard
// deviations of some.
type measurement struct {
	Experiment string               `json:"experiment"`
	Row        string               `json:"row"`
	Method     model.Method         `json:"method"`
	Bits       int                  `json:"bits"`
	Sweeps     int                  `json:"sweeps"`
	TrainItems int                  `json:"train_items"`
	Mu         map[string]float64   `json:"mu"`
	Delta      weight               `json:"delta"`
	Seeds      int                  `json:"seeds"`
	Objective  float64              `json:"objective"` // after the last sweep
	Balance    float64              `json:"bit_balance"`
	Constant   float64              `json:"constant_bits"`
	Distinct   float64              `json:"distinct_codes"`
	Seconds    float64              `json:"seconds"` // of training
	SecondsStd float64              `json:"seconds_std"`
	Retrieval  map[string]retrieval `json:"retrieval"` // by FROM->TO
}

// retrieval are the figures of a pair of modalities, named as those of eval.
type retrieval struct {
	MAP             float64 `json:"map"`
	MAPStd          float64 `json:"map_std"`
	MAPTie          float64 `json:"map_tie"`
	MAPTieStd       float64 `json:"map_tie_std"`
	MAPAsym         float64 `json:"map_asym"`
	MAPAsymStd      float64 `json:"map_asym_std"`
	MAPTieAsym      float64 `json:"map_tie_asym"`
	MAPTieAsymStd   float64 `json:"map_tie_asym_std"`
	PrecisionAt     float64 `json:"precision_at"`
	PrecisionAtAsym float64 `json:"precision_at_asym"`
}

// A weight is a number of an objective: JSON has no infinite ones, "inf" is it.
type weight float64

func (w weight) MarshalJSON() ([]byte, error) {
	if math.IsInf(float64(w), 1) {
		return []byte(`"inf"`), nil
	}
	return json.Marshal(float64(w))
}

func (w *weight) UnmarshalJSON(b []byte) error {
	if string(b) == `"inf"` {
		*w = weight(math.Inf(1))
		return nil
	}
	return json.Unmarshal(b, (*float64)(w))
}

// String spells it, an infinite one as the flags do.
func (w weight) String() string {
	if math.IsInf(float64(w), 1) {
		return "inf"
	}
	return term.Setting(float64(w))
}

func newMeasurement(l *lab, row string, opt db.TrainOptions, outcomes []*outcome) *measurement {
	over := func(f func(o *outcome) float64) (mean, std float64) {
		for _, o := range outcomes {
			mean += f(o) / float64(len(outcomes))
		}
		for _, o := range outcomes {
			std += (f(o) - mean) * (f(o) - mean)
		}
		return mean, math.Sqrt(std / float64(max(len(outcomes)-1, 1)))
	}
	t := outcomes[0].training
	m := &measurement{
		Experiment: l.experiment.name, Row: row, Method: t.Method, Bits: t.Bits, Sweeps: t.Sweeps, TrainItems: t.TrainItems,
		Mu: map[string]float64{}, Delta: weight(opt.Delta), Seeds: len(outcomes), Retrieval: map[string]retrieval{},
	}
	if opt.Delta == 0 {
		m.Delta = model.DefaultDelta
	}
	for name, c := range t.Chosen {
		m.Mu[name] = c.Mu
	}
	m.Objective, _ = over(func(o *outcome) float64 { return o.training.Objective[len(o.training.Objective)-1] })
	m.Balance, _ = over(func(o *outcome) float64 { return o.training.BitBalance })
	m.Constant, _ = over(func(o *outcome) float64 { return float64(o.training.ConstantBits) })
	m.Distinct, _ = over(func(o *outcome) float64 { return float64(o.training.DistinctCodes) })
	m.Seconds, m.SecondsStd = over(func(o *outcome) float64 { return o.training.Seconds["total"] })
	for i, pair := range l.pairs {
		var r retrieval
		r.MAP, r.MAPStd = over(func(o *outcome) float64 { return o.found[i].Hamming.MAP })
		r.MAPTie, r.MAPTieStd = over(func(o *outcome) float64 { return o.found[i].Hamming.MAPTie })
		r.MAPAsym, r.MAPAsymStd = over(func(o *outcome) float64 { return o.found[i].Asymmetric.MAP })
		r.MAPTieAsym, r.MAPTieAsymStd = over(func(o *outcome) float64 { return o.found[i].Asymmetric.MAPTie })
		r.PrecisionAt, _ = over(func(o *outcome) float64 { return o.found[i].Hamming.PrecisionAt })
		r.PrecisionAtAsym, _ = over(func(o *outcome) float64 { return o.found[i].Asymmetric.PrecisionAt })
		m.Retrieval[pair] = r
	}
	return m
}
