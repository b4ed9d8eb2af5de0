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
	for range g.IntN(3) {
		add.Index = append(add.Index, pick(g, s.allFields()).Name)
	}
	if len(s.Modalities) > 0 && g.chance(2) {
		g.respace(s, add)
	}
	if g.chance(3) {
		g.spoilAlteration(s, add)
	}
	if (&collection{schema: *s}).alterable(add) == nil {
		g.schemas[name], _ = s.with(add) // the schema in an operation must not change
	}
	return op
}

// respace changes metrics and spaces.
func (g *generator) respace(s, add *Schema) {
	add.SpaceOf, add.Metrics = map[string]string{}, map[string]db.Metric{}
	all := slices.Concat(s.Modalities, add.Modalities)
	for range 1 + g.IntN(2) {
		m := pick(g, all)
		switch g.IntN(4) {
		case 0:
			add.Metrics[m.Name] = g.metric()
		case 1:
			add.SpaceOf[m.Name] = ""
		default: // mostly one that it can share a space with, of any metric
			for _, o := range all {
				if o.Name != m.Name && (o.Dim == m.Dim && o.Sparse == m.Sparse || g.chance(30)) {
					add.SpaceOf[m.Name] = o.Name
					if !g.chance(4) {
						add.Metrics[m.Name] = g.metric()
					}
				}
			}
		}
	}
}

// spoilAlteration adds something that the database refuses, and with it the whole
// alteration.
func (g *generator) spoilAlteration(s, add *Schema) {
	switch g.IntN(10) {
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
	case 7:
		add.Metrics = map[string]db.Metric{pick(g, []string{"image", "nothing"}): pick(g, []db.Metric{db.Dot, "far"})}
	case 8:
		add.Index = append(add.Index, pick(g, []string{"image", "nothing"}))
	case 9:
		add.SpaceOf = map[string]string{pick(g, []string{"image", "nothing"}): pick(g, []string{"image", "text", "nothing"})}
	}
}
