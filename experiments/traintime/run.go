package traintime

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/model/eval"
	"github.com/fddhdb/fddhdb/model/fit"
	"github.com/fddhdb/fddhdb/model/sum"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// A config describes one training.
type config struct {
	Items, Bits, Anchors, Queries int
	Seed                          uint64
	Noise                         float64
	Method                        model.Method
	Dense                         bool // texts are dense vectors
}

// A result has the cost of a training and the quality of the model.
type result struct {
	Items     int
	Seconds   map[string]float64 // by phase
	Making    float64            // seconds of the total that items took to make
	PeakMiB   float64            // peak of the process, after training
	ImageText float64            // mAP
	TextImage float64
	Chance    float64
}

// run trains and evaluates.
func run(ctx context.Context, c config) (*result, error) {
	g, err := synth.NewNUSWide(c.Seed, c.Noise)
	if err != nil {
		return nil, err
	}
	src := &source{g: g, items: c.Items, dense: c.Dense}
	trained, err := c.train(ctx, src)
	if err != nil {
		return nil, err
	}
	r := &result{
		Items:   c.Items,
		Seconds: trained.Report.Seconds,
		Making:  src.making.Seconds(),
		PeakMiB: float64(peakMemory()) / (1 << 20),
	}
	return r, r.evaluate(ctx, g, trained.Model, c)
}

// gamma is the ridge parameter of both modalities.
const gamma = 1e-2

// train gives every option, so that training tries no alternatives: one training is
// measured.
func (c config) train(ctx context.Context, src sum.Source) (*fit.Result, error) {
	return fit.Train(ctx, []model.Modality{
		{Name: "image", Dim: synth.NUSWideImage},
		{Name: "text", Dim: synth.NUSWideText, Sparse: !c.Dense},
	}, src, fit.Options{
		Bits: c.Bits, Anchors: c.Anchors, Seed: c.Seed, Method: c.Method,
		Features: map[string]model.FeatureKind{"image": model.FeaturesRaw, "text": model.FeaturesRaw},
		Map:      map[string]model.MapKind{"image": model.MapRBF, "text": model.MapRBF},
		Width:    map[string]float64{"image": fit.DefaultWidth, "text": fit.DefaultWidth},
		Gamma:    map[string]float64{"image": gamma, "text": gamma},
		Fusion:   fit.Fusion{Rule: fit.FusionSum},
	})
}

// evaluate ranks the training items, under the codes of their labels, for the items
// that follow them.
func (r *result) evaluate(ctx context.Context, g *synth.NUSWide, m *model.Model, c config) error {
	if c.Queries == 0 {
		return nil
	}
	items, labels := codec.NewCodes(m.Bits(), 0), make([][]uint32, c.Items)
	code := codec.NewCode(m.Bits())
	for i := range labels {
		labels[i] = g.AppendLabels(nil, i)
		m.LabelCode(code, labels[i])
		items.Append(code)
	}
	data := g.Data(c.Items, c.Items+c.Queries)
	e := m.NewEncoder()
	for t, rows := range data.Vectors {
		z, vectors := make([]float64, len(rows)*m.Bits()), make([]model.Vector, len(rows))
		for i, x := range rows {
			vectors[i] = model.Dense(x)
		}
		if err := e.ProjectVectors(z, t, vectors); err != nil {
			return err
		}
		queries := codec.NewCodes(m.Bits(), 0)
		for i := range rows {
			codec.PackSigns(code, z[i*m.Bits():(i+1)*m.Bits()])
			queries.Append(code)
		}
		found, err := eval.Evaluate(ctx, items, labels, queries, data.Labels, 50)
		if err != nil {
			return err
		}
		if t == 0 {
			r.ImageText = found.MAP
		} else {
			r.TextImage = found.MAP
		}
		r.Chance = found.ByRadius[m.Bits()].Precision
	}
	return nil
}

func header(w io.Writer) {
	common.Head(w, 0, "items", "seconds", "scan", "sweeps", "statistics", "solve", "making items",
		"peak, MiB",
		"mAP image to text", "text to image", "chance")
}

// row writes the result as one row of a table.
func (r *result) row(w io.Writer) {
	s := r.Seconds
	cells := []string{strconv.Itoa(r.Items),
		fmt.Sprintf("%.2f", s["total"]), fmt.Sprintf("%.2f", s["scan"]), fmt.Sprintf("%.3f", s["sweeps"]),
		fmt.Sprintf("%.2f", s["statistics"]), fmt.Sprintf("%.2f", s["solve"]), fmt.Sprintf("%.2f", r.Making),
		fmt.Sprintf("%.0f", r.PeakMiB), "", "", ""}
	if r.Chance > 0 { // there are queries
		for i, x := range []float64{r.ImageText, r.TextImage, r.Chance} {
			cells[8+i] = fmt.Sprintf("%.3f", x)
		}
	}
	common.Row(w, cells...)
}

// A source is a sum.Source that makes items as they are read.
type source struct {
	g      *synth.NUSWide
	items  int
	dense  bool          // texts are dense vectors
	making time.Duration // time that items took to make
}

func (s *source) Examples(context.Context) iter.Seq2[model.Example, error] {
	return func(yield func(model.Example, error) bool) {
		image, text := make([]float32, synth.NUSWideImage), model.Sparse(nil, nil)
		if s.dense {
			text = model.Dense(make([]float32, synth.NUSWideText))
		}
		ex := model.Example{Vectors: []model.Vector{model.Dense(image), text}}
		for i := range s.items {
			start := time.Now()
			s.g.Image(image, i)
			if s.dense {
				s.g.Text(text.Value, i)
			} else {
				text.Index, text.Value = s.g.AppendText(text.Index[:0], text.Value[:0], i)
				ex.Vectors[1] = text
			}
			ex.Labels = s.g.AppendLabels(ex.Labels[:0], i)
			s.making += time.Since(start)
			if !yield(ex, nil) {
				return
			}
		}
	}
}

// peakMemory returns the peak of the process's memory in bytes. If the system does not
// tell it, it is the memory that the Go runtime has obtained from the system.
func peakMemory() uint64 {
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		var kib uint64
		if _, rest, ok := strings.Cut(string(status), "VmHWM:"); ok {
			if _, err := fmt.Sscan(rest, &kib); err == nil {
				return kib << 10
			}
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys
}
