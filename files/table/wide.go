package table

import (
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
)

// wide is a vector whose numbers have a column each.
type wide struct {
	name string
	of   []int // by number: its column

	// of the row in hand
	x   []float32
	has []bool
	n   int // numbers that it has
}

// spread finds the vectors whose numbers have a column each. The columns of one have the numbers from 0 on,
// each once.
func (t *Table) spread() error {
	byName := map[string]*wide{}
	t.wide = make([]*wide, len(t.uses))
	for i, u := range t.uses {
		if u.Role != AsElement {
			continue
		}
		w := byName[u.Name]
		if w == nil {
			w = &wide{name: u.Name}
			byName[u.Name] = w
		}
		t.wide[i] = w
		w.of = append(w.of, i)
	}
	for _, w := range byName {
		slices.SortFunc(w.of, func(a, b int) int { return t.uses[a].At - t.uses[b].At })
		w.x, w.has = make([]float32, len(w.of)), make([]bool, len(w.of))
		for at, i := range w.of {
			if t.uses[i].At != at {
				return fmt.Errorf("the vector %s has no column for number %d", matrix.Quote(w.name), at)
			}
		}
	}
	return nil
}

// whole puts the vector into the item if the row has all of its numbers. It is no error to have none.
func (t *Table) whole(w *wide, item *Item) error {
	switch w.n {
	case 0:
		return nil
	case len(w.x):
		item.Vectors[w.name] = w.x
		return nil
	}
	missing := w.of[slices.Index(w.has, false)]
	return fmt.Errorf("column %s: is empty, where a number of the vector %s is expected",
		matrix.Quote(t.columns[missing].Name), matrix.Quote(w.name))
}
