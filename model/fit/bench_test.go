package fit

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"

	"github.com/fddhdb/fddhdb/model"
)

var benchItems = flag.Int("items", 4000, "items that BenchmarkTrainChosen trains on")

// A stream is a source of any length: items of some classes whose vectors are made on
// demand, at a cost like that of reading them.
type stream struct {
	items, classes int
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
	s := &stream{items: items, classes: classes, noise: normal(1 << 18)}
	for _, d := range dims {
		s.centres = append(s.centres, normal(classes*d))
	}
	return s
}

// Examples yields items, whose vectors are the centre of their class, and noise, which is another stretch of
// the same numbers for each.
func (s *stream) Examples(context.Context) iter.Seq2[model.Example, error] {
	return func(yield func(model.Example, error) bool) {
		ex := model.Example{Labels: make([]uint32, 1), Vectors: make([]model.Vector, len(s.centres))}
		for i := range s.items {
			class := i * 7919 % s.classes
			for t, centres := range s.centres {
				d := len(centres) / s.classes
				x, at := make([]float32, d), (i*d+t*65537)%(len(s.noise)-d)
				for j := range x {
					x[j] = .3*centres[class*d+j] + s.noise[at+j]
				}
				ex.Vectors[t] = model.Dense(x)
			}
			ex.Labels[0] = uint32(class)
			if !yield(ex, nil) {
				return
			}
		}
	}
}

// BenchmarkTrainChosen reports the seconds of a training with everything chosen, and with the
// chosen settings given. The difference is the cost of choosing.
//
//	go test ./model/fit -run '^$' -bench TrainChosen -benchtime 1x -items 20000
func BenchmarkTrainChosen(b *testing.B) {
	for _, dims := range [][]int{{128, 128}, {500, 1000}} {
		src, opt := newStream(*benchItems, 24, dims...), Options{Bits: 128}
		for _, name := range []string{"chosen", "given"} {
			b.Run(fmt.Sprintf("%s/%d+%d", name, dims[0], dims[1]), func(b *testing.B) {
				var r *Result
				for b.Loop() {
					r = need(Train(b.Context(), modalitiesOf(dims), src, opt))(b)
				}
				b.ReportMetric(r.Report.Seconds["choose"], "choose-s")
				b.ReportMetric(r.Report.Seconds["total"], "total-s")
				b.Logf("%+v", r.Report.Chosen)
				opt = r.Report.Settle(opt)
			})
		}
	}
}
