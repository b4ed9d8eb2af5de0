package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// A kind is a way to generate pairs of a picture and a text, with labels.
type kind struct {
	name     string
	noise    float64 // the default of -noise
	generate func(items int, noise float64, seed uint64) (*synth.Data, error)
}

var kinds = []kind{
	{"nuswide", synth.DefaultNUSWideNoise, func(items int, noise float64, seed uint64) (*synth.Data, error) {
		g, err := synth.NewNUSWide(seed, noise)
		if err != nil {
			return nil, err
		}
		return g.Data(0, items), nil
	}},
	{"pairs", 1, func(items int, noise float64, seed uint64) (*synth.Data, error) {
		if !(noise > 0) {
			return nil, fmt.Errorf("-noise %g: more than 0 is possible", noise)
		}
		return synth.Pairs(synth.Config{Items: items, Classes: 24, Dims: []int{24, 16}, Noise: noise,
			Seed: seed}), nil
	}},
}

func kindOf(name string) (kind, bool) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		return kind{}, false
	}
	return kinds[i], true
}

// A set is generated from one seed: the items, and then the queries.
type set struct {
	seed   uint64
	data   *synth.Data
	items  int
	chosen fit.Options // options that the first training has chosen
}

func newSet(s settings, seed uint64) (*set, error) {
	data, err := s.kind.generate(s.items+s.queries, s.noise, seed)
	return &set{seed, data, s.items, fit.Options{Seed: seed}}, err
}

func (set *set) schema() db.Schema {
	return db.Schema{Modalities: []db.Modality{
		{Name: "image", Dim: len(set.data.Vectors[0][0])}, {Name: "text", Dim: len(set.data.Vectors[1][0])}}}
}

// item returns item i, with or without its labels.
func (set *set) item(i int, labelled bool) *db.Item {
	item := &db.Item{Key: strconv.Itoa(i), Vectors: map[string][]float32{
		"image": set.data.Vectors[0][i], "text": set.data.Vectors[1][i]}}
	if labelled {
		item.Labels = set.labels(i)
	}
	return item
}

func (set *set) labels(i int) (names []string) {
	for _, l := range set.data.Labels[i] {
		names = append(names, strconv.Itoa(int(l)))
	}
	return names
}

// evaluation returns the queries, over the items that have been seen. The program knows
// the labels of all items, whether or not the database has been told them.
func (set *set) evaluation(seen int) db.Evaluation {
	e := db.Evaluation{Queries: map[string][][]float32{
		"image": set.data.Vectors[0][set.items:], "text": set.data.Vectors[1][set.items:]}}
	for i := set.items; i < set.data.Items(); i++ {
		e.Labels = append(e.Labels, set.labels(i))
	}
	for i := range seen {
		e.Truth = append(e.Truth, set.labels(i))
	}
	return e
}
