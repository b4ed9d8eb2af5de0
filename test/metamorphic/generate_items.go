package metamorphic

import (
	"fmt"
	"strings"

	"github.com/fddhdb/fddhdb/db"
)

func (g *generator) schema() *Schema {
	if !g.profile.Spaces && g.chance(2) {
		return &Schema{Bits: pick(g, []int{8, 16, 64, 64, 136, 256, 4096})}
	}
	s := &Schema{Modalities: []db.Modality{{Name: "image", Dim: 4 + g.IntN(5)}}}
	if !g.chance(6) {
		s.Modalities = append(s.Modalities, db.Modality{Name: "text", Dim: pick(g, []int{5, 40}), Sparse: g.chance(2)})
	}
	if g.chance(4) {
		s.Modalities = append(s.Modalities, db.Modality{Name: "sound", Dim: 3})
	}
	if g.chance(3) { // of the space of images
		s.Modalities = append(s.Modalities, db.Modality{Name: "caption", Dim: s.Modalities[0].Dim, SpaceOf: "image"})
	}
	for i := range s.Modalities {
		if m := &s.Modalities[i]; m.SpaceOf == "" && g.chance(3) {
			m.Metric = g.metric()
		}
	}
	return s
}

func (g *generator) metric() db.Metric { return pick(g, []db.Metric{db.Cosine, db.Dot, db.L2}) }

func (g *generator) create() Op {
	op := Op{Do: "create", In: pick(g, []string{"a", "b", "c"}), Schema: g.schema()}
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
		return farAway
	case g.chance(60):
		return 0
	}
	return 1 + g.Uint64N(400)
}

// item returns an item to put into a collection, or with partial to merge.
func (g *generator) item(name string, partial bool) *Item {
	it, s := &Item{}, g.schemas[name]
	if s == nil {
		return it
	}
	wants := func(n int) bool { return g.chance(n) != partial || g.chance(n) }
	class := uint64(g.IntN(classes))
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
			if it.Vectors[m.Name] = g.vector()/classes*classes + class; it.Vectors[m.Name] >= farAway {
				it.Vectors[m.Name] = farAway
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
		it.Labels = []string{pick(g, newLabels)}
	default:
		it.Labels = []string{someLabels[class]}
		for _, more := range [][]string{someLabels, newLabels} {
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
	field("n", someInts)
	field("x", someFloats)
	field("s", someStrings)
	field("b", []string{"true", "false"})
	field("note", []string{"", "a note"})
	for _, f := range s.Fields {
		field(f.Name, someOf[f.Type])
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
func (g *generator) change(name string, many bool) Op {
	switch n := g.IntN(10); {
	case n < 2:
		keys := []string{g.key()}
		for g.chance(3) {
			keys = append(keys, g.key())
		}
		return Op{Do: "delete", In: name, Keys: keys}
	case n < 4:
		op := Op{Do: "merge", In: name, Key: g.key(), Item: g.item(name, true)}
		if s := g.schemas[name]; many && s != nil && s.Bits > 0 && op.Item.Code == nil {
			op.Item.Code = g.code()
		}
		return op
	case n < 5 && many && g.chance(4):
		return Op{Do: "labels", In: name, Keys: []string{pick(g, newLabels), pick(g, someLabels)}}
	}
	op := Op{Do: "put", In: name, Key: g.key(), Item: g.item(name, false)}
	if g.chance(8) {
		op.Absent = g.chance(2)
		if op.Do = "putif"; many {
			return Op{Do: "expect", In: name, Key: op.Key, Absent: op.Absent}
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

func (g *generator) batch(name string, n int) Op {
	op := Op{Do: "batch"}
	for range n {
		in := name
		if g.chance(10) && g.prefix == "" {
			in = g.collection() // the batch has several collections
		}
		op.Ops = append(op.Ops, g.change(in, true))
	}
	if g.prefix == "" && g.chance(3) {
		op.Ops = append(op.Ops, Op{Do: "mark", Name: fmt.Sprint("m", g.IntN(3)), Key: pick(g, []string{"", "1", "2"})})
	}
	return op
}

// own gives the changes of a lane keys of its own.
func (g *generator) own(op Op) []Op {
	if op.Do == "batch" {
		var all []Op
		for _, change := range op.Ops {
			all = append(all, g.own(change)...)
		}
		op.Ops = all
		return []Op{op}
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
	return []Op{op}
}
