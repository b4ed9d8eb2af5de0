package apply_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/apply"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/shard"
)

// A written is a message of a log, with what its operation has to come to.
type written struct {
	apply.Message
	op   *wire.Op // nil: bytes that are no operation
	want error    // what it is refused with; nil: it is applied, or has been before
}

// A shardLog is a log of shard 0 of 2 that is being written, and what it leaves by its own account: a map
// for each collection, which no code of the database has touched.
type shardLog struct {
	r       *rand.Rand
	all     []written
	chunked []*chunked // operations of which some chunks are in the log
	items   map[string]map[string]*db.Item
	schemas map[string]bool
}

// A chunked is an operation with the chunks that are not in the log yet.
type chunked struct {
	op   *wire.Op
	left [][]byte
}

func (l *shardLog) key() string {
	for {
		if key := fmt.Sprint("k", l.r.IntN(120)); shard.Of(key, 2) == 0 {
			return key
		}
	}
}

func (l *shardLog) append(o *wire.Op, want error) {
	m := written{op: o, want: want}
	m.Seq = uint64(len(l.all) + 1)
	if o == nil {
		m.Data = []byte{2, 0xff, 7}
	} else {
		b, err := o.Encode()
		if err != nil {
			panic(err)
		}
		m.Data, m.Control = b, o.Kind != wire.Write
	}
	l.all = append(l.all, m)
}

// op appends an operation, and carries it out by its own account.
func (l *shardLog) op(o *wire.Op) {
	if o.ID == (wire.ID{}) {
		for i := range o.ID {
			o.ID[i] = byte(l.r.Uint32())
		}
	}
	next := map[string]map[string]*db.Item{}
	for name, items := range l.items {
		next[name] = maps.Clone(items)
	}
	var want error
	refuse := func(err error) {
		if want == nil {
			want = err
		}
	}
	switch o.Kind {
	case wire.CreateCollection:
		if !l.schemas[o.Collection] {
			l.schemas[o.Collection], next[o.Collection] = true, map[string]*db.Item{}
		}
	case wire.DropCollection:
		if !l.schemas[o.Collection] {
			refuse(db.ErrNotFound)
		}
		delete(l.schemas, o.Collection)
		delete(next, o.Collection)
	}
	for _, ch := range o.Changes {
		items, key := next[ch.Collection], ch.Item.Key
		switch {
		case items == nil:
			refuse(db.ErrNotFound)
		case ch.Kind != wire.Register && (key == "" || shard.Of(key, 2) != 0):
			refuse(db.ErrInvalid)
		case ch.Kind == wire.Expect:
			is, old := l.items[ch.Collection][key], ch.Old
			if (is == nil) != (old == nil) || is != nil && string(is.Payload) != string(old.Payload) {
				refuse(db.ErrConflict)
			}
		case ch.Kind == wire.Put && len(ch.Item.Code) != 2:
			refuse(db.ErrInvalid)
		case ch.Kind == wire.Put:
			items[key] = ch.Item.Item()
		case ch.Kind == wire.Delete:
			delete(items, key)
		}
	}
	if want == nil {
		l.items = next
	}
	l.append(o, want)
}

func (l *shardLog) put(key string) wire.Change {
	n := l.r.IntN(1 << 20)
	return wire.Change{Collection: "codes", Kind: wire.Put, Item: &wire.Item{
		Key: key, Code: []byte{byte(n % 7), byte(n % 5)}, Payload: fmt.Append(nil, n),
		Labels: []string{fmt.Sprint("l", n%30)},
	}}
}

// makeLog writes a log in which there is everything that a log may have.
func makeLog(r *rand.Rand, n int) *shardLog {
	l := &shardLog{r: r, items: map[string]map[string]*db.Item{},
		schemas: map[string]bool{}}
	create := &wire.Op{Kind: wire.CreateCollection, Collection: "codes", Schema: &db.Schema{Bits: 16}}
	l.op(create)
	for len(l.all) < n {
		write := func(changes ...wire.Change) {
			l.op(&wire.Op{Kind: wire.Write, Changes: changes, Base: uint64(len(l.all))})
		}
		switch k := r.IntN(44); {
		case k >= 40:
			l.chunk()
		case k < 20:
			write(l.put(l.key()))
		case k < 23:
			write(l.put(l.key()), wire.Change{Collection: "codes", Kind: wire.Delete,
				Item: &wire.Item{Key: l.key()}}, l.put(l.key()))
		case k < 26:
			write(wire.Change{Collection: "codes", Kind: wire.Delete, Item: &wire.Item{Key: l.key()}})
		case k < 30: // a condition that holds, mostly
			key := l.key()
			old := wire.ItemOf(l.items["codes"][key])
			if r.IntN(4) == 0 {
				old = nil
			}
			write(wire.Change{Collection: "codes", Kind: wire.Expect, Item: &wire.Item{Key: key}, Old: old},
				l.put(key))
		case k < 31:
			bad := l.put(l.key())
			bad.Item.Code = bad.Item.Code[:1]
			write(l.put(l.key()), bad) // nothing of it
		case k < 32:
			other := l.put("")
			for other.Item.Key = "o"; shard.Of(other.Item.Key, 2) == 0; other.Item.Key += "o" {
			}
			write(other)
		case k < 33:
			write(l.put(""))
		case k < 34:
			write(wire.Change{Collection: "nosuch", Kind: wire.Delete, Item: &wire.Item{Key: l.key()}})
		case k < 35:
			write(wire.Change{Collection: "codes", Kind: wire.Register,
				Item: &wire.Item{Labels: []string{fmt.Sprint("r", r.IntN(9))}}})
		case k < 36:
			l.append(nil, nil) // no operation
		case k < 37: // one that has come before
			if m := l.all[r.IntN(len(l.all))]; m.op != nil {
				l.append(m.op, nil)
			}
		case k < 38:
			l.begin(&wire.Op{Kind: wire.Write, Changes: []wire.Change{l.put(l.key()), l.put(l.key())}})
		case k < 39:
			l.op(&wire.Op{Kind: wire.CreateCollection, Collection: "other", Schema: &db.Schema{Bits: 8},
				Base: uint64(len(l.all))})
		default:
			l.op(&wire.Op{Kind: wire.DropCollection, Collection: "other", Base: uint64(len(l.all))})
		}
	}
	return l
}

// begin cuts an operation in chunks, which come later, in any order. Some come twice, and some never.
func (l *shardLog) begin(o *wire.Op) {
	for i := range o.ID {
		o.ID[i] = byte(l.r.Uint32())
	}
	o.Base = uint64(len(l.all))
	b, err := o.Encode()
	if err != nil {
		panic(err)
	}
	c := &chunked{op: o}
	n := 2 + l.r.IntN(3)
	part := wire.Op{ID: o.ID, Base: o.Base, Kind: wire.Chunk, Chunks: n}
	for part.Chunk = range n {
		part.Data = b[part.Chunk*len(b)/n : (part.Chunk+1)*len(b)/n]
		m, err := part.Encode()
		if err != nil {
			panic(err)
		}
		c.left = append(c.left, m)
	}
	l.r.Shuffle(n, func(i, j int) { c.left[i], c.left[j] = c.left[j], c.left[i] })
	l.chunked = append(l.chunked, c)
}

// chunk appends a chunk of some operation. The last one completes it.
func (l *shardLog) chunk() {
	if len(l.chunked) == 0 {
		return
	}
	at := l.r.IntN(len(l.chunked))
	c := l.chunked[at]
	next := c.left[0]
	if len(c.left) > 1 {
		if l.append(nil, nil); l.r.IntN(5) > 0 { // otherwise it comes once more
			c.left = c.left[1:]
		}
	} else {
		l.op(c.op)
		l.chunked = slices.Delete(l.chunked, at, at+1)
	}
	l.all[len(l.all)-1].Data = next
}

// A replica is a database that a log is applied to, on a machine that may lose what is not synced.
type replica struct {
	t     *testing.T
	log   *shardLog
	fs    *vfs.MemFS
	db    *db.DB
	state *apply.State
}

func (p *replica) open() {
	p.t.Helper()
	d, err := db.Open("db", &db.Options{FS: p.fs, NoSync: true})
	if err != nil {
		p.t.Fatal(err)
	}
	p.db = d
	p.state, err = apply.Open(p.t.Context(), d, apply.Identity{Cluster: "c", Shard: 0, Shards: 2})
	if err != nil {
		p.t.Fatal(err)
	}
}

func newReplica(t *testing.T, log *shardLog) *replica {
	p := &replica{t: t, log: log, fs: vfs.NewCrashableMem()}
	p.open()
	return p
}

// crash opens what the machine has left when it stops now.
func (p *replica) crash(r *rand.Rand) {
	p.t.Helper()
	left := p.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: r})
	_ = p.db.Close()
	p.fs = left
	p.open()
}

// apply applies the log from the position on, n messages at a time.
func (p *replica) apply(next func() int, between func()) map[uint64]*wire.Outcome {
	p.t.Helper()
	outcomes := map[uint64]*wire.Outcome{}
	for {
		at := int(p.state.Position().Seq)
		if at == len(p.log.all) {
			return outcomes
		}
		var messages []apply.Message
		for _, m := range p.log.all[at:min(len(p.log.all), at+next())] {
			messages = append(messages, m.Message)
		}
		done, err := p.state.Apply(p.t.Context(), messages)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, o := range done {
			outcomes[o.Seq] = o.Outcome
		}
		between()
	}
}

func (p *replica) digest() string {
	p.t.Helper()
	b, err := p.state.Digest(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return b
}

// check compares what the database has with what the log leaves by its own account.
func (p *replica) check(outcomes map[uint64]*wire.Outcome) {
	p.t.Helper()
	for name, want := range p.log.items {
		c, err := p.db.Collection(name)
		if err != nil {
			p.t.Fatal(err)
		}
		got := map[string]string{}
		for it, err := range c.Items(p.t.Context(), "") {
			if err != nil {
				p.t.Fatal(err)
			}
			got[it.Key] = fmt.Sprintf("%s %x %q", it.Payload, it.Code, it.Labels)
		}
		expected := map[string]string{}
		for key, it := range want {
			expected[key] = fmt.Sprintf("%s %x %q", it.Payload, it.Code, it.Labels)
		}
		if !maps.Equal(got, expected) {
			p.t.Fatalf("%s: %v, and the log says %v", name, got, expected)
		}
	}
	names, err := p.db.Collections()
	if err != nil || !slices.Equal(names, slices.Sorted(maps.Keys(p.log.items))) {
		p.t.Fatalf("collections %q, %v", names, err)
	}
	first := map[wire.ID]bool{}
	for _, m := range p.log.all {
		if m.op == nil {
			continue
		}
		o := outcomes[m.Seq]
		if again := first[m.op.ID]; again {
			if o == nil || o.Seq >= m.Seq {
				p.t.Errorf("message %d has come before, and it comes to %+v", m.Seq, o)
			}
			continue
		}
		first[m.op.ID] = true
		if kept := p.state.Outcome(m.op.ID); kept == nil || kept.Seq != m.Seq ||
			(kept.Fault == nil) != (m.want == nil) {
			p.t.Errorf("message %d is remembered as %+v", m.Seq, kept)
		}
		if o == nil || (o.Fault == nil) != (m.want == nil) || m.want != nil && !errors.Is(o.Err(), m.want) {
			p.t.Errorf("message %d: %+v, want %v", m.Seq, o, m.want)
		}
	}
}

// What a log leaves, and what its operations come to, follows from the log alone: however many messages
// come at a time, and wherever the machine stops.
func TestReplicasAreEqual(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3 {
		log := makeLog(r, 700)
		one := newReplica(t, log)
		outcomes := one.apply(func() int { return 1 }, func() {})
		one.check(outcomes)
		want := one.digest()
		for range 8 {
			most := 1 + r.IntN(1<<r.IntN(11))
			p := newReplica(t, log)
			crashes := 5
			seen := p.apply(func() int { return 1 + r.IntN(most) }, func() {
				if crashes > 0 && r.IntN(12) == 0 {
					crashes--
					p.crash(r)
				}
			})
			if p.state.Position() != one.state.Position() {
				t.Fatalf("position %+v and %+v", p.state.Position(), one.state.Position())
			}
			if p.digest() != want {
				t.Fatal("the replicas differ")
			}
			p.check(seen)
			p.crash(r)
			p.apply(func() int { return 100 }, func() {})
			if p.digest() != want {
				t.Fatal("after a crash the replicas differ")
			}
			_ = p.db.Close()
		}
		_ = one.db.Close()
	}
}
