package model

import (
	"math"
	"slices"
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
	// Choices, by modality, say how features, map and gamma were chosen; a modality
	// for which the options give all of them has none.
	Choices map[string]*Choice `json:"choices,omitempty"`
	// Start says which random start of C was taken; nil where there was none to choose.
	Start *StartChoice `json:"start,omitempty"`
	// Fusion says how the codes of unlabelled items are made, and how that was chosen.
	Fusion *FusionChoice `json:"fusion,omitempty"`
	Sweeps int           `json:"sweeps"`
	// Objective is F after each sweep; for MethodLabels, |H - C Y|^2, since the
	// rest of F is a constant there; with an infinite Delta F without that part.
	Objective []float64 `json:"objective"`
	// SweepMAP is the mean average precision, expected over ties, of held-out items
	// under the codes after each sweep, with what was chosen: the mean over the
	// modalities, as in StartChoice. It is measured with MethodLabels where features,
	// map or gamma are chosen and labels not embedded, unless there are more than 48 sweeps,
	// or more than 8 and hundreds of label sets.
	SweepMAP []float64 `json:"map_tie_sweep,omitempty"`
	// BitBalance is the mean over the bits of |mean over the items of the bit as
	// +-1|: 0 where every bit splits the items in halves, 1 where all are constant.
	BitBalance    float64 `json:"bit_balance"`
	ConstantBits  int     `json:"constant_bits"` // bits that no training item differs in
	DistinctCodes int     `json:"distinct_codes"`
	// SharedLabels counts the labels whose code, as that of the label alone, is the
	// code of another label too: codes do not tell such labels apart.
	SharedLabels int `json:"shared_labels"`
	// Everywhere counts the labels that all training items have.
	Everywhere int `json:"labels_everywhere,omitempty"`
	// Embedding is nil unless there were more labels than bits.
	Embedding *Embedding `json:"embedding,omitempty"`
	// Seconds by phase: scan, choose, maps, embedding (if there is one), sweeps,
	// statistics, solve; and the total.
	Seconds map[string]float64 `json:"seconds"`
}

// Chosen is the map of one modality as the training made it.
type Chosen struct {
	Map        MapKind     `json:"map"`
	FeatureMap FeatureKind `json:"feature_map"`
	Items      int         `json:"items"`    // training items that have the modality
	Features   int         `json:"features"` // k
	Anchors    int         `json:"anchors"`  // 0 for linear
	Sigma      float64     `json:"sigma"`    // 0 for linear
	Gamma      float64     `json:"gamma"`
	Mu         float64     `json:"mu"` // not used by MethodLabels
	// Condition is an estimate, from below, of the condition number in the 1-norm of
	// A + gamma I, from its Cholesky factor. See ConditionLimit.
	Condition float64 `json:"condition"`
	// Constant: all training vectors are equal, so the modality teaches nothing.
	Constant bool `json:"constant,omitempty"`
}

// A Choice says how features, map and gamma of a modality were chosen: by
// cross-validation on a sample of its training items. The criterion is the mean
// average precision, expected over ties, of the codes that the items of a fold get
// as queries to the other folds, which have the codes of their labels: the mean over
// two random starts of these codes where the sample has no more label sets than a code
// has bits.
type Choice struct {
	// Unfit is not empty where nothing could be compared, and says why. Then what
	// the options leave open has its default.
	Unfit   string `json:"unfit,omitempty"`
	Items   int    `json:"items"` // sampled
	Folds   int    `json:"folds"`
	Queries int    `json:"queries"` // items of the sample that the criterion is the mean of

	FeatureMap FeatureKind `json:"feature_map"`
	Map        MapKind     `json:"map"`
	Gamma      float64     `json:"gamma"` // refined with more anchors than the comparison has
	MAP        float64     `json:"map_tie"`
	StdErr     float64     `json:"stderr"`

	// By how much the choice is better than the best other pair of features and map,
	// less than nothing where it is the simpler of two about as good, and than the
	// defaults, FeaturesRaw, MapRBF and DefaultGamma unless another gamma is given; nil
	// where the options rule them out.
	OverRunnerUp *Margin `json:"over_runner_up,omitempty"`
	OverDefault  *Margin `json:"over_default,omitempty"`

	Tried []Tried `json:"tried"` // in their order
}

// A StartChoice says from which random start the codes were learned: of all that
// were tried, the one under whose codes the held-out items of the [Choice] retrieve
// best, with what was chosen for each modality.
type StartChoice struct {
	Chosen int       `json:"chosen"`  // from 1, the start of a training that chooses nothing; see Options.Start
	MAP    []float64 `json:"map_tie"` // by start, the mean over the modalities that were chosen for
}

// Settings returns, for each pair of features and map that was compared, what was
// tried with the gamma that was taken for it, in their order.
func (c *Choice) Settings() []Tried {
	return slices.DeleteFunc(slices.Clone(c.Tried), func(t Tried) bool { return !t.Best || t.Refined })
}

// Tried is a setting that was measured.
type Tried struct {
	FeatureMap FeatureKind `json:"feature_map"`
	Map        MapKind     `json:"map"`
	Anchors    int         `json:"anchors"` // before those of the held-out fold are left out
	Gamma      float64     `json:"gamma"`
	MAP        float64     `json:"map_tie"`
	StdErr     float64     `json:"stderr"` // of MAP, as the mean over queries
	// Best: of the gammas that were tried with this pair of features and map, and as
	// many anchors, this one was taken.
	Best bool `json:"best,omitempty"`
	// Refined: it was measured when features and map were settled, for gamma.
	Refined bool `json:"refined,omitempty"`
}

// A Margin is the difference to a setting, query by query.
type Margin struct {
	FeatureMap FeatureKind `json:"feature_map"`
	Map        MapKind     `json:"map"`
	Gamma      float64     `json:"gamma"`
	MAP        float64     `json:"map_tie"` // the difference
	StdErr     float64     `json:"stderr"`  // of the difference
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
