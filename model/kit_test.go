package model

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// Tests of this package learn models by package fit, which imports it. So the external tests, which may
// import fit, set Train and MAPTie; see fit_test.go.

// Options are those of fit.Options that tests set.
type Options struct {
	Bits, Anchors, Sweeps int
	Seed                  uint64
	Method                Method
	Aim                   Aim
	Prior                 *float64
	Delta                 float64
	LabelEmbedding        bool
	Fusion                string // as fit.ParseFusion reads it
	Features              map[string]FeatureKind
	Map                   map[string]MapKind
	Width, Gamma          map[string]float64
}

// A Result is what fit.Train gives.
type Result struct {
	Model      *Model
	Statistics *Statistics
	Lesson     func(item int, labels []uint32) Lesson
}

// A Source is one of package sum.
type Source interface {
	Examples(ctx context.Context) iter.Seq2[Example, error]
}

var (
	// Train is fit.Train.
	Train func(ctx context.Context, modalities []Modality, src Source, opt Options) (*Result, error)
	// MAPTie is that of eval.Evaluate.
	MAPTie func(ctx context.Context, db codec.Codes, dbLabels [][]uint32, queries codec.Codes,
		queryLabels [][]uint32) (float64, error)
)

// A tester is what tests, benchmarks, fuzzers and checks of random values have in common.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// failIf fails the test where something is wrong. stopIf ends it.
func failIf(t tester, wrong bool, format string, args ...any) {
	if wrong {
		t.Helper()
		t.Errorf(format, args...)
	}
}

func stopIf(t tester, wrong bool, format string, args ...any) {
	if wrong {
		t.Helper()
		t.Fatalf(format, args...)
	}
}

// must ends the test with an error, and where it came. fine only fails it.
func must(t tester, err error, where ...any) {
	if err != nil {
		t.Helper()
		t.Fatalf("%v %v", where, err)
	}
}

func fine(t tester, err error, where ...any) {
	if err != nil {
		t.Helper()
		t.Errorf("%v %v", where, err)
	}
}

// need returns what a call returns beside its error, which ends the test: need(Train(...))(t).
func need[T any](x T, err error) func(t tester, where ...any) T {
	return func(t tester, where ...any) T {
		t.Helper()
		must(t, err, where...)
		return x
	}
}

// need2 is need of a call with two results.
func need2[A, B any](a A, b B, err error) func(t tester, where ...any) (A, B) {
	return func(t tester, where ...any) (A, B) {
		t.Helper()
		must(t, err, where...)
		return a, b
	}
}

// errOf and third return the error of a call that returns something else, too.
func errOf[T any](_ T, err error) error { return err }

func third[A, B any](_ A, _ B, err error) error { return err }

// like reports whether an error is of a kind, and what it says. The kind is an error, new(*T) for errors of
// type *T, or nil for none.
func like(err error, want any, says ...string) bool {
	kind, ok := want.(error)
	if ok || want == nil {
		ok = errors.Is(err, kind)
	} else {
		ok = err != nil && errors.As(err, want)
	}
	return ok && !slices.ContainsFunc(says, func(s string) bool {
		return !strings.Contains(fmt.Sprint(err),
			s)
	})
}

// errorIs checks that an error is like that.
func errorIs(t tester, err error, want any, says ...string) {
	t.Helper()
	failIf(t, !like(err, want, says...), "%v, want %v that says %q", err, want, says)
}

// settled returns the options with nothing left to choose: settings that they do not give are raw, rbf, 0.01
// and the sum.
func settled(modalities []Modality, opt Options) Options {
	if opt.Fusion == "" {
		opt.Fusion = "sum"
	}
	full := func(given map[string]float64, value float64) map[string]float64 {
		all := map[string]float64{}
		for _, m := range modalities {
			all[m.Name] = value
		}
		for name, v := range given {
			all[name] = v
		}
		return all
	}
	features, maps := map[string]FeatureKind{}, map[string]MapKind{}
	for _, m := range modalities {
		features[m.Name], maps[m.Name] = opt.Features[m.Name], opt.Map[m.Name]
	}
	opt.Features, opt.Map = features, maps
	opt.Width, opt.Gamma = full(opt.Width, 1), full(opt.Gamma, 1e-2)
	return opt
}

// memory is a source over items in memory.
type memory struct{ *synth.Data }

func (s memory) Examples(context.Context) iter.Seq2[Example, error] {
	return func(yield func(Example, error) bool) {
		for _, ex := range examples(s.Data, never) {
			if !yield(ex, nil) {
				return
			}
		}
	}
}

// denseAll returns rows as vectors, which alias them.
func denseAll(rows [][]float32) (xs []Vector) {
	for _, x := range rows {
		xs = append(xs, Dense(x))
	}
	return xs
}

func modalitiesOf(dims []int) []Modality {
	names := []string{"image", "text", "sound"}
	var ms []Modality
	for t, d := range dims {
		ms = append(ms, Modality{Name: names[t], Dim: d})
	}
	return ms
}

// trained trains on all items of d.
func trained(t testing.TB, d *synth.Data, opt Options) *Result {
	t.Helper()
	var dims []int
	for _, rows := range d.Vectors {
		dims = append(dims, len(slices.MaxFunc(rows, func(a, b []float32) int { return len(a) - len(b) })))
	}
	return need(Train(t.Context(), modalitiesOf(dims), memory{d}, opt))(t)
}

// learner is an Online of a training.
func learner(t testing.TB, r *Result) *Online {
	t.Helper()
	return need(NewOnline(r.Model, r.Statistics))(t)
}

func marshal(t testing.TB, r *Result) (model, stats []byte) {
	t.Helper()
	return need(r.Model.MarshalBinary())(t), need(r.Statistics.MarshalBinary())(t)
}

func approx(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance }

// finite reports whether all numbers are.
func finite(x []float64) bool {
	return !slices.ContainsFunc(x, func(v float64) bool { return v-v != 0 })
}

func widened(x []float32) []float64 {
	wide := make([]float64, len(x))
	for i, v := range x {
		wide[i] = float64(v)
	}
	return wide
}

func maxDifference(a, b []float64) (d float64) {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	for i, v := range a {
		d = max(d, math.Abs(v-b[i]))
	}
	return d
}

func relative(a, b mat.Matrix) float64 {
	var x mat.Dense
	x.Sub(a, b)
	return mat.Norm(&x, 2) / (1e-300 + mat.Norm(b, 2))
}

// labelFreeModels are models of all methods without labels, in a few KiB.
func labelFreeModels(t testing.TB) []*Model {
	a, b := synth.PairedEmbeddings(0, 80, 12, 5, 1)
	none := make([][]uint32, len(a))
	return []*Model{
		trained(t, &synth.Data{Vectors: [][][]float32{a}, Labels: none}, Options{Method: MethodITQ, Bits: 8,
			Features: map[string]FeatureKind{"image": FeaturesZScore}}).Model,
		trained(t, &synth.Data{Vectors: [][][]float32{a, b}, Labels: none}, Options{Method: MethodCCAITQ,
			Bits: 8, Features: map[string]FeatureKind{"text": FeaturesRaw}}).Model,
	}
}

// allocated returns the bytes that have ever been allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// bounded fails if reading bytes of any origin allocates more than 64 MiB, which packed
// anchors may take, and 64 times the input, garbage included.
func bounded(t *testing.T, input int, f func()) {
	t.Helper()
	before := allocated()
	f()
	n := allocated() - before
	failIf(t, n > uint64(64<<20+64*input), "%d bytes allocated for %d bytes of input", n, input)
}
