package metamorphic

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// A Profile says what programs Generate makes.
type Profile struct {
	Ops   int  // number of operations, roughly
	Lanes bool // often operations in several goroutines
	Bulk  bool // thousands of items at once
	Disk  bool // the database is in a folder of the operating system

	// Spaces: learned collections and their spaces, of one database and no copy.
	Spaces bool
}

// A generator draws a program. It knows what the program asks for, not what comes of
// it.
type generator struct {
	*rand.Rand
	profile Profile
	p       *Program
	schemas map[string]*Schema
	spaces  map[string][]string // names by collection
	open    []string            // names of snapshots
	backups []string
	copies  []string
	cursors []string
	due     []dueOp
	made    int    // number of names so far
	keys    int    // number of different keys
	prefix  string // prefix of the keys of a lane
	filled  bool
}

// Generate returns the program of a seed. Equal arguments give the same program.
func Generate(seed uint64, profile Profile) *Program {
	g := &generator{
		Rand: rand.New(rand.NewPCG(seed, 17)), profile: profile, p: &Program{},
		schemas: map[string]*Schema{}, spaces: map[string][]string{},
	}
	g.keys = 8 + g.IntN(60)
	g.p.Options = g.options()
	g.p.Options.Disk = profile.Disk
	for range 1 + g.IntN(3) {
		g.add(g.create())
	}
	for _, name := range g.collections() {
		op := Op{Do: "batch"}
		for range g.IntN(45) { // mostly enough items to train on
			op.Ops = append(op.Ops, Op{Do: "put", In: name, Key: g.key(), Item: g.item(name, false)})
		}
		g.add(op)
		if g.IntN(3) > 0 {
			g.add(g.train(name))
		}
		if g.schemas[name].Bits == 0 && g.chance(2) {
			g.add(g.index(name))
		}
	}
	for len(g.p.Ops) < profile.Ops {
		g.add(g.next())
	}
	return g.p
}

func (g *generator) add(op Op) {
	if op.Do != "" {
		g.p.Ops = append(g.p.Ops, op)
	}
}

func pick[T any](g *generator, from []T) T { return from[g.IntN(len(from))] }

// chance returns true once in n times.
func (g *generator) chance(n int) bool { return g.IntN(n) == 0 }

func (g *generator) name(kind string) string {
	g.made++
	return fmt.Sprint(kind, g.made)
}

func (g *generator) collections() []string {
	var all []string
	for name := range g.schemas {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// collection returns the name of a collection, seldom of one that does not exist.
func (g *generator) collection() string {
	if all := g.collections(); len(all) > 0 && !g.chance(100) {
		return pick(g, all)
	}
	return "d"
}

// learned returns the name of a learned collection, seldom of another one; "" if there
// is none.
func (g *generator) learned() string {
	all := slices.DeleteFunc(g.collections(), func(name string) bool { return g.schemas[name].Bits > 0 })
	switch {
	case g.chance(60):
		return g.collection()
	case len(all) == 0:
		return ""
	}
	return pick(g, all)
}

func (g *generator) options() Options {
	o := Options{
		NoSync:          g.chance(3),
		CacheBytes:      pick(g, []int64{0, 0, 1, 1 << 20}),
		IndexCacheBytes: pick(g, []int64{0, 0, -1, 1, 100_000}), RerankCacheBytes: pick(g, []int64{0, 0, -1, 1, 5_000}),
		KeyCacheBytes: pick(g, []int64{0, 0, 1, 2000}),
	}
	if g.chance(8) {
		o.UpdateItems = 1 + g.IntN(12)
	}
	return o
}

// life returns an operation on the whole database.
func (g *generator) life() Op {
	ops := 80
	if g.profile.Spaces {
		ops = 60
	}
	switch n := g.IntN(ops); {
	case n >= 60:
		return g.another()
	case n < 6:
		g.open = nil
		op := Op{Do: "reopen"}
		if g.chance(2) {
			o := g.options()
			op.Options = &o
		}
		return op
	case n < 12:
		g.open = nil
		op := Op{Do: "crash", Percent: pick(g, []int{0, 0, 50, 90, 100}), Seed: g.Uint64N(1 << 20)}
		if g.chance(4) {
			o := g.options()
			op.Options = &o
		}
		return op
	case n < 16:
		return Op{Do: "compact"}
	case n < 17:
		return Op{Do: "index"}
	case n < 18:
		name := g.collection()
		return Op{Do: "cancelled", In: name, Key: g.key(), Item: g.item(name, false)}
	case n < 21:
		return Op{Do: "verify"}
	case n < 28:
		return Op{Do: "check"}
	case n < 32:
		old := pick(g, someLabels)
		return Op{Do: "renamelabel", In: g.collection(), Keys: []string{old, pick(g, append([]string{"other", old}, newLabels...))}}
	case n < 40:
		if len(g.open) > 3 {
			return g.release()
		}
		op := Op{Do: "snapshot", Name: g.name("s")}
		g.open = append(g.open, op.Name)
		return op
	case n < 48:
		return g.release()
	case n < 51:
		return g.create()
	case n < 53 && len(g.schemas) > 1:
		name := pick(g, g.collections())
		delete(g.schemas, name)
		return Op{Do: "drop", In: name}
	case n < 57:
		return g.alter(g.collection())
	case n < 59:
		return Op{Do: "deletewhere", In: g.collection(), Where: g.expr(g.collection(), 2)}
	}
	return g.together()
}

func (g *generator) release() Op {
	if len(g.open) == 0 {
		return Op{}
	}
	i := g.IntN(len(g.open))
	op := Op{Do: "release", Name: g.open[i]}
	g.open = slices.Delete(g.open, i, i+1)
	return op
}

// together returns several lanes: some write, one looks, and one may learn.
func (g *generator) together() Op {
	op := Op{Do: "together"}
	if g.chance(2) {
		op.Crash, op.N, op.Percent, op.Seed = true, 1+g.IntN(8), pick(g, []int{0, 50, 100}), g.Uint64N(1<<20)
	}
	for i := range 2 + g.IntN(3) {
		g.prefix = fmt.Sprintf("lane%d-", i)
		var lane []Op
		for range 1 + g.IntN(8) {
			name := g.collection()
			change := g.change(name, false)
			switch g.IntN(9) {
			case 0, 1, 2, 3:
				change = g.batch(name, 1+g.IntN(6))
			}
			lane = append(lane, g.own(change)...)
		}
		op.Lanes = append(op.Lanes, lane)
	}
	g.prefix = ""
	var looks []Op
	for range 1 + g.IntN(4) {
		looks = append(looks, Op{Do: "look", In: g.collection(), Radius: g.IntN(6), Seed: g.Uint64N(1 << 16)})
	}
	op.Lanes = append(op.Lanes, looks)
	if name := g.learned(); g.schemas[name] != nil {
		var lane []Op
		if g.chance(4) {
			lane = append(lane, g.alter(name))
		}
		switch g.IntN(6) {
		case 0:
			t := g.train(name)
			t.Train.Cancel = 0
			lane = append(lane, t)
		case 1, 2:
			u := g.update(name)
			u.Grow, u.N = false, 0
			lane = append(lane, u)
		case 3:
			lane = append(lane, g.reindex(name))
		case 4:
			x := g.index(name)
			x.Index.Cancel = 0
			lane = append(lane, x)
		}
		others := []string{"compact", "verify", "backup", "checkpoint"}
		if g.profile.Spaces {
			others = others[:2]
		}
		last := Op{Do: pick(g, others)}
		if last.Do == "checkpoint" {
			last.Name = g.name("c")
			last.In, last.IndexOnly = g.part()
		}
		op.Lanes = append(op.Lanes, append(lane, last))
	}
	return op
}

// one returns the next operation.
func (g *generator) one() Op {
	if g.profile.Bulk && !g.filled && g.chance(max(1, g.profile.Ops/3)) {
		g.filled = true
		fill := Op{Do: "fill", In: g.collection(), Name: g.name("f"), N: pick(g, []int{1100, 1100, 1500, 8192}), Seed: g.Uint64N(1 << 20)}
		return Op{Do: "batch", Ops: []Op{fill, {Do: "mark", Name: fill.Name, Key: "filled"}}}
	}
	if g.chance(60) {
		return Op{Do: "import", In: g.collection(), Name: fmt.Sprint("i", g.IntN(2)), N: 1 + g.IntN(2), Seed: g.Uint64N(1 << 20)}
	}
	if g.profile.Spaces {
		switch n := g.IntN(15); {
		case n == 0:
			return Op{Do: "check"}
		case n < 7:
			return g.spaceOp()
		}
	}
	switch n := g.IntN(100); {
	case n < 18:
		return g.change(g.collection(), false)
	case n < 38:
		return g.batch(g.collection(), 1+g.IntN(10))
	case n < 82:
		return g.read()
	case n < 91:
		return g.spaceOp()
	case n < 93 && g.profile.Lanes:
		return g.together()
	}
	return g.life()
}
