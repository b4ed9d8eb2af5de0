package db

import (
	"cmp"

	"github.com/fddhdb/fddhdb/model"
)

// TrainingModalities returns what fit.TrainOver takes of a schema, for those that train on items of
// several databases, or of none: the modalities that some item to learn from has, as has says of their place
// in the schema, their places, the names of the others, and the groups of those that share a space
// (fit.Options.Shared).
func TrainingModalities(s Schema, has func(modality int) bool) (modalities []model.Modality, places []int, leftOut []string, shared [][]string) {
	groups := map[string][]string{}
	var spaces []string
	for i, m := range s.Modalities {
		if !has(i) {
			leftOut = append(leftOut, m.Name)
			continue
		}
		modalities, places = append(modalities, model.Modality{Name: m.Name, Dim: m.Dim, Sparse: m.Sparse}), append(places, i)
		space := cmp.Or(m.SpaceOf, m.Name)
		if groups[space] == nil {
			spaces = append(spaces, space)
		}
		groups[space] = append(groups[space], m.Name)
	}
	for _, space := range spaces {
		if len(groups[space]) > 1 {
			shared = append(shared, groups[space])
		}
	}
	return modalities, places, leftOut, shared
}
