package metamorphic

import (
	"maps"
	"slices"
)

// A dueOp is an operation that comes once the program has so many operations.
type dueOp struct {
	at int
	op Op
}

// later makes op one of the next n operations.
func (g *generator) later(n int, op Op) {
	g.due = append(g.due, dueOp{len(g.p.Ops) + 2 + g.IntN(n), op})
}

// next returns an operation that is due, or else a random one.
func (g *generator) next() Op {
	i := slices.IndexFunc(g.due, func(d dueOp) bool { return d.at <= len(g.p.Ops) })
	if i < 0 {
		return g.one()
	}
	op := g.due[i].op
	g.due = slices.Delete(g.due, i, i+1)
	g.open = nil // closing the database closes them
	return op
}

// part returns which part of the database a copy holds: mostly everything.
func (g *generator) part() (only string, indexOnly bool) {
	if g.chance(3) {
		only = g.collection()
	}
	return only, g.chance(2)
}

// another returns an operation that makes another database of this one.
func (g *generator) another() Op {
	switch n := g.IntN(18); {
	case n < 7:
		return g.backup()
	case n < 12:
		return g.checkpoint()
	case n < 15:
		return g.readOnly()
	}
	g.open = nil
	return Op{
		Do: "repair", Damage: pick(g, slices.Sorted(maps.Keys(damages))), Seed: g.Uint64N(1 << 20), Percent: pick(g, []int{5, 50, 100}),
		Pinned: g.chance(2), Crash: g.chance(3),
	}
}

// backup returns an operation on backups.
func (g *generator) backup() Op {
	switch n := g.IntN(10); {
	case n < 4 || len(g.backups) == 0:
		op := Op{Do: "backup", Name: g.name("b"), Seed: g.Uint64N(2)}
		op.In, op.IndexOnly = g.part()
		g.backups = append(g.backups, op.Name)
		return op
	case n < 7:
		op := Op{Do: "restore", Name: pick(g, g.backups), Pinned: g.chance(2), Seed: g.Uint64N(4)}
		if op.Pinned {
			g.open = nil
			if !g.chance(4) { // the backup may hold only a part: the history mostly goes back later
				op.Keep = g.name("c")
				g.later(20, Op{Do: "switch", Name: op.Keep})
			}
		}
		return op
	}
	return Op{Do: "prune", N: g.IntN(4)}
}

// checkpoint returns an operation on copies.
func (g *generator) checkpoint() Op {
	if n := g.IntN(5); len(g.copies) > 0 && n < 3 {
		i := g.IntN(len(g.copies))
		op := Op{Do: "switch", Name: g.copies[i]}
		if len(g.copies) > 2 || n < 2 {
			op.Do, g.copies = "discard", slices.Delete(g.copies, i, i+1)
			return op
		}
		g.open = nil
		if !g.chance(4) {
			g.later(20, op) // goes back later
		}
		return op
	}
	op := Op{Do: "checkpoint", Name: g.name("c"), Seed: g.Uint64N(4)}
	op.In, op.IndexOnly = g.part()
	g.copies = append(g.copies, op.Name)
	return op
}

// readOnly returns an operation that opens the database read-only for a while, perhaps
// as a crash has left it.
func (g *generator) readOnly() Op {
	g.open = nil
	o := g.options()
	o.ReadOnly = true
	op := Op{Do: "reopen", Options: &o}
	if g.chance(2) {
		op.Do, op.Percent, op.Seed = "crash", pick(g, []int{0, 50, 100}), g.Uint64N(1<<20)
	}
	back := g.options()
	g.later(12, Op{Do: "reopen", Options: &back})
	return op
}
