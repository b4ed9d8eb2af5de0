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

// A coded is what is known of the code of an item. It does not change.
type coded struct {
	code     string // "" if it has none, or it is not known yet
	has      bool   // it has one
	labelled bool   // the code comes from its labels
	settled  bool   // false: the database has to tell the code
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
		was := old.code
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
	sp.codes[key] = &coded{code: code, has: true, settled: true}
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

// code returns the code of an item, and whether it has one.
func (sp *space) code(key string) (string, bool) {
	if c := sp.codes[key]; c != nil {
		return c.code, c.has
	}
	return "", false
}

// distinct returns the number of distinct codes.
func (sp *space) distinct() int {
	seen := map[string]bool{}
	for _, c := range sp.codes {
		if c.has {
			seen[c.code] = true
		}
	}
	return len(seen)
}

// coded returns the number of items with a code.
func (sp *space) coded() int {
	n := 0
	for _, c := range sp.codes {
		if c.has {
			n++
		}
	}
	return n
}
