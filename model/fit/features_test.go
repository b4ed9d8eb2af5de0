package fit

import (
	"errors"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/model"
)

// TestFeaturesAreThoseOfTraining: a model maps a vector as a model trained on the
// features does, and still does so after it was stored.
func TestFeaturesAreThoseOfTraining(t *testing.T) {
	rows := positives(60)
	labels := make([][]uint32, len(rows))
	for i := range labels {
		labels[i] = []uint32{uint32(i % 3)}
	}
	modalities := modalitiesOf([]int{5})
	for kind := range model.FeaturesHellingerL2 + 1 {
		for mk := range model.MapRBFLinear + 1 {
			r := need(Train(t.Context(), modalities, &memory{vectors: [][][]float32{rows}, labels: labels},
				Options{Bits: 8, Features: map[string]model.FeatureKind{"image": kind},
					Map: map[string]model.MapKind{"image": mk}, Width: map[string]float64{"image": 1},
					Gamma: map[string]float64{"image": .01}}))(t)
			failIf(t, r.Model.FeatureKind(0) != kind || r.Model.Map(0) != mk || r.Report.Choices != nil,
				"%v, %v: %v, %v, %v", kind, mk, r.Model.FeatureKind(0), r.Model.Map(0), r.Report.Choices)
			done := make([][]float32, len(rows))
			f := model.NewFeatures(kind, momentsOf(rows))
			for i, x := range rows {
				done[i] = make([]float32, len(x))
				f.Apply(done[i], model.Dense(x))
			}
			of := need(Train(t.Context(), modalities, &memory{vectors: [][][]float32{done}, labels: labels},
				Options{Bits: 8, Features: map[string]model.FeatureKind{"image": model.FeaturesRaw},
					Map: map[string]model.MapKind{"image": mk}, Width: map[string]float64{"image": 1},
					Gamma: map[string]float64{"image": .01}}))(t)
			stored := need(model.Unmarshal(need(r.Model.MarshalBinary())(t)))(t)
			for i := range rows {
				z, want, again := make([]float64, 8), make([]float64, 8), make([]float64, 8)
				must(t, errors.Join(r.Model.NewEncoder().Project(z, 0, rows[i]),
					of.Model.NewEncoder().Project(want, 0, done[i]),
					stored.NewEncoder().Project(again, 0, rows[i])))
				stopIf(t, !slices.Equal(z, want) || !slices.Equal(z, again),
					"%v, %v: %v, %v after it was stored, want %v", kind, mk, z, again, want)
			}
		}
	}
}

func TestFeaturesNeedPositiveNumbers(t *testing.T) {
	rows := positives(60)
	rows[9][1] = -.5
	labels := make([][]uint32, len(rows))
	for i := range labels {
		labels[i] = []uint32{uint32(i % 3)}
	}
	src := &memory{vectors: [][][]float32{rows}, labels: labels}
	for _, kind := range []model.FeatureKind{model.FeaturesHellinger, model.FeaturesLog,
		model.FeaturesHellingerL2} {
		_, err := Train(t.Context(), modalitiesOf([]int{5}), src,
			Options{Features: map[string]model.FeatureKind{"image": kind}})
		failIf(t, !like(err, model.ErrOption, "-0.5"), "%v of -0.5: %v", kind, err)
	}
	r := need(Train(t.Context(), modalitiesOf([]int{5}), src, Options{}))(t)
	for _, tried := range r.Report.Choices["image"].Tried {
		switch tried.FeatureMap {
		case model.FeaturesHellinger, model.FeaturesLog, model.FeaturesHellingerL2:
			t.Errorf("tried %+v", tried)
		}
	}
}
