package db_test

import (
	"fmt"
	"testing"

	"github.com/fddhdb/fddhdb/db"
)

func TestTrainingModalities(t *testing.T) {
	s := db.Schema{Modalities: []db.Modality{
		{Name: "image", Dim: 4}, {Name: "sound", Dim: 3}, {Name: "caption", Dim: 4, SpaceOf: "image"}, {Name: "words", Dim: 9, Sparse: true},
	}}
	modalities, places, leftOut, shared := db.TrainingModalities(s, func(i int) bool { return i != 1 })
	if got := fmt.Sprint(modalities, places, leftOut, shared); got != "[{image 4 false} {caption 4 false} {words 9 true}] [0 2 3] [sound] [[image caption]]" {
		t.Error(got)
	}
	// One that is alone in its space, as the other is left out, shares it with nobody.
	if _, _, _, shared := db.TrainingModalities(s, func(i int) bool { return i > 0 }); shared != nil {
		t.Error(shared)
	}
}
