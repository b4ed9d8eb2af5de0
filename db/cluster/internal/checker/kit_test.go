package checker

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fddhdb/fddhdb/db/cluster/internal/apply"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

const shards = 2

// shardOf puts keys that begin with a into shard 0.
func shardOf(key string) int {
	if key[0] == 'a' {
		return 0
	}
	return 1
}

func item(key, value string) *wire.Item {
	if value == "" {
		return nil
	}
	return &wire.Item{Key: key, Payload: []byte(value)}
}

// opOf returns the operation that a client sends for a write.
func opOf(o *Op) *wire.Op {
	w := &wire.Op{ID: wire.NewID(), Kind: wire.Write}
	put := func(key string) {
		w.Changes = append(w.Changes, wire.Change{Kind: wire.Put, Item: item(key, o.Value)})
	}
	switch o.Kind {
	case Put:
		put(o.Key)
	case PutIf:
		w.Changes = append(w.Changes, wire.Change{Kind: wire.Expect, Item: &wire.Item{Key: o.Key},
			Old: item(o.Key, o.Old)})
		put(o.Key)
	case Delete:
		w.Changes = append(w.Changes, wire.Change{Kind: wire.Delete, Item: &wire.Item{Key: o.Key}})
		put(o.Tag)
	}
	return w
}

// A world is a cluster that keeps all rules: a log for each shard, the state behind each message, and
// clients. Time is the number of steps, in seconds.
type world struct {
	r      *rand.Rand
	now    time.Duration
	logs   [shards][]*wire.Op
	states [shards][]map[string]string
	seen   map[int]*[shards]int // by session: messages that it has to see
	held   map[string]string    // by key: what somebody has read
	ops    []Op
	n      int
}

func newWorld(seed uint64) *world {
	w := &world{r: rand.New(rand.NewPCG(seed, 1)), seen: map[int]*[shards]int{}, held: map[string]string{}}
	for s := range shards {
		w.states[s] = []map[string]string{{}}
	}
	return w
}

func (w *world) tick() time.Duration { w.now += time.Second; return w.now }

// append appends a message and carries it out, and reports whether its condition holds.
func (w *world) append(o *Op, m *wire.Op) (applied bool) {
	s := shardOf(o.Key)
	state := maps.Clone(w.states[s][len(w.logs[s])])
	again := slices.ContainsFunc(w.logs[s], func(old *wire.Op) bool { return old.ID == m.ID })
	applied = !again && (o.Kind != PutIf || state[o.Key] == o.Old)
	if applied {
		switch o.Kind {
		case Put, PutIf:
			state[o.Key] = o.Value
		case Delete:
			delete(state, o.Key)
			state[o.Tag] = o.Value
		}
	}
	w.logs[s] = append(w.logs[s], m)
	w.states[s] = append(w.states[s], state)
	return applied
}

// step makes an operation of a random session.
func (w *world) step() {
	w.n++
	o := Op{Session: w.r.IntN(4), Key: fmt.Sprintf("%c%d", 'a'+rune(w.r.IntN(2)), w.r.IntN(3)),
		Begin: w.tick()}
	if w.seen[o.Session] == nil {
		w.seen[o.Session] = &[shards]int{}
	}
	seen, s := w.seen[o.Session], shardOf(o.Key)
	switch k := w.r.IntN(10); {
	case k < 5:
		o.Kind = []Kind{Put, PutIf, Delete}[w.r.IntN(3)]
		o.Value = fmt.Sprint("v", w.n)
		if o.Kind == PutIf && w.r.IntN(3) > 0 {
			o.Old = w.held[o.Key]
		}
		if o.Kind == Delete {
			o.Tag = o.Key[:1] + "-tag"
		}
		m := opOf(&o)
		o.Result = OK
		switch how := w.r.IntN(10); {
		case how == 0: // refused by the log
			o.Result = Failed
		case how == 1:
			o.Result = Unknown // never sent
		default:
			if !w.append(&o, m) {
				o.Result = Refused
			}
			seq := len(w.logs[s])
			if how < 4 {
				w.append(&o, m) // sent twice
			}
			if how == 2 {
				o.Result = Unknown // and nobody knows
			} else {
				seen[s] = seq
			}
		}
	case k < 8:
		o.Kind, o.Result = Get, OK
		at := seen[s] + w.r.IntN(len(w.states[s])-seen[s])
		o.Read = w.states[s][at][o.Key]
		w.held[o.Key], seen[s] = o.Read, at
	case k < 9:
		o.Kind, o.Result, o.Key, o.Items = Search, OK, "", map[string]string{}
		for s := range shards {
			seen[s] += w.r.IntN(len(w.states[s]) - seen[s])
			maps.Copy(o.Items, w.states[s][seen[s]])
		}
	default:
		o.Kind, o.Result, o.Key = Count, OK, ""
		for s := range shards {
			o.N += len(w.states[s][seen[s]])
		}
	}
	o.End = w.tick()
	w.ops = append(w.ops, o)
}

func (w *world) check() *Finding {
	logs := make([][]apply.Message, shards)
	for s, log := range w.logs {
		for i, op := range log {
			b, err := op.Encode()
			if err != nil {
				panic(err)
			}
			logs[s] = append(logs[s], apply.Message{Seq: uint64(i + 1), Data: b})
		}
	}
	return Check(w.ops, logs, shardOf)
}

// script is a history by hand: each line is an operation that begins when the one before has ended.
func (w *world) script(ops ...Op) {
	for _, o := range ops {
		if o.End == 0 {
			o.Begin, o.End = w.tick(), w.tick()
		}
		w.ops = append(w.ops, o)
	}
}

// log appends the messages of those operations of the script that have these values, in this order.
func (w *world) log(values ...string) {
	for _, v := range values {
		i := slices.IndexFunc(w.ops, func(o Op) bool { return o.Value == v })
		w.append(&w.ops[i], opOf(&w.ops[i]))
	}
}
