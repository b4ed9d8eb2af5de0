package model

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/codec"
)

// Defaults of Options. Features, map, width and gamma of a modality, and the prior, are
// chosen from the training items. If that is not possible they are FeaturesRaw, MapRBF,
// DefaultWidth, DefaultGamma and DefaultPrior. For a linear map the unit of DefaultGamma is the mean squared distance
// from the mean.
const (
	DefaultBits   = 64
	DefaultSweeps = 3
	DefaultGamma  = 1e-2
	DefaultPrior  = .25
	DefaultWidth  = 1
	DefaultMu     = 1e-3
	DefaultDelta  = 1e4
)

// MostStarts is the number of random starts that a training chooses from at most; see
// Options.Start.
const MostStarts = 48

// maxSweeps keeps a training from going on for ever.
const maxSweeps = 10_000

// DefaultAnchorsOf returns the number of anchors of a map for n training items: all of them
// up to 2,000; 2,000 of up to 4,000 items; and 1,200 of more items, for which the time of a
// training and of each encoding counts more. docs/EVALUATION.md has what other numbers give.
func DefaultAnchorsOf(n int) int {
	if n > ManyItems {
		return anchorsOfMany
	}
	return min(n, MaxDefaultAnchors)
}

// Numbers of anchors by default; see DefaultAnchorsOf.
const (
	MaxDefaultAnchors = 2000
	ManyItems         = 4000 // more items than these have anchorsOfMany
	anchorsOfMany     = 1200
)

// A Modality is one kind of vector that items have. If it is Sparse, training, anchors
// and projections store and multiply only the numbers that vectors hold. The codes are
// those of the same vectors in a dense modality, but for rounding.
type Modality struct {
	Name   string
	Dim    int // dimensions of a vector
	Sparse bool
}

// Method is the way in which training solves for C and H. See the package comment.
type Method uint8

const (
	MethodAuto   Method = iota // MethodLabels
	MethodLabels               // the limit of large delta: label sets alone
	MethodJoint                // the exact joint step over C and every R_t
	MethodPaper                // the steps of the paper, one variable at a time
	MethodITQ                  // without labels: signs of turned principal axes, of vectors of one space
	MethodCCAITQ               // without labels: signs of turned canonical directions, of items with vectors in several spaces
)

var methodNames = []string{"auto", "labels", "joint", "paper", "itq", "cca-itq"}

// methodsText names the methods, for errors.
const methodsText = "auto, labels, joint, paper, itq or cca-itq"

func (m Method) String() string { return nameOf(methodNames, int(m), "method") }

// MarshalText writes the name, for reports.
func (m Method) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads the name.
func (m *Method) UnmarshalText(b []byte) (err error) {
	*m, err = ParseMethod(string(b))
	return err
}

// ParseMethod returns the method with this name: auto, labels, joint, paper, itq or cca-itq.
func ParseMethod(s string) (Method, error) {
	if i := slices.Index(methodNames, s); i >= 0 {
		return Method(i), nil
	}
	return 0, fmt.Errorf("%w: method %q: it is %s", ErrOption, s, methodsText)
}

// MapKind is the kind of the feature map phi of a modality.
type MapKind uint8

const (
	MapRBF       MapKind = iota // phi_j(x) = exp(-|x - a_j|^2 / sigma) for k anchors a_j
	MapLinear                   // phi(x) = [x - mean, 1]
	MapRBFLinear                // both: [phi(x) of rbf, (x - mean) / sqrt(sigma/2), 1]
)

var mapNames = []string{"rbf", "linear", "rbf+linear"}

func (k MapKind) String() string { return nameOf(mapNames, int(k), "map") }

// MarshalText writes the name, for reports.
func (k MapKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the name.
func (k *MapKind) UnmarshalText(b []byte) (err error) {
	*k, err = ParseMapKind(string(b))
	return err
}

// ParseMapKind returns the map with this name: rbf, linear or rbf+linear.
func ParseMapKind(s string) (MapKind, error) {
	if i := slices.Index(mapNames, s); i >= 0 {
		return MapKind(i), nil
	}
	return 0, fmt.Errorf("%w: map %q: it is rbf, linear or rbf+linear", ErrOption, s)
}

// nameOf returns the name of number i of a kind of option, and for an unknown number what
// it is of.
func nameOf(names []string, i int, what string) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", what, i)
}

// Options are the settings of Train. Zero values mean the defaults. Maps are keyed by
// the name of the modality; an entry counts even if it is zero. Train does not write to
// them.
type Options struct {
	Bits    int    // q, the length of a code; 0 means DefaultBits, and without labels DefaultLabelFreeBits
	Anchors int    // k of an RBF map; 0 means DefaultAnchorsOf(items that have the modality)
	Seed    uint64 // equal seeds, options and data give equal bytes
	Sweeps  int    // 0 means 3; at most 10,000. More lower the objective and, with many labels, retrieval too
	Method  Method

	// Start is the random start of C to begin at, 1 to 48, as in StartChoice.Chosen. 0
	// means the best start if anything is chosen and labels are not embedded, else the
	// first.
	Start int

	// LabelEmbedding allows more labels than bits, with MethodLabels: labels are mapped
	// into as many dimensions as there are bits, which costs some retrieval; see
	// Embedding. With at most as many labels as bits it changes nothing.
	LabelEmbedding bool

	// Aim says what the projections learn of a labelled item. 0 means AimLabels with
	// MethodLabels, and AimCodes with the other methods.
	Aim Aim

	// Prior is a, by which AimLabels favours rare labels, from 0 (not at all) to 1; see
	// Aim. nil means the best of 0, .125, .25 and .375 on the training items if anything is
	// chosen, else .25; and .125 if labels are embedded.
	Prior *float64

	// Centre is the share, from 0 to 1, of what all labels have in common that AimLabels
	// takes out of what they teach; see Aim. nil means 1 if every training item has one
	// label, but 0 with fewer than 5 labels; and if items have several .5, or 0 if
	// that is clearly better on the training items and anything is chosen. It has to be nil
	// with AimCodes and where labels are embedded.
	Centre *float64

	// Settings by modality. A setting without an entry is chosen from the training
	// items; see Choice. Where labels are embedded the width is not chosen, but 1.
	Features map[string]FeatureKind
	Map      map[string]MapKind
	Width    map[string]float64 // of the rbf: sigma as a multiple of the mean squared distance. Without effect if the map that is chosen is linear
	Gamma    map[string]float64 // weight of the ridge

	// Fusion says how the code of an unlabelled item is made. The zero value takes what the training items show to be
	// best.
	Fusion Fusion

	Mu    map[string]float64 // weight of a modality in the objective of joint and paper; default 1e-3
	Delta float64            // weight of |Y|^2, which keeps Y near the labels; 0 means 1e4. +Inf: Y is the labels

	// Shared names modalities whose vectors lie in one space, those of each space together, for
	// methods without labels. Modalities that it does not name have spaces of their own.
	Shared [][]string

	// MemoryBytes bounds the memory of a training: one that needs more returns a
	// *MemoryError before it computes anything. The need is an estimate, right within
	// half, and grows with the square of the features of a map. 0 means the memory that
	// the machine, the limits of the process and its control groups, and GOMEMLIMIT
	// leave at the beginning, as far as that can be found out. Negative means no limit.
	MemoryBytes int64

	// Progress, if not nil, is called from Train's goroutine after each block of items.
	// In stage "choose" it is called after each map that was tried. If a fusion is
	// chosen it is also called after the projections of each modality and after each
	// view. total is 0 while it is unknown. It has the form of an event.Progress of
	// package db/event.
	Progress func(stage string, done, total int64)
}

// withDefaults checks the options against the modalities, and fills in defaults for
// zeros. The maps get an entry for each modality.
func (o Options) withDefaults(modalities []Modality) (Options, error) {
	o.Bits = cmp.Or(o.Bits, DefaultBits)
	o.Sweeps = cmp.Or(o.Sweeps, DefaultSweeps)
	o.Delta = cmp.Or(o.Delta, DefaultDelta)
	o.Method = cmp.Or(o.Method, MethodLabels)
	if err := codec.CheckBits(o.Bits); err != nil {
		return o, fmt.Errorf("%w: bits: %w", ErrOption, err)
	}
	if o.Anchors < 0 {
		return o, fmt.Errorf("%w: anchors: %d is negative: give a number of anchors, or 0 for the default", ErrOption, o.Anchors)
	}
	if o.Start < 0 || o.Start > MostStarts {
		return o, fmt.Errorf("%w: start %d: 1 to %d are possible, or 0 for the best", ErrOption, o.Start, MostStarts)
	}
	if o.Sweeps < 0 {
		return o, fmt.Errorf("%w: sweeps: %d is negative: give 1 or more, or 0 for %d", ErrOption, o.Sweeps, DefaultSweeps)
	}
	if o.Sweeps > maxSweeps {
		return o, fmt.Errorf("%w: sweeps: %d: 1 to %d are possible, a few are enough", ErrOption, o.Sweeps, maxSweeps)
	}
	if int(o.Method) >= len(methodNames) {
		return o, fmt.Errorf("%w: %v: it is %s", ErrOption, o.Method, methodsText)
	}
	if err := o.checkAim(); err != nil {
		return o, err
	}
	if !(o.Delta >= 0) {
		return o, fmt.Errorf("%w: delta: %g: it is a number, zero or more, or +Inf", ErrOption, o.Delta)
	}
	if err := checkModalities(modalities); err != nil {
		return o, err
	}
	if err := o.Fusion.check(modalities); err != nil {
		return o, err
	}
	var err error
	if o.Features, err = complete("feature map", modalities, o.Features, FeaturesRaw); err != nil {
		return o, err
	}
	if o.Map, err = complete("map", modalities, o.Map, MapRBF); err != nil {
		return o, err
	}
	if o.Width, err = complete("width", modalities, o.Width, DefaultWidth); err != nil {
		return o, err
	}
	if o.Gamma, err = complete("gamma", modalities, o.Gamma, DefaultGamma); err != nil {
		return o, err
	}
	if o.Mu, err = complete("mu", modalities, o.Mu, DefaultMu); err != nil {
		return o, err
	}
	for _, m := range modalities {
		if k := o.Features[m.Name]; int(k) >= len(featureNames) {
			return o, fmt.Errorf("%w: %v of modality %q: they are raw, zscore, hellinger, log, l2 or hellinger-l2", ErrOption, k, m.Name)
		}
		if k := o.Map[m.Name]; int(k) >= len(mapNames) {
			return o, fmt.Errorf("%w: %v of modality %q: it is rbf, linear or rbf+linear", ErrOption, k, m.Name)
		}
		if w := o.Width[m.Name]; !(w >= leastWidth && w <= mostWidth) {
			return o, fmt.Errorf("%w: width of modality %q: %g: it is a number from %g to %g", ErrOption, m.Name, w, leastWidth, mostWidth)
		}
		if err := checkWeight("gamma", m.Name, o.Gamma[m.Name]); err != nil {
			return o, err
		}
		if err := checkWeight("mu", m.Name, o.Mu[m.Name]); err != nil {
			return o, err
		}
	}
	return o, nil
}

// Bounds of a width. Beyond them all features would be 0, or all the same.
const (
	leastWidth = 1e-6
	mostWidth  = 1e6
)

// checkModalities checks names and dimensions against the limits of the binary form.
func checkModalities(modalities []Modality) error {
	if len(modalities) == 0 || len(modalities) > maxModalities {
		return fmt.Errorf("%w: a model has 1 to %d modalities, not %d", ErrOption, maxModalities, len(modalities))
	}
	seen := make(map[string]bool, len(modalities))
	for i, m := range modalities {
		switch {
		case m.Name == "" || len(m.Name) > maxName:
			return fmt.Errorf("%w: the name of modality %d has %d bytes, not 1 to %d", ErrOption, i, len(m.Name), maxName)
		case !utf8.ValidString(m.Name):
			return fmt.Errorf("%w: the name %q of modality %d is not UTF-8", ErrOption, m.Name, i)
		case seen[m.Name]:
			return &ModalityError{Modality: m.Name, Problem: "is given twice: name each once"}
		case m.Dim < 1 || m.Dim > maxDim:
			return fmt.Errorf("%w: modality %q has dimension %d, not 1 to %d", ErrOption, m.Name, m.Dim, maxDim)
		}
		seen[m.Name] = true
	}
	return nil
}

// checkWeight refuses a weight that is negative, infinite or NaN.
func checkWeight(what, modality string, x float64) error {
	if x >= 0 && !math.IsInf(x, 0) {
		return nil
	}
	return fmt.Errorf("%w: %s of modality %q: %g: it is a finite number, zero or more", ErrOption, what, modality, x)
}

// complete returns a copy of given with an entry for each modality. It does not change
// given.
func complete[V any](what string, modalities []Modality, given map[string]V, otherwise V) (map[string]V, error) {
	full := make(map[string]V, len(modalities))
	for _, m := range modalities {
		full[m.Name] = otherwise
	}
	for _, name := range slices.Sorted(maps.Keys(given)) { // sorted, so that the error is always the same
		if _, ok := full[name]; !ok {
			return nil, &ModalityError{Modality: name, Problem: "has a " + what + " in the options, but is not a modality of the items"}
		}
		full[name] = given[name]
	}
	return full, nil
}
