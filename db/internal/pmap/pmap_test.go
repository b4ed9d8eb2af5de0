package pmap

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// A persistent map is a map, and older ones stay what they were, whatever is made of them.
func TestPersistentMapIsAMap(t *testing.T) {
	type state struct {
		is   Map[string, int]
		want map[string]int
	}
	check := func(t *rapid.T, s state) {
		got := map[string]int{}
		for key, value := range s.is.All() {
			if _, twice := got[key]; twice {
				t.Fatalf("%q twice", key)
			}
			got[key] = value
		}
		sum := 0
		for value := range s.is.Values() {
			sum += value
		}
		for key, value := range s.want {
			if v, found := s.is.Get(key); !found || v != value {
				t.Fatalf("%q: %d, %v, not %d", key, v, found, value)
			}
			sum -= value
		}
		if !maps.Equal(got, s.want) || s.is.Len() != len(s.want) || sum != 0 {
			t.Fatalf("%d keys: %v, not %v", s.is.Len(), got, s.want)
		}
		for range s.is.All() {
			break // an iteration may end early
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		states := []state{{}}
		keys := rapid.Map(rapid.IntRange(0, 200), func(i int) string { return fmt.Sprint("k", i) })
		for i, steps := 0, rapid.IntRange(1, 60).Draw(t, "steps"); i < steps; i++ {
			from := states[rapid.IntRange(0, len(states)-1).Draw(t, "from")]
			next := state{from.is, maps.Clone(from.want)}
			if next.want == nil {
				next.want = map[string]int{}
			}
			for _, key := range rapid.SliceOfN(keys, 1, 20).Draw(t, "keys") {
				if rapid.Bool().Draw(t, "remove") {
					next.is = next.is.Without(key)
					delete(next.want, key)
				} else {
					next.is, next.want[key] = next.is.Set(key, i, false), i
				}
			}
			states = append(states, next)
		}
		for _, s := range states {
			check(t, s)
		}
	})
}

// Keys whose hashes begin alike are told apart by another hash.
func TestPersistentMapOfManyKeys(t *testing.T) {
	const n = 20_000 // some 200 pairs have the same first 20 bits
	var m Map[uint32, uint32]
	for i := range uint32(n) {
		m = m.Set(i, i, false)
	}
	all, depth := m, 0
	var look func(node *trieNode[uint32, uint32], level int)
	look = func(node *trieNode[uint32, uint32], level int) {
		depth = max(depth, level)
		for _, s := range node.slots {
			if s.below != nil {
				look(s.below, level+1)
			}
		}
	}
	look(m.root, 1)
	if depth <= trieLevels || depth > 3*trieLevels {
		t.Errorf("%d levels", depth)
	}
	for i := range uint32(n) {
		if i%3 > 0 {
			m = m.Without(i)
		}
	}
	for i := range uint32(n + 100) {
		if v, found := m.Get(i); found != (i < n && i%3 == 0) || found && v != i {
			t.Fatalf("%d: %d, %v", i, v, found)
		}
		if v, found := all.Get(i); found != (i < n) || found && v != i {
			t.Fatalf("%d of all: %d, %v", i, v, found)
		}
	}
	for i := range uint32(n) {
		m = m.Without(i)
	}
	if m.Len() != 0 || m.root != nil {
		t.Errorf("%d keys are left", m.Len())
	}
}
