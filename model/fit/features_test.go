package fit

import (
	"errors"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// ofThree returns items of three classes with these vectors.
func ofThree(rows [][]float32) *synth.Data {
	d := &synth.Data{Vectors: [][][]float32{rows}}
	for i := range rows {
		d.Labels = append(d.Labels, []uint32{uint32(i % 3)})
	}
	return d
}

// TestFeaturesAreThoseOfTraining: a model maps a vector as a model trained on the
// features does, and still does so after it was stored.
func TestFeaturesAreThoseOfTraining(t *testing.T) {
	rows := positives(60)
	for kind := range model.FeaturesHellingerL2 + 1 {
		for mk := range model.MapRBFLinear + 1 {
			r := trained(t, ofThree(rows),
				Options{Bits: 8, Features: map[string]model.FeatureKind{"image": kind},
					Map: map[string]model.MapKind{"image": mk}, Width: map[string]float64{"image": 1},
					Gamma: map[string]float64{"image": .01}})
			failIf(t, r.Model.FeatureKind(0) != kind || r.Model.Map(0) != mk || r.Report.Choices != nil,
				"%v, %v: %v, %v, %v", kind, mk, r.Model.FeatureKind(0), r.Model.Map(0), r.Report.Choices)
			done := make([][]float32, len(rows))
			f := model.NewFeatures(kind, momentsOf(rows))
			for i, x := range rows {
				done[i] = make([]float32, len(x))
				f.Apply(done[i], model.Dense(x))
			}
			of := trained(t, ofThree(done),
				Options{Bits: 8, Features: map[string]model.FeatureKind{"image": model.FeaturesRaw},
					Map: map[string]model.MapKind{"image": mk}, Width: map[string]float64{"image": 1},
					Gamma: map[string]float64{"image": .01}})
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
	data := ofThree(rows)
	for _, kind := range []model.FeatureKind{model.FeaturesHellinger, model.FeaturesLog,
		model.FeaturesHellingerL2} {
		_, err := learned(t, data, Options{Features: map[string]model.FeatureKind{"image": kind}})
		failIf(t, !like(err, model.ErrOption, "-0.5"), "%v of -0.5: %v", kind, err)
	}
	r := trained(t, data, Options{})
	for _, tried := range r.Report.Choices["image"].Tried {
		switch tried.FeatureMap {
		case model.FeaturesHellinger, model.FeaturesLog, model.FeaturesHellingerL2:
			t.Errorf("tried %+v", tried)
		}
	}
}
