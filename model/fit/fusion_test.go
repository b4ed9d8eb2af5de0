package fit

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/model"
	"gonum.org/v1/gonum/floats"
)

func TestFusionTexts(t *testing.T) {
	for _, s := range []string{"auto", "sum", "image"} {
		f, err := ParseFusion(s)
		failIf(t, err != nil || f.String() != s, "%q: %v, %v", s, f, err)
	}
	errorIs(t, errOf(ParseFusion("")), model.ErrOption)
}

func TestGivenFusions(t *testing.T) {
	src := made(60, 3, func(rng *rand.Rand, class int) []float32 {
		return []float32{float32(class),
			rng.Float32(), 1}
	})
	src.Vectors = append(src.Vectors,
		made(60, 3, func(rng *rand.Rand, class int) []float32 {
			return []float32{float32(class),
				rng.Float32()}
		}).Vectors[0])
	for _, c := range []struct {
		fusion  string
		weights []float64
	}{
		{"sum", []float64{1, 1}},
		{"text", []float64{0, 1}},
		{"image", []float64{1, 0}},
	} {
		f := need(ParseFusion(c.fusion))(t)
		r := trained(t, src, Options{Bits: 8, Fusion: f})
		want, reported := c.weights, r.Report.Fusion
		got := r.Model.Weights()
		failIf(t, !slices.Equal(got, want) || floats.Norm(r.Model.Parts().Mean, 1) != 0 ||
			reported.Weights["image"] != want[0] || reported.Weights["text"] != want[1] ||
			len(reported.Directions) > 0, "%v: weights %v, want %v; reported %+v", f, got, want, reported)
	}
	var modality *model.ModalityError
	_, err := learned(t, src, Options{Fusion: Fusion{FusionModality, "sound"}})
	failIf(t, !errors.As(err, &modality) || modality.Modality != "sound", "an unknown modality: %v", err)
	errorIs(t, errOf(learned(t, src, Options{Fusion: Fusion{Rule: 9}})),
		model.ErrOption)
}
