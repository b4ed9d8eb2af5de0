package sum

import (
	"github.com/fddhdb/fddhdb/model/internal/wire"
)

// LeafItems and FanOut are the shape of the tree in which sums over training items are made. A leaf
// is the sum over LeafItems items that follow one another, in their order; the last leaf may have
// fewer. A node is the sum over FanOut nodes of the level below, in their order; the last node of a
// level may have fewer. The first level above which there is but one node has the sum over all items.
//
// So which numbers are added to which follows from the number of items alone. Sums of floating-point
// numbers depend on it in their last bits; these do not depend on how many processors or machines
// make them. A tree this flat needs few sums at a time: one up to 65,536 items, two up to a million,
// three up to 16 million.
const (
	LeafItems = 1 << 16
	FanOut    = 1 << 4
)

// Levels returns the number of levels above the leaves for n items.
func Levels(n int) (levels int) {
	for nodes := (n + LeafItems - 1) / LeafItems; nodes > 1; nodes = (nodes + FanOut - 1) / FanOut {
		levels++
	}
	return levels
}

// Sums are what a pass sums over items: see sums.go.
type Sums interface {
	add(b *Block) error      // the items of a block, in order
	merge(o Sums)            // the sums over the items that follow, of the same pass
	reset()                  // to the sums over no items
	appendTo(w *wire.Writer) // in binary form
	readFrom(r *wire.Reader) // what AppendTo has written, in place of what is there
}

// A tree makes the sum over items of sums over parts of them, which come in order.
type tree struct {
	levels []treeLevel // from the leaves on
	spare  []Sums      // of no use any more, to be used again
}

// A treeLevel has the children of a node that is not complete yet.
type treeLevel struct {
	sum      Sums // of the children so far
	children int
}

// add adds the next child at a level: leaves are children at level 0. The tree owns it from now on.
func (t *tree) add(level int, s Sums) {
	if level == len(t.levels) {
		t.levels = append(t.levels, treeLevel{})
	}
	l := &t.levels[level]
	if l.children == 0 {
		l.sum = s
	} else {
		l.sum.merge(s)
		t.spare = append(t.spare, s)
	}
	if l.children++; l.children == FanOut {
		s := l.sum
		*l = treeLevel{}
		t.add(level+1, s)
	}
}

// reuse returns sums of no items in memory that the tree no longer needs, nil if there is none.
func (t *tree) reuse() Sums {
	if len(t.spare) == 0 {
		return nil
	}
	s := t.spare[len(t.spare)-1]
	t.spare = t.spare[:len(t.spare)-1]
	s.reset()
	return s
}

// root ends the tree and returns the sum over all items, nil if there are none.
func (t *tree) root() (sum Sums) {
	t.spare = nil
	for _, l := range t.levels {
		switch {
		case l.children == 0:
		case sum == nil:
			sum = l.sum
		default:
			l.sum.merge(sum)
			sum = l.sum
		}
	}
	return sum
}
