package db_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/model"
)

// The schema of a history grows, also while batches are being filled, spaces are trained
// and built, and snapshots look at what was there before.

// added returns the modalities and fields that have been added to the schema.
func (h *history) added() ([]db.Modality, []db.Field) {
	return h.schema.Modalities[len(dbkit.PairsSchema.Modalities):], h.schema.Fields[len(dbkit.PairsSchema.Fields):]
}

// addTo gives an item some of what has been added, in maps of its own.
func (h *history) addTo(it *db.Item) {
	modalities, fields := h.added()
	it.Vectors, it.Fields = maps.Clone(it.Vectors), maps.Clone(it.Fields)
	for _, m := range modalities {
		if h.r.IntN(2) == 0 {
			continue
		}
		if it.Vectors == nil {
			it.Vectors = map[string][]float32{}
		}
		x := make([]float32, m.Dim)
		for j := range x {
			x[j] = float32(h.r.NormFloat64())
		}
		it.Vectors[m.Name] = x
	}
	for _, f := range fields {
		if h.r.IntN(2) == 0 {
			continue
		}
		if it.Fields == nil {
			it.Fields = map[string]any{}
		}
		it.Fields[f.Name] = h.r.IntN(4)
	}
}

// alter adds modalities and fields, or what cannot be added.
func (h *history) alter() string {
	var a db.Alteration
	want := error(nil)
	switch modalities, fields := h.added(); h.r.IntN(6) {
	case 0:
		a.AddFields, want = []db.Field{{Name: "new", Type: db.Int}, {Name: "text", Type: db.Int}}, db.ErrExists
	case 1:
		a.AddModalities, want = []db.Modality{{Name: "m", Dim: 3}, {Name: "m", Dim: 4}}, db.ErrInvalid
	default:
		if len(modalities) < 3 && h.r.IntN(2) == 0 {
			a.AddModalities = []db.Modality{{Name: fmt.Sprint("added", len(modalities)), Dim: 2 + len(modalities)}}
		}
		if len(fields) < 5 {
			a.AddFields = []db.Field{{Name: fmt.Sprint("field", len(fields)), Type: db.Int, Indexed: len(fields)%2 == 0}}
		}
		if len(a.AddModalities)+len(a.AddFields) == 0 {
			want = db.ErrInvalid
		}
	}
	err := h.c.Alter(ctx, a)
	what := fmt.Sprintf("alter %+v, %v", a, err)
	if !errors.Is(err, want) || want == nil && err != nil {
		h.Fatal(what)
	}
	if want == nil {
		h.schema.Modalities = slices.Concat(h.schema.Modalities, a.AddModalities)
		h.schema.Fields = slices.Concat(h.schema.Fields, a.AddFields)
	}
	return what
}

// training is tinyTraining that does not try maps for what has been added, of which there
// may be little.
func (h *history) training(views model.Views) db.TrainOptions {
	opt := dbkit.TinyTraining(uint64(h.r.IntN(4)), views)
	modalities, _ := h.added()
	for _, m := range modalities {
		for _, it := range h.o.items {
			if it.Vectors[m.Name] != nil && len(it.Labels) > 0 {
				opt.Map[m.Name], opt.Anchors = model.MapRBF, 2
			}
		}
	}
	return opt
}

// checkSchema compares the schema, and what filters find by what has been added.
func (h *history) checkSchema(c *db.Collection, want db.Schema, o *oracle) {
	schema, err := c.Schema()
	if h.must(err); gocmp.Diff(want, schema, cmpopts.EquateEmpty()) != "" {
		h.Fatal("schema: ", gocmp.Diff(want, schema, cmpopts.EquateEmpty()))
	}
	count := func(where string, match func(*db.Item) bool) {
		items := 0
		for _, it := range o.items {
			if match(it) {
				items++
			}
		}
		if n, err := c.CountWhere(ctx, where); err != nil || n != items {
			h.Fatal(fmt.Sprintf("%s: %d items, not %d, %v", where, n, items, err))
		}
	}
	for _, m := range want.Modalities {
		count("has("+m.Name+")", func(it *db.Item) bool { return it.Vectors[m.Name] != nil })
	}
	for _, f := range want.Fields {
		if f.Indexed && f.Name != "year" {
			count(f.Name+" >= 2", func(it *db.Item) bool { x, has := it.Fields[f.Name]; return has && x.(int) >= 2 })
		}
	}
}
