package fit

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/model"
)

var benchItems = flag.Int("items", 4000, "items that BenchmarkTrain trains on")

// A stream is a source of any length: items of some classes whose vectors are made on
// demand, at a cost like that of reading them.
type stream struct {
	items, classes int
	dims           []int
	centres        [][]float32 // by modality: a row a class
	noise          []float32
}

func newStream(items, classes int, dims ...int) *stream {
	rng := rand.New(rand.NewPCG(41, 42))
	normal := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		return x
	}
	s := &stream{items: items, classes: classes, dims: dims, noise: normal(1 << 18)}
	for _, d := range dims {
		s.centres = append(s.centres, normal(classes*d))
	}
	return s
}

func (s *stream) modalities() []model.Modality { return modalitiesOf(s.dims) }

func (s *stream) class(i int) int { return i * 7919 % s.classes }

// vector writes the vector of item i: the centre of its class, and noise, which is
// another stretch of the same numbers for each item.
func (s *stream) vector(x []float32, t, i int) {
	at := (i*s.dims[t] + t*65537) % (len(s.noise) - len(x))
	noise := s.noise[at : at+len(x)]
	for j, v := range s.centres[t][s.class(i)*len(x):][:len(x)] {
		x[j] = .3*v + noise[j]
	}
}

func (s *stream) Examples(context.Context) iter.Seq2[model.Example, error] {
	return func(yield func(model.Example, error) bool) {
		ex := model.Example{Labels: make([]uint32, 1)}
		for _, d := range s.dims {
			ex.Vectors = append(ex.Vectors, model.Dense(make([]float32, d)))
		}
		for i := range s.items {
			for t, x := range ex.Vectors {
				s.vector(x.Value, t, i)
			}
			ex.Labels[0] = uint32(s.class(i))
			if !yield(ex, nil) {
				return
			}
		}
	}
}

var benchShapes = []struct {
	dims    []int
	anchors int
}{
	{[]int{128, 128}, 800},
	{[]int{500, 1000}, 800},
}

func train128(b *testing.B, src *stream, method model.Method, anchors int) *Result {
	r, err := Train(b.Context(), src.modalities(), src,
		settled(src.modalities(), Options{Bits: 128, Anchors: anchors, Method: method}))
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// BenchmarkTrain reports items and the seconds of each phase of a training:
//
//	go test ./model/fit -run '^$' -bench '^BenchmarkTrain$/labels' -benchtime 1x -items 100000
func BenchmarkTrain(b *testing.B) {
	for _, method := range []model.Method{model.MethodLabels, model.MethodJoint, model.MethodPaper} {
		for _, shape := range benchShapes {
			b.Run(fmt.Sprintf("%v/%d+%d", method, shape.dims[0], shape.dims[1]), func(b *testing.B) {
				src := newStream(*benchItems, 24, shape.dims...)
				phases := map[string]float64{}
				for b.Loop() {
					for phase, s := range train128(b, src, method, shape.anchors).Report.Seconds {
						phases[phase] += s
					}
				}
				for phase, s := range phases {
					if phase != "total" {
						b.ReportMetric(s/float64(b.N), phase+"-s")
					}
				}
				b.ReportMetric(float64(src.items)*float64(b.N)/b.Elapsed().Seconds(), "items/s")
			})
		}
	}
}

// BenchmarkTrainChosen is BenchmarkTrain twice: with everything chosen, and with the
// chosen settings given. The difference is the cost of choosing.
//
//	go test ./model/fit -run '^$' -bench TrainChosen -benchtime 1x -items 20000
func BenchmarkTrainChosen(b *testing.B) {
	for _, shape := range benchShapes {
		src := newStream(*benchItems, 24, shape.dims...)
		opt := Options{Bits: 128}
		for _, name := range []string{"chosen", "given"} {
			b.Run(fmt.Sprintf("%s/%d+%d", name, shape.dims[0], shape.dims[1]), func(b *testing.B) {
				var r *Result
				for b.Loop() {
					var err error
					if r, err = Train(b.Context(), src.modalities(), src, opt); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(r.Report.Seconds["choose"], "choose-s")
				b.ReportMetric(r.Report.Seconds["total"], "total-s")
				given := Options{
					Bits: 128, Prior: &r.Report.Prior,
					Features: map[string]model.FeatureKind{}, Map: map[string]model.MapKind{},
					Width: map[string]float64{}, Gamma: map[string]float64{},
				}
				for name, c := range r.Report.Chosen {
					given.Features[name], given.Map[name], given.Width[name],
						given.Gamma[name] = c.FeatureMap, c.Map, cmp.Or(c.Width, DefaultWidth), c.Gamma
					b.Logf("%s: %v of %v, %d anchors, gamma %g", name, c.Map, c.FeatureMap, c.Anchors,
						c.Gamma)
				}
				opt = given
			})
		}
	}
}

// BenchmarkEncode measures the projection of items of two modalities, one at a time and
// 256 at a time, on one core, for maps of 800 anchors and of as many as trainings with
// many items have.
func BenchmarkEncode(b *testing.B) {
	for _, shape := range benchShapes {
		for _, anchors := range []int{shape.anchors, anchorsOfMany} {
			benchmarkEncode(b, shape.dims, anchors)
		}
	}
}

func benchmarkEncode(b *testing.B, dims []int, anchors int) {
	src := newStream(2000, 24, dims...)
	m := train128(b, src, model.MethodLabels, anchors).Model
	for _, n := range []int{1, 256} {
		xs := make([][][]float32, len(dims))
		for t, d := range dims {
			xs[t] = make([][]float32, n)
			for i := range n {
				xs[t][i] = make([]float32, d)
				src.vector(xs[t][i], t, i)
			}
		}
		b.Run(fmt.Sprintf("%d+%d/%d anchors/%d", dims[0], dims[1], anchors, n), func(b *testing.B) {
			e, z := m.NewEncoder(), make([]float64, n*m.Bits())
			for b.Loop() {
				for t := range xs {
					if err := e.ProjectVectors(z, t, denseAll(xs[t])); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "items/s")
		})
	}
}

// BenchmarkOnline measures the cost of an item that is learned by its labels or by the
// codes of a modality, with a revision every 100 items, in chunks of several sizes: 800
// anchors, 128 bits, two modalities of 128 dimensions.
//
//	go test ./model/fit -run '^$' -bench '^BenchmarkOnline$'
func BenchmarkOnline(b *testing.B) {
	src := newStream(2000, 10, 128, 128)
	var items []model.Example
	for ex := range src.Examples(b.Context()) {
		item := model.Example{Labels: slices.Clone(ex.Labels)}
		for _, x := range ex.Vectors {
			item.Vectors = append(item.Vectors, model.Dense(slices.Clone(x.Value)))
		}
		items = append(items, item)
	}
	r := train128(b, src, model.MethodLabels, 800)
	hidden := slices.Clone(items)
	for i := range hidden {
		hidden[i].Labels = nil
	}
	for _, c := range []struct {
		what    string
		items   []model.Example
		chunk   int
		teacher model.Teacher
	}{
		{"labels", items, 1, model.TeacherLabels},
		{"labels", items, 100, model.TeacherLabels},
		{"modality", hidden, 1, model.TeacherModality},
		{"modality", hidden, 100, model.TeacherModality},
	} {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/chunk=%d/workers=%d", c.what, c.chunk, workers), func(b *testing.B) {
				o, err := model.NewOnline(r.Model, r.Statistics.Clone())
				if err != nil {
					b.Fatal(err)
				}
				o.Workers = workers
				i := 0
				for b.Loop() {
					for range 100 / c.chunk {
						if _, err := o.Learn(b.Context(), c.items[i:i+c.chunk], c.teacher, 0); err != nil {
							b.Fatal(err)
						}
						i = (i + c.chunk) % len(items)
					}
					if _, err := o.Revision(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/100, "us/item")
			})
		}
	}
}

// BenchmarkGuard measures a verdict of 200 held items on 1,000 others, including the
// making of the Guard and its learning.
func BenchmarkGuard(b *testing.B) {
	src := newStream(3000, 10, 128, 128)
	var items []model.Example
	for ex := range src.Examples(b.Context()) {
		item := model.Example{Labels: slices.Clone(ex.Labels)}
		for _, x := range ex.Vectors {
			item.Vectors = append(item.Vectors, model.Dense(slices.Clone(x.Value)))
		}
		items = append(items, item)
	}
	r := train128(b, src, model.MethodLabels, 800)
	held := items[:200]
	var lessons []model.Lesson
	for i, item := range held {
		lessons = append(lessons, r.Lesson(i, item.Labels))
	}
	hidden := slices.Clone(items[1000:2000])
	for i := range hidden {
		hidden[i].Labels = nil
	}
	o, err := model.NewOnline(r.Model, r.Statistics)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		g, err := o.Guard(b.Context(), held, lessons)
		if err != nil {
			b.Fatal(err)
		}
		if err := g.Learn(b.Context(), hidden); err != nil {
			b.Fatal(err)
		}
		if _, err := g.Verdict(); err != nil {
			b.Fatal(err)
		}
	}
}
