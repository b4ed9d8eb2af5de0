package flags

import (
	"fmt"
	"math"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/model"
)

// Settings are the flags of what a training learns, and how.
type Settings struct {
	db.TrainOptions        // Complete fills them in
	Learns          string // the method, as it was given

	aim, fusion                       string
	prior                             float64
	gamma, mu, kinds, features, width NamedList
}

// Register adds the flags.
func (o *Settings) Register(f *pflag.FlagSet) {
	o.gamma.Kind, o.mu.Kind, o.width.Kind = "NAME=X", "NAME=X", "NAME=X"
	o.kinds.Kind, o.features.Kind = "NAME=rbf|linear|rbf+linear", "NAME=MAP"
	f.IntVar(&o.Bits, "bits", fit.DefaultBits, fmt.Sprintf("length `N` of the codes: a multiple of 8, at least the number of labels unless --label-embedding is given; %d without labels", fit.DefaultLabelFreeBits))
	f.IntVar(&o.Anchors, "anchors", 0, fmt.Sprintf("number `N` of vectors that an rbf map measures distances to; 0: all up to %s, and %s of more than %s",
		term.Thousands(fit.MaxDefaultAnchors), term.Thousands(fit.DefaultAnchorsOf(math.MaxInt)), term.Thousands(fit.ManyItems)))
	f.Uint64Var(&o.Seed, "seed", 0, "seed `N` of what is random; the same gives the same codes")
	f.IntVar(&o.Start, "start", 0, fmt.Sprintf("random start `N` of the codes, 1 to %d (default: chosen)", fit.MostStarts))
	f.IntVar(&o.Sweeps, "sweeps", fit.DefaultSweeps, "`N` rounds of learning the codes of the labels; more are seldom better")
	f.StringVar(&o.Learns, "method", "auto", "`HOW` codes are learned: labels, joint or paper from labels, itq or cca-itq without; auto is labels")
	f.StringVar(&o.aim, "aim", "auto", "`WHAT` projections learn of labels: auto, labels or codes; auto is labels, but codes with the methods joint and paper")
	f.Float64Var(&o.prior, "prior", 0, "`X`, from 0 to 1, how much the aim labels favours rare labels (default: chosen)")
	f.Var(&o.features, "features", "features of a modality: raw, zscore, hellinger, log, l2 or hellinger-l2 (default: chosen)")
	f.Var(&o.kinds, "map", "map of a modality (default: chosen)")
	f.Var(&o.width, "width", "width of the rbf of a modality, in mean squared distances (default: chosen)")
	f.Var(&o.gamma, "gamma", "ridge of a modality (default: chosen); repeat it for each")
	f.Var(&o.mu, "mu", fmt.Sprintf("weight of a modality in joint and paper (default %g each)", fit.DefaultMu))
	f.Float64Var(&o.Delta, "delta", fit.DefaultDelta, "`X`, how firmly joint and paper keep to the labels; inf: they do")
	f.IntVar(&o.Rows, "rows", 0, "learn from the first `N` labelled items only, or of all with itq and cca-itq (default: all)")
	f.BoolVar(&o.LabelEmbedding, "label-embedding", false, "allow more labels than bits, at some cost that is measured; with method labels only")
	f.StringVar(&o.fusion, "fusion", "auto", "`HOW` items without labels get their codes: auto, which measures it, sum or the name of a modality")
}

// Complete checks the flags and fills in the options made from them. In fit.Options 0 means
// the default; a flag that is given as 0 means 0.
func (o *Settings) Complete(f *pflag.FlagSet) error {
	given := f.Changed
	switch {
	case o.Anchors < 0:
		return exit.Usagef("--anchors %d: 1 or more are possible, or 0 for the default", o.Anchors)
	case given("start") && (o.Start < 1 || o.Start > fit.MostStarts):
		return exit.Usagef("--start %d: 1 to %d are possible", o.Start, fit.MostStarts)
	case o.Sweeps < 1:
		return exit.Usagef("--sweeps %d: 1 or more are possible", o.Sweeps)
	case given("rows") && o.Rows < 1:
		return exit.Usagef("--rows %d: 1 or more items are possible", o.Rows)
	case !(o.Delta > 0):
		return exit.Usagef("--delta %g: a number above 0 is possible", o.Delta)
	}
	err := CheckBits("--bits", o.Bits)
	if err != nil {
		return err
	}
	if o.Method, err = model.ParseMethod(o.Learns); err != nil {
		return exit.Usagef("--method %q: auto, labels, joint, paper, itq and cca-itq are possible", o.Learns)
	}
	if o.Aim, err = model.ParseAim(o.aim); err != nil {
		return exit.Usagef("--aim %q: auto, labels and codes are possible", o.aim)
	}
	if given("prior") {
		if !(o.prior >= 0 && o.prior <= 1) {
			return exit.Usagef("--prior %g: a number from 0 to 1 is possible", o.prior)
		}
		o.Prior = &o.prior
	}
	if o.Fusion, err = fit.ParseFusion(o.fusion); err != nil {
		return exit.Usagef("--fusion %q: auto, sum and the name of a modality are possible", o.fusion)
	}
	if o.Gamma, err = o.gamma.Floats("--gamma"); err != nil {
		return err
	}
	if o.Mu, err = o.mu.Floats("--mu"); err != nil {
		return err
	}
	if o.Width, err = o.width.Floats("--width"); err != nil {
		return err
	}
	o.Map = map[string]model.MapKind{}
	for _, k := range o.kinds.List {
		if o.Map[k.Name], err = model.ParseMapKind(k.Value); err != nil {
			return exit.Usagef("--map %s=%s: rbf, linear and rbf+linear are possible", k.Name, k.Value)
		}
	}
	for name, w := range o.Width {
		if kind, given := o.Map[name]; given && kind == model.MapLinear {
			return exit.Usagef("--width %s=%g: a linear map has no width", name, w)
		}
	}
	o.Features = map[string]model.FeatureKind{}
	for _, k := range o.features.List {
		if o.Features[k.Name], err = model.ParseFeatureKind(k.Value); err != nil {
			return exit.Usagef("--features %s=%s: raw, zscore, hellinger, log, l2 and hellinger-l2 are possible", k.Name, k.Value)
		}
	}
	return nil
}

// LeaveOpen leaves to the model what the flags do not give, after Complete, as defaults differ by the
// method. It refuses settings of other methods.
func (o *Settings) LeaveOpen(f *pflag.FlagSet) error {
	for _, name := range []string{"mu", "delta"} {
		if f.Changed(name) && o.Method != model.MethodJoint && o.Method != model.MethodPaper {
			return exit.Usagef("--%s is of the methods joint and paper: --method %s does not know it", name, o.Learns)
		}
	}
	if !f.Changed("bits") {
		o.Bits = 0
	}
	if !f.Changed("sweeps") {
		o.Sweeps = 0
	}
	if !f.Changed("delta") {
		o.Delta = 0
	}
	return nil
}

// CheckBits accepts the possible lengths of codes.
func CheckBits(flag string, bits int) error {
	if bits < 8 || bits > 4096 || bits%8 != 0 {
		return exit.Usagef("%s %d: a code has a multiple of 8 from 8 to 4096 bits", flag, bits)
	}
	return nil
}
