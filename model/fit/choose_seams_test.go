package fit

import (
	"context"
	"errors"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/rank"
	"github.com/fddhdb/fddhdb/model/sum"
)

// TestChoiceProgress: whatever can be chosen, progress reaches its total in steps of
// one, and cancelling the context ends it after any step.
func TestChoiceProgress(t *testing.T) {
	effort.LongWithRace(t)
	two := modalitiesOf([]int{6, 4})
	plain := synthetic(synth.Pairs(synth.Config{Items: 300, Dims: []int{6, 4}}))
	twins := synth.Pairs(synth.Config{Items: 300, Dims: []int{6, 4}})
	for _, x := range twins.Vectors[0] {
		copy(x[3:], x[:3]) // a linear map needs a ridge
	}
	rare := synth.Pairs(synth.Config{Items: 300, Dims: []int{6, 4}})
	for i := range rare.Labels {
		if i >= 20 {
			rare.Vectors[1][i] = nil
		}
	}
	several := synthetic(synth.Pairs(synth.Config{Items: 300, Dims: []int{6, 4}, LabelsPerItem: 2}))
	// settings are chosen twice
	noisy := synthetic(synth.ManyLabels{Items: 300, Labels: 16, PerItem: 3, Zipf: true, Noise: 5,
		Dims: []int{6, 4}}.Make())
	noFusion := Fusion{Rule: FusionSum}
	for name, c := range map[string]struct {
		src   sum.Source
		opt   Options
		fails bool
	}{
		"all":       {src: plain},
		"no fusion": {src: plain, opt: Options{Fusion: noFusion}},
		"one given": {src: plain,
			opt: Options{Fusion: noFusion, Start: 2, Gamma: map[string]float64{"image": 1},
				Features: map[string]model.FeatureKind{"image": model.FeaturesL2},
				Map:      map[string]model.MapKind{"image": model.MapLinear}}},
		"only fused": {src: plain, opt: settledOpen(two)},
		"singular": {src: synthetic(twins), opt: Options{Gamma: map[string]float64{"image": 0},
			Map: map[string]model.MapKind{"image": model.MapLinear}}, fails: true},
		"rare":      {src: synthetic(rare)},
		"several":   {src: several},
		"no centre": {src: noisy, opt: Options{Fusion: noFusion}},
	} {
		t.Run(name, func(t *testing.T) {
			c.opt.Bits, c.opt.Anchors = 16, 20
			steps, all := int64(0), int64(0)
			c.opt.Progress = func(phase string, done, total int64) {
				if phase != "choose" {
					return
				}
				if steps++; done != steps || total < done || all > 0 && total != all {
					t.Errorf("%d of %d after %d", done, total, steps-1)
				}
				all = total
			}
			r, err := Train(t.Context(), two, c.src, c.opt)
			stopIf(t, err != nil != c.fails, "%v", err)
			failIf(t, name == "no centre" && r.Report.Centre != 0, "settings were chosen once")
			failIf(t, steps == 0 || steps != all, "%d of %d steps", steps, all)
			for stop := int64(1); stop <= all; stop += int64(effort.Of(1, 5)) {
				ctx, cancel := context.WithCancel(t.Context())
				after := 0
				c.opt.Progress = func(phase string, done, _ int64) {
					if phase == "choose" && done == stop {
						cancel()
					} else if ctx.Err() != nil {
						after++
					}
				}
				if _, err := Train(ctx, two, c.src, c.opt); !errors.Is(err, context.Canceled) {
					t.Errorf("cancelled after step %d of %d: %v, %d more", stop, all, err, after)
				}
				cancel()
			}
		})
	}
}

// settledOpen gives all settings but the fusion.
func settledOpen(modalities []model.Modality) Options {
	opt := settled(modalities, Options{})
	opt.Fusion = Fusion{}
	return opt
}

// TestNothingIsRelevantToOthers: if each item has a label of its own, there is no figure of retrieval, and
// the report does not claim that there is.
func TestNothingIsRelevantToOthers(t *testing.T) {
	effort.WithoutRace(t)
	const n = 120
	data := synth.Pairs(synth.Config{Items: n, Dims: []int{6, 4}})
	for i := range data.Labels {
		data.Labels[i] = []uint32{uint32(i)}
	}
	r := trained(t, data, Options{Bits: 128, Anchors: 20})
	f := r.Report.Fusion
	failIf(t, f.Unfit != "" || len(f.Directions) > 0, "%+v", f)
}

// TestOneQueryIsNoDirection: if only one item has a modality, there is no figure for queries by it.
func TestOneQueryIsNoDirection(t *testing.T) {
	f := fuserOf(300, []float64{1, 1}, []float64{1, 1})
	clear(f.has[0])
	f.has[0][1] = true
	d, err := f.measure(t.Context(), rank.Fusion{Weights: []float64{1, 1}})
	failIf(t, err != nil || len(d) != 1 || d["text->image"] == 0, "%v, %v", d, err)
}

// TestFusionIsMeasuredWithTheRidgeOfTheModel, even if no ridge can be chosen: that of a
// linear map has the unit of the vectors.
func TestFusionIsMeasuredWithTheRidgeOfTheModel(t *testing.T) {
	effort.WithoutRace(t)
	modalities := modalitiesOf([]int{6, 4})
	data := synth.Pairs(synth.Config{Items: 240, Dims: []int{6, 4}})
	for i := range data.Labels {
		data.Labels[i] = []uint32{uint32(i % 60)}
		if i >= 60 {
			data.Vectors[0][i] = nil // so that no two images share a label
		}
		for j := range data.Vectors[0][i] {
			data.Vectors[0][i][j] *= 1e4
		}
	}
	opt := Options{Bits: 64, Anchors: 20, Map: map[string]model.MapKind{"image": model.MapLinear}}
	r := trained(t, data, opt)
	c := r.Report.Choices["image"]
	stopIf(t, c.Unfit == "" || r.Report.Fusion.Unfit != "", "%+v, %+v", c, r.Report.Fusion)
	undecided := openSettings(opt, modalities)
	opt = need(opt.withDefaults(modalities))(t)
	cs, _ := choosersOf(t, data, opt, undecided)
	given := cs[0].given
	fused, unfit := cs[0].hold(&tuning{bench: cs[0].bench, tuned: given})
	want, ok := trialOf(cs[0], given.kind, given.width, 20).hold(cs[0].basis.y,
		r.Report.Chosen["image"].Gamma,
		len(cs[0].xs))
	if unfit != "" || !ok {
		t.Fatal(unfit, ok)
	}
	for i, v := range want.Data {
		stopIf(t, !approx(fused.held.Data[i], v, .01),
			"projections %g, want %g with gamma as the model has it", fused.held.Data[i], v)
	}
}

// TestStartsOfEmbeddedLabels: starts could only be judged by codes that are not those
// of the model, so none is chosen.
func TestStartsOfEmbeddedLabels(t *testing.T) {
	effort.LongWithRace(t)
	data := synth.ManyLabels{Items: 400, Labels: 40}.Make()
	r := trained(t, data, Options{Bits: 16, Anchors: 40,
		LabelEmbedding: true})
	failIf(t, r.Report.Start != 1 || r.Report.Embedding == nil || r.Report.Choices["image"].Unfit != "" ||
		r.Report.Chosen["image"].Width != DefaultWidth || r.Report.Chosen["text"].Width != DefaultWidth,
		"%+v", r.Report)
}
