package metamorphic

import (
	"maps"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db"
)

// A space is a code space in the model: the codes of the items in it.
type space struct {
	number     db.Space
	name       string // of the operation that made it
	bits       int
	targets    []string // modalities with codes of their own; nil: one code for all
	modalities []string // modalities that the model knows
	revision   uint32
	free       bool            // an update in the background may have made later revisions
	kept       map[uint32]bool // the kept revisions; true: pinned

	labelFree bool // learned without labels: nothing in it is updated

	known   map[string]bool // labels that have a code
	settled bool            // false: known is not known
	moving  bool            // it was updated while others wrote

	labelCodes map[string]string // code of each set of known labels that was seen
	codes      map[string]*coded // codes of the items, by key

	// These belong to a collection of given codes. ages says when each code was given
	// to the first of its present items, carried how many items have it.
	ages    map[string]int
	carried map[string]int
	nextAge int
}

// A coded has the codes of an item, by target; the code for all targets stands under
// "". It does not change.
type coded struct {
	by       map[string]string
	labelled bool // the codes come from its labels
	settled  bool // false: the database has to tell the codes
}

func (sp *space) clone() *space {
	out := *sp
	out.kept, out.known = maps.Clone(sp.kept), maps.Clone(sp.known)
	out.labelCodes, out.codes = maps.Clone(sp.labelCodes), maps.Clone(sp.codes)
	out.ages, out.carried = maps.Clone(sp.ages), maps.Clone(sp.carried)
	return &out
}

// space returns the space with a number, and the active one for 0; nil if there is
// none.
func (c *collection) space(number db.Space) *space {
	if number == 0 {
		number = c.active
	}
	for _, sp := range c.spaces {
		if sp.number == number {
			return sp
		}
	}
	return nil
}

// noSpace is a number that no space has.
const noSpace = 4_000_000_000

// numberOf returns the number of the space that an operation names.
func (c *collection) numberOf(name string) db.Space {
	if name == "" {
		return 0
	}
	for _, sp := range c.spaces {
		if sp.name == name {
			return sp.number
		}
	}
	return noSpace
}

// give gives an item of a collection of given codes its code; "" takes it away.
func (sp *space) give(key, code string) {
	if sp.ages == nil {
		return
	}
	if old := sp.codes[key]; old != nil {
		was := old.by[""]
		if was == code {
			return
		}
		if sp.carried[was]--; sp.carried[was] == 0 {
			delete(sp.carried, was)
			delete(sp.ages, was)
		}
	}
	if code == "" {
		return
	}
	if sp.carried[code]++; sp.carried[code] == 1 {
		sp.ages[code] = sp.nextAge
		sp.nextAge++
	}
	sp.codes[key] = &coded{by: map[string]string{"": code}, settled: true}
}

// labelSet returns the known labels of an item as one string; "" if it has none.
func (sp *space) labelSet(it *item) string {
	var known []string
	for _, l := range it.labels {
		if sp.known[l] {
			known = append(known, l)
		}
	}
	slices.Sort(known)
	return strings.Join(known, "\n")
}

// targetsOf returns the targets for which an item can have a code. The shared target is
// "".
func (sp *space) targetsOf(it *item) []string {
	if sp.targets == nil {
		return []string{""}
	}
	var out []string
	for _, t := range sp.targets {
		if it.vectors[t] != nil {
			out = append(out, t)
		}
	}
	return out
}

// code returns the code by which searches for a target find an item.
func (sp *space) code(key, to string) (string, bool) {
	c := sp.codes[key]
	if c == nil {
		return "", false
	}
	if sp.targets == nil {
		to = ""
	}
	code, ok := c.by[to]
	return code, ok
}

// ownCode returns the code from which a query by the key of an item starts.
func (sp *space) ownCode(key, to string) (string, bool) {
	if code, ok := sp.code(key, to); ok {
		return code, true
	}
	for _, t := range sp.targets {
		if code, ok := sp.code(key, t); ok {
			return code, true
		}
	}
	return "", false
}

// distinct returns the number of distinct codes, over all targets.
func (sp *space) distinct() int {
	seen := map[string]bool{}
	for _, c := range sp.codes {
		for t, code := range c.by {
			seen[t+"\n"+code] = true
		}
	}
	return len(seen)
}

// coded returns the number of items with a code.
func (sp *space) coded() int {
	n := 0
	for _, c := range sp.codes {
		if len(c.by) > 0 {
			n++
		}
	}
	return n
}
