package verify

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
)

// Most derived records say in another order what primary records say: an item has its labels, and a label has
// the set of its rows. So each side is a stream of facts, such as "row 7, label 3", and the two have to have
// the same ones. compare adds a hash of each fact that a primary record states, and subtracts the hash of
// each that a derived record states. Equal streams leave 0; others do with a probability of 2^-64. The sums
// take no memory to speak of. Only where one is not 0 the records are read once more, and their facts are
// gathered and compared one by one, to name the records that differ.

// A fact is what a primary record and a derived one both have to state.
type fact struct {
	kind byte   // of the derived record
	n    uint32 // the row or code number that it is about
	x    uint64 // what it says: a hash, or a number
}

// A part is the facts of one kind about 65,536 rows or numbers.
type part struct {
	kind byte
	of   uint32
}

// partOf returns the part of a fact.
func partOf(f fact) part { return part{f.kind, f.n >> 16} }

// A comparison is one call of compare.
type comparison struct {
	seed uint64
	sums map[part]uint64
	told map[fact]*told // of the parts that differ, the second time; nil: the first time
}

// told says how a fact was stated.
type told struct {
	primary, derived place // the records that have to state it
	more             int   // times by primary records less times by derived ones
}

// The sides of a fact.
const (
	byPrimary = 1
	byDerived = -1
)

// tell states a fact. at returns the two records that have to state it; it is called if need be.
func (c *comparison) tell(side int, f fact, at func() (primary, derived place)) {
	p := partOf(f)
	if c.told == nil {
		h := mixed(mixed(c.seed^uint64(f.kind)<<32^uint64(f.n)) ^ f.x)
		if side == byDerived {
			h = -h
		}
		c.sums[p] += h
		return
	}
	if c.sums[p] == 0 {
		return
	}
	t := c.told[f]
	if t == nil {
		t = new(told)
		t.primary, t.derived = at()
		t.primary.key, t.derived.key = bytes.Clone(t.primary.key), bytes.Clone(t.derived.key)
		c.told[f] = t
	}
	t.more += side
}

// mixed is the finalizer of splitmix64: each bit of x decides over each bit of the result.
func mixed(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// namedParts is the number of parts whose differences are named one by one: they are held in memory.
const namedParts = 16

// compare calls states, which walks over primary and derived records and tells what they state, and reports
// the differences. If there are any, it calls states once more, without findings.
func (v *verifier) compare(states func(c *comparison)) {
	c := &comparison{seed: rand.Uint64(), sums: map[part]uint64{}}
	states(c)
	maps.DeleteFunc(c.sums, func(_ part, sum uint64) bool { return sum == 0 })
	if v.err != nil || len(c.sums) == 0 {
		return
	}
	parts := slices.SortedFunc(maps.Keys(c.sums), func(a, b part) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.of, b.of))
	})
	for _, p := range parts[min(len(parts), namedParts):] {
		delete(c.sums, p)
	}
	c.told, v.muted = map[fact]*told{}, true
	states(c)
	v.muted = false
	v.differ(c.told)
	// A difference of which all may follow from what could not be read is none.
	if left := len(parts) - namedParts; left > 0 && len(v.unread) == 0 {
		v.bad([]byte{parts[namedParts].kind}, 0,
			"%d more parts of 65,536 rows differ from what they follow from",
			left)
	}
}

// differ reports the facts that only one side has stated: in one finding those of one derived record, and in
// one those of one row or number.
func (v *verifier) differ(all map[fact]*told) {
	type finding struct {
		place
		text string
		more int
	}
	var findings []*finding
	known := map[string]*finding{} // by derived record and by number
	for _, f := range slices.SortedFunc(maps.Keys(all), func(a, b fact) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.n, b.n), cmp.Compare(a.x, b.x))
	}) {
		t := all[f]
		if t.more == 0 || v.lost(t.primary.key) || v.lost(t.derived.key) {
			continue
		}
		byRecord := fmt.Sprint(t.more > 0, t.derived.n, string(t.derived.key))
		byNumber := fmt.Sprint(t.more > 0, f.kind, f.n)
		if x := cmp.Or(known[byRecord], known[byNumber]); x != nil {
			x.more++
			continue
		}
		about, says := "row", "missing: %s %d, by %s"
		if f.kind == codec.KindSubstring {
			about = "code number"
		}
		if t.more < 0 {
			says = "too much: %s %d, against %s"
		}
		x := &finding{place: t.derived, text: fmt.Sprintf(says, about, f.n,
			v.nameOf(t.primary.key, t.primary.n))}
		known[byRecord], known[byNumber], findings = x, x, append(findings, x)
	}
	for _, x := range findings {
		if x.more > 0 {
			x.text += fmt.Sprintf(", and %d more", x.more)
		}
		v.bad(x.key, x.n, "%s", x.text)
	}
}
