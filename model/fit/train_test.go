package fit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/mat"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/aims"
	"github.com/fddhdb/fddhdb/model/internal/wire"
	"github.com/fddhdb/fddhdb/model/sum"
)

// everything returns items with sparse texts, which some items lack, and more labels than 16 bits.
func everything(t testing.TB) ([]model.Modality, sum.Source) {
	xs, _, _ := texts(t, 3, 0, 700)
	rng := rand.New(rand.NewPCG(4, 5))
	src := &vectorSource{vectors: [][]model.Vector{nil, nil}}
	for i, x := range xs {
		image := make([]float32, 10)
		for j := range image {
			image[j] = float32(rng.NormFloat64()) + float32(i%40/(j+1)%3)
		}
		if i%7 == 3 {
			x = model.Vector{}
		}
		src.vectors[0], src.vectors[1] = append(src.vectors[0], model.Dense(image)), append(src.vectors[1], x)
		src.labels = append(src.labels, []uint32{uint32(i % 40)})
	}
	return []model.Modality{{Name: "image", Dim: 10},
		{Name: "text", Dim: synth.NUSWideText, Sparse: true}}, src
}

// TestAnyProcessors: a training has the same model, statistics and report on any number of processors, also
// where Go changes it meanwhile, as the limits of a container do. Another seed gives another model.
func TestAnyProcessors(t *testing.T) {
	effort.LongWithRaceAlone(t)
	cfg := synth.Config{Items: effort.Of(700, 300), Classes: 6, Dims: []int{9, 5, 4}, LabelsPerItem: 2,
		Missing: .3}
	given := Options{Bits: 72, Anchors: effort.Of(90, 75), Delta: 1,
		Map: map[string]model.MapKind{"text": model.MapRBF}}
	if effort.Race {
		cfg.Items, given.Bits, given.Anchors = 300, 24, 30
	}
	pairs := synthetic(synth.Pairs(cfg))
	joint, paper := given, given
	joint.Method, paper.Method = model.MethodJoint, model.MethodPaper
	cfg.Dims, cfg.Noise = cfg.Dims[:2], 2
	noisy := synthetic(synth.Pairs(cfg))
	lacking := synth.ManyLabels{Items: 300, Labels: 90, PerItem: 3}.Make()
	for i, labels := range lacking.Labels {
		for mod := range lacking.Vectors {
			if k := int(labels[0]) % 10; k == mod || k == 2 {
				lacking.Vectors[mod][i] = nil
			}
		}
	}
	a, b := synth.PairedEmbeddings(0, 600, 30, 20, 1)
	all, everything := everything(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for name, c := range map[string]struct {
		modalities []model.Modality
		src        sum.Source
		opt        Options
		long       bool
	}{
		"labels": {modalitiesOf([]int{9, 5, 4}), pairs, given, false},
		"joint":  {modalitiesOf([]int{9, 5, 4}), pairs, joint, false},
		"paper":  {modalitiesOf([]int{9, 5, 4}), pairs, paper, false},
		"chosen": {modalitiesOf([]int{9, 5}), noisy, Options{Bits: 40, Anchors: 90}, false},
		"embedded": {modalitiesOf([]int{48, 24}), synthetic(lacking),
			Options{Bits: 64, Anchors: 64, LabelEmbedding: true}, true},
		"everything": {all, everything, Options{Bits: 16, Anchors: 50, LabelEmbedding: true}, true},
		"itq": {modalitiesOf([]int{30}), synthetic(unlabelled(a)), Options{Method: model.MethodITQ, Bits: 16},
			false},
		"cca-itq": {modalitiesOf([]int{30, 20}), synthetic(unlabelled(a, b)),
			Options{Method: model.MethodCCAITQ},
			false},
	} {
		t.Run(name, func(t *testing.T) {
			if c.long {
				effort.Slow(t)
			}
			train := func(procs int) *Result {
				runtime.GOMAXPROCS(procs)
				return need(Train(t.Context(), c.modalities, c.src, c.opt))(t)
			}
			one := train(1)
			failIf(t, name == "chosen" && one.Report.Fusion.Unfit != "" ||
				c.opt.LabelEmbedding != (one.Report.Embedding != nil), "%+v", one.Report)
			sameResult(t, train(5), one)
			c.opt.Progress = func(string, int64, int64) { runtime.GOMAXPROCS(runtime.GOMAXPROCS(0)%7 + 2) }
			sameResult(t, train(1), one)
			c.opt.Seed++
			failIf(t, bytes.Equal(stored(t, train(2)), stored(t, one)), "another seed gives the same model")
		})
	}
}

func TestAnchorsAreTheSameItemsWhenItemsAreComplete(t *testing.T) {
	data := synth.Pairs(synth.Config{Items: 60, Dims: []int{4, 4}})
	data.Vectors[1] = data.Vectors[0] // equal items show as equal anchors
	r := trained(t, data, Options{Anchors: 20})
	e, one, other := r.Model.NewEncoder(), make([]float32, 20), make([]float32, 20)
	for _, x := range data.Vectors[0] {
		stopIf(t, e.MapVector(one, 0, model.Dense(x)) != nil ||
			e.MapVector(other, 1, model.Dense(x)) != nil || !slices.Equal(one, other),
			"the modalities have different anchors")
	}
}

// TestTrainLearns: queries from outside the training find their classes.
func TestTrainLearns(t *testing.T) {
	effort.WithoutRace(t)
	data := synth.Pairs(synth.Config{Items: 600, Classes: 5, Dims: []int{12, 8, 6}, Missing: .2, Seed: 2})
	known, held := data.Slice(0, 400), data.Slice(400, 600)
	for _, kind := range []model.MapKind{model.MapRBF, model.MapLinear} {
		r := trained(t, known, Options{Map: map[string]model.MapKind{"image": kind, "text": kind,
			"sound": kind}})
		for mod := range data.Vectors {
			got, _ := retrieval(t, r, mod, known, held)
			failIf(t, got < .95, "%v, modality %d: mAP %.3f", kind, mod, got)
		}
	}
}

func TestConstantModalityTeachesNothingAndHarmsNothing(t *testing.T) {
	data := synth.Pairs(synth.Config{Items: 80, Dims: []int{6, 3}})
	for i := range data.Vectors[1] {
		data.Vectors[1][i] = []float32{.1, .1, .1}
	}
	for _, method := range []model.Method{model.MethodLabels, model.MethodJoint, model.MethodPaper} {
		for _, kind := range []model.MapKind{model.MapRBF, model.MapLinear} {
			opt := Options{Method: method, Bits: 16, Map: map[string]model.MapKind{"text": kind}}
			if method == model.MethodPaper && kind == model.MapLinear {
				errorIs(t, errOf(learned(t, data, opt)),
					new(*FeaturesError))
				continue
			}
			r := trained(t, data, opt)
			failIf(t, !r.Report.Chosen["text"].Constant || r.Report.Chosen["image"].Constant, "%v, %v: %+v",
				method, kind, r.Report.Chosen)
			z := make([]float64, 16)
			must(t, r.Model.NewEncoder().Project(z, 1, []float32{.1, .1, .1}))
			failIf(t, !finite(append(z, r.Report.Objective...)),
				"%v, %v: %v, objective %v",
				method, kind, z, r.Report.Objective)
		}
	}
}

func TestReport(t *testing.T) {
	data := synth.Pairs(synth.Config{Items: 90, Classes: 3, Dims: []int{6, 3}, Missing: .3})
	var phases []string
	r := trained(t, data, settled(modalitiesOf([]int{6, 3}), Options{
		Bits: 16, Sweeps: 5, Map: map[string]model.MapKind{"text": model.MapLinear},
		Progress: func(phase string, done, total int64) {
			failIf(t, phase != "solve" && (done != 90 || total != 90 && phase != "scan"), "%s: %d of %d",
				phase, done, total)
			phases = append(phases, phase)
		},
	}))
	d := cmp.Diff([]string{"scan", "statistics", "solve"}, phases)
	failIf(t, d != "", "%v", d)
	rep := r.Report
	failIf(t, rep.TrainItems != 90 || rep.Labels != 3 || rep.LabelSets != 3 || rep.Bits != 16 ||
		rep.Method != model.MethodLabels || rep.Aim != model.AimLabels || rep.Prior != DefaultPrior ||
		rep.Sweeps != 5 || len(rep.Objective) != 5 || rep.DistinctCodes < 2 || rep.DistinctCodes > 3, "%+v",
		rep)
	image, text := rep.Chosen["image"], rep.Chosen["text"]
	failIf(t, image.Anchors != r.Statistics.Items(0) || image.Features != image.Anchors || image.Sigma <= 0 ||
		image.Gamma != DefaultGamma, "%+v", image)
	failIf(t, text.Anchors != 0 || text.Features != 4 || text.Map != model.MapLinear ||
		text.Items != r.Statistics.Items(1), "%+v", text)
	// Balance and constant bits by their definitions.
	var balance float64
	constant := 0
	for j := range 16 {
		sum := 0.0
		for _, labels := range data.Labels {
			code := codec.NewCode(16)
			r.Model.LabelCode(code, labels)
			if code.Bit(j) {
				sum++
			} else {
				sum--
			}
		}
		balance += math.Abs(sum) / 90 / 16
		if math.Abs(sum) == 90 {
			constant++
		}
	}
	failIf(t, !approx(balance, rep.BitBalance, 1e-12) || constant != rep.ConstantBits,
		"balance %g with %d constant bits, want %g with %d", rep.BitBalance, rep.ConstantBits, balance,
		constant)
	b := need(json.Marshal(rep))(t)
	for _, field := range []string{`"train_items":90`, `"method":"labels"`, `"aim":"labels"`, `"prior":0.25`,
		`"map":"rbf"`, `"map":"linear"`, `"chosen"`, `"sweeps":5`, `"objective":[`, `"bit_balance"`,
		`"constant_bits"`, `"distinct_codes"`, `"bits":16`, `"seconds":{`, `"anchors":`, `"width":`} {
		failIf(t, !strings.Contains(string(b), field), "no %s in %s", field, b)
	}
}

// TestReportOfChoices: the report says what projections learn, with which prior and centre, and how many
// anchors there are.
func TestReportOfChoices(t *testing.T) {
	effort.Slow(t)
	cfg := synth.Config{Items: 300, Classes: 6, Dims: []int{7, 4}, Noise: 1.5}
	data := synth.Pairs(cfg)
	for i, l := range data.Labels {
		if i%(int(l[0])+1) > 0 {
			l[0] = 0
		}
	}
	cfg.LabelsPerItem = 3
	for name, c := range map[string]struct {
		data    *synth.Data
		opt     Options
		aim     model.Aim
		priors  []float64
		centres []float64
	}{
		"labels":  {data, Options{}, model.AimLabels, priors, []float64{1}},
		"several": {synth.Pairs(cfg), Options{}, model.AimLabels, priors, centres[:]},
		"codes":   {data, Options{Aim: model.AimCodes}, model.AimCodes, []float64{0}, []float64{0}},
		"few items": {data.Slice(0, minChoiceItems-1), Options{}, model.AimLabels, []float64{DefaultPrior},
			[]float64{1}},
		"embedded": {synth.ManyLabels{Items: 300, Labels: 40, Dims: []int{8}}.Make(),
			Options{LabelEmbedding: true},
			model.AimWeighted, []float64{embeddedPrior}, []float64{0}},
	} {
		c.opt.Bits = 16
		r := trained(t, c.data, c.opt)
		rep := r.Report
		failIf(t, rep.Aim != c.aim || r.Model.Aim() != c.aim || rep.Prior != r.Model.Prior() ||
			!slices.Contains(c.priors, rep.Prior) || !slices.Contains(c.centres, rep.Centre) || rep.Start < 1,
			"%s: %+v; the model has aim %v and prior %g", name, rep, r.Model.Aim(), r.Model.Prior())
		for _, ch := range rep.Chosen {
			failIf(t, ch.Map != model.MapLinear && (ch.Anchors != c.data.Items() ||
				!slices.Contains(widths, ch.Width)), "%s: %+v", name, ch)
		}
		var back Report
		must(t, json.Unmarshal(need(json.Marshal(rep))(t), &back))
		failIf(t, cmp.Diff(rep, back) != "", "%s", cmp.Diff(rep, back))
	}
}

// TestSettle: a training with the settings that another one has chosen makes its model.
func TestSettle(t *testing.T) {
	effort.Slow(t)
	effort.WithoutRace(t)
	dims := []int{7, 4}
	pairs := synth.Pairs(synth.Config{Items: 300, Classes: 6, Dims: dims, Noise: 1.5, Missing: .1})
	many := synth.ManyLabels{Items: 300, Labels: 40, Dims: dims}.Make()
	noise := synth.ManyLabels{Items: 300, Labels: 24, PerItem: 3, Zipf: true, Noise: 5, Dims: dims}.Make()
	most, whole := .75, 1.0
	for name, c := range map[string]struct {
		data *synth.Data
		opt  Options
	}{
		"labels":      {pairs, Options{Bits: 16}},
		"codes":       {pairs, Options{Bits: 16, Aim: model.AimCodes}},
		"joint":       {pairs, Options{Bits: 16, Method: model.MethodJoint}},
		"weighted":    {many, Options{Bits: 16, LabelEmbedding: true}},
		"and a prior": {many, Options{Bits: 16, LabelEmbedding: true, Prior: &most}},
		"linear":      {pairs, Options{Bits: 16, Map: map[string]model.MapKind{"text": model.MapLinear}}},
		"prior, none": {pairs, Options{Bits: 16, Prior: new(float64), Start: 3}},
		"noise":       {noise, Options{Bits: 24}},
		"centre, all": {noise, Options{Bits: 24, Centre: &whole}},
	} {
		r := trained(t, c.data, c.opt)
		c.opt.Prior = nil
		again := trained(t, c.data, r.Report.Settle(c.opt))
		failIf(t, !bytes.Equal(stored(t, r), stored(t, again)), "%s: another model", name)
		failIf(t, name == "noise" && r.Report.Centre != 0, "%s: centre %g", name, r.Report.Centre)
		rep := again.Report
		failIf(t, rep.Choices != nil || rep.Start != r.Report.Start || rep.Prior != r.Report.Prior ||
			rep.Centre != r.Report.Centre, "%s: something was chosen again: %+v", name, rep)
	}
}

// changing is a source of other items in each pass, of which the last one goes on. It fails where there are
// none.
type changing struct {
	passes []*synth.Data
	err    error
}

func (c *changing) Examples(ctx context.Context) iter.Seq2[model.Example, error] {
	m := c.passes[0]
	c.passes = c.passes[min(1, len(c.passes)-1):]
	if m == nil {
		return func(yield func(model.Example, error) bool) { yield(model.Example{}, c.err) }
	}
	return synthetic(m).Examples(ctx)
}

func TestTrainRefuses(t *testing.T) {
	good := func() *synth.Data { return synth.Pairs(synth.Config{Items: 40, Dims: []int{4, 3}}) }
	alter := func(f func(*synth.Data)) sum.Source {
		d := good()
		f(d)
		return synthetic(d)
	}
	two := modalitiesOf([]int{4, 3})
	nan, inf := math.NaN(), math.Inf(1)
	own := errors.New("the disk is on fire")
	all, fewer := good(), good().Slice(0, 39)
	for _, c := range []struct {
		name       string
		modalities []model.Modality
		src        sum.Source
		opt        Options
		is         any
		says       string
	}{
		{name: "no items", src: synthetic(&synth.Data{Vectors: make([][][]float32, 2)}),
			is:   model.ErrNoLabels,
			says: "no item has any"},
		{name: "no labels", src: alter(func(d *synth.Data) { d.Labels[7] = nil }), is: model.ErrNoLabels,
			says: "item 7"},
		{name: "one class", src: alter(func(d *synth.Data) {
			for i := range d.Labels {
				d.Labels[i] = []uint32{3, 9}
			}
		}), is: model.ErrOneClass, says: "same code"},
		{name: "unsorted labels", src: alter(func(d *synth.Data) { d.Labels[5] = []uint32{2, 2} }),
			is: model.ErrOption, says: "item 5"},
		{name: "more labels than bits", src: alter(func(d *synth.Data) {
			for i := range d.Labels {
				d.Labels[i] = []uint32{uint32(i)}
			}
		}), opt: Options{Bits: 32}, is: new(*BitsError),
			says: "40 labels do not fit in codes of 32 bits: use at least 40"},
		{name: "anchors", opt: Options{Anchors: 41}, is: new(*AnchorsError),
			says: `41 anchors asked for, but only 40 training items have modality "image"`},
		{name: "joint features", src: alter(func(d *synth.Data) {
			for i := 3; i < 40; i++ {
				d.Vectors[1][i] = nil
			}
		}), opt: Options{Method: model.MethodJoint}, is: new(*FeaturesError),
			says: `"text" has 3 features, but method joint needs at least 4`},
		{name: "paper features", opt: Options{Method: model.MethodPaper}, is: new(*FeaturesError),
			says: `has 40 features, but method paper needs at least 64`},
		{name: "bits", opt: Options{Bits: 63}, is: model.ErrOption, says: "63"},
		{name: "sweeps", opt: Options{Sweeps: -1}, is: model.ErrOption, says: "sweeps"},
		{name: "negative anchors", opt: Options{Anchors: -1}, is: model.ErrOption, says: "anchors"},
		{name: "method", opt: Options{Method: 9}, is: model.ErrOption, says: "method(9)"},
		{name: "map kind", opt: Options{Map: map[string]model.MapKind{"text": 7}}, is: model.ErrOption,
			says: "map(7)"},
		{name: "map name", opt: Options{Map: map[string]model.MapKind{"sound": model.MapRBF}},
			is: new(*model.ModalityError), says: `"sound" has a map`},
		{name: "gamma name", opt: Options{Gamma: map[string]float64{"": 1}}, is: new(*model.ModalityError),
			says: "gamma"},
		{name: "mu name", opt: Options{Mu: map[string]float64{"x": 1}}, is: new(*model.ModalityError),
			says: "mu"},
		{name: "gamma", opt: Options{Gamma: map[string]float64{"text": -1}}, is: model.ErrOption,
			says: `gamma of modality "text": -1`},
		{name: "mu", opt: Options{Mu: map[string]float64{"text": nan}}, is: model.ErrOption, says: "NaN"},
		{name: "delta", opt: Options{Delta: nan}, is: model.ErrOption, says: "delta: NaN"},
		{name: "negative delta", opt: Options{Delta: -inf}, is: model.ErrOption, says: "delta: -Inf"},
		{name: "no such modality in the items", src: alter(func(d *synth.Data) { clear(d.Vectors[1]) }),
			is: new(*model.ModalityError), says: `"text" is in no training item`},
		{name: "no modalities", modalities: []model.Modality{}, is: model.ErrOption, says: "modalities"},
		{name: "no name", modalities: []model.Modality{{Name: "", Dim: 3}}, is: model.ErrOption,
			says: "name"},
		{name: "name twice", modalities: []model.Modality{{Name: "a", Dim: 3}, {Name: "a", Dim: 3}},
			is: new(*model.ModalityError), says: "twice"},
		{name: "no dimension", modalities: []model.Modality{{Name: "a", Dim: 0}}, is: model.ErrOption,
			says: "dimension 0"},
		{name: "vectors", modalities: two[:1], is: model.ErrMismatch, says: "2 vectors"},
		{name: "dimension", modalities: modalitiesOf([]int{4, 5}), is: new(*model.DimensionError),
			says: `training item 0: a vector of 3 numbers, but modality "text" has 5`},
		{name: "NaN", src: alter(func(d *synth.Data) { d.Vectors[1][30][2] = float32(nan) }),
			is: model.ErrNotFinite, says: `item 30: modality "text", dimension 2 is NaN`},
		{name: "a linear map too large", src: synthetic(&synth.Data{
			Vectors: [][][]float32{{make([]float32, wire.MaxFeatures), make([]float32, wire.MaxFeatures)}},
			Labels:  [][]uint32{{1}, {2}},
		}), modalities: []model.Modality{{Name: "bag", Dim: wire.MaxFeatures}},
			opt: Options{Map: map[string]model.MapKind{"bag": model.MapLinear}}, is: model.ErrOption,
			says: "32769 features"},
		{name: "singular", src: alter(func(d *synth.Data) { d.Vectors[0][1] = d.Vectors[0][2] }),
			opt: Options{Gamma: map[string]float64{"image": 0}}, is: new(*model.SingularError),
			says: `modality "image" with gamma 0`},
		{name: "source", src: &changing{[]*synth.Data{all, nil}, own}, is: own, says: "item 0"},
		{name: "fewer items later", src: &changing{[]*synth.Data{all, fewer}, nil}, is: model.ErrMismatch,
			says: "40 training items at first and has 39 now"},
		{name: "more items later", src: &changing{[]*synth.Data{fewer, all}, nil}, is: model.ErrMismatch,
			opt: Options{Method: model.MethodJoint}, says: "39 training items at first and has more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.modalities == nil {
				c.modalities = two
			}
			if c.src == nil {
				c.src = synthetic(good())
			}
			_, err := Train(t.Context(), c.modalities, c.src, c.opt)
			errorIs(t, err, c.is, c.says)
			failIf(t, like(err, c.is, "fddhdb:") || like(err, c.is, "internal"), "%v", err)
		})
	}
}

func TestTrainCancels(t *testing.T) {
	data := synthetic(synth.Pairs(synth.Config{Items: 3 * sum.BlockItems}))
	phases := []string{"scan", "choose", "features", "sweep 2", "statistics"}
	if testing.Short() {
		phases = phases[1:2]
	}
	for _, phase := range phases {
		ctx, cancel := context.WithCancel(t.Context())
		blocks := 0
		_, err := Train(ctx, modalitiesOf([]int{8, 5}), data,
			Options{Method: model.MethodJoint, Anchors: 50, Progress: func(p string, _, _ int64) {
				if blocks > 0 {
					blocks++
				}
				if strings.HasPrefix(p, phase) && blocks == 0 {
					cancel()
					blocks = 1
				}
			}})
		failIf(t, !errors.Is(err, context.Canceled) || blocks != 1, "cancelled in %s: %v, %d more blocks",
			phase, err, blocks-1)
		cancel()
	}
}

// TestTrainReportsFromItsGoroutine: Progress is called between two examples, one block
// at a time, and the source has been asked for at most one block more.
func TestTrainReportsFromItsGoroutine(t *testing.T) {
	const n = 4*sum.BlockItems + 3
	data := synthetic(synth.Pairs(synth.Config{Items: n}))
	asked, last := int64(0), int64(0)
	counting := sourceFunc(func(ctx context.Context) iter.Seq2[model.Example, error] {
		asked, last = 0, 0
		return func(yield func(model.Example, error) bool) {
			data.Examples(ctx)(func(ex model.Example, err error) bool {
				asked++
				return yield(ex, err)
			})
		}
	})
	// The race detector checks that this is one goroutine.
	modalities := modalitiesOf([]int{8, 5})
	_, err := Train(t.Context(), modalities, counting,
		settled(modalities, Options{Anchors: 20, Progress: func(phase string, done, _ int64) {
			if phase == "solve" { // of which no steps are told
				return
			}
			failIf(t, done != min(last+sum.BlockItems, n) || asked > done+sum.BlockItems,
				"%s: %d done after %d, %d asked for", phase, done, last, asked)
			last = done
		}}))
	failIf(t, err != nil || last != n, "%v, %d of %d done", err, last, n)
}

type sourceFunc func(ctx context.Context) iter.Seq2[model.Example, error]

func (f sourceFunc) Examples(ctx context.Context) iter.Seq2[model.Example, error] { return f(ctx) }

// TestTrainSurvivesPanics of the source, while a block is under way, and of the work on
// a block.
func TestTrainSurvivesPanics(t *testing.T) {
	data := synthetic(synth.Pairs(synth.Config{Items: 2 * sum.BlockItems}))
	n := 0
	source := sourceFunc(func(ctx context.Context) iter.Seq2[model.Example, error] {
		return func(yield func(model.Example, error) bool) {
			data.Examples(ctx)(func(ex model.Example, err error) bool {
				if n++; n == sum.BlockItems+9 {
					panic("the disk is on fire")
				}
				return yield(ex, err)
			})
		}
	})
	modalities := modalitiesOf([]int{8, 5})
	_, err := Train(t.Context(), modalities, source, Options{})
	failIf(t, !strings.Contains(fmt.Sprint(err), "on fire"), "a panic of the source: %v", err)
	opt := need(Options{Bits: 16}.withDefaults(modalities))(t)
	from := seeded(1, 16)
	from.signs = func(codec.Code) { panic("no more signs") }
	_, err = train(t.Context(), modalities, data, nil, opt, from)
	failIf(t, !strings.Contains(fmt.Sprint(err), "no more signs"), "a panic in a block: %v", err)
}

// centreOf is the definition of the vector v that labels share, with C J = C (I - v 1').
func centreOf(d *synth.Data, labels []uint32) []float64 {
	several := slices.ContainsFunc(d.Labels, func(set []uint32) bool { return len(set) > 1 })
	v := make([]float64, len(labels))
	switch {
	case several:
		for _, set := range d.Labels {
			for _, l := range set {
				v[slices.Index(labels, l)] += .5 / float64(len(set)) / float64(len(d.Labels))
			}
		}
	case len(labels) >= 5:
		for k := range v {
			v[k] = 1 / float64(len(v))
		}
	}
	return v
}

// TestCodesOfLabels: in each sweep C is the orthonormal matrix for which C J Y is nearest
// to the codes, and the codes are sgn(C J Y). The steps are written down literally here.
// Afterwards labels have the codes of the last sweep.
func TestCodesOfLabels(t *testing.T) {
	share := func(x float64) *float64 { return &x }
	for _, c := range []struct {
		classes, perItem int
		share            *float64 // of the mean, if it is given
		usual            float64  // what centreOf has
	}{
		{6, 1, nil, 1}, {5, 1, nil, 1}, {4, 1, nil, 0}, {2, 1, nil, 0}, {6, 3, nil, .5}, {3, 2, nil, .5},
		{6, 1, share(0), 1}, {6, 1, share(.25), 1}, {6, 3, share(0), .5}, {6, 3, share(1), .5},
	} {
		name := fmt.Sprintf("%d of %d labels", c.perItem, c.classes)
		if c.share != nil {
			name += fmt.Sprintf(", centre %g", *c.share)
		}
		t.Run(name, func(t *testing.T) {
			const q = 24
			d := synth.Pairs(synth.Config{Items: 200, Classes: c.classes, Dims: []int{6},
				LabelsPerItem: c.perItem})
			ms := modalitiesOf([]int{6})
			opt := settled(ms, Options{Bits: q, Anchors: 40, Sweeps: 6, Seed: 3})
			n := d.Items()
			// H0 is that of the seed; ties of H0 Y' would be broken at random.
			from := seeded(3, q)
			h, y := mat.NewDense(q, n, nil), mat.NewDense(c.classes, n, nil)
			code := codec.NewCode(q)
			for i, labels := range d.Labels {
				from.signs(code)
				column := make([]float64, q)
				aims.AddSigns(column, code, 1)
				h.SetCol(i, column)
				for _, l := range labels {
					y.Set(int(l), i, 1)
				}
			}
			var labels []uint32
			for l := range c.classes {
				labels = append(labels, uint32(l))
			}
			v := centreOf(d, labels)
			if c.share != nil {
				opt.Centre = c.share
				for l := range v {
					v[l] *= *c.share / c.usual
				}
			}
			j := mat.NewDense(c.classes, c.classes, nil)
			for a := range c.classes {
				for b := range c.classes {
					j.Set(a, b, -v[a])
				}
				j.Set(a, a, 1-v[a])
			}
			sweep, objective := 0, []float64{}
			from = seeded(3, q)
			from.ties = nil
			var last *solver
			from.seen = func(s *solver) {
				last = s
				sweep++
				cj := product(isometry(product(h, product(j, y).T())), j)
				if off := relative(transposed(slices.Clone(s.cm), c.classes, q), cj); off > 1e-9 {
					t.Fatalf("sweep %d: C J is off by %g", sweep, off)
				}
				z := product(cj, y)
				f := 0.0
				for i := range n {
					for b := range q {
						sign := 1.0
						if z.At(b, i) < -1e-9 { // labels that cancel out have +1
							sign = -1
						}
						h.Set(b, i, sign)
						f += (sign - z.At(b, i)) * (sign - z.At(b, i))
						stopIf(t, s.code(i).Bit(b) != (sign > 0), "sweep %d: bit %d of item %d is %t", sweep,
							b, i, s.code(i).Bit(b))
					}
				}
				objective = append(objective, f)
			}
			r := need(train(t.Context(), ms, synthetic(d), nil, opt, from))(t)
			for i, f := range r.Report.Objective {
				failIf(t, !approx(f/objective[i], 1, 1e-9) || i > 0 && f > objective[i-1]*(1+1e-12),
					"objective %v, want %v, which falls", r.Report.Objective, objective)
			}
			m := r.Model
			// C'C = I, so the products of the rows of C J are those of J.
			cj := mat.NewDense(c.classes, q, m.Parts().C)
			if off := relative(product(cj, cj.T()), product(j.T(), j)); off > 1e-9 {
				t.Errorf("the products of the directions are off by %g", off)
			}
			for i, set := range d.Labels {
				stopIf(t, !m.LabelCode(code, set) || !slices.Equal(code, last.code(i)),
					"item %d: code %x, in training %x", i, code, last.code(i))
			}
			if c.perItem == 1 && c.classes > 4 && c.share == nil {
				for b := range q {
					sum := 0.0
					for l := range c.classes {
						sum += m.Parts().C[l*q+b]
					}
					failIf(t, !approx(sum, 0, 1e-12), "bit %d: the directions share %g", b, sum)
				}
			}
		})
	}
}

// TestAimOptions: each error names its option.
func TestAimOptions(t *testing.T) {
	nan, number := math.NaN(), func(v float64) *float64 { return &v }
	src := synthetic(synth.Pairs(synth.Config{Items: 40, Dims: []int{4, 3}}))
	ms := modalitiesOf([]int{4, 3})
	widths := func(w float64) map[string]float64 { return map[string]float64{"text": w} }
	for _, c := range []struct {
		opt  Options
		says string // "" if it is right
	}{
		{Options{Aim: model.AimLabels, Method: model.MethodJoint}, "aim labels: method joint"},
		{Options{Aim: model.AimLabels, Method: model.MethodPaper}, "aim labels: method paper"},
		{Options{Aim: model.AimWeighted}, "weighted: it is auto, labels or codes"},
		{Options{Aim: 9}, "aim(9)"},
		{Options{Prior: number(-.01)}, "prior: -0.01"},
		{Options{Prior: number(1.01)}, "prior: 1.01"},
		{Options{Prior: number(nan)}, "prior: NaN"},
		{Options{Prior: number(math.Inf(1))}, "prior: +Inf"},
		{Options{Aim: model.AimCodes, Prior: number(0)}, "prior: the aim codes"},
		{Options{Method: model.MethodJoint, Prior: number(.1)}, "prior: the aim codes"},
		{Options{Width: widths(0)}, `width of modality "text": 0`},
		{Options{Width: widths(-1)}, `width of modality "text": -1`},
		{Options{Width: widths(nan)}, `width of modality "text": NaN`},
		{Options{Width: widths(math.Inf(1))}, `width of modality "text": +Inf`},
		{Options{Width: widths(1e7)}, `width of modality "text": 1e+07`},
		{Options{Width: widths(1e-7)}, `width of modality "text": 1e-07`},
		{Options{Centre: number(-.01)}, "centre: -0.01"},
		{Options{Centre: number(1.01)}, "centre: 1.01"},
		{Options{Centre: number(nan)}, "centre: NaN"},
		{Options{Aim: model.AimCodes, Centre: number(0)}, "centre: the aim codes"},
		{Options{Method: model.MethodPaper, Centre: number(.1)}, "centre: the aim codes"},
		{Options{Aim: model.AimLabels, Prior: number(0)}, ""},
		{Options{Centre: number(.25)}, ""},
		{Options{Centre: number(0)}, ""},
		{Options{Prior: number(1), Width: widths(1e-6)}, ""},
		{Options{Width: widths(1e6)}, ""},
		{Options{Aim: model.AimCodes, Method: model.MethodJoint, Anchors: 30}, ""},
	} {
		c.opt.Bits = 16
		r, err := Train(t.Context(), ms, src, c.opt)
		if c.says == "" {
			if err != nil {
				t.Errorf("%+v: %v", c.opt, err)
			} else if share := c.opt.Centre; share != nil && r.Report.Centre != *share {
				t.Errorf("centre %g is given, and it is %g", *share, r.Report.Centre)
			} else if p := c.opt.Prior; p != nil && (r.Model.Prior() != *p || r.Report.Prior != *p) {
				t.Errorf("prior %g is given, and it is %g", *p, r.Model.Prior())
			}
			continue
		}
		failIf(t, !like(err, model.ErrOption, c.says), "%v, want it to say %q", err, c.says)
	}
	many := synthetic(synth.ManyLabels{Items: 60, Labels: 20, Dims: []int{4, 3}}.Make())
	errorIs(t, errOf(Train(t.Context(), ms, many, Options{Bits: 16, LabelEmbedding: true,
		Centre: number(0)})), model.ErrOption, "centre: there are more labels (20) than bits (16)")
	var modality *model.ModalityError
	if _, err := Train(t.Context(), ms, src, Options{Width: map[string]float64{"sound": 1}}); !errors.As(err,
		&modality) || !strings.Contains(err.Error(), "width") {
		t.Errorf("a width of another modality: %v", err)
	}
}

// A warning is something to act on. Constant bits cost nothing if there are few label
// sets, as in most default trainings. A code with few other bits does.
func TestWarnings(t *testing.T) {
	for _, c := range []struct {
		name   string
		report Report
		want   string // "" for no warning
	}{
		{"a default training of 48 label sets", Report{Bits: 64, LabelSets: 48, ConstantBits: 6}, ""},
		{"half of the bits", Report{Bits: 64, LabelSets: 48, ConstantBits: 32}, ""},
		{"more than half", Report{Bits: 64, LabelSets: 48, ConstantBits: 40},
			"40 of 64 bits are the same in all training items, so that only 24 tell items apart: use "},
		{"two classes agree in half of the bits", Report{Bits: 64, LabelSets: 2, ConstantBits: 36}, ""},
		{"labels on every item", Report{Bits: 64, LabelSets: 9, Everywhere: 1}, "leave such labels out"},
		{"labels of one code", Report{Bits: 8, LabelSets: 9, Labels: 8, SharedLabels: 2}, "use more bits"},
		{"equal vectors", Report{Chosen: map[string]Chosen{"image": {Constant: true}}},
			"import the right ones"},
		{"rounding", Report{Chosen: map[string]Chosen{"image": {Condition: 2 * ConditionLimit}}},
			"a larger gamma"},
	} {
		got := c.report.Warnings()
		failIf(t, c.want == "" && got != nil || c.want != "" &&
			(len(got) != 1 || !strings.Contains(got[0], c.want)), "%s: %q", c.name, got)
	}
}
