package metamorphic

import "slices"

func (g *generator) space(name string) string {
	all := g.spaces[name]
	switch {
	case g.chance(2) || len(all) == 0:
		return ""
	case g.chance(15):
		return "nowhere"
	}
	return pick(g, all)
}

// named returns the name of a space that was asked for, if there is one.
func (g *generator) named(name string) string {
	if all := g.spaces[name]; len(all) > 0 && !g.chance(15) {
		return pick(g, all)
	}
	return g.space(name)
}

func (g *generator) train(name string) Op {
	t := &Training{
		Bits: pick(g, []int{8, 16, 16, 24}), Anchors: pick(g, []int{4, 6}), Seed: g.Uint64N(4),
		Joint: g.chance(5), Linear: g.chance(6), Choose: g.chance(8), Activate: g.chance(2),
	}
	t.Free = t.Seed == 3
	if g.chance(4) {
		t.Rows = 15 + g.IntN(20)
	}
	if g.chance(10) {
		t.Cancel = 1 + g.IntN(6)
	}
	op := Op{Do: "train", In: name, Name: g.name("t"), Train: t}
	g.spaces[name] = append(g.spaces[name], op.Name)
	return op
}

func (g *generator) update(name string) Op {
	op := Op{Do: "update", In: name, Space: g.space(name), Teacher: pick(g, []string{"", "labels", "modality", "self"}), Grow: g.chance(3)}
	if g.profile.Spaces && !op.Grow && g.chance(6) { // one that grows labels has made a revision before
		op.N = 1 + g.IntN(4)
	}
	return op
}

// index returns an operation that makes an index of vectors.
func (g *generator) index(name string) Op {
	x := &Index{Modality: g.modality(name), Recall: pick(g, []float64{0, .5, .8, .95, 1}), Cells: pick(g, []int{0, 0, 1, 4}), Seed: g.Uint64N(4)}
	if g.chance(10) {
		x.Cancel = 1 + g.IntN(3)
	}
	return Op{Do: "indexvectors", In: name, Index: x}
}

// modality returns the name of a modality, mostly of a dense one; seldom none, or one that does not exist.
func (g *generator) modality(name string) string {
	var all []string
	if s := g.schemas[name]; s != nil {
		for _, m := range s.Modalities {
			if !m.Sparse || g.chance(8) {
				all = append(all, m.Name)
			}
		}
	}
	switch {
	case len(all) == 0 || g.chance(30):
		return ""
	case g.chance(60):
		return "nowhere"
	}
	return pick(g, all)
}

func (g *generator) reindex(name string) Op {
	op := Op{Do: "reindex", In: name, Space: g.space(name), Pinned: g.chance(2)}
	op.Name = g.name("r")
	g.spaces[name] = append(g.spaces[name], op.Name)
	return op
}

// spaceOp returns an operation on code spaces, or on indexes of vectors.
func (g *generator) spaceOp() Op {
	name := g.learned()
	if g.schemas[name] == nil {
		return Op{}
	}
	switch n := g.IntN(26); {
	case n < 5:
		return g.train(name)
	case n < 10:
		return g.update(name)
	case n < 12:
		return g.reindex(name)
	case n < 14:
		return Op{Do: "activate", In: name, Space: g.named(name)}
	case n < 15:
		return Op{Do: "rollback", In: name}
	case n < 17:
		op := Op{Do: "dropspace", In: name, Space: g.named(name)}
		g.spaces[name] = slices.DeleteFunc(g.spaces[name], func(space string) bool { return space == op.Space })
		return op
	case n < 18:
		return Op{Do: "pin", In: name, Space: g.space(name), Back: g.IntN(10), Pinned: g.chance(2)}
	case n < 20:
		return Op{Do: "restorerevision", In: name, Space: g.space(name), Back: g.IntN(4)}
	case n < 21:
		return Op{Do: "dropindex", In: name, Index: &Index{Modality: g.modality(name)}}
	}
	return g.index(name)
}
