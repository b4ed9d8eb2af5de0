package model

import (
	"math"
	"time"

	"github.com/fddhdb/fddhdb/codec"
)

// A Report says what a training did; `fddhdb train --json` prints it.
type Report struct {
	TrainItems int               `json:"train_items"`
	Labels     int               `json:"labels"`
	LabelSets  int               `json:"label_sets"` // distinct
	Bits       int               `json:"bits"`
	Method     Method            `json:"method"`
	Seed       uint64            `json:"seed"`
	Chosen     map[string]Chosen `json:"chosen"` // by modality
	Sweeps     int               `json:"sweeps"`
	// Objective is F after each sweep; for MethodLabels, |H - C Y|^2, since the
	// rest of F is a constant there.
	Objective []float64 `json:"objective"`
	// BitBalance is the mean over the bits of |mean over the items of the bit as
	// +-1|: 0 where every bit splits the items in halves, 1 where all are constant.
	BitBalance    float64 `json:"bit_balance"`
	ConstantBits  int     `json:"constant_bits"` // bits that no training item differs in
	DistinctCodes int     `json:"distinct_codes"`
	// Seconds by phase: scan, maps, sweeps, statistics, solve; and the total.
	Seconds map[string]float64 `json:"seconds"`
}

// Chosen is the map of one modality as the training made it.
type Chosen struct {
	Map      MapKind `json:"map"`
	Items    int     `json:"items"`    // training items that have the modality
	Features int     `json:"features"` // k
	Anchors  int     `json:"anchors"`  // k for rbf, 0 for linear
	Sigma    float64 `json:"sigma"`    // 0 for linear
	Gamma    float64 `json:"gamma"`
	Mu       float64 `json:"mu"` // not used by MethodLabels
	// Constant: all training vectors are equal, so the modality teaches nothing.
	Constant bool `json:"constant,omitempty"`
}

// judgeCodes fills in what the report says about the codes of the items.
func (r *Report) judgeCodes(s *solver) {
	count := func(int) int { return 1 }
	n := len(s.codes) / s.words
	if s.method == MethodLabels {
		count = func(i int) int { return s.sets.counts[i] }
	}
	sums := make([]float64, s.q)
	distinct := make(map[string]struct{})
	var key []byte
	for i := range n {
		code := codec.Code(s.codes[i*s.words : (i+1)*s.words])
		addSigns(sums, code, float64(count(i)))
		key = code.AppendBytes(key[:0], s.q)
		distinct[string(key)] = struct{}{}
	}
	for _, sum := range sums {
		mean := math.Abs(sum) / float64(r.TrainItems)
		r.BitBalance += mean / float64(s.q)
		if mean == 1 {
			r.ConstantBits++
		}
	}
	r.DistinctCodes = len(distinct)
}

// stopwatch files the time since the last call under a phase.
type stopwatch struct {
	start, last time.Time
	seconds     map[string]float64
}

func newStopwatch() *stopwatch {
	now := time.Now()
	return &stopwatch{start: now, last: now, seconds: map[string]float64{}}
}

func (w *stopwatch) phase(name string) {
	now := time.Now()
	w.seconds[name] = now.Sub(w.last).Seconds()
	w.seconds["total"] = now.Sub(w.start).Seconds()
	w.last = now
}
