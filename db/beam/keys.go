package beam

import (
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/db"
)

// Items without keys are numbered, in the order of the input, as an import numbers them.

// ordinals number the items of a task.
type ordinals struct {
	first map[int]int             // by group: the number of the first item of its segment
	rows  map[int]*roaring.Bitmap // by group: the rows of its segment
}

// ordinals returns the numbers of the items of a task of all items.
func (t *task) ordinals() *ordinals {
	o := &ordinals{first: map[int]int{}, rows: map[int]*roaring.Bitmap{}}
	n := t.First
	for _, s := range t.Segments {
		o.first[s.Group], o.rows[s.Group] = n, s.Rows.Bitmap
		n += int(s.Rows.GetCardinality())
	}
	return o
}

// key returns the key of an item of a row of a group.
func (o *ordinals) key(group, row int, item *db.Item) string {
	if item.Key != "" {
		return item.Key
	}
	return strconv.Itoa(o.first[group] + int(o.rows[group].Rank(uint32(row))) - 1)
}
