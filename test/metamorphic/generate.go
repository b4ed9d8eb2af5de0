package metamorphic

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/test/metamorphic/program"
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
	p       *program.Program
	schemas map[string]*program.Schema
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
func Generate(seed uint64, profile Profile) *program.Program {
	g := &generator{
		Rand: rand.New(rand.NewPCG(seed, 17)), profile: profile, p: &program.Program{},
		schemas: map[string]*program.Schema{}, spaces: map[string][]string{},
	}
	g.keys = 8 + g.IntN(60)
	g.p.Options = g.options()
	g.p.Options.Disk = profile.Disk
	for range 1 + g.IntN(3) {
		g.add(g.create())
	}
	for _, name := range g.collections() {
		op := program.Op{Do: "batch"}
		for range g.IntN(45) { // mostly enough items to train on
			op.Ops = append(op.Ops, program.Op{Do: "put", In: name, Key: g.key(), Item: g.item(name, false)})
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

func (g *generator) add(op program.Op) {
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

func (g *generator) options() program.Options {
	o := program.Options{
		NoSync:           g.chance(3),
		CacheBytes:       pick(g, []int64{0, 0, 1, 1 << 20}),
		IndexCacheBytes:  pick(g, []int64{0, 0, -1, 1, 100_000}),
		RerankCacheBytes: pick(g, []int64{0, 0, -1, 1, 5_000}),
		KeyCacheBytes:    pick(g, []int64{0, 0, 1, 2000}),
	}
	if g.chance(8) {
		o.UpdateItems = 1 + g.IntN(12)
	}
	return o
}

// life returns an operation on the whole database.
func (g *generator) life() program.Op {
	ops := 80
	if g.profile.Spaces {
		ops = 60
	}
	switch n := g.IntN(ops); {
	case n >= 60:
		return g.another()
	case n < 6:
		g.open = nil
		op := program.Op{Do: "reopen"}
		if g.chance(2) {
			o := g.options()
			op.Options = &o
		}
		return op
	case n < 12:
		g.open = nil
		op := program.Op{Do: "crash", Percent: pick(g, []int{0, 0, 50, 90, 100}), Seed: g.Uint64N(1 << 20)}
		if g.chance(4) {
			o := g.options()
			op.Options = &o
		}
		return op
	case n < 16:
		return program.Op{Do: "compact"}
	case n < 17:
		return program.Op{Do: "index"}
	case n < 18:
		name := g.collection()
		return program.Op{Do: "cancelled", In: name, Key: g.key(), Item: g.item(name, false)}
	case n < 21:
		return program.Op{Do: "verify"}
	case n < 28:
		return program.Op{Do: "check"}
	case n < 32:
		old := pick(g, program.SomeLabels)
		return program.Op{Do: "renamelabel", In: g.collection(),
			Keys: []string{old, pick(g, append([]string{"other", old}, program.NewLabels...))}}
	case n < 40:
		if len(g.open) > 3 {
			return g.release()
		}
		op := program.Op{Do: "snapshot", Name: g.name("s")}
		g.open = append(g.open, op.Name)
		return op
	case n < 48:
		return g.release()
	case n < 51:
		return g.create()
	case n < 53 && len(g.schemas) > 1:
		name := pick(g, g.collections())
		delete(g.schemas, name)
		return program.Op{Do: "drop", In: name}
	case n < 57:
		return g.alter(g.collection())
	case n < 59:
		return program.Op{Do: "deletewhere", In: g.collection(), Where: g.expr(g.collection(), 2)}
	}
	return g.together()
}

func (g *generator) release() program.Op {
	if len(g.open) == 0 {
		return program.Op{}
	}
	i := g.IntN(len(g.open))
	op := program.Op{Do: "release", Name: g.open[i]}
	g.open = slices.Delete(g.open, i, i+1)
	return op
}

// together returns several lanes: some write, one looks, and one may learn.
func (g *generator) together() program.Op {
	op := program.Op{Do: "together"}
	if g.chance(2) {
		op.Crash, op.N, op.Percent, op.Seed = true, 1+g.IntN(8), pick(g, []int{0, 50, 100}), g.Uint64N(1<<20)
	}
	for i := range 2 + g.IntN(3) {
		g.prefix = fmt.Sprintf("lane%d-", i)
		var lane []program.Op
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
	var looks []program.Op
	for range 1 + g.IntN(4) {
		looks = append(looks, program.Op{Do: "look", In: g.collection(), Radius: g.IntN(6),
			Seed: g.Uint64N(1 << 16)})
	}
	op.Lanes = append(op.Lanes, looks)
	if name := g.learned(); g.schemas[name] != nil {
		var lane []program.Op
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
		last := program.Op{Do: pick(g, others)}
		if last.Do == "checkpoint" {
			last.Name = g.name("c")
			last.In, last.IndexOnly = g.part()
		}
		op.Lanes = append(op.Lanes, append(lane, last))
	}
	return op
}

// one returns the next operation.
func (g *generator) one() program.Op {
	if g.profile.Bulk && !g.filled && g.chance(max(1, g.profile.Ops/3)) {
		g.filled = true
		fill := program.Op{Do: "fill", In: g.collection(), Name: g.name("f"),
			N: pick(g, []int{1100, 1100, 1500, 8192}), Seed: g.Uint64N(1 << 20)}
		return program.Op{Do: "batch", Ops: []program.Op{fill, {Do: "mark", Name: fill.Name, Key: "filled"}}}
	}
	if g.chance(60) {
		return program.Op{Do: "import", In: g.collection(), Name: fmt.Sprint("i", g.IntN(2)),
			N:    1 + g.IntN(2),
			Seed: g.Uint64N(1 << 20)}
	}
	if g.profile.Spaces {
		switch n := g.IntN(15); {
		case n == 0:
			return program.Op{Do: "check"}
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

// alter returns an operation that alters a collection. It mostly adds something new, so
// that it succeeds.
func (g *generator) alter(name string) program.Op {
	op := program.Op{Do: "alter", In: name, Schema: &program.Schema{}}
	s, add := g.schemas[name], op.Schema
	if s == nil {
		add.Fields = append(add.Fields, pick(g, program.MoreFields))
		return op
	}
	for _, m := range program.MoreModalities {
		if s.Bits == 0 && !s.Has(m.Name) && g.chance(3) {
			add.Modalities = append(add.Modalities, m)
		}
	}
	for _, f := range program.MoreFields {
		if !s.HasField(f.Name) && g.chance(3) {
			add.Fields = append(add.Fields, f)
		}
	}
	for range g.IntN(3) {
		add.Index = append(add.Index, pick(g, s.AllFields()).Name)
	}
	if g.chance(2) {
		if f := pick(g, s.AllFields()); f.Type == db.String {
			add.Words = append(add.Words, f.Name)
		}
	}
	if len(s.Modalities) > 0 && g.chance(2) {
		g.respace(s, add)
	}
	if g.chance(3) {
		g.spoilAlteration(s, add)
	}
	if (&collection{schema: *s}).alterable(add) == nil {
		g.schemas[name], _ = withMore(s, add) // the schema in an operation must not change
	}
	return op
}

// respace changes metrics and spaces.
func (g *generator) respace(s, add *program.Schema) {
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
func (g *generator) spoilAlteration(s, add *program.Schema) {
	switch g.IntN(10) {
	case 0:
		// refused without dimensions, and in a collection of given codes
		add.Modalities = append(add.Modalities, db.Modality{Name: "flat"})
	case 1:
		add.Modalities = append(add.Modalities, db.Modality{Name: "deep", Dim: db.MaxDim + 1})
	case 2:
		add.Fields = append(add.Fields, db.Field{Name: "when", Type: "date"})
	case 3:
		add.Fields = append(add.Fields, pick(g, s.AllFields()))
	case 4:
		if len(s.Modalities) > 0 {
			add.Fields = append(add.Fields, db.Field{Name: s.Modalities[0].Name, Type: db.Int})
		}
	case 5:
		add.Fields = append(add.Fields, program.MoreFields[0], program.MoreFields[0])
	case 6:
		*add = program.Schema{}
	case 7:
		add.Metrics = map[string]db.Metric{pick(g, []string{"image", "nothing"}): pick(g, []db.Metric{db.Dot,
			"far"})}
	case 8:
		add.Index = append(add.Index, pick(g, []string{"image", "nothing"}))
		add.Words = append(add.Words, pick(g, []string{"n", "nothing", "note"}))
	case 9:
		add.SpaceOf = map[string]string{pick(g, []string{"image", "nothing"}): pick(g, []string{"image",
			"text", "nothing"})}
	}
}

// A dueOp is an operation that comes once the program has so many operations.
type dueOp struct {
	at int
	op program.Op
}

// later makes op one of the next n operations.
func (g *generator) later(n int, op program.Op) {
	g.due = append(g.due, dueOp{len(g.p.Ops) + 2 + g.IntN(n), op})
}

// next returns an operation that is due, or else a random one.
func (g *generator) next() program.Op {
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
func (g *generator) another() program.Op {
	switch n := g.IntN(18); {
	case n < 7:
		return g.backup()
	case n < 12:
		return g.checkpoint()
	case n < 15:
		return g.readOnly()
	}
	g.open = nil
	return program.Op{
		Do: "repair", Damage: pick(g, slices.Sorted(maps.Keys(damages))), Seed: g.Uint64N(1 << 20),
		Percent: pick(g, []int{5, 50, 100}),
		Pinned:  g.chance(2), Crash: g.chance(3),
	}
}

// backup returns an operation on backups.
func (g *generator) backup() program.Op {
	switch n := g.IntN(10); {
	case n < 4 || len(g.backups) == 0:
		op := program.Op{Do: "backup", Name: g.name("b"), Seed: g.Uint64N(2)}
		op.In, op.IndexOnly = g.part()
		g.backups = append(g.backups, op.Name)
		return op
	case n < 7:
		op := program.Op{Do: "restore", Name: pick(g, g.backups), Pinned: g.chance(2), Seed: g.Uint64N(4)}
		if op.Pinned {
			g.open = nil
			if !g.chance(4) { // the backup may hold only a part: the history mostly goes back later
				op.Keep = g.name("c")
				g.later(20, program.Op{Do: "switch", Name: op.Keep})
			}
		}
		return op
	}
	return program.Op{Do: "prune", N: g.IntN(4)}
}

// checkpoint returns an operation on copies.
func (g *generator) checkpoint() program.Op {
	if n := g.IntN(5); len(g.copies) > 0 && n < 3 {
		i := g.IntN(len(g.copies))
		op := program.Op{Do: "switch", Name: g.copies[i]}
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
	op := program.Op{Do: "checkpoint", Name: g.name("c"), Seed: g.Uint64N(4)}
	op.In, op.IndexOnly = g.part()
	g.copies = append(g.copies, op.Name)
	return op
}

// readOnly returns an operation that opens the database read-only for a while, perhaps
// as a crash has left it.
func (g *generator) readOnly() program.Op {
	g.open = nil
	o := g.options()
	o.ReadOnly = true
	op := program.Op{Do: "reopen", Options: &o}
	if g.chance(2) {
		op.Do, op.Percent, op.Seed = "crash", pick(g, []int{0, 50, 100}), g.Uint64N(1<<20)
	}
	back := g.options()
	g.later(12, program.Op{Do: "reopen", Options: &back})
	return op
}

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

func (g *generator) train(name string) program.Op {
	t := &program.Training{
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
	op := program.Op{Do: "train", In: name, Name: g.name("t"), Train: t}
	g.spaces[name] = append(g.spaces[name], op.Name)
	return op
}

func (g *generator) update(name string) program.Op {
	op := program.Op{Do: "update", In: name, Space: g.space(name),
		Teacher: pick(g, []string{"", "labels", "modality", "self"}), Grow: g.chance(3)}
	if g.profile.Spaces && !op.Grow && g.chance(6) { // one that grows labels has made a revision before
		op.N = 1 + g.IntN(4)
	}
	return op
}

// index returns an operation that makes an index of vectors.
func (g *generator) index(name string) program.Op {
	x := &program.Index{Modality: g.modality(name), Recall: pick(g, []float64{0, .5, .8, .95, 1}),
		Cells: pick(g, []int{0, 0, 1, 4}), Seed: g.Uint64N(4)}
	if g.chance(10) {
		x.Cancel = 1 + g.IntN(3)
	}
	return program.Op{Do: "indexvectors", In: name, Index: x}
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

func (g *generator) reindex(name string) program.Op {
	op := program.Op{Do: "reindex", In: name, Space: g.space(name), Pinned: g.chance(2)}
	op.Name = g.name("r")
	g.spaces[name] = append(g.spaces[name], op.Name)
	return op
}

// spaceOp returns an operation on code spaces, or on indexes of vectors.
func (g *generator) spaceOp() program.Op {
	name := g.learned()
	if g.schemas[name] == nil {
		return program.Op{}
	}
	switch n := g.IntN(26); {
	case n < 5:
		return g.train(name)
	case n < 10:
		return g.update(name)
	case n < 12:
		return g.reindex(name)
	case n < 14:
		return program.Op{Do: "activate", In: name, Space: g.named(name)}
	case n < 16:
		return program.Op{Do: "rollback", In: name}
	case n < 18:
		op := program.Op{Do: "dropspace", In: name, Space: g.named(name)}
		g.spaces[name] = slices.DeleteFunc(g.spaces[name],
			func(space string) bool { return space == op.Space })
		return op
	case n < 20:
		return program.Op{Do: "restorerevision", In: name, Space: g.space(name), Back: g.IntN(4)}
	case n < 21:
		return program.Op{Do: "dropindex", In: name, Index: &program.Index{Modality: g.modality(name)}}
	}
	return g.index(name)
}
