package metamorphic

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/test/metamorphic/program"
)

func (g *generator) schema() *program.Schema {
	if !g.profile.Spaces && g.chance(2) {
		return &program.Schema{Bits: pick(g, []int{8, 16, 64, 64, 136, 256, 4096})}
	}
	s := &program.Schema{Modalities: []db.Modality{{Name: "image", Dim: 4 + g.IntN(5)}}}
	if !g.chance(6) {
		s.Modalities = append(s.Modalities, db.Modality{Name: "text", Dim: pick(g, []int{5, 40}),
			Sparse: g.chance(2)})
	}
	if g.chance(4) {
		s.Modalities = append(s.Modalities, db.Modality{Name: "sound", Dim: 3})
	}
	if g.chance(3) { // of the space of images
		s.Modalities = append(s.Modalities, db.Modality{Name: "caption", Dim: s.Modalities[0].Dim,
			SpaceOf: "image"})
	}
	for i := range s.Modalities {
		if m := &s.Modalities[i]; m.SpaceOf == "" && g.chance(3) {
			m.Metric = g.metric()
		}
	}
	return s
}

func (g *generator) metric() db.Metric { return pick(g, []db.Metric{db.Cosine, db.Dot, db.L2}) }

func (g *generator) create() program.Op {
	op := program.Op{Do: "create", In: pick(g, []string{"a", "b", "c"}), Schema: g.schema()}
	if g.schemas[op.In] == nil {
		made := newCollection(op.In, op.Schema).schema
		g.schemas[op.In], g.spaces[op.In] = &made, nil
	}
	return op
}

func (g *generator) key() string {
	switch {
	case g.chance(200):
		return strings.Repeat("k", 1+g.IntN(db.MaxKeyBytes))
	case g.chance(50):
		return "ключ " + fmt.Sprint(g.IntN(3))
	case g.chance(40):
		return fmt.Sprint(g.IntN(5)) // like an automatic key
	}
	return fmt.Sprint(g.prefix, "k", g.IntN(g.keys))
}

func (g *generator) code() *uint64 {
	x := uint64(g.IntN(1 << 16))
	if g.chance(2) {
		x &= 0x0103
	}
	return &x
}

func (g *generator) vector() uint64 {
	switch {
	case g.chance(60):
		return program.FarAway
	case g.chance(60):
		return 0
	}
	return 1 + g.Uint64N(400)
}

// item returns an item to put into a collection, or with partial to merge.
func (g *generator) item(name string, partial bool) *program.Item {
	it, s := &program.Item{}, g.schemas[name]
	if s == nil {
		return it
	}
	wants := func(n int) bool { return g.chance(n) != partial || g.chance(n) }
	class := uint64(g.IntN(program.Classes))
	if s.Bits > 0 && (!partial || !g.chance(4)) {
		it.Code = g.code()
	}
	if partial || !g.chance(12) {
		for _, m := range s.Modalities {
			if wants(5) != partial && partial || !partial && g.chance(4) {
				continue
			}
			if it.Vectors == nil {
				it.Vectors = map[string]uint64{}
			}
			it.Vectors[m.Name] = g.vector()/program.Classes*program.Classes + class
			if it.Vectors[m.Name] >= program.FarAway {
				it.Vectors[m.Name] = program.FarAway
			}
		}
	}
	it.Sparse = g.chance(4)
	if g.chance(150) {
		it.Bad = pick(g, []string{"vector", "field", "label", "modality", "name"})
	}
	switch {
	case partial && g.chance(6):
		it.Unlabel = true
	case partial && !g.chance(3):
	case g.chance(3):
	case g.chance(8):
		it.Labels = []string{pick(g, program.NewLabels)}
	default:
		it.Labels = []string{program.SomeLabels[class]}
		for _, more := range [][]string{program.SomeLabels, program.NewLabels} {
			if g.chance(6) {
				it.Labels = append(it.Labels, pick(g, more))
			}
		}
	}
	field := func(name string, values []string) {
		if g.chance(3) {
			if it.Fields == nil {
				it.Fields = map[string]string{}
			}
			it.Fields[name] = pick(g, values)
		}
	}
	field("n", program.SomeInts)
	field("x", program.SomeFloats)
	field("s", program.SomeStrings)
	field("b", []string{"true", "false"})
	field("note", []string{"", "a note"})
	for _, f := range s.Fields {
		field(f.Name, program.SomeOf[f.Type])
	}
	switch {
	case g.chance(6):
		it.Payload = strings.Repeat("p", 1+g.IntN(20))
	case g.chance(20):
		it.Unload = true
	}
	return it
}

// change returns a change to one item; with many, a change for a batch.
func (g *generator) change(name string, many bool) program.Op {
	switch n := g.IntN(10); {
	case n < 2:
		keys := []string{g.key()}
		for g.chance(3) {
			keys = append(keys, g.key())
		}
		return program.Op{Do: "delete", In: name, Keys: keys}
	case n < 4:
		op := program.Op{Do: "merge", In: name, Key: g.key(), Item: g.item(name, true)}
		if s := g.schemas[name]; many && s != nil && s.Bits > 0 && op.Item.Code == nil {
			op.Item.Code = g.code()
		}
		return op
	case n < 5 && many && g.chance(4):
		return program.Op{Do: "labels", In: name,
			Keys: []string{pick(g, program.NewLabels), pick(g, program.SomeLabels)}}
	}
	op := program.Op{Do: "put", In: name, Key: g.key(), Item: g.item(name, false)}
	if g.chance(8) {
		op.Absent = g.chance(2)
		if op.Do = "putif"; many {
			return program.Op{Do: "expect", In: name, Key: op.Key, Absent: op.Absent}
		}
		if !op.Absent {
			op.At = g.at()
		}
		return op
	}
	if g.prefix == "" && g.chance(15) {
		op.Key = "" // the key is the next number
	}
	return op
}

func (g *generator) batch(name string, n int) program.Op {
	op := program.Op{Do: "batch"}
	for range n {
		in := name
		if g.chance(10) && g.prefix == "" {
			in = g.collection() // the batch has several collections
		}
		op.Ops = append(op.Ops, g.change(in, true))
	}
	if g.prefix == "" && g.chance(3) {
		op.Ops = append(op.Ops, program.Op{Do: "mark", Name: fmt.Sprint("m", g.IntN(3)),
			Key: pick(g, []string{"", "1", "2"})})
	}
	return op
}

// own gives the changes of a lane keys of its own.
func (g *generator) own(op program.Op) []program.Op {
	if op.Do == "batch" {
		var all []program.Op
		for _, change := range op.Ops {
			all = append(all, g.own(change)...)
		}
		op.Ops = all
		return []program.Op{op}
	}
	mine := func(key string) string {
		if !strings.HasPrefix(key, g.prefix) {
			key = g.prefix + key
		}
		return key[:min(len(key), db.MaxKeyBytes)]
	}
	switch op.Do {
	case "labels":
		return nil // it has no key
	case "delete":
		for i := range op.Keys {
			op.Keys[i] = mine(op.Keys[i])
		}
	default:
		op.Key, op.At = mine(op.Key), ""
	}
	return []program.Op{op}
}

func (g *generator) expr(name string, depth int) *program.Expr {
	s := g.schemas[name]
	if depth > 0 && g.chance(2) {
		switch g.IntN(3) {
		case 0:
			return &program.Expr{Op: "not", Args: []program.Expr{*g.expr(name, depth-1)}}
		case 1:
			return &program.Expr{Op: "and",
				Args: []program.Expr{*g.expr(name, depth-1), *g.expr(name, depth-1)}}
		}
		return &program.Expr{Op: "or", Args: []program.Expr{*g.expr(name, depth-1), *g.expr(name, depth-1)}}
	}
	literal := func(field string, values []string) *program.Expr {
		e := &program.Expr{Op: pick(g, []string{"=", "!=", "<", "<=", ">", ">=", "in"}), Field: field,
			Values: []string{pick(g, values)}}
		if program.TypeOf(field) == db.Bool || field == "label" {
			e.Op = pick(g, []string{"=", "!=", "in"})
		}
		switch {
		case field != "label" && g.chance(8):
			return &program.Expr{Op: pick(g, []string{"has", "null", "not null"}), Field: field}
		case program.TypeOf(field) == db.String && field != "label" && g.chance(3):
			e.Op = pick(g, []string{"like", "ilike", "contains"})
		}
		if e.Op == "in" {
			e.Values = append(e.Values, pick(g, values))
		}
		return e
	}
	added := s != nil && len(s.Fields) > 0 && g.chance(4)
	if added || g.chance(100) { // a field that was added since, or is still missing
		f := pick(g, program.MoreFields)
		if added && !g.chance(10) {
			f = pick(g, s.Fields)
		}
		return literal(f.Name, program.SomeOf[f.Type])
	}
	switch n := g.IntN(12); {
	case n < 2 && s != nil && len(s.Modalities) > 0:
		names := []string{"label"}
		for _, m := range s.Modalities {
			names = append(names, m.Name)
		}
		return &program.Expr{Op: "has", Field: pick(g, names)}
	case n < 5:
		return literal("label", append(slices.Clone(program.SomeLabels), "unknown", "new"))
	case n < 7:
		return literal("n", append(slices.Clone(program.SomeInts), "1.5", "1e30", "-2e0"))
	case n < 9:
		return literal("x", append(slices.Clone(program.SomeFloats), "1e400", "-1"))
	case n < 10:
		return literal("s", program.SomeStrings)
	case n < 11:
		return literal("note", []string{"", "a", "a note", "Note"}) // this field is not indexed
	}
	return literal("b", []string{"true", "false"})
}

func (g *generator) query(name string) *program.Query {
	q := &program.Query{K: pick(g, []int{0, 1, 3, 10, 30, 100}), Plan: pick(g, planNames),
		Space: g.space(name)}
	s := g.schemas[name]
	if s == nil || len(s.Modalities) == 0 {
		if q.Space != "nowhere" {
			q.Space = ""
		}
		if q.Code = g.code(); g.chance(3) {
			q.Code, q.Key = nil, g.key()
		}
	} else {
		if !g.chance(5) {
			q.To = pick(g, s.Modalities).Name
		}
		switch g.IntN(5) {
		case 0:
			q.Code = g.code()
		case 1:
			if q.Key = g.key(); g.chance(2) {
				q.From = pick(g, s.Modalities).Name
			}
		default:
			v := g.vector()
			q.From, q.Vector, q.Sparse = pick(g, s.Modalities).Name, &v, g.chance(3)
		}
		q.Rerank = pick(g, []string{"", "auto", "auto", "none", "asymmetric"})
		if g.chance(12) {
			q.Recall = pick(g, []float64{.3, .8, 1})
		}
	}
	if g.chance(3) {
		q.Where = g.expr(name, 2)
	}
	if g.chance(4) {
		q.Least = pick(g, []float32{-.2, .01, .3, .9})
	}
	q.Exclude = q.Key != "" && q.K%3 == 0 // for the values 0, 3 and 30
	return q
}

// queryByVectors returns a query that is mostly answered by vectors, whatever codes there are.
func (g *generator) queryByVectors(name string) *program.Query {
	q := g.query(name)
	if s := g.schemas[name]; s == nil || len(s.Modalities) == 0 {
		return q
	}
	if q.From = g.modality(name); q.Code != nil || q.Vector != nil {
		v := g.vector()
		q.Code, q.Vector = nil, &v
	}
	if g.chance(2) {
		q.To = ""
	}
	if !g.chance(20) {
		q.Rerank = "auto"
	}
	if !g.chance(5) {
		q.Least = 0
	}
	q.K, q.Recall = pick(g, []int{1, 1, 3, 10}), pick(g, []float64{0, .3, .6, .9, .95, .99, 1})
	return q
}

// at returns the name of a snapshot to read, mostly "".
func (g *generator) at() string {
	if len(g.open) > 0 && g.chance(4) {
		return pick(g, g.open)
	}
	return ""
}

// read returns an operation that changes nothing.
func (g *generator) read() program.Op {
	name := g.collection()
	op := program.Op{In: name, At: g.at(), Query: g.query(name), Seed: g.Uint64N(1 << 20)}
	of := 36
	if s := g.schemas[name]; s != nil && s.Bits == 0 && len(g.spaces[name]) == 0 && !g.chance(5) {
		of = 14 // operations that need no codes
	}
	switch n := g.IntN(of) - 6; {
	case n < 0:
		name = g.learned()
		return program.Op{Do: "recall", In: name, At: op.At, Query: g.queryByVectors(name), Seed: op.Seed}
	case n < 4:
		return program.Op{Do: "get", In: name, At: op.At, Key: g.key()}
	case n < 8:
		return program.Op{Do: "where", In: name, At: op.At, Where: g.expr(name, 3)}
	case n < 14:
		op.Do = "search"
	case n < 18:
		op.Do, op.Radius, op.Seed = "radius", g.IntN(10), 0
	case n < 23:
		op.Do, op.N, op.Radius = "pages", 1+g.IntN(12), g.IntN(10)-3
	case n < 25:
		op.Do, op.Query, op.Seed = "searchall", nil, 0
		for range 1 + g.IntN(5) {
			op.Queries = append(op.Queries, *g.query(name))
		}
	case n < 27:
		op.Do, op.At, op.Seed, op.Name = "first", "", 0, g.name("p")
		op.Query.K = 1 + g.IntN(6)
		g.cursors = append(g.cursors, op.Name)
	default:
		if len(g.cursors) == 0 {
			return program.Op{}
		}
		return program.Op{Do: "more", Name: pick(g, g.cursors), N: 1 + g.IntN(20)}
	}
	return op
}
