package metamorphic

import (
	"slices"

	"github.com/fddhdb/fddhdb/db"
)

// alter returns an operation that alters a collection. It mostly adds something new, so
// that it succeeds.
func (g *generator) alter(name string) Op {
	op := Op{Do: "alter", In: name, Schema: &Schema{}}
	s, add := g.schemas[name], op.Schema
	if s == nil {
		add.Fields = append(add.Fields, pick(g, moreFields))
		return op
	}
	for _, m := range moreModalities {
		if s.Bits == 0 && !s.has(m.Name) && g.chance(3) {
			add.Modalities = append(add.Modalities, m)
		}
	}
	for _, f := range moreFields {
		if !s.hasField(f.Name) && g.chance(3) {
			add.Fields = append(add.Fields, f)
		}
	}
	if g.chance(3) {
		g.spoilAlteration(s, add)
	}
	if (&collection{schema: *s}).alterable(add) == nil {
		altered := *s // the schema in an operation must not change
		altered.Modalities, altered.Fields = slices.Concat(s.Modalities, add.Modalities), slices.Concat(s.Fields, add.Fields)
		g.schemas[name] = &altered
	}
	return op
}

// spoilAlteration adds something that the database refuses, and with it the whole
// alteration.
func (g *generator) spoilAlteration(s, add *Schema) {
	switch g.IntN(7) {
	case 0:
		add.Modalities = append(add.Modalities, db.Modality{Name: "flat"}) // refused without dimensions, and in a collection of given codes
	case 1:
		add.Modalities = append(add.Modalities, db.Modality{Name: "deep", Dim: db.MaxDim + 1})
	case 2:
		add.Fields = append(add.Fields, db.Field{Name: "when", Type: "date"})
	case 3:
		add.Fields = append(add.Fields, pick(g, s.allFields()))
	case 4:
		if len(s.Modalities) > 0 {
			add.Fields = append(add.Fields, db.Field{Name: s.Modalities[0].Name, Type: db.Int})
		}
	case 5:
		add.Fields = append(add.Fields, moreFields[0], moreFields[0])
	case 6:
		*add = Schema{}
	}
}
