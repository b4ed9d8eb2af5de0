package checker

import (
	"maps"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// A history that keeps all rules has no violation, and the model ends where the world does.
func TestGoodHistories(t *testing.T) {
	for seed := range uint64(60) {
		w := newWorld(seed)
		for range 300 {
			w.step()
		}
		f := w.check()
		for _, v := range f.Violations {
			t.Errorf("seed %d: %v", seed, v)
		}
		for s := range shards {
			if want := w.states[s][len(w.logs[s])]; !maps.Equal(f.Final[s], want) {
				t.Fatalf("seed %d: shard %d ends as %v, want %v", seed, s, f.Final[s], want)
			}
		}
		if f.Reads == 0 || f.Writes == 0 {
			t.Fatal(f)
		}
	}
}

func put(session int, key, value string) Op {
	return Op{Session: session, Kind: Put, Key: key, Value: value, Result: OK}
}

func get(session int, key, read string) Op {
	return Op{Session: session, Kind: Get, Key: key, Read: read, Result: OK}
}

// Each history breaks one rule.
func TestViolations(t *testing.T) {
	result := func(o Op, r Result) Op { o.Result = r; return o }
	later := func(o Op, r Result, asked time.Duration) Op { o.Later, o.Asked = r, asked; return o }
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
	del := Op{Session: 1, Kind: Delete, Key: "a1", Tag: "a-tag", Value: "v2", Result: OK}
	for _, test := range []struct {
		name string
		want Rule // empty: none is broken
		make func(w *world)
	}{
		{"a write that is acknowledged and not in the log", Lost,
			func(w *world) { w.script(put(1, "a1", "v1")) }},
		{"two IDs", Twice, func(w *world) { w.script(put(1, "a1", "v1")); w.log("v1", "v1") }},
		{"one ID twice", "", func(w *world) {
			w.script(put(1, "a1", "v1"))
			m := opOf(&w.ops[0])
			w.append(&w.ops[0], m)
			w.append(&w.ops[0], m)
		}},
		{"failed, and in the log", Happened,
			func(w *world) { w.script(result(put(1, "a1", "v1"), Failed)); w.log("v1") }},
		{"unknown, and in the log", "",
			func(w *world) { w.script(result(put(1, "a1", "v1"), Unknown)); w.log("v1") }},
		{"unknown, and not in the log", "", func(w *world) { w.script(result(put(1, "a1", "v1"), Unknown)) }},
		{"a condition that does not hold, and ok", Refusal, func(w *world) {
			w.script(put(1, "a1", "v1"), putIf("a1", "v2", "v0", OK))
			w.log("v1", "v2")
		}},
		{"a condition that holds, and refused", Refusal, func(w *world) {
			w.script(put(1, "a1", "v1"), putIf("a1", "v2", "v1", Refused))
			w.log("v1", "v2")
		}},
		{"refused, and not in the log", Refusal,
			func(w *world) { w.script(putIf("a1", "v2", "v1", Refused)) }},
		{"two that take one key", Refusal, func(w *world) {
			w.script(putIf("a1", "v1", "", OK), putIf("a1", "v2", "", OK))
			w.log("v1", "v2")
		}},
		{"told as applied, and not in the log", Told,
			func(w *world) { w.script(later(result(put(1, "a1", "v1"), Unknown), OK, 2)) }},
		{"told as not there, and in the log", Told, func(w *world) {
			w.script(between(later(result(put(1, "a1", "v1"), Unknown), Unknown, 10*time.Second), 1, 12),
				between(put(2, "a2", "v2"), 3, 4))
			w.log("v1", "v2")
		}},
		{"told as not there, and comes later", "", func(w *world) {
			w.script(between(later(result(put(1, "a1", "v1"), Unknown), Unknown, 10*time.Second), 1, 12),
				between(put(2, "a2", "v2"), 3, 4))
			w.log("v2", "v1")
		}},
		{"one after the other, and the other way round in the log", Order, func(w *world) {
			w.script(put(1, "a1", "v1"), put(2, "a1", "v2"))
			w.log("v2", "v1")
		}},
		{"at a time, in any order", "", func(w *world) {
			w.script(between(put(1, "a1", "v1"), 1, 4), between(put(2, "a1", "v2"), 2, 3))
			w.log("v2", "v1")
		}},
		{"unknown, before what was acknowledged before it", Order, func(w *world) {
			w.script(put(1, "a1", "v1"), result(put(2, "a2", "v2"), Unknown))
			w.log("v2", "v1")
		}},
		{"not its own write", Stale,
			func(w *world) { w.script(put(1, "a1", "v1"), get(1, "a1", "")); w.log("v1") }},
		{"not the write of another", "",
			func(w *world) { w.script(put(1, "a1", "v1"), get(2, "a1", "")); w.log("v1") }},
		{"back to an older value", Stale, func(w *world) {
			w.script(put(1, "a1", "v1"), put(1, "a1", "v2"), get(2, "a1", "v2"), get(2, "a1", "v1"))
			w.log("v1", "v2")
		}},
		{"back, by way of another key of the shard", Stale, func(w *world) {
			w.script(put(1, "a1", "v1"), put(1, "a2", "v2"), get(2, "a2", "v2"), get(2, "a1", ""))
			w.log("v1", "v2")
		}},
		{"two reads at a time, of different age", "", func(w *world) {
			w.script(between(put(1, "a1", "v1"), 1, 2), between(get(2, "a1", "v1"), 3, 5),
				between(get(2, "a1", ""), 4, 6))
			w.log("v1")
		}},
		{"of another shard", "", func(w *world) {
			w.script(put(1, "a1", "v1"), get(2, "a1", "v1"), get(2, "b1", ""))
			w.log("v1")
		}},
		{"a value before it is written", Early, func(w *world) {
			w.script(get(2, "a1", "v1"), put(1, "a1", "v1"))
			w.log("v1")
		}},
		{"a value that was refused", Torn, func(w *world) {
			w.script(put(1, "a1", "v1"), putIf("a1", "v2", "v0", Refused), get(2, "a1", "v2"))
			w.log("v1", "v2")
		}},
		{"half of a batch", Torn, func(w *world) {
			w.script(put(1, "a1", "v1"), del, search(2, map[string]string{"a1": "v1", "a-tag": "v2"}))
			w.log("v1", "v2")
		}},
		{"a whole batch", "", func(w *world) {
			w.script(put(1, "a1", "v1"), del, search(2, map[string]string{"a-tag": "v2"}))
			w.log("v1", "v2")
		}},
		{"a search without its own write", Stale, func(w *world) {
			w.script(put(1, "a1", "v1"), search(1, nil))
			w.log("v1")
		}},
		{"values that were never there at a time", Torn, func(w *world) {
			w.script(put(1, "a1", "v1"), put(1, "a2", "v2"), put(1, "a1", "v3"), put(1, "a2", "v4"),
				search(2, map[string]string{"a1": "v1", "a2": "v4"}))
			w.log("v1", "v2", "v3", "v4")
		}},
		{"a count of more than there are", Torn, func(w *world) {
			w.script(put(1, "a1", "v1"), Op{Session: 2, Kind: Count, N: 2, Result: OK})
			w.log("v1")
		}},
		{"a count of less than it has written", Torn, func(w *world) {
			w.script(put(1, "a1", "v1"), Op{Session: 1, Kind: Count, N: 0, Result: OK})
			w.log("v1")
		}},
		{"a message of nobody", Foreign, func(w *world) {
			o := put(1, "a1", "v1")
			w.append(&o, opOf(&o))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(1)
			test.make(w)
			var got Rule
			all := w.check().Violations
			if len(all) > 0 {
				got = all[0].Rule
			}
			if got != test.want || len(all) > 1 {
				t.Errorf("%v, want %q", all, test.want)
			}
		})
	}
}

// Whatever is taken from a log, or put elsewhere, is found, if anybody has seen it.
func TestDamage(t *testing.T) {
	missed, all := 0, 0
	for seed := range uint64(200) {
		w := newWorld(seed)
		for range 80 {
			w.step()
		}
		log := w.logs[0]
		i := w.r.IntN(len(log))
		if seed%2 == 0 {
			w.logs[0] = append(log[:i:i], log[i+1:]...)
		} else {
			k := w.r.IntN(len(log))
			log[i], log[k] = log[k], log[i]
		}
		all++
		if len(w.check().Violations) == 0 {
			missed++ // it was a duplicate, or a write of which nobody knows
		}
	}
	if missed > all/3 {
		t.Errorf("of %d damaged logs %d are found right", all, missed)
	}
}

// A message that is no operation does not stop the check.
func TestNoOperation(t *testing.T) {
	w := newWorld(1)
	w.logs[0] = []*wire.Op{{Kind: 99}}
	if all := w.check().Violations; len(all) != 1 || all[0].Rule != Foreign {
		t.Error(all)
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
