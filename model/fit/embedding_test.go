package fit

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/eval"
)

// embedded trains with label embedding on all items but the last n, which are held out.
// random keeps the random embedding from before the features are known.
func embedded(t testing.TB, data *synth.Data, n int, opt Options, random bool) (*Result, [2]float64) {
	t.Helper()
	trained, held := data.Slice(0, data.Items()-n), data.Slice(data.Items()-n, data.Items())
	ms := modalitiesOf([]int{len(data.Vectors[0][0]), len(data.Vectors[1][0])})
	undecided := openSettings(opt, ms)
	opt.LabelEmbedding = true
	opt = need(opt.withDefaults(ms))(t)
	from := seeded(opt.Seed, opt.Bits)
	from.open, from.randomEmbedding = undecided, random
	r := need(train(t.Context(), ms, synthetic(trained), nil, opt, from))(t)
	var maps [2]float64
	for m := range maps {
		maps[m], _ = retrieval(t, r, m, trained, held)
	}
	return r, maps
}

// settledRBF fixes the map, so that only the embedding differs.
func settledRBF(opt Options) Options {
	opt.Map = map[string]model.MapKind{"image": model.MapRBF, "text": model.MapRBF}
	opt.Features = map[string]model.FeatureKind{"image": model.FeaturesRaw, "text": model.FeaturesRaw}
	opt.Gamma = map[string]float64{"image": .01, "text": .01}
	opt.Width = map[string]float64{"image": 1, "text": 1}
	return opt
}

// TestLabelEmbedding: with three times as many labels as bits, retrieval is far better
// than by codes that ignore the features, and no label is lost.
func TestLabelEmbedding(t *testing.T) {
	effort.Slow(t)
	effort.WithoutRace(t)
	for _, cfg := range []synth.ManyLabels{
		{Items: 2100, Labels: 96},
		{Items: 2100, Labels: 96, Zipf: true},
		{Items: 2100, Labels: 96, PerItem: 4},
	} {
		data := cfg.Make()
		opt := settledRBF(Options{Bits: 32, Anchors: 300})
		_, base := embedded(t, data, 300, opt, true)
		r, got := embedded(t, data, 300, opt, false)
		e := r.Report.Embedding
		for m := range got {
			failIf(t, got[m] < base[m]+.01, "%+v, modality %d: mAP %.3f, at random %.3f", cfg, m, got[m],
				base[m])
		}
		failIf(t, e.Dims != 32 || r.Report.Labels != 96, "%+v", e)
		failIf(t, cfg.PerItem <= 1 && (r.Report.SharedLabels > 0 || e.MAP < 1-1e-12 || e.MAPLeast < 1-1e-12),
			"labels are lost: %d, %+v", r.Report.SharedLabels, e)
		failIf(t, len(r.Model.Labels()) != 96, "the model knows %d labels", len(r.Model.Labels()))
		checkEmbeddingReport(t, r, data.Slice(0, 1800))
	}
}

// checkEmbeddingReport compares the report with results of the public functions.
func checkEmbeddingReport(t *testing.T, r *Result, trained *synth.Data) {
	t.Helper()
	q := r.Model.Bits()
	db, queries := codec.NewCodes(q, 0), codec.NewCodes(q, 0)
	code := codec.NewCode(q)
	for _, labels := range trained.Labels {
		r.Model.LabelCode(code, labels)
		db.Append(code)
	}
	var asked [][]uint32
	byCode := map[string]int{}
	for _, l := range r.Model.Labels() {
		r.Model.LabelCode(code, []uint32{l})
		queries.Append(code)
		asked = append(asked, []uint32{l})
		byCode[string(code.AppendBytes(nil, q))]++
	}
	shared := 0
	for _, n := range byCode {
		if n > 1 {
			shared += n
		}
	}
	metrics := need(eval.Evaluate(t.Context(), db, trained.Labels, queries, asked, 1))(t)
	e := r.Report.Embedding
	failIf(t, !approx(metrics.MAPTie, e.MAP, 1e-9) || r.Report.SharedLabels != shared,
		"%+v with %d shared, want mAP %g, shared %d", e, r.Report.SharedLabels, metrics.MAPTie, shared)
	failIf(t, e.MAPLeast > e.MAP, "%+v", e)
}

// TestLabelEmbeddingIsNotNeeded: if labels fit, the option changes nothing.
func TestLabelEmbeddingIsNotNeeded(t *testing.T) {
	effort.LongWithRace(t)
	data := synth.Pairs(synth.Config{Items: 90, Classes: 8})
	for _, method := range []model.Method{model.MethodLabels, model.MethodJoint, model.MethodPaper} {
		sameResult(t, trained(t, data, Options{Bits: 8, Method: method, LabelEmbedding: true}),
			trained(t, data, Options{Bits: 8, Method: method}))
	}
}

func TestLabelEmbeddingRefuses(t *testing.T) {
	data := synth.ManyLabels{Items: 100, Labels: 20}.Make()
	for _, method := range []model.Method{model.MethodJoint, model.MethodPaper} {
		_, err := learned(t, data, Options{Bits: 16, Method: method, LabelEmbedding: true})
		failIf(t, !like(err, model.ErrOption, "use the method labels"), "%v: %v", method, err)
	}
	_, err := learned(t, data, Options{Bits: 16})
	var bits *BitsError
	failIf(t, !errors.As(err, &bits) || *bits != (BitsError{16, 20, 16}) ||
		!like(err, err, "--label-embedding"),
		"%v", err)
	for _, e := range []*BitsError{{Bits: 64, Labels: 5000, Limit: 64},
		{Bits: 4096, Labels: 9000, Limit: embeddingLabels(4096)}} {
		if strings.Contains(e.Error(), "at least") {
			t.Errorf("%v: there are no such codes", e)
		}
	}
}

// TestLabelEmbeddingOfAlikeLabels: labels with equal items still get codes of their
// own, and so do labels whose items have no vectors.
func TestLabelEmbeddingOfAlikeLabels(t *testing.T) {
	effort.LongWithRace(t)
	data := synth.ManyLabels{Items: 400, Labels: 100}.Make()
	for i, labels := range data.Labels {
		if l := labels[0]; l >= 50 { // its items are those of label 50
			data.Vectors[0][i], data.Vectors[1][i] = data.Vectors[0][50], data.Vectors[1][50]
			if l >= 90 {
				data.Vectors[0][i], data.Vectors[1][i] = nil, nil
			}
		}
	}
	r, _ := embedded(t, data, 0, settledRBF(Options{Bits: 64}), false)
	failIf(t, r.Report.SharedLabels > 0, "%d labels share codes, %+v", r.Report.SharedLabels,
		r.Report.Embedding)
}

// BenchmarkLabelEmbedding measures the table of docs/EVALUATION.md: mAP of held-out
// images and texts, for data with more labels than bits.
func BenchmarkLabelEmbedding(b *testing.B) {
	kinds := map[string]synth.ManyLabels{"balanced": {}, "zipf": {Zipf: true}, "multi": {PerItem: 4}}
	for _, kind := range []string{"balanced", "zipf", "multi"} {
		for _, c := range []int{100, 300, 1000} {
			cfg := kinds[kind]
			cfg.Labels, cfg.Items = c, max(4000, 12*c)+1000
			data := cfg.Make()
			for _, q := range []int{32, 64, 128, (c + 7) / 8 * 8} {
				for _, random := range []bool{false, true} {
					name := "embedded"
					if random {
						name = "random"
					}
					if c <= q && random {
						continue // no embedding at all
					}
					b.Run(fmt.Sprintf("%s/labels=%d/bits=%d/%s", kind, c, q, name), func(b *testing.B) {
						for range b.N {
							r, maps := embedded(b, data, 1000, settledRBF(Options{Bits: q, Anchors: 500}),
								random)
							b.ReportMetric(maps[0], "image-mAP")
							b.ReportMetric(maps[1], "text-mAP")
							if e := r.Report.Embedding; e != nil {
								b.ReportMetric(e.MAP, "label-mAP")
								b.ReportMetric(e.MAPLeast, "least-label-mAP")
							}
							b.ReportMetric(float64(r.Report.SharedLabels), "shared-labels")
						}
					})
				}
			}
		}
	}
}
