package checker

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"
)

const shards = 2

// shardOf puts keys that begin with a into shard 0.
func shardOf(key string) int {
	if key[0] == 'a' {
		return 0
	}
	return 1
}

// good returns a history of a cluster that keeps all rules: its shards have a state after each write, and
// sessions see any that is not older than what they have seen.
func good(r *rand.Rand, n int) (ops []Op) {
	states := [shards][]map[string]string{{{}}, {{}}}
	seen, held := map[int]*[shards]int{}, map[string]string{}
	now := time.Duration(0)
	tick := func() time.Duration { now += time.Second; return now }
	for i := range n {
		o := Op{Session: r.IntN(4), Key: fmt.Sprintf("%c%d", 'a'+rune(r.IntN(2)), r.IntN(3)), Begin: tick()}
		if seen[o.Session] == nil {
			seen[o.Session] = &[shards]int{}
		}
		seen, s := seen[o.Session], shardOf(o.Key)
		switch k := r.IntN(9); {
		case k < 5:
			o.Kind, o.Value, o.Result = []Kind{Put, PutIf, Delete}[r.IntN(3)], fmt.Sprint("v", i), OK
			if o.Kind == PutIf && r.IntN(3) > 0 {
				o.Old = held[o.Key]
			}
			o.Tag = o.Key[:1] + "-tag"
			now := states[s][len(states[s])-1]
			switch how := r.IntN(10); {
			case how == 0:
				o.Result = Failed
			case how == 1:
				o.Result = Unknown // and it has not happened
			case o.Kind == PutIf && now[o.Key] != o.Old:
				o.Result = Refused
				seen[s] = len(states[s]) - 1
			default:
				next := maps.Clone(now)
				if next[o.Key] = o.Value; o.Kind == Delete {
					delete(next, o.Key)
					next[o.Tag] = o.Value
				}
				states[s] = append(states[s], next)
				if how == 2 {
					o.Result = Unknown // and it has happened
				} else {
					seen[s] = len(states[s]) - 1
				}
			}
		case k < 8:
			o.Kind, o.Result = Get, OK
			seen[s] += r.IntN(len(states[s]) - seen[s])
			o.Read = states[s][seen[s]][o.Key]
			held[o.Key] = o.Read
		default:
			o.Kind, o.Result, o.Key, o.Items = Search, OK, "", map[string]string{}
			for s := range shards {
				seen[s] += r.IntN(len(states[s]) - seen[s])
				maps.Copy(o.Items, states[s][seen[s]])
			}
		}
		o.End = tick()
		ops = append(ops, o)
	}
	final := Op{Kind: Final, Result: OK, Session: 9, Begin: tick(), Items: map[string]string{}}
	for s := range shards {
		maps.Copy(final.Items, states[s][len(states[s])-1])
	}
	final.End = tick()
	return append(ops, final)
}

func TestGoodHistories(t *testing.T) {
	for seed := range uint64(60) {
		ops := good(rand.New(rand.NewPCG(seed, 1)), 300)
		if found := Check(ops, shards, shardOf, ""); len(found) > 0 {
			t.Errorf("seed %d: %v", seed, found)
		}
	}
}

// A write that is lost, or a read of something else, is found.
func TestDamage(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		ops := good(r, 40)
		final := ops[len(ops)-1].Items
		var writes []int // that the end shows
		for i := range ops {
			if o := &ops[i]; o.Kind.Writes() && (final[o.Key] == o.Value || final[o.Tag] == o.Value) {
				writes = append(writes, i)
			}
		}
		o := &ops[writes[r.IntN(len(writes))]]
		if seed%2 == 0 {
			for _, key := range []string{o.Key, o.Tag} {
				if final[key] == o.Value {
					final[key] = "v-of-nobody"
				}
			}
		} else {
			o.Result = Failed
		}
		if len(Check(ops, shards, shardOf, "")) == 0 {
			t.Errorf("seed %d: %v is damaged, and nothing is found", seed, o)
		}
	}
}

// Writes that wait for long beside many reads may have any order, and the right one is found.
func TestAShardThatStandsStill(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	between := func(o Op, begin, end int) Op {
		o.Begin, o.End = time.Duration(begin)*time.Millisecond, time.Duration(end)*time.Millisecond
		return o
	}
	search := func(values map[string]string) Op {
		return Op{Session: 13, Kind: Search, Items: maps.Clone(values), Result: OK}
	}
	values := map[string]string{"a0": "v"}
	ops := []Op{between(put(0, "a0", "v"), 0, 1)}
	now := 10_000
	for at := 10; at < now; at += 2 { // while the writes wait
		ops = append(ops, between(get(13+at%4/2, "a0", "v"), at, at+3))
	}
	for i, session := range r.Perm(12) {
		key := fmt.Sprint("a", i%4)
		o := put(session, key, fmt.Sprint("v", session))
		values[key] = o.Value
		ops = append(ops, between(o, 10+session, now+4), between(search(values), now+1, now+6))
		now += 4 + r.IntN(3)
	}
	ops = append(ops, between(Op{Session: 12, Kind: Final, Items: values, Result: OK}, now+10, now+11))
	if found := Check(ops, shards, shardOf, ""); len(found) > 0 {
		t.Error(found)
	}
}

// Writes that all end at once, as after an election, have an order that only a much later search shows.
func TestManyAtOnce(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		values, ops := map[string]string{}, []Op{}
		const n = 40
		for i := range n {
			key := fmt.Sprint("a", i%4)
			o := put(i%8, key, fmt.Sprint("v", i))
			if i >= 4 && r.IntN(3) == 0 {
				o.Kind, o.Old = PutIf, values[key]
			}
			values[key] = o.Value
			o.Begin, o.End = time.Duration(r.IntN(1000)), 2000+time.Duration(r.IntN(1000))
			ops = append(ops, o)
		}
		final := Op{Session: 9, Kind: Search, Items: values, Result: OK, Begin: 4000, End: 5000}
		ops = append(ops, final)
		if found := Check(ops, shards, shardOf, ""); len(found) > 0 {
			t.Fatalf("seed %d: %v", seed, found)
		}
	}
}

func put(session int, key, value string) Op {
	return Op{Session: session, Kind: Put, Key: key, Value: value, Result: OK}
}

func get(session int, key, read string) Op {
	return Op{Session: session, Kind: Get, Key: key, Read: read, Result: OK}
}

func TestViolations(t *testing.T) {
	result := func(o Op, r Result) Op { o.Result = r; return o }
	later := func(o Op, r Result) Op { o.Result, o.Later = Unknown, r; return o }
	between := func(o Op, begin, end time.Duration) Op {
		o.Begin, o.End = begin*time.Second, end*time.Second
		return o
	}
	putIf := func(key, value, old string, r Result) Op {
		return Op{Session: 1, Kind: PutIf, Key: key, Value: value, Old: old, Result: r}
	}
	search := func(session int, items map[string]string) Op {
		return Op{Session: session, Kind: Search, Items: items, Result: OK}
	}
	final := func(items map[string]string) Op { return Op{Session: 8, Kind: Final, Items: items, Result: OK} }
	del := Op{Session: 1, Kind: Delete, Key: "a1", Tag: "a-tag", Value: "v2", Result: OK}
	for _, test := range []struct {
		name string
		good bool
		ops  []Op
	}{
		{"a lost write", false, []Op{put(1, "a1", "v1"), final(nil)}},
		{"unknown, and there", true, []Op{result(put(1, "a1", "v1"), Unknown), get(2, "a1", "v1")}},
		{"unknown, and not there", true, []Op{result(put(1, "a1", "v1"), Unknown), final(nil)}},
		{"unknown, and gone again", false, []Op{result(put(1, "a1", "v1"), Unknown), get(2, "a1", "v1"), final(nil)}},
		{"failed, and there", false, []Op{result(put(1, "a1", "v1"), Failed), get(2, "a1", "v1")}},
		{"told as applied, and not there", false, []Op{later(put(1, "a1", "v1"), OK), put(2, "a2", "v2"),
			later(putIf("a1", "v3", "", OK), OK), final(map[string]string{"a1": "v3", "a2": "v2"})}},
		{"a condition that does not hold, and ok", false, []Op{put(1, "a1", "v1"), putIf("a1", "v2", "v0", OK)}},
		{"a condition that holds, and refused", false, []Op{put(1, "a1", "v1"), putIf("a1", "v2", "v1", Refused)}},
		{"refused by a value that was there for a time", true, []Op{put(1, "a1", "v1"),
			between(putIf("a1", "v2", "v1", Refused), 3, 10), between(put(2, "a1", "v3"), 4, 5),
			between(del, 6, 7), between(get(2, "a1", ""), 8, 9)}},
		{"refused by a value of before", false, []Op{put(1, "a1", "v0"), put(1, "a1", "v1"),
			putIf("a1", "v2", "v1", Refused)}},
		{"refused by a value that comes later", false, []Op{put(1, "a1", "v1"), putIf("a1", "v2", "v1", Refused),
			put(1, "a1", "v3")}},
		{"refused by the new value, and then by the old one", false, []Op{put(1, "a1", "v1"),
			between(put(2, "a1", "v2"), 2, 100), between(putIf("a1", "v3", "v1", Refused), 10, 20),
			between(putIf("a1", "v4", "v2", Refused), 30, 40)}},
		{"an older value after its own refusal", false, []Op{put(2, "a1", "v1"), put(2, "a1", "v2"),
			putIf("a1", "v3", "v1", Refused), get(1, "a1", "v1")}},
		{"refused before a write that may have happened", false, []Op{put(1, "a1", "v1"),
			putIf("a1", "v2", "v1", Refused), result(put(2, "a1", "v3"), Unknown)}},
		{"refused while a write may have happened", true, []Op{put(1, "a1", "v1"),
			between(putIf("a1", "v2", "v1", Refused), 3, 9),
			between(result(put(2, "a1", "v3"), Unknown), 4, 8)}},
		{"unknown, seen by what has replaced it", true, []Op{result(put(1, "a1", "v1"), Unknown),
			putIf("a1", "v2", "v1", Unknown), get(2, "a1", "v2")}},
		{"two that take one key", false, []Op{putIf("a1", "v1", "", OK), putIf("a1", "v2", "", OK)}},
		{"the other way round", false, []Op{put(1, "a1", "v1"), put(2, "a1", "v2"),
			final(map[string]string{"a1": "v1"})}},
		{"at a time, in any order", true, []Op{between(put(1, "a1", "v1"), 1, 4), between(put(2, "a1", "v2"), 2, 3),
			between(final(map[string]string{"a1": "v1"}), 5, 6)}},
		{"applied again later", false, []Op{put(1, "a1", "v1"), put(1, "a1", "v2"), get(2, "a1", "v2"),
			final(map[string]string{"a1": "v1"})}},
		{"not its own write", false, []Op{put(1, "a1", "v1"), get(1, "a1", "")}},
		{"not the write of another", true, []Op{put(1, "a1", "v1"), get(2, "a1", "")}},
		{"back to an older value", false, []Op{put(1, "a1", "v1"), put(1, "a1", "v2"), get(2, "a1", "v2"),
			get(2, "a1", "v1")}},
		{"back, by way of another key of the shard", false, []Op{put(1, "a1", "v1"), put(1, "a2", "v2"),
			get(2, "a2", "v2"), get(2, "a1", "")}},
		{"two reads at a time, of different age", true, []Op{between(put(1, "a1", "v1"), 1, 2),
			between(get(2, "a1", "v1"), 3, 5), between(get(2, "a1", ""), 4, 6)}},
		{"of another shard", true, []Op{put(1, "a1", "v1"), get(2, "a1", "v1"), get(2, "b1", "")}},
		{"a value before it is written", false, []Op{get(2, "a1", "v1"), put(1, "a1", "v1")}},
		{"a value that was refused", false, []Op{put(1, "a1", "v1"), putIf("a1", "v2", "v0", Refused),
			get(2, "a1", "v2")}},
		{"half of a batch", false, []Op{put(1, "a1", "v1"), del,
			search(2, map[string]string{"a1": "v1", "a-tag": "v2"})}},
		{"a whole batch", true, []Op{put(1, "a1", "v1"), del, search(2, map[string]string{"a-tag": "v2"})}},
		{"a search without its own write", false, []Op{put(1, "a1", "v1"), search(1, nil)}},
		{"values that were never there at a time", false, []Op{put(1, "a1", "v1"), put(1, "a2", "v2"),
			put(1, "a1", "v3"), put(1, "a2", "v4"), search(2, map[string]string{"a1": "v1", "a2": "v4"})}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for i := range test.ops {
				if o := &test.ops[i]; o.End == 0 { // one after the other
					o.Begin, o.End = time.Duration(2*i+1)*time.Second, time.Duration(2*i+2)*time.Second
				}
			}
			found := Check(test.ops, shards, shardOf, t.TempDir()+"/")
			if (len(found) == 0) != test.good {
				t.Errorf("%v", found)
			}
		})
	}
}

func TestUnexplained(t *testing.T) {
	at := func(begin, end time.Duration, r Result, patient bool) Op {
		return Op{Kind: Put, Begin: begin * time.Second, End: end * time.Second, Result: r, Patient: patient}
	}
	faults := []Fault{{What: "a", Begin: 10 * time.Second, End: 12 * time.Second}}
	ops := []Op{
		at(1, 9, Unknown, true), at(1, 10, Unknown, true), at(13, 14, Failed, true), at(17, 18, Failed, true),
		at(18, 19, Failed, false), at(18, 19, OK, true), at(18, 19, Refused, true),
	}
	all := Unexplained(ops, faults, 4*time.Second)
	if len(all) != 2 || all[0] != &ops[0] || all[1] != &ops[3] {
		t.Error(all)
	}
}
