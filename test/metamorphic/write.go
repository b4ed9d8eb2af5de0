package metamorphic

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/test/metamorphic/program"
)

// touched has the keys that a write concerns, by collection.
type touched map[string][]string

func (t touched) add(collection, key string) {
	if !slices.Contains(t[collection], key) {
		t[collection] = append(t[collection], key)
	}
}

// apply does a write in the world. The error is the predicted error; the world cannot
// be used after it.
func (w *world) apply(op *program.Op, t touched) error {
	if op.Do == "batch" {
		for i := range op.Ops {
			if c := w.collections[op.Ops[i].In]; c != nil && c.refused(&op.Ops[i]) {
				return db.ErrInvalid
			}
		}
		before := w
		if slices.ContainsFunc(op.Ops, func(op program.Op) bool { return op.Do == "expect" }) {
			before = w.fork()
		}
		for i := range op.Ops {
			change := &op.Ops[i]
			if change.Do == "expect" {
				if c := before.collections[change.In]; c != nil && change.Absent &&
					c.items[change.Key] != nil {
					return db.ErrConflict
				}
			} else if err := w.apply(change, t); err != nil {
				return err
			}
		}
		return nil
	}
	if op.Do == "mark" {
		if w.marks == nil {
			w.marks = map[string]string{}
		}
		if w.marks[op.Name] = op.Key; op.Key == "" {
			delete(w.marks, op.Name)
		}
		return nil
	}
	c := w.edit(op.In)
	if c == nil {
		return nil // a batch leaves it out
	}
	switch op.Do {
	case "put", "merge", "putif":
		if c.refused(op) || c.codesOnly() && op.Item.Code == nil && c.items[op.Key] == nil {
			return db.ErrInvalid
		}
		if op.Do == "putif" && op.Absent && c.items[op.Key] != nil {
			return db.ErrConflict
		}
		t.add(op.In, c.put(op.Key, op.Item, op.Do == "merge"))
	case "delete":
		for _, key := range op.Keys {
			c.delete(key)
			t.add(op.In, key)
		}
	case "labels":
		c.register(op.Keys)
	case "fill":
		for i := range op.N {
			key, it := c.filling(op, i)
			t[op.In] = append(t[op.In], c.put(key, it, false))
		}
	}
	return nil
}

// filling returns the key and the item with number i of a fill.
func (c *collection) filling(op *program.Op, i int) (string, *program.Item) {
	r := program.NewRand(op.Seed + uint64(i)<<20)
	it := &program.Item{}
	if c.codesOnly() {
		code := r.Uint64() % (1 << 17)
		it.Code = &code
	}
	if i%3 == 0 {
		it.Labels = []string{program.SomeLabels[i/3%len(program.SomeLabels)]}
	}
	if i%5 == 0 {
		it.Fields = map[string]string{"n": program.SomeInts[i/5%len(program.SomeInts)]}
	}
	for j, m := range c.schema.Modalities {
		if (i+j)%4 != 0 {
			if it.Vectors == nil {
				it.Vectors = map[string]uint64{}
			}
			it.Vectors[m.Name] = 1 + r.Uint64()%500
		}
	}
	return fmt.Sprintf("%s-%d", op.Name, i), it
}

// add adds the changes of a write to a batch. It leaves out changes to collections that
// do not exist.
func (h *history) add(b *db.Batch, op *program.Op) error {
	if op.Do == "batch" {
		for i := range op.Ops {
			if err := h.add(b, &op.Ops[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if op.Do == "mark" {
		return b.Mark(op.Name, []byte(op.Key))
	}
	c := h.now.collections[op.In]
	if c == nil {
		return nil
	}
	handle, err := h.d.Collection(op.In)
	if err != nil {
		return err
	}
	switch op.Do {
	case "put":
		return b.Put(handle, c.given(op.Key, op.Item))
	case "merge":
		return b.Merge(handle, c.given(op.Key, op.Item))
	case "labels":
		return b.RegisterLabels(handle, op.Keys)
	case "expect":
		old, err := h.old(op, handle)
		if err != nil {
			return err
		}
		return b.Expect(handle, op.Key, old)
	case "fill":
		for i := range op.N {
			key, it := c.filling(op, i)
			if err := b.Put(handle, c.given(key, it)); err != nil {
				return err
			}
		}
	}
	for _, key := range op.Keys {
		if err := b.Delete(handle, key); err != nil {
			return err
		}
	}
	return nil
}

// old returns the item that an operation expects in the database: as in a snapshot, or
// as it is now.
func (h *history) old(op *program.Op, handle *db.Collection) (*db.Item, error) {
	if op.Absent {
		return nil, nil
	}
	if m := h.snapshots[op.At]; m != nil {
		if c := m.w.collections[op.In]; c == nil || c.born != h.now.collections[op.In].born {
			return nil, nil
		}
		then, err := m.Snapshot.Collection(op.In)
		if err != nil {
			return nil, err
		}
		handle = then
	}
	it, err := handle.Get(h.ctx, op.Key)
	if errors.Is(err, db.ErrNotFound) {
		return nil, nil
	}
	return it, err
}

// stale reports whether an operation expects an item of a snapshot that has changed
// since.
func (h *history) stale(op *program.Op) bool {
	m := h.snapshots[op.At]
	if op.Do != "putif" || op.Absent || m == nil {
		return false
	}
	c, was := h.now.collections[op.In], m.w.collections[op.In]
	var then *item
	if was != nil && was.born == c.born {
		then = was.items[op.Key]
	}
	now := c.items[op.Key]
	if then == nil || now == nil {
		return then != now
	}
	return !then.equal(now)
}

// send writes to the database, and returns the key of an item that has been put or merged
// alone.
func (h *history) send(op *program.Op) (key string, err error) {
	c := h.now.collections[op.In]
	if op.Do == "put" || op.Do == "merge" || op.Do == "putif" {
		handle, err := h.d.Collection(op.In)
		if err != nil {
			return "", err
		}
		switch given := c.given(op.Key, op.Item); op.Do {
		case "put":
			return handle.Put(h.ctx, given)
		case "merge":
			return handle.Merge(h.ctx, given)
		default:
			old, err := h.old(op, handle)
			if err != nil {
				return "", err
			}
			return op.Key, handle.PutIf(h.ctx, given, old)
		}
	}
	b := h.d.NewBatch()
	if err := h.add(b, op); err != nil {
		return "", err
	}
	return "", b.Commit(h.ctx)
}

func (h *history) write(op *program.Op) error {
	if op.In != "" && h.now.collections[op.In] == nil {
		_, err := h.d.Collection(op.In)
		return expect(err, db.ErrNotFound)
	}
	next, t := h.now.fork(), touched{}
	want := next.apply(op, t)
	if want == nil && h.stale(op) {
		want = db.ErrConflict
	}
	key, err := h.send(op)
	if err := expect(err, want); err != nil {
		return err
	}
	if key != "" && !slices.Equal(t[op.In], []string{key}) {
		return fmt.Errorf("the key is %q, want %q", key, t[op.In])
	}
	return h.written(next, t, false)
}

// written takes over a world that the database has committed, and checks what has
// changed.
func (h *history) written(next *world, t touched, synced bool) error {
	for name, keys := range t {
		if err := h.settle(next, name, keys); err != nil {
			return err
		}
	}
	if err := h.commit(next, synced); err != nil {
		return err
	}
	for name, keys := range t {
		handle, err := h.d.Collection(name)
		if err != nil {
			return err
		}
		c := next.collections[name]
		for _, key := range keys[:min(8, len(keys))] {
			if err := h.checkItem(c, handle, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkItem compares one item, which may be gone.
func (h *history) checkItem(c *collection, handle *db.Collection, key string) error {
	got, err := handle.Get(h.ctx, key)
	if c.items[key] == nil {
		if !errors.Is(err, db.ErrNotFound) {
			return fmt.Errorf("item %q was deleted: %v", key, err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	return c.same(c.space(0), key, got)
}

// importParts is the number of parts of an import, and partItems that of the items of each.
const importParts, partItems = 3, 25

// importSome goes on with an import, where its mark says, for N parts. The mark goes with the last.
func (h *history) importSome(op *program.Op) error {
	name := "import " + op.Name
	for range op.N {
		value, err := h.d.Mark(name)
		if errors.Is(err, db.ErrNotFound) {
			value, err = []byte("0"), nil
		}
		at, aerr := strconv.Atoi(string(value))
		if err := errors.Join(err, aerr); err != nil {
			return err
		}
		next := strconv.Itoa(at + 1)
		if at+1 == importParts {
			next = ""
		}
		part := program.Op{Do: "batch", Ops: []program.Op{
			{Do: "fill", In: op.In, Name: fmt.Sprint(op.Name, "-", at), N: partItems, Seed: op.Seed},
			{Do: "mark", Name: name, Key: next},
		}}
		if err := h.write(&part); err != nil {
			return err
		}
	}
	return nil
}

func (h *history) delete(op *program.Op) error {
	c, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	next, t, want := h.now.fork(), touched{}, 0
	for i, key := range op.Keys {
		if c.items[key] != nil && !slices.Contains(op.Keys[:i], key) {
			want++
		}
	}
	if err := next.apply(op, t); err != nil {
		return err
	}
	n, err := handle.Delete(h.ctx, op.Keys...)
	if err != nil || n != want {
		return wrong(err, "%d deleted, want %d", n, want)
	}
	return h.written(next, t, false)
}

func (h *history) deleteWhere(op *program.Op) error {
	c, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	where, args := op.Where.Bound()
	n, err := handle.DeleteWhere(h.ctx, where, args...)
	if where == "" || !op.Where.Valid(&c.schema) {
		return expect(err, db.ErrInvalid)
	}
	if err != nil {
		return err
	}
	keys, err := c.matching(op.Where)
	if err != nil || n != len(keys) {
		return wrong(err, "%d deleted, want %d", n, len(keys))
	}
	next, t := h.now.fork(), touched{}
	if err := next.apply(&program.Op{Do: "delete", In: op.In, Keys: keys}, t); err != nil {
		return err
	}
	return h.written(next, t, len(keys) > 0)
}

// alter adds modalities and fields to a collection, indexes fields, and changes metrics and spaces.
func (h *history) alter(op *program.Op) error {
	c, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	err = handle.Alter(h.ctx, alteration(op.Schema))
	if err := expect(err, c.alterable(op.Schema)); err != nil {
		return err
	}
	return h.altered(op)
}

func alteration(s *program.Schema) db.Alteration {
	return db.Alteration{AddModalities: s.Modalities, AddFields: s.Fields, IndexFields: s.Index,
		IndexWords: s.Words,
		SpaceOf:    s.SpaceOf, Metrics: s.Metrics}
}

// with returns the schema after an alteration, or ErrInvalid for metrics or spaces that cannot be.
func withMore(s *program.Schema, add *program.Schema) (*program.Schema, error) {
	all, err := settled(slices.Concat(s.Modalities, add.Modalities), len(s.Modalities), add)
	return &program.Schema{Bits: s.Bits, Modalities: all, Fields: slices.Concat(s.Fields, add.Fields),
		Index: slices.Concat(s.Index, add.Index), Words: slices.Concat(s.Words, add.Words)}, err
}

// altered takes over the alteration of a collection. Its spaces stay as they are: a
// model knows the modalities that it was trained with.
func (h *history) altered(op *program.Op) error {
	next := h.now.fork()
	c := next.edit(op.In)
	s, err := withMore(&c.schema, op.Schema) // worlds share the arrays of its lists, so new ones are made
	if err != nil {
		return err
	}
	c.schema = *s
	return h.commit(next, true)
}

// alterable returns the error with which the database must refuse to add add to a
// collection, or nil.
func (c *collection) alterable(add *program.Schema) error {
	if slices.ContainsFunc(add.Index, func(name string) bool { return !c.schema.HasField(name) }) {
		return db.ErrInvalid
	}
	if slices.ContainsFunc(add.Words,
		func(name string) bool { return !c.schema.HasField(name) || program.TypeOf(name) != db.String }) {
		return db.ErrInvalid
	}
	names := map[string]int{}
	for _, m := range add.Modalities {
		names[m.Name]++
	}
	for _, f := range add.Fields {
		names[f.Name]++
	}
	if len(names)+len(add.Index)+len(add.Words)+len(add.SpaceOf)+len(add.Metrics) == 0 ||
		c.codesOnly() && len(add.Modalities) > 0 {
		return db.ErrInvalid
	}
	for name := range names {
		if c.schema.Has(name) || c.schema.HasField(name) {
			return db.ErrExists
		}
	}
	for name, n := range names {
		if n > 1 || name == "" {
			return db.ErrInvalid
		}
	}
	if slices.ContainsFunc(add.Modalities,
		func(m db.Modality) bool { return m.Dim < 1 || m.Dim > db.MaxDim }) ||
		slices.ContainsFunc(add.Fields, func(f db.Field) bool { return program.SomeOf[f.Type] == nil }) {
		return db.ErrInvalid
	}
	_, err := withMore(&c.schema, add)
	return err
}

// laneAlter alters a collection while other lanes write. Their items do not have the
// new modalities and fields.
func (h *history) laneAlter(op *program.Op) (func() error, error) {
	c := h.now.collections[op.In]
	if c == nil {
		return nil, nil
	}
	handle, err := h.d.Collection(op.In)
	if err != nil {
		return nil, err
	}
	err = handle.Alter(h.ctx, alteration(op.Schema))
	if err := expect(err, c.alterable(op.Schema)); err != nil {
		return nil, passed(err)
	}
	return func() error { return h.altered(op) }, nil
}

// Renaming and merging labels. Keys of the operation are the label and what becomes of it.

// has reports whether any item has the label.
func (c *collection) has(label string) bool { return slices.Contains(c.used(), label) }

// relabelled returns a copy of labels with to in place of from, which is among them.
func relabelled(labels []string, from, to string) []string {
	out := slices.DeleteFunc(slices.Clone(labels), func(l string) bool { return l == from })
	if !slices.Contains(out, to) {
		out = append(out, to)
	}
	return out
}

// relabel gives the items that have one label the other, and returns their keys.
func (c *collection) relabel(from, to string) (keys []string) {
	for _, key := range c.order {
		it := c.items[key]
		if !slices.Contains(it.labels, from) {
			continue
		}
		changed := *it // items do not change
		changed.labels = relabelled(it.labels, from, to)
		c.items[key] = &changed
		keys = append(keys, key)
	}
	return keys
}

// renameLabel renames a label. If earlier items had one of the new name, nothing knows that any more.
func (h *history) renameLabel(op *program.Op) error {
	if len(op.Keys) < 2 { // shrunk
		return errPassed
	}
	c, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	old, name := op.Keys[0], op.Keys[1]
	var want error
	switch {
	case old == name:
		want = db.ErrInvalid
	case !c.has(old):
		want = db.ErrNotFound
	case c.has(name):
		want = db.ErrExists
	}
	if err := expect(handle.RenameLabel(h.ctx, old, name), want); err != nil {
		return err
	}
	next := h.now.fork()
	c = next.edit(op.In)
	c.labels = slices.DeleteFunc(c.labels, func(l string) bool { return l == name })
	c.labels[slices.Index(c.labels, old)] = name
	c.relabel(old, name)
	for _, sp := range c.spaces {
		if c.codesOnly() {
			break // no model knows labels
		}
		sp.known[name] = sp.known[old]
		delete(sp.known, old)
		codes := map[string]string{}
		for set, code := range sp.labelCodes {
			known := strings.Split(set, "\n")
			if slices.Contains(known, name) {
				continue
			}
			if i := slices.Index(known, old); i >= 0 {
				known[i] = name
			}
			slices.Sort(known)
			codes[strings.Join(known, "\n")] = code
		}
		sp.labelCodes = codes
	}
	return h.commit(next, true)
}
