package metamorphic

// importing returns an operation on staged imports: it begins, continues, commits,
// closes, discards or removes them.
func (g *generator) importing() Op {
	n := g.IntN(24)
	if len(g.imports) == 0 && n > 3 {
		n = 0
	}
	switch {
	case n < 4 && len(g.imports) < 4:
		op := Op{Do: "import", In: g.collection(), Name: g.name("i")}
		if g.chance(4) {
			op.Name = "the same" // imports into several collections may share a name
		}
		g.imports = append(g.imports, op)
		if g.chance(3) {
			op.Ops = append(op.Ops, Op{Do: "labels", Keys: []string{pick(g, newLabels), pick(g, someLabels)}})
		}
		return g.stage(op)
	case n < 6:
		return g.importAll(g.collection())
	case n < 13 && len(g.imports) > 0:
		return g.stage(pick(g, g.imports))
	case n < 14:
		return Op{Do: "importremove", Pinned: g.chance(2)}
	case len(g.imports) == 0:
		return Op{}
	}
	i := g.IntN(len(g.imports))
	op := g.imports[i]
	switch {
	case n < 16:
		op.Do = "importclose"
	case n < 17:
		op.Do = "importdiscard"
	default:
		op.Do = "importcommit"
		if g.chance(6) {
			op.Import = &Import{Cancel: true}
		}
		if op.Crash = g.chance(4); op.Crash {
			op.N, op.Percent, op.Seed = g.IntN(pick(g, []int{10, 40, 120})), pick(g, []int{0, 0, 50, 100}), g.Uint64N(1<<20)
			g.open = nil
			return op // it may have to be continued
		}
	}
	if op.Do != "importclose" && !g.chance(4) { // seldom an import begins again under the same name
		g.imports = append(g.imports[:i:i], g.imports[i+1:]...)
	}
	return op
}

// stage adds what is put into an import.
func (g *generator) stage(op Op) Op {
	for range g.IntN(12) {
		op.Ops = append(op.Ops, g.row(op.In))
	}
	if g.chance(25) { // thousands of rows
		op.Ops = append(op.Ops, Op{Do: "skip", Key: long, N: 4200}, g.row(op.In))
	}
	if g.chance(8) {
		op.Import = &Import{Restart: g.chance(2), InParts: g.chance(2)}
	}
	if g.chance(7) { // it is interrupted afterwards
		o := g.options()
		end := Op{Do: "reopen", Options: &o}
		if !g.chance(3) {
			end = Op{Do: "crash", Percent: pick(g, []int{0, 0, 50, 90, 100}), Seed: g.Uint64N(1 << 20)}
		}
		g.later(6, end)
	}
	return op
}

// row returns a row of an import: mostly an item, with one of few keys.
func (g *generator) row(name string) Op {
	switch {
	case g.chance(8):
		return Op{Do: "skip", Key: pick(g, []string{"", "no number", "zwei\nZeilen"})}
	case g.chance(5):
		return Op{Do: "put", Item: g.item(name, false)} // the key is the next number
	}
	return Op{Do: "put", Key: g.key(), Item: g.item(name, false)}
}

// importAll returns an operation that imports some items at once.
func (g *generator) importAll(name string) Op {
	op := Op{Do: "importall", In: name, Name: g.name("i")}
	for range 1 + g.IntN(8) {
		op.Ops = append(op.Ops, Op{Do: "put", Key: g.key(), Item: g.item(name, false)})
	}
	if g.chance(4) {
		op.Import = &Import{InParts: true}
	}
	return op
}
