package paper

import (
	"encoding/json"
	"math"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/model"
)

// A measurement is a row of an experiment: means over the seeds, and some standard
// deviations.
type measurement struct {
	Experiment string               `json:"experiment"`
	Row        string               `json:"row"`
	Method     model.Method         `json:"method"`
	Aim        model.Aim            `json:"aim"`
	Prior      float64              `json:"prior"` // mean
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
	Seconds    float64              `json:"seconds"` // of the training
	SecondsStd float64              `json:"seconds_std"`
	Retrieval  map[string]retrieval `json:"retrieval"` // by FROM->TO
}

// retrieval are the figures of a pair of modalities, with the names of eval.
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

// A weight is a number of an objective. JSON has no infinite numbers, so it is "inf"
// there.
type weight float64

// MarshalJSON implements json.Marshaler.
func (w weight) MarshalJSON() ([]byte, error) {
	if math.IsInf(float64(w), 1) {
		return []byte(`"inf"`), nil
	}
	return json.Marshal(float64(w))
}

// UnmarshalJSON implements json.Unmarshaler.
func (w *weight) UnmarshalJSON(b []byte) error {
	if string(b) == `"inf"` {
		*w = weight(math.Inf(1))
		return nil
	}
	return json.Unmarshal(b, (*float64)(w))
}

// String returns the weight, an infinite one as in the flags.
func (w weight) String() string {
	if math.IsInf(float64(w), 1) {
		return "inf"
	}
	return term.Setting(float64(w))
}

func newMeasurement(l *lab, row string, opt db.TrainOptions, outcomes []*outcome) *measurement {
	over := func(f func(o *outcome) float64) (mean, std float64) {
		var values []float64
		for _, o := range outcomes {
			values = append(values, f(o))
		}
		return common.MeanStd(values)
	}
	t := outcomes[0].training
	m := &measurement{
		Experiment: l.kind.name, Row: row, Method: t.Method, Aim: t.Aim, Bits: t.Bits, Sweeps: t.Sweeps,
		TrainItems: t.TrainItems,
		Mu:         map[string]float64{}, Delta: weight(opt.Delta), Seeds: len(outcomes),
		Retrieval: map[string]retrieval{},
	}
	if opt.Delta == 0 {
		m.Delta = fit.DefaultDelta
	}
	for name, c := range t.Chosen {
		m.Mu[name] = c.Mu
	}
	m.Prior, _ = over(func(o *outcome) float64 { return o.training.Prior })
	m.Objective, _ = over(func(o *outcome) float64 {
		return o.training.Objective[len(o.training.Objective)-1]
	})
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
