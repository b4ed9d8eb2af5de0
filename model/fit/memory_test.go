package fit

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/sum"
)

// bagOfWords yields items of a dense modality and of a sparse one of many dimensions.
func bagOfWords(n, dim int) ([]model.Modality, sourceFunc) {
	modalities := []model.Modality{{Name: "image", Dim: 8}, {Name: "text", Dim: dim, Sparse: true}}
	return modalities, func(context.Context) iter.Seq2[model.Example, error] {
		return func(yield func(model.Example, error) bool) {
			for i := range n {
				class := uint32(i % 4)
				image := make([]float32, 8)
				for j := range image {
					image[j] = float32((i*(j+3))%11) + float32(class)
				}
				text := model.Vector{Index: []uint32{class, 10 + uint32(i%50), uint32(dim) - 1},
					Value: []float32{1, 2, 1}}
				if !yield(model.Example{Vectors: []model.Vector{model.Dense(image), text},
					Labels: []uint32{class}}, nil) {
					return
				}
			}
		}
	}
}

// A training that needs more memory than there is is refused before it reads anything.
// The error says how much it needs, how much there is, and what to do. Other maps of
// the same items are learned.
func TestTrainingsThatDoNotFitIntoMemory(t *testing.T) {
	modalities, src := bagOfWords(200, 20_000)
	passes := 0
	counted := sourceFunc(func(ctx context.Context) iter.Seq2[model.Example, error] {
		passes++
		return src(ctx)
	})
	train := func(opt Options) error {
		opt.Bits, opt.Anchors, opt.Method = 16, cmp.Or(opt.Anchors, 20), model.MethodLabels
		_, err := Train(context.Background(), modalities, counted, opt)
		return err
	}
	linear := map[string]model.MapKind{"text": model.MapLinear}
	err := train(Options{Map: linear, MemoryBytes: 2 << 30})
	var memory *MemoryError
	stopIf(t, !errors.As(err, &memory), "%v", err)
	failIf(t, passes != 0, "the items were read %d times before", passes)
	failIf(t, memory.Modality != "text" || memory.Map != model.MapLinear || memory.Features != 20_001 ||
		memory.Available != 2<<30 || memory.Needed < 10<<30 || memory.Needed > 20<<30, "%+v", memory)
	for _, words := range []string{`"text"`, "linear", "20001 features", "13.5 GiB", "2.0 GiB", "rbf"} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("%q does not say %q", err, words)
		}
	}
	// No map is chosen that would not fit.
	for what, opt := range map[string]Options{
		"chosen": {MemoryBytes: 1 << 30},
		"rbf":    {MemoryBytes: 1 << 30, Map: map[string]model.MapKind{"text": model.MapRBF}},
	} {
		fine(t, train(opt), what)
	}
	// Memory that depends on the number of items is known after the first pass.
	passes = 0
	if err := train(Options{MemoryBytes: 3 << 20, Anchors: 150}); !errors.As(err, &memory) || passes != 1 {
		t.Errorf("%v after %d passes", err, passes)
	}
	if memory.Needed < 3<<20 || memory.Needed > 100<<20 || !memory.Choosing ||
		!strings.Contains(memory.Error(), "3.0 MiB") {
		t.Errorf("%+v: %v", memory, memory)
	}
}

// Small trainings do not ask for the memory of the machine, and a negative limit is no
// limit.
func TestTrainingsThatAreNotRefused(t *testing.T) {
	modalities, src := bagOfWords(200, 100)
	for _, bytes := range []int64{0, -1, math.MaxInt64} {
		if _, err := Train(context.Background(), modalities, src,
			Options{Bits: 16, Anchors: 20, MemoryBytes: bytes}); err != nil {
			t.Errorf("%d: %v", bytes, err)
		}
	}
}

// The estimate is within half of measured peaks: those of processes that trained on two
// goroutines, less the memory that they held before.
func TestMemoryEstimates(t *testing.T) {
	const MB = 1 << 20
	for _, tc := range []struct {
		items          int
		image, text    int
		sparse, linear bool // of the text; the other modality is rbf; if not linear, both maps are open
		both           bool // both are linear
		anchors        int
		peak           int64
	}{
		{items: 1000, image: 128, text: 10, peak: 113 * MB},
		{items: 2173, image: 128, text: 10, peak: 474 * MB},
		{items: 4000, image: 128, text: 10, peak: 643 * MB},
		{items: 5000, image: 128, text: 10, peak: 330 * MB},
		{items: 3000, image: 64, text: 2000, sparse: true, linear: true, peak: 385 * MB},
		{items: 3000, image: 64, text: 2000, linear: true, peak: 624 * MB},
		{items: 3000, image: 64, text: 4000, sparse: true, linear: true, peak: 586 * MB},
		{items: 1500, image: 64, text: 6000, sparse: true, linear: true, peak: 1213 * MB},
		{items: 1500, image: 64, text: 9000, sparse: true, linear: true, peak: 2849 * MB},
		{items: 1500, image: 3900, text: 3900, linear: true, both: true, peak: 821 * MB},
		{items: 6500, image: 64, text: 64, anchors: 6000, peak: 1497 * MB},
		{items: 5000, image: 64, text: 500, peak: 336 * MB},
		{items: 5000, image: 64, text: 1500, peak: 481 * MB},
		{items: 5000, image: 64, text: 2600, peak: 722 * MB},
		{items: 5000, image: 2600, text: 2600, peak: 862 * MB},
	} {
		modalities := []model.Modality{{Name: "image", Dim: tc.image},
			{Name: "text", Dim: tc.text, Sparse: tc.sparse}}
		opt := Options{Anchors: tc.anchors}
		if tc.linear {
			opt.Map = map[string]model.MapKind{"image": model.MapRBF, "text": model.MapLinear}
			if tc.both {
				opt.Map["image"] = model.MapLinear
			}
		}
		if tc.anchors > 0 {
			opt.Map = map[string]model.MapKind{"image": model.MapRBF, "text": model.MapRBF}
		}
		open := openSettings(opt, modalities)
		opt = need(opt.withDefaults(modalities))(t)
		tr := &trainer{opt: opt, from: start{open: open}, reader: &sum.Reader{Modalities: modalities}}
		e := tr.estimate([]int{tc.items, tc.items}, nil)
		if ratio := float64(e.Needed) / float64(tc.peak); ratio < 1/1.5 || ratio > 1.5 {
			t.Errorf("%+v: %d MB are estimated, %.2f of what it took", tc, e.Needed/MB, ratio)
		} else {
			t.Logf("%+v: %d MB, %.2f of what it took", tc, e.Needed/MB, ratio)
		}
	}
}
