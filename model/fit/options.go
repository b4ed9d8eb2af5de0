package fit

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/rank"
	"github.com/fddhdb/fddhdb/model/internal/wire"
)

// Defaults of Options. Features, map, width and gamma of a modality, and the prior, are chosen from the
// training items. If that is not possible they are FeaturesRaw, MapRBF, DefaultWidth, DefaultGamma and
// DefaultPrior. For a linear map the unit of DefaultGamma is the mean squared distance from the mean.
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

// DefaultAnchorsOf returns the number of anchors of a map for n training items: all of them up to 2,000;
// 2,000 of up to 4,000 items; and 1,200 of more items, because then the time of a training and of each
// encoding counts more. docs/BENCHMARKS.md has the measurements of other numbers.
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

// Options are the settings of Train. Zero values mean the defaults. Maps are keyed by
// the name of the modality; an entry counts even if it is zero. Train does not write to
// them.
type Options struct {
	// Bits is q, the length of a code; 0 means DefaultBits, and without labels DefaultLabelFreeBits.
	Bits int `json:"bits,omitempty"`
	// Anchors is k of an RBF map; 0 means DefaultAnchorsOf(items that have the modality).
	Anchors int    `json:"anchors,omitempty"`
	Seed    uint64 `json:"seed,omitempty"` // equal seeds, options and data give equal bytes
	// Sweeps: 0 means 3; at most 10,000. More lower the objective and, with many labels, retrieval too.
	Sweeps int          `json:"sweeps,omitempty"`
	Method model.Method `json:"method,omitempty"`

	// Start is the random start of C to begin at, 1 to 48, as in StartChoice.Chosen. 0
	// means the best start if anything is chosen and labels are not embedded, else the
	// first.
	Start int `json:"start,omitempty"`

	// LabelEmbedding allows more labels than bits, with MethodLabels: labels are mapped
	// into as many dimensions as there are bits, which costs some retrieval; see
	// Embedding. With at most as many labels as bits it changes nothing.
	LabelEmbedding bool `json:"label_embedding,omitempty"`

	// Aim says what the projections learn from a labelled item. 0 means AimLabels with MethodLabels, and
	// AimCodes with the other methods.
	Aim model.Aim `json:"aim,omitempty"`

	// Prior is a, by which AimLabels favours rare labels, from 0 (not at all) to 1; see
	// Aim. nil means the best of 0, .125, .25 and .375 on the training items if anything is
	// chosen, else .25; and .125 if labels are embedded.
	Prior *float64 `json:"prior,omitempty"`

	// Centre is the share, from 0 to 1, of the common part of all labels that AimLabels removes from their
	// aims; see Aim. nil means 1 if every training item has one label, but 0 with fewer than 5 labels. If
	// items have several labels nil means .5, or 0 if that is clearly better on the training items and
	// anything is chosen. It has to be nil with AimCodes and if labels are embedded.
	Centre *float64 `json:"centre,omitempty"`

	// Settings by modality. A setting without an entry is chosen from the training
	// items; see Choice. Where labels are embedded the width is not chosen, but 1.
	Features map[string]model.FeatureKind `json:"features,omitempty"`
	Map      map[string]model.MapKind     `json:"map,omitempty"`
	// of the rbf: sigma as a multiple of the mean squared distance. A linear map ignores it
	Width map[string]float64 `json:"width,omitempty"`
	Gamma map[string]float64 `json:"gamma,omitempty"` // weight of the ridge

	// Fusion says how the code of an unlabelled item is made. The zero value learns the weights from the
	// training items.
	Fusion Fusion `json:"fusion,omitzero"`

	// Mu is the weight of a modality in the objective of joint and paper; default 1e-3.
	Mu map[string]float64 `json:"mu,omitempty"`
	// weight of |Y|^2, which keeps Y near the labels; 0 means 1e4. +Inf: Y is the labels
	Delta float64 `json:"delta,omitempty"`

	// Shared names modalities whose vectors lie in one space, grouped by space, for methods without labels.
	// Modalities that it does not name have spaces of their own.
	Shared [][]string `json:"shared,omitempty"`

	// MemoryBytes bounds the memory of a training: one that needs more returns a
	// *MemoryError before it computes anything. The need is an estimate, right within
	// half, and grows with the square of the features of a map. 0 means the memory that
	// the machine, the limits of the process and its control groups, and GOMEMLIMIT
	// leave at the beginning, as far as that can be found out. Negative means no limit.
	MemoryBytes int64 `json:"memory_bytes,omitempty"`

	// Progress, if not nil, is called from Train's goroutine after each block of items. While settings are
	// chosen it is called before each trial, and the stage says what is tried, such as
	// "choose image: hellinger, rbf". total is 0 while it is unknown. It has the form of an event.Progress of
	// package db/event.
	Progress func(stage string, done, total int64) `json:"-"`
}

// withDefaults checks the options against the modalities, and fills in defaults for
// zeros. The maps get an entry for each modality.
func (o Options) withDefaults(modalities []model.Modality) (Options, error) {
	o.Bits = cmp.Or(o.Bits, DefaultBits)
	o.Sweeps = cmp.Or(o.Sweeps, DefaultSweeps)
	o.Delta = cmp.Or(o.Delta, DefaultDelta)
	o.Method = cmp.Or(o.Method, model.MethodLabels)
	if err := codec.CheckBits(o.Bits); err != nil {
		return o, fmt.Errorf("%w: bits: %w", model.ErrOption, err)
	}
	if o.Anchors < 0 {
		return o, fmt.Errorf("%w: anchors: %d is negative: give a number of anchors, or 0 for the default",
			model.ErrOption, o.Anchors)
	}
	if o.Start < 0 || o.Start > MostStarts {
		return o, fmt.Errorf("%w: start %d: 1 to %d are possible, or 0 for the best", model.ErrOption,
			o.Start, MostStarts)
	}
	if o.Sweeps < 0 {
		return o, fmt.Errorf("%w: sweeps: %d is negative: give 1 or more, or 0 for %d", model.ErrOption,
			o.Sweeps, DefaultSweeps)
	}
	if o.Sweeps > maxSweeps {
		return o, fmt.Errorf("%w: sweeps: %d: 1 to %d are possible, a few are enough", model.ErrOption,
			o.Sweeps, maxSweeps)
	}
	if o.Method > model.MethodCCAITQ {
		return o, fmt.Errorf("%w: %v: it is %s", model.ErrOption, o.Method, model.Methods)
	}
	if err := o.checkAim(); err != nil {
		return o, err
	}
	if !(o.Delta >= 0) {
		return o, fmt.Errorf("%w: delta: %g: it is a number, zero or more, or +Inf", model.ErrOption, o.Delta)
	}
	if err := checkModalities(modalities); err != nil {
		return o, err
	}
	if err := o.Fusion.check(modalities); err != nil {
		return o, err
	}
	var err error
	if o.Features, err = complete("feature map", modalities, o.Features, model.FeaturesRaw); err != nil {
		return o, err
	}
	if o.Map, err = complete("map", modalities, o.Map, model.MapRBF); err != nil {
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
		if k := o.Features[m.Name]; k > model.FeaturesHellingerL2 {
			return o, fmt.Errorf("%w: %v of modality %q: they are raw, zscore, hellinger, log, l2 or hellinger-l2", model.ErrOption, k, m.Name)
		}
		if k := o.Map[m.Name]; k > model.MapRBFLinear {
			return o, fmt.Errorf("%w: %v of modality %q: it is rbf, linear or rbf+linear", model.ErrOption, k,
				m.Name)
		}
		if w := o.Width[m.Name]; !(w >= leastWidth && w <= mostWidth) {
			return o, fmt.Errorf("%w: width of modality %q: %g: it is a number from %g to %g",
				model.ErrOption, m.Name, w, leastWidth, mostWidth)
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
func checkModalities(modalities []model.Modality) error {
	if len(modalities) == 0 || len(modalities) > wire.MaxModalities {
		return fmt.Errorf("%w: a model has 1 to %d modalities, not %d", model.ErrOption, wire.MaxModalities,
			len(modalities))
	}
	seen := make(map[string]bool, len(modalities))
	for i, m := range modalities {
		switch {
		case m.Name == "" || len(m.Name) > wire.MaxName:
			return fmt.Errorf("%w: the name of modality %d has %d bytes, not 1 to %d", model.ErrOption, i,
				len(m.Name), wire.MaxName)
		case !utf8.ValidString(m.Name):
			return fmt.Errorf("%w: the name %q of modality %d is not UTF-8", model.ErrOption, m.Name, i)
		case seen[m.Name]:
			return &model.ModalityError{Modality: m.Name, Problem: "is given twice: name each once"}
		case m.Dim < 1 || m.Dim > wire.MaxDim:
			return fmt.Errorf("%w: modality %q has dimension %d, not 1 to %d", model.ErrOption, m.Name, m.Dim,
				wire.MaxDim)
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
	return fmt.Errorf("%w: %s of modality %q: %g: it is a finite number, zero or more", model.ErrOption, what,
		modality, x)
}

// complete returns a copy of given with an entry for each modality. It does not change
// given.
func complete[V any](what string, modalities []model.Modality, given map[string]V,
	otherwise V) (map[string]V, error) {
	full := make(map[string]V, len(modalities))
	for _, m := range modalities {
		full[m.Name] = otherwise
	}
	for _, name := range slices.Sorted(maps.Keys(given)) { // sorted, so that the error is always the same
		if _, ok := full[name]; !ok {
			return nil, &model.ModalityError{Modality: name,
				Problem: "has a " + what + " in the options, but is not a modality of the items"}
		}
		full[name] = given[name]
	}
	return full, nil
}

// checkAim checks the aim, the prior and the centre, and settles an aim that is left open.
func (o *Options) checkAim() error {
	switch {
	case o.Aim > model.AimCodes:
		return fmt.Errorf("%w: %v: it is auto, labels or codes", model.ErrOption, o.Aim)
	case o.Aim == model.AimAuto && o.Method == model.MethodLabels:
		o.Aim = model.AimLabels
	case o.Aim == model.AimAuto:
		o.Aim = model.AimCodes
	case o.Aim == model.AimLabels && o.Method != model.MethodLabels:
		return fmt.Errorf("%w: aim labels: method %v moves the codes of items away from those of their labels: use the aim codes, or the method labels", model.ErrOption, o.Method)
	}
	switch a := o.Prior; {
	case a == nil:
	case o.Aim == model.AimCodes:
		return fmt.Errorf("%w: prior: the aim codes has none: leave it out, or use the aim labels",
			model.ErrOption)
	case !(*a >= 0 && *a <= 1):
		return fmt.Errorf("%w: prior: %g: it is a number from 0 to 1", model.ErrOption, *a)
	}
	switch share := o.Centre; {
	case share == nil:
	case o.Aim == model.AimCodes:
		return fmt.Errorf("%w: centre: the aim codes has none: leave it out, or use the aim labels",
			model.ErrOption)
	case !(*share >= 0 && *share <= 1):
		return fmt.Errorf("%w: centre: %g: it is a number from 0 to 1", model.ErrOption, *share)
	}
	return nil
}

// priors are the values of Options.Prior to choose from. Larger ones cost more mAP by
// distance than they gain.
var priors = []float64{0, .125, .25, .375}

// embeddedPrior is the prior if labels are embedded.
const embeddedPrior = .125

// Fusion says which projections make the code of an unlabelled item. The zero value
// learns their weights; see FusionChoice.
type Fusion struct {
	Rule     FusionRule
	Modality string // for FusionModality
}

// FusionRule is the rule of a Fusion.
type FusionRule uint8

const (
	FusionAuto     FusionRule = iota // learned from the training items
	FusionSum                        // the sum of all projections
	FusionModality                   // the projection of one modality alone
)

var fusionNames = []string{"auto", "sum"}

// String returns the text form, which ParseFusion reads.
func (f Fusion) String() string {
	switch {
	case f.Rule == FusionModality:
		return f.Modality
	case int(f.Rule) < len(fusionNames):
		return fusionNames[f.Rule]
	}
	return fmt.Sprintf("fusion(%d)", f.Rule)
}

// ParseFusion reads auto, sum or the name of a modality. It takes any name;
// Train checks that there is such a modality.
func ParseFusion(s string) (Fusion, error) {
	if i := slices.Index(fusionNames, s); i >= 0 {
		return Fusion{Rule: FusionRule(i)}, nil
	}
	if s == "" {
		return Fusion{}, fmt.Errorf("%w: a fusion without a name: it is auto, sum or the name of a modality",
			model.ErrOption)
	}
	return Fusion{Rule: FusionModality, Modality: s}, nil
}

// MarshalText writes the text form.
func (f Fusion) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads the text form.
func (f *Fusion) UnmarshalText(b []byte) (err error) {
	*f, err = ParseFusion(string(b))
	return err
}

// check refuses a fusion that the modalities rule out.
func (f Fusion) check(modalities []model.Modality) error {
	switch {
	case f.Rule > FusionModality:
		return fmt.Errorf("%w: %v: it is auto, sum or the name of a modality", model.ErrOption, f)
	case f.Rule == FusionModality && f.position(modalities) < 0:
		return &model.ModalityError{Modality: f.Modality,
			Problem: "is the fusion of the options, but is not a modality of the items: it is auto, sum or the name of one"}
	}
	return nil
}

func (f Fusion) position(modalities []model.Modality) int {
	return slices.IndexFunc(modalities, func(m model.Modality) bool { return m.Name == f.Modality })
}

// given returns the fusion of the rule. FusionAuto is the sum here, where nothing can be measured.
func (f Fusion) given(modalities []model.Modality) rank.Fusion {
	w := rank.Fusion{Weights: make([]float64, len(modalities))}
	if f.Rule == FusionModality {
		w.Weights[f.position(modalities)] = 1
		return w
	}
	for t := range w.Weights {
		w.Weights[t] = 1
	}
	return w
}

// ConditionLimit is the condition number above which a projection is unreliable.
// Rounding in float64 leaves it four digits, and the rounding of features to float32
// moves it by too much. A larger gamma helps, or features of one scale.
const ConditionLimit = 1e12

// A BitsError is a training with too many labels. C'C = I needs a dimension of the code
// space for each label, unless labels are embedded. Limit is the largest number of
// labels: Bits, or more with Options.LabelEmbedding.
type BitsError struct{ Bits, Labels, Limit int }

func (e *BitsError) Error() string {
	if e.Limit > e.Bits {
		return fmt.Sprintf("%d labels are too many for codes of %d bits, even embedded: use at most %d labels", e.Labels, e.Bits, e.Limit)
	}
	if bits := (e.Labels + 7) / 8 * 8; bits <= codec.MaxBits {
		return fmt.Sprintf("%d labels do not fit in codes of %d bits: use at least %d bits, fewer labels, or label embedding (LabelEmbedding, --label-embedding), which costs some retrieval",
			e.Labels, e.Bits, bits)
	}
	return fmt.Sprintf("%d labels do not fit in codes of %d bits, nor in any of at most %d: use fewer labels, or label embedding (LabelEmbedding, --label-embedding), which costs some retrieval",
		e.Labels, e.Bits, codec.MaxBits)
}

// An AnchorsError is a request for more anchors than there are vectors to draw them
// from.
type AnchorsError struct {
	Modality       string
	Anchors, Items int
}

func (e *AnchorsError) Error() string {
	return fmt.Sprintf("%d anchors asked for, but only %d training items have modality %q: ask for at most %d, or for 0, the default",
		e.Anchors, e.Items, e.Modality, e.Items)
}

// A FeaturesError is a map with too few features for the method. Train needs Need
// features (labels for joint, bits for paper), and the map has Features.
type FeaturesError struct {
	Modality       string
	Features, Need int
	Method         model.Method
}

func (e *FeaturesError) Error() string {
	return fmt.Sprintf("the map of modality %q has %d features, but method %v needs at least %d: use more anchors, or method labels",
		e.Modality, e.Features, e.Method, e.Need)
}

// errNoneHasLabels is the ErrNoLabels of items without any label.
var errNoneHasLabels = fmt.Errorf(
	"%w: no item has any: give items labels, or learn without by the method itq (vectors of one space) or cca-itq (items with vectors in several); to search by vectors nothing is to be learned", model.ErrNoLabels)
