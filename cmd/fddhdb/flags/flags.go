package flags

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/forms"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/codec/perceptual"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
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
	f.IntVar(&o.Bits, "bits", fit.DefaultBits,
		fmt.Sprintf("length `N` of the codes: a multiple of 8, at least the number of labels unless --label-embedding is given; %d without labels", fit.DefaultLabelFreeBits))
	f.IntVar(&o.Anchors, "anchors", 0,
		fmt.Sprintf("number `N` of vectors that an rbf map measures distances to; 0: all up to %s, and %s of more than %s",
			term.Thousands(fit.MaxDefaultAnchors), term.Thousands(fit.DefaultAnchorsOf(math.MaxInt)),
			term.Thousands(fit.ManyItems)))
	f.Uint64Var(&o.Seed, "seed", 0, "seed `N` of what is random; the same gives the same codes")
	f.IntVar(&o.Start, "start", 0, fmt.Sprintf("random start `N` of the codes, 1 to %d (default: chosen)",
		fit.MostStarts))
	f.IntVar(&o.Sweeps, "sweeps", fit.DefaultSweeps,
		"`N` rounds of learning the codes of the labels; more are seldom better")
	f.StringVar(&o.Learns, "method", "auto",
		"`HOW` codes are learned: labels, joint or paper from labels, itq or cca-itq without; auto is labels")
	f.StringVar(&o.aim, "aim", "auto",
		"`WHAT` projections learn of labels: auto, labels or codes; auto is labels, but codes with the methods joint and paper")
	f.Float64Var(&o.prior, "prior", 0,
		"`X`, from 0 to 1, how much the aim labels favours rare labels (default: chosen)")
	f.Var(&o.features, "features",
		"features of a modality: raw, zscore, hellinger, log, l2 or hellinger-l2 (default: chosen)")
	f.Var(&o.kinds, "map", "map of a modality (default: chosen)")
	f.Var(&o.width, "width", "width of the rbf of a modality, in mean squared distances (default: chosen)")
	f.Var(&o.gamma, "gamma", "ridge of a modality (default: chosen); repeat it for each")
	f.Var(&o.mu, "mu", fmt.Sprintf("weight of a modality in joint and paper (default %g each)",
		fit.DefaultMu))
	f.Float64Var(&o.Delta, "delta", fit.DefaultDelta,
		"`X`, how firmly joint and paper keep to the labels; inf: they do")
	f.IntVar(&o.Rows, "rows", 0,
		"learn from the first `N` labelled items only, or of all with itq and cca-itq (default: all)")
	f.BoolVar(&o.LabelEmbedding, "label-embedding", false,
		"allow more labels than bits, at some cost that is measured; with method labels only")
	f.StringVar(&o.fusion, "fusion", "auto",
		"`HOW` items without labels get their codes: auto, which learns weights, sum or the name of a modality")
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
			return exit.Usagef("--%s is of the methods joint and paper: --method %s does not know it", name,
				o.Learns)
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

// Named is the value of a flag such as --vectors NAME=FILE.
type Named struct{ Name, Value string }

// NamedList is the value of such a flag, which may be repeated, each name once.
type NamedList struct {
	Kind  string // for help, such as NAME=FILE
	Empty bool   // a value may be empty
	List  []Named
}

func (l *NamedList) String() string { return "" }
func (l *NamedList) Type() string   { return l.Kind }

func (l *NamedList) Set(s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok || name == "" || value == "" && !l.Empty {
		return fmt.Errorf("%s is expected", l.Kind)
	}
	for _, other := range l.List {
		if other.Name == name {
			return fmt.Errorf("%s is given twice", name)
		}
	}
	l.List = append(l.List, Named{name, value})
	return nil
}

// Floats returns the values as numbers; nil if the flag is not given.
func (l *NamedList) Floats(flag string) (map[string]float64, error) {
	var m map[string]float64
	for _, n := range l.List {
		x, err := strconv.ParseFloat(n.Value, 64)
		if err != nil {
			return nil, exit.Usagef("%s %s=%s: %q is not a number", flag, n.Name, n.Value, n.Value)
		}
		if m == nil {
			m = map[string]float64{}
		}
		m[n.Name] = x
	}
	return m, nil
}

// SplitList splits a,b,... without surrounding blanks and empty entries.
func SplitList(s string) []string {
	var list []string
	for _, f := range strings.Split(s, ",") {
		if f = strings.TrimSpace(f); f != "" {
			list = append(list, f)
		}
	}
	return list
}

// Where is the value of --where: an expression or nothing.
type Where struct{ Expr string }

func (w *Where) String() string { return w.Expr }
func (w *Where) Type() string   { return "EXPR" }

// Set refuses an empty expression, which would match everything. Most likely a script
// has lost its value.
func (w *Where) Set(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("an expression is expected, such as label = 'cat'")
	}
	w.Expr = s
	return nil
}

// Given reports whether there is an expression.
func (w *Where) Given() bool { return w.Expr != "" }

// Include is the value of --include: the parts of items that hits are printed with. The flag may be
// repeated.
type Include struct{ Parts db.Include }

// An includePart is a part with its name.
type includePart struct {
	name string
	part db.Include
}

// includeParts are all of them.
var includeParts = []includePart{
	{"labels", db.IncludeLabels}, {"fields", db.IncludeFields}, {"payload", db.IncludePayload},
	{"vectors", db.IncludeVectors},
}

func (f *Include) Type() string { return "LIST" }

func (f *Include) String() string {
	var names []string
	for _, x := range includeParts {
		if f.Parts&x.part != 0 {
			names = append(names, x.name)
		}
	}
	return strings.Join(names, ",")
}

func (f *Include) Set(s string) error {
	const possible = "a list of labels, fields, payload and vectors is expected"
	names := SplitList(s)
	if len(names) == 0 {
		return errors.New(possible)
	}
	for _, name := range names {
		i := slices.IndexFunc(includeParts, func(x includePart) bool { return x.name == name })
		if i < 0 {
			return fmt.Errorf("there is no part %q: %s", name, possible)
		}
		f.Parts |= includeParts[i].part
	}
	return nil
}

// Choice is the value of a flag that is one of several words. Value is the number of the word.
type Choice[T ~uint8] struct {
	Words []string
	Value *T
}

func (f Choice[T]) Type() string { return strings.Join(f.Words, "|") }

func (f Choice[T]) String() string {
	if f.Value == nil {
		return ""
	}
	return f.Words[*f.Value]
}

func (f Choice[T]) Set(s string) error {
	i := slices.Index(f.Words, s)
	if i < 0 {
		last := len(f.Words) - 1
		return fmt.Errorf("%s and %s are possible", strings.Join(f.Words[:last], ", "), f.Words[last])
	}
	*f.Value = T(i)
	return nil
}

// OnError is the value of --on-error.
type OnError struct{ Skip *bool }

func (f OnError) Type() string { return "stop|skip" }

func (f OnError) String() string {
	if f.Skip != nil && *f.Skip {
		return "skip"
	}
	return "stop"
}

func (f OnError) Set(s string) error {
	if s != "stop" && s != "skip" {
		return errors.New("stop and skip are possible")
	}
	*f.Skip = s == "skip"
	return nil
}

// Schema is the flags of init, which declare a collection.
type Schema struct {
	modalities Modalities
	fields     Fields
	metrics    Metrics
	bits       int
	hash       string
	shared     bool
}

// Register adds the flags.
func (o *Schema) Register(f *pflag.FlagSet) {
	f.Var(&o.modalities, "modality", "a kind of vectors and its number of dimensions; repeat it for each")
	o.metrics.Register(f)
	f.BoolVar(&o.shared, "shared", false, "all modalities share one space")
	f.IntVar(&o.bits, "codes", 0, "items bring codes of so many `BITS`")
	f.StringVar(&o.hash, "hash", "", "the codes are those of the hash `NAME`: pdq, phash, dhash or simhash, "+
		"or with --codes another one")
	f.Var(&o.fields, "field", "a field and its type: string, int, float, bool or time; repeat it for each")
}

// Schema checks that the flags go together, and returns what they declare.
func (o *Schema) Schema(f *pflag.FlagSet) (db.Schema, error) {
	schema := db.Schema{Modalities: o.modalities.List, Bits: o.bits, Hash: o.hash, Fields: o.fields.List}
	given := f.Changed("codes") || f.Changed("hash")
	if h := perceptual.Named(o.hash); h != nil {
		if f.Changed("codes") && o.bits != h.Bits {
			return schema, exit.Usagef("--codes %d: codes of %s have %d bits", o.bits, h.Name, h.Bits)
		}
		schema.Bits = h.Bits
	}
	switch {
	case given && len(schema.Modalities) > 0:
		return schema, exit.Usagef(
			"--modality and --codes or --hash: a collection either learns its codes or is given them")
	case given && (o.shared || o.metrics.Given()):
		return schema, exit.Usagef(
			"--metric, --space-of and --shared are of modalities, and with --codes there are none")
	case f.Changed("hash") && schema.Bits == 0:
		return schema, exit.Usagef("--hash %q: pdq, phash, dhash and simhash are known; another hash needs --codes BITS", o.hash)
	case o.shared && len(o.metrics.SpaceOf.List) > 0:
		return schema, exit.Usagef("--shared is of all modalities: leave out --space-of")
	case given:
		if err := CheckBits("--codes", schema.Bits); err != nil {
			return schema, err
		}
	case len(schema.Modalities) == 0:
		return schema, exit.Usagef("init needs --modality NAME:DIM for each kind of vectors, --codes BITS or --hash NAME")
	}
	if err := o.metrics.Declare(schema.Modalities); err != nil {
		return schema, err
	}
	for i := 1; o.shared && i < len(schema.Modalities); i++ {
		schema.Modalities[i].SpaceOf = schema.Modalities[0].Name
	}
	return schema, nil
}

// Modalities is the value of --modality.
type Modalities struct{ List []db.Modality }

func (l *Modalities) String() string { return "" }
func (l *Modalities) Type() string   { return "NAME:DIM[:sparse]" }

func (l *Modalities) Set(s string) error {
	name, rest, _ := strings.Cut(s, ":")
	rest, kind, hasKind := strings.Cut(rest, ":")
	dim, err := strconv.Atoi(rest)
	switch {
	case name == "" || rest == "":
		return errors.New("NAME:DIM is expected, such as image:128")
	case err != nil || dim < 1 || dim > db.MaxDim:
		return fmt.Errorf("%q is no number of dimensions: 1 to %d are possible", rest, db.MaxDim)
	case hasKind && kind != "sparse":
		return fmt.Errorf("unknown kind %q: NAME:DIM or NAME:DIM:sparse is expected", kind)
	}
	l.List = append(l.List, db.Modality{Name: name, Dim: dim, Sparse: hasKind})
	return nil
}

// Fields is the value of --field.
type Fields struct{ List []db.Field }

func (l *Fields) String() string { return "" }
func (l *Fields) Type() string   { return "NAME:TYPE[:index][:words]" }

func (l *Fields) Set(s string) error {
	f, err := forms.ParseField(s)
	if err != nil {
		return err
	}
	l.List = append(l.List, f)
	return nil
}

// Metrics are the flags that say how vectors of modalities are compared where nothing is trained.
type Metrics struct{ Metric, SpaceOf NamedList }

// Register adds the flags.
func (m *Metrics) Register(f *pflag.FlagSet) {
	m.Metric.Kind, m.SpaceOf.Kind = "NAME=METRIC", "NAME=OTHER"
	f.Var(&m.Metric, "metric",
		"how vectors of a modality are compared before training: by cosine, dot or l2; repeat it for each")
	f.Var(&m.SpaceOf, "space-of", "a modality, and another that shares its space; repeat it for each")
}

// Given reports whether one of them is given.
func (m *Metrics) Given() bool { return len(m.Metric.List)+len(m.SpaceOf.List) > 0 }

// Declare gives modalities that are to be made what the flags say of them.
func (m *Metrics) Declare(modalities []db.Modality) error {
	of := func(flag string, n Named) (*db.Modality, error) {
		i := slices.IndexFunc(modalities, func(o db.Modality) bool { return o.Name == n.Name })
		if i < 0 {
			return nil, exit.Usagef("%s %s=%s: there is no --modality %s", flag, n.Name, n.Value, n.Name)
		}
		return &modalities[i], nil
	}
	for _, n := range m.Metric.List {
		o, err := of("--metric", n)
		if err != nil {
			return err
		}
		o.Metric = db.Metric(n.Value)
	}
	for _, n := range m.SpaceOf.List {
		o, err := of("--space-of", n)
		if err != nil {
			return err
		}
		o.SpaceOf = n.Value
	}
	return nil
}

// Alter adds what the flags say to an alteration.
func (m *Metrics) Alter(a *db.Alteration) {
	a.Metrics, a.SpaceOf = map[string]db.Metric{}, map[string]string{}
	for _, n := range m.Metric.List {
		a.Metrics[n.Name] = db.Metric(n.Value)
	}
	for _, n := range m.SpaceOf.List {
		a.SpaceOf[n.Name] = n.Value
	}
}

// Recall adds --recall.
func Recall(f *pflag.FlagSet, x *float64, usage string) {
	f.Func("recall", usage, func(s string) (err error) {
		if *x, err = strconv.ParseFloat(s, 64); err != nil || !(*x > 0 && *x <= 1) {
			err = errors.New("above 0, up to 1, are possible")
		}
		return err
	})
}
