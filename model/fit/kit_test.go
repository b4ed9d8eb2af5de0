package fit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/eval"
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

// memory is a source over items in memory.
type memory struct{ *synth.Data }

func (s memory) Examples(context.Context) iter.Seq2[model.Example, error] {
	return func(yield func(model.Example, error) bool) {
		// One example for all items, overwritten: training must not keep it.
		ex := model.Example{Vectors: make([]model.Vector, len(s.Vectors))}
		for i, labels := range s.Labels {
			for t, rows := range s.Vectors {
				if rows[i] == nil {
					ex.Vectors[t].Value = nil
				} else {
					ex.Vectors[t].Value = append(ex.Vectors[t].Value[:0], rows[i]...)
				}
			}
			ex.Labels = append(ex.Labels[:0], labels...)
			if !yield(ex, nil) {
				return
			}
		}
	}
}

// denseAll returns rows as vectors, which alias them.
func denseAll(rows [][]float32) (xs []model.Vector) {
	for _, x := range rows {
		xs = append(xs, model.Dense(x))
	}
	return xs
}

func synthetic(d *synth.Data) memory { return memory{d} }

// picked returns some items of d.
func picked(d *synth.Data, rows []int) *synth.Data {
	p := &synth.Data{Vectors: make([][][]float32, len(d.Vectors))}
	for _, i := range rows {
		for t, x := range d.Item(i) {
			p.Vectors[t] = append(p.Vectors[t], x)
		}
		p.Labels = append(p.Labels, d.Labels[i])
	}
	return p
}

// codesOf returns the codes that a model gives to labels of items.
func codesOf(m *model.Model, labels [][]uint32) codec.Codes {
	codes, code := codec.NewCodes(m.Bits(), len(labels)), codec.NewCode(m.Bits())
	for _, l := range labels {
		m.LabelCode(code, l)
		codes.Append(code)
	}
	return codes
}

// projections returns the projections of the vectors of modality mod of d, their codes, and the labels of the
// items that have it.
func projections(t testing.TB, m *model.Model, mod int,
	d *synth.Data) (z [][]float64, codes codec.Codes, labels [][]uint32) {
	t.Helper()
	e, codes, code := m.NewEncoder(), codec.NewCodes(m.Bits(), 0), codec.NewCode(m.Bits())
	for i, x := range d.Vectors[mod] {
		if x == nil {
			continue
		}
		row := make([]float64, m.Bits())
		must(t, e.Project(row, mod, x))
		z, labels = append(z, row), append(labels, d.Labels[i])
		codes.Append(codec.PackSigns(code, row))
	}
	return z, codes, labels
}

// asked returns the figures of retrieval by modality mod of queries among items with some codes and labels.
func asked(t testing.TB, m *model.Model, mod int, queries *synth.Data, db codec.Codes,
	labels [][]uint32) eval.Metrics {
	t.Helper()
	_, codes, of := projections(t, m, mod, queries)
	return need(eval.Evaluate(t.Context(), db, labels, codes, of, 50))(t)
}

func modalitiesOf(dims []int) []model.Modality {
	names := []string{"image", "text", "sound"}
	var ms []model.Modality
	for t, d := range dims {
		ms = append(ms, model.Modality{Name: names[t], Dim: d})
	}
	return ms
}

// settled returns the options with nothing left to choose: settings that they do not
// give are raw, rbf, 0.01 and the sum.
func settled(modalities []model.Modality, opt Options) Options {
	full, err := opt.withDefaults(modalities)
	if err != nil {
		panic(err)
	}
	if full.Fusion.Rule == FusionAuto {
		full.Fusion.Rule = FusionSum
	}
	return full
}

// learned is Train of all items of d, and trained is learned without an error.
func learned(t testing.TB, d *synth.Data, opt Options) (*Result, error) {
	return Train(t.Context(), modalitiesOf(dimsOf(d.Vectors...)), synthetic(d), opt)
}

func trained(t testing.TB, d *synth.Data, opt Options) *Result {
	t.Helper()
	return need(learned(t, d, opt))(t)
}

// dimsOf returns the dimensions of modalities, 1 for those without vectors.
func dimsOf(vectors ...[][]float32) (dims []int) {
	for _, rows := range vectors {
		d := 1
		for _, x := range rows {
			d = max(d, len(x))
		}
		dims = append(dims, d)
	}
	return dims
}

// stored returns the bytes of a model, and of its statistics if there are any.
func stored(t testing.TB, r *Result) []byte {
	t.Helper()
	b := need(r.Model.MarshalBinary())(t)
	if r.Statistics != nil {
		b = append(b, need(r.Statistics.MarshalBinary())(t)...)
	}
	return b
}

// sameResult compares two results, but for times and memory.
func sameResult(t testing.TB, got, want *Result) {
	t.Helper()
	failIf(t, !bytes.Equal(stored(t, got), stored(t, want)), "another model, or other statistics")
	ignored := cmpopts.IgnoreFields(Report{}, "Seconds", "MemoryBytes")
	if d := cmp.Diff(want.Report, got.Report, ignored); d != "" {
		t.Errorf("another report (-want +got):\n%s", d)
	}
}

// examples returns the items of d; it hides the labels of item i if hide(i).
func examples(d *synth.Data, hide func(i int) bool) []model.Example {
	var items []model.Example
	for i, labels := range d.Labels {
		ex := model.Example{Labels: labels}
		for _, rows := range d.Vectors {
			ex.Vectors = append(ex.Vectors, model.Dense(rows[i]))
		}
		if hide(i) {
			ex.Labels = nil
		}
		items = append(items, ex)
	}
	return items
}

func never(int) bool { return false }

func momentsOf(rows [][]float32) *model.Moments {
	m := model.NewMoments(model.Modality{Dim: len(rows[0])})
	m.Add(denseAll(rows), 2)
	return m
}

// positives returns vectors without negative numbers, with a column of zeros, a
// constant column and a zero vector.
func positives(n int) [][]float32 {
	rng, rows := rand.New(rand.NewPCG(3, 4)), make([][]float32, n)
	for i := range rows {
		rows[i] = []float32{rng.Float32(), 100 * rng.Float32() * rng.Float32(), 0, 7, 1e-6 * rng.Float32()}
	}
	rows[n/2] = make([]float32, 5)
	rows[n/2][3] = 7
	return rows
}

func approx(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance }

// finite reports whether all numbers are.
func finite(x []float64) bool {
	return !slices.ContainsFunc(x, func(v float64) bool { return v-v != 0 })
}
