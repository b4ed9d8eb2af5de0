package fit

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/aims"
)

// A Report has the results of a training; `fddhdb train --json` prints it.
type Report struct {
	TrainItems int          `json:"train_items"`
	Labels     int          `json:"labels"`
	LabelSets  int          `json:"label_sets"` // distinct sets of labels
	Bits       int          `json:"bits"`
	Method     model.Method `json:"method"`
	Seed       uint64       `json:"seed"`
	// Aim is the aim of the projections for labelled items, with Prior and Centre; see AimLabels. Methods
	// without labels have none.
	Aim    model.Aim         `json:"aim,omitempty"`
	Prior  float64           `json:"prior"`
	Centre float64           `json:"centre"`
	Chosen map[string]Chosen `json:"chosen"` // by modality
	// Choices says how the open settings were chosen, by modality. A modality for which the options give
	// all of them has no entry.
	Choices map[string]*Choice `json:"choices,omitempty"`
	// MemoryBytes estimates the memory of the training at its peak; see MemoryError.
	MemoryBytes int64 `json:"memory_bytes,omitempty"`
	// Start is the random start of C, from 1, that the codes were learned from: the one under whose codes the
	// held-out items of the Choices retrieve best. It is 0 for methods without labels.
	Start int `json:"start,omitempty"`
	// Fusion says how the codes of unlabelled items are made, and how that was chosen.
	Fusion *FusionChoice `json:"fusion,omitempty"`
	Sweeps int           `json:"sweeps"`
	// Objective is F after each sweep. For MethodLabels it is |H - C Y|^2, as the rest
	// of F is constant there. With an infinite Delta it is F without the term of Delta.
	Objective []float64 `json:"objective"`
	// BitBalance is the mean over the bits of |mean of the bit as +-1 over the items|:
	// 0 if every bit splits the items in halves, 1 if all bits are constant. It and the next two
	// are of a sample of the items for methods without labels.
	BitBalance    float64 `json:"bit_balance"`
	ConstantBits  int     `json:"constant_bits"`  // bits that are the same in all training items
	DistinctCodes int     `json:"distinct_codes"` // codes of the training items
	// SharedLabels counts the labels whose code, for the label alone, is also the code of another label:
	// codes cannot distinguish such labels.
	SharedLabels int `json:"shared_labels"`
	// Everywhere counts the labels that all training items have.
	Everywhere int `json:"labels_everywhere,omitempty"`
	// Embedding is nil unless there were more labels than bits.
	Embedding *Embedding `json:"embedding,omitempty"`
	// Seconds by phase: scan, choose, maps, embedding (if there is one), sweeps,
	// statistics, solve; and total.
	Seconds map[string]float64 `json:"seconds"`
}

// Chosen is the map of one modality, as trained.
type Chosen struct {
	Map        model.MapKind     `json:"map"`
	FeatureMap model.FeatureKind `json:"feature_map"`
	Items      int               `json:"items"`    // training items that have the modality
	Features   int               `json:"features"` // k
	Anchors    int               `json:"anchors"`  // 0 for linear
	Width      float64           `json:"width"`    // 0 for linear
	Sigma      float64           `json:"sigma"`    // of the map, with the width; 0 for linear
	Gamma      float64           `json:"gamma"`
	Mu         float64           `json:"mu"` // not used by MethodLabels
	// Condition is an estimate from below of the condition number of A + gamma I in the
	// 1-norm, from its Cholesky factor. See ConditionLimit.
	Condition float64 `json:"condition"`
	// Constant says that all training vectors are equal, so the modality teaches
	// nothing.
	Constant bool `json:"constant,omitempty"`
}

// A Choice reports how features, map, width and gamma of a modality were chosen: by
// leaving one item out at a time, of a sample of its training items. The item is a query,
// and its code comes from projections that the others have taught. The others are the
// database, with the codes of their labels. The criterion is the mean average precision,
// expected over ties, in the mean over up to six random starts of these codes.
type Choice struct {
	// Unfit is not empty if nothing could be compared, and gives the reason. Then open
	// settings have their defaults.
	Unfit   string `json:"unfit,omitempty"`
	Items   int    `json:"items"`   // number of sampled items
	Queries int    `json:"queries"` // items of the sample that are queries

	MAP    float64 `json:"map_tie"` // of the setting that was taken
	StdErr float64 `json:"stderr"`  // of MAP

	Tried []Tried `json:"tried"` // in order of trial
}

// Tried is a setting that was measured.
type Tried struct {
	FeatureMap model.FeatureKind `json:"feature_map"`
	Map        model.MapKind     `json:"map"`
	Width      float64           `json:"width"`
	Anchors    int               `json:"anchors"` // one less for an item that is an anchor
	Gamma      float64           `json:"gamma"`
	MAP        float64           `json:"map_tie"`
	StdErr     float64           `json:"stderr"` // of MAP, as a mean over queries
}

// Settle returns opt with the choices of the training: the aim, the centre, the prior and the start, and
// features, map, width and gamma of each modality. With otherwise unchanged options, a training of the same
// items then makes the same model, and chooses no more than the fusion.
func (r *Report) Settle(opt Options) Options {
	if r.Method.LabelFree() {
		opt.Method, opt.Bits, opt.Features = r.Method, r.Bits, map[string]model.FeatureKind{}
		for name, c := range r.Chosen {
			opt.Features[name] = c.FeatureMap
		}
		return opt
	}
	opt.Features, opt.Map = map[string]model.FeatureKind{}, map[string]model.MapKind{}
	opt.Width, opt.Gamma = map[string]float64{}, map[string]float64{}
	for name, c := range r.Chosen {
		opt.Features[name], opt.Map[name], opt.Gamma[name] = c.FeatureMap, c.Map, c.Gamma
		if c.Map != model.MapLinear {
			opt.Width[name] = c.Width
		}
	}
	opt.Aim, opt.Prior = model.AimCodes, nil
	if r.Aim == model.AimLabels || r.Aim == model.AimWeighted {
		prior := r.Prior
		opt.Aim, opt.Prior = model.AimLabels, &prior // which becomes AimWeighted where labels are embedded
	}
	if r.Aim == model.AimLabels {
		centre := r.Centre
		opt.Centre = &centre
	}
	opt.Start = r.Start
	return opt
}

// judgeCodes fills in the fields of the report about codes of items. codes are packed, of bits each; count
// has the number of items with each code, nil: one each.
func (r *Report) judgeCodes(codes []uint64, bits int, count []int) {
	sums, distinct, items := make([]float64, bits), make(map[string]struct{}), 0
	var key []byte
	for i, code := range slices.Collect(slices.Chunk(codes, codec.Words(bits))) {
		n := 1
		if count != nil {
			n = count[i]
		}
		items += n
		aims.AddSigns(sums, code, float64(n))
		key = codec.Code(code).AppendBytes(key[:0], bits)
		distinct[string(key)] = struct{}{}
	}
	for _, sum := range sums {
		mean := math.Abs(sum) / float64(items)
		r.BitBalance += mean / float64(bits)
		if mean == 1 {
			r.ConstantBits++
		}
	}
	r.DistinctCodes = len(distinct)
}

// stopwatch adds the time since its last call to a phase.
type stopwatch struct {
	start, last time.Time
	seconds     map[string]float64
}

func newStopwatch() *stopwatch {
	now := time.Now()
	return &stopwatch{start: now, last: now, seconds: map[string]float64{}}
}

// phase ends a phase: it notes the seconds of the phase and of all phases.
func (w *stopwatch) phase(name string) {
	now := time.Now()
	w.seconds[name] = now.Sub(w.last).Seconds()
	w.seconds["total"] = now.Sub(w.start).Seconds()
	w.last = now
}

// Warnings returns advice for before relying on the model, a sentence each; nil if there is none. Figures
// that call for no action are only in the report.
func (r *Report) Warnings() (warnings []string) {
	warn := func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }
	if r.Everywhere > 0 {
		warn("%s on every training item, so that by labels everything is relevant to everything: leave such labels out",
			count(r.Everywhere, "label is", "labels are"))
	}
	// A few constant bits cost nothing but their place: retrieval is the same without
	// them.
	if n := r.ConstantBits; r.Method.LabelFree() {
		if n > r.Bits/2 {
			warn("%d of %d bits are the same in all sampled items, so that only %d tell items apart: use fewer bits", n, r.Bits, r.Bits-n)
		}
	} else if n > max(r.Bits/2, r.LikelyConstantBits()) {
		warn("%d of %d bits are the same in all training items, so that only %d tell items apart: use fewer sweeps, another seed, or fewer bits", n, r.Bits, r.Bits-n)
	}
	if n := r.SharedLabels; n > 0 {
		warn("%d of %d labels have the code of another label too, so that searches do not tell them apart: use more bits, or another seed", n, r.Labels)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Chosen)) {
		ch := r.Chosen[name]
		if ch.Constant {
			warn("all vectors of modality %q are equal, so it teaches nothing: import the right ones and train again, or do without it", name)
		}
		if ch.Condition > ConditionLimit {
			remedy := "a larger gamma"
			if ch.FeatureMap == model.FeaturesRaw || ch.FeatureMap == model.FeaturesHellinger {
				remedy += ", or the features zscore,"
			}
			warn("the projection of modality %q is solved from an ill-conditioned matrix (%.1g, gamma %.3g), and rounding shows in it: %s would help", name, ch.Condition, ch.Gamma, remedy)
		}
	}
	return warnings
}

// LikelyConstantBits returns the number of constant bits that chance explains. With S label sets a random bit
// is the same in all of them with probability 2^(1-S); the codes of two classes agree in half of their bits,
// as C'C = I makes them. The number is three standard deviations above the expectation.
func (r *Report) LikelyConstantBits() int {
	p := math.Ldexp(1, 1-min(r.LabelSets, 64))
	q := float64(r.Bits)
	return int(q*p + 3*math.Sqrt(q*p*(1-p)))
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
