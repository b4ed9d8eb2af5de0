// Package pmap is an immutable map of which another version costs little.
//
// Invariant: a map that somebody has seen never changes.
package pmap

import (
	"hash/maphash"
	"iter"
	"math/bits"
	"slices"
)

// A Map is an immutable map. Set and Without return another map, which shares all but the path to
// the key with the old one: a commit pays only for the collections that it changes. The zero value is empty.
// Safe for concurrent use.
//
// It is a trie over the hash of the key. A node has up to 32 slots, one for each value of five bits of the
// hash, and stores only the used ones. After trieLevels levels the path continues with another hash of the
// key, so keys with equal hashes separate in the end.
type Map[K comparable, V any] struct {
	root *trieNode[K, V] // nil: no keys
	n    int             // keys
}

// A trieNode is immutable once its map has been returned.
type trieNode[K comparable, V any] struct {
	used  uint32 // a bit for each stored slot
	slots []trieSlot[K, V]
}

// A trieSlot is an entry, or the node of all entries whose hashes begin alike.
type trieSlot[K comparable, V any] struct {
	below *trieNode[K, V] // nil: an entry
	key   K               // of the entry
	value V
}

const (
	trieBits   = 5
	trieLevels = 4 // after so many levels the path uses another hash
)

var trieSeed = maphash.MakeSeed()

// A triePath is the path of a key from the root down, as far as it has been followed.
type triePath[K comparable] struct {
	key   K
	level int    // of the next node; 0: the root
	hash  uint64 // the unused bits of the present hash
}

// next returns the slot bit of the path in the next node.
func (p *triePath[K]) next() uint32 {
	if p.level%trieLevels == 0 {
		p.hash = maphash.Comparable(trieSeed, struct {
			key   K
			round int
		}{p.key, p.level / trieLevels})
	}
	bit := uint32(1) << (p.hash & (1<<trieBits - 1))
	p.hash >>= trieBits
	p.level++
	return bit
}

// slot returns the index of a bit's slot in slots, or where to insert it.
func (n *trieNode[K, V]) slot(bit uint32) int { return bits.OnesCount32(n.used & (bit - 1)) }

// Len returns the number of keys.
func (m Map[K, V]) Len() int { return m.n }

// Get returns the value of a key.
func (m Map[K, V]) Get(key K) (value V, found bool) {
	path := triePath[K]{key: key}
	for n := m.root; n != nil; {
		bit := path.next()
		if n.used&bit == 0 {
			break
		}
		s := &n.slots[n.slot(bit)]
		if s.below == nil {
			if s.key == key {
				return s.value, true
			}
			break
		}
		n = s.below
	}
	return value, false
}

// Set returns the map with a value for the key, in place of any other. With owned it may change the nodes of
// m instead of copying them: nobody else may have seen m, and m must not be used any more.
func (m Map[K, V]) Set(key K, value V, owned bool) Map[K, V] {
	root, added := m.root.set(triePath[K]{key: key}, value, owned)
	if added {
		m.n++
	}
	m.root = root
	return m
}

// set returns a node with the key, and whether the key is new. The receiver may be nil.
func (n *trieNode[K, V]) set(path triePath[K], value V, owned bool) (_ *trieNode[K, V], added bool) {
	bit := path.next()
	if n == nil {
		return &trieNode[K, V]{bit, []trieSlot[K, V]{{key: path.key, value: value}}}, true
	}
	if !owned {
		n = &trieNode[K, V]{n.used, slices.Clone(n.slots)}
	}
	i := n.slot(bit)
	if n.used&bit == 0 {
		n.used |= bit
		n.slots = slices.Insert(n.slots, i, trieSlot[K, V]{key: path.key, value: value})
		return n, true
	}
	s := &n.slots[i]
	switch {
	case s.below == nil && s.key == path.key:
		s.value = value
	case s.below == nil: // the entry moves one level down, where the two may separate
		there := triePath[K]{key: s.key}
		for range path.level {
			there.next()
		}
		below, _ := (*trieNode[K, V])(nil).set(there, s.value, true)
		*s = trieSlot[K, V]{below: below}
		s.below, added = below.set(path, value, true)
	default:
		s.below, added = s.below.set(path, value, owned)
	}
	return n, added
}

// Without returns the map without the key.
func (m Map[K, V]) Without(key K) Map[K, V] {
	if _, found := m.Get(key); found {
		m.root = m.root.without(triePath[K]{key: key})
		m.n--
	}
	return m
}

// without returns a node without the key, which must be below it; nil if nothing is left. A node below with
// one entry left is replaced by the entry, so the trie is as if the key had never existed.
func (n *trieNode[K, V]) without(path triePath[K]) *trieNode[K, V] {
	bit := path.next()
	i := n.slot(bit)
	if n.slots[i].below != nil {
		below := n.slots[i].below.without(path)
		slots := slices.Clone(n.slots)
		slots[i].below = below
		if len(below.slots) == 1 && below.slots[0].below == nil {
			slots[i] = below.slots[0] // the last entry needs no node
		}
		return &trieNode[K, V]{n.used, slots}
	}
	if len(n.slots) == 1 {
		return nil
	}
	slots := append(make([]trieSlot[K, V], 0, len(n.slots)-1), n.slots[:i]...)
	return &trieNode[K, V]{n.used &^ bit, append(slots, n.slots[i+1:]...)}
}

// All yields the entries in no particular order.
func (m Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { m.root.yield(yield) }
}

// yield calls yield with the entries below a node, and reports whether to go on.
func (n *trieNode[K, V]) yield(yield func(K, V) bool) bool {
	if n == nil {
		return true
	}
	for i := range n.slots {
		s := &n.slots[i]
		if s.below == nil && !yield(s.key, s.value) || s.below != nil && !s.below.yield(yield) {
			return false
		}
	}
	return true
}

// Values yields the values in no particular order.
func (m Map[K, V]) Values() iter.Seq[V] {
	return func(yield func(V) bool) {
		m.root.yield(func(_ K, value V) bool { return yield(value) })
	}
}
