package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/mih"
	"github.com/fddhdb/fddhdb/model"
)

// A Grouping says how items that are alike become groups.
type Grouping struct {
	Likeness

	// Connected joins groups that have an item in common: an item is then like one of its group, and not
	// always like the first.
	Connected bool

	// Keep says which items are preferred: "" or oldest, newest, max FIELD, min FIELD, or an expression
	// that they match.
	Keep string
}

// A worth orders items: the item with the least number is preferred, and of those the earliest.
type worth struct {
	of     map[uint32]uint64 // nil: the same of all
	newest bool
}

func (w *worth) compare(a, b uint32) int {
	if x, y := w.number(a), w.number(b); x != y {
		return cmp.Compare(x, y)
	}
	return w.byAge(a, b)
}

// byAge compares rows of the same worth.
func (w *worth) byAge(a, b uint32) int {
	if w.newest {
		a, b = b, a
	}
	return cmp.Compare(a, b)
}

// number returns the worth of a row; the greatest one of a row without a value.
func (w *worth) number(row uint32) uint64 {
	if w.of == nil {
		return 0
	}
	if n, ok := w.of[row]; ok {
		return n
	}
	return math.MaxUint64
}

// worthOf reads what keep compares.
func worthOf(ctx context.Context, v *state.View, cv *state.CollectionView, keep string) (*worth, error) {
	switch keep {
	case "", "oldest":
		return &worth{}, nil
	case "newest":
		return &worth{newest: true}, nil
	}
	w := &worth{of: map[uint32]uint64{}}
	most := strings.HasPrefix(keep, "max ")
	if !most && !strings.HasPrefix(keep, "min ") {
		rows, err := Matching(ctx, cv, v.Snap, keep, nil)
		if err != nil {
			if bad := (*fault.WhereError)(nil); errors.As(err, &bad) {
				err = fault.Invalid("keep %q: oldest, newest, max FIELD, min FIELD or an expression is expected: %s",
					keep, bad.Reason)
			}
			return nil, err
		}
		for it := rows.Iterator(); it.HasNext(); {
			w.of[it.Next()] = 0
		}
		return w, nil
	}
	name := strings.TrimSpace(keep[len("max "):])
	at := slices.IndexFunc(cv.Fields, func(f record.Field) bool { return f.Name == name })
	if at < 0 || cv.Fields[at].Type == record.String {
		return nil, fault.Invalid("keep %q: %q is no field of numbers, times or bools of collection %q",
			keep, record.Shortened(name), cv.Name)
	}
	return w, EachItem(ctx, cv, v.Snap, "", nil, func(it *Item) error {
		for _, f := range it.Fields {
			if int(f.ID) == at {
				image, _ := record.Sliced(f.Value)
				if most {
					image = ^image
				}
				w.of[it.Row] = image
			}
		}
		return nil
	})
}

// EachGroup calls f with the groups of items that are alike, of two items or more, and their cursors. They
// come by the row of the first item, from behind the cursor after on, unless it is empty. The first item of a
// group is its preferred one, and the others come by their distance from it. Unless groups are connected, the
// most preferred item of all makes a group with all items that are like it, then the most preferred of the
// rest, and so on. All codes must be in memory.
func EachGroup(ctx context.Context, tools *Tools, v *state.View, cv *state.CollectionView, g Grouping,
	after string, f func(group []Near, cursor string) error) error {
	if err := g.check(); err != nil {
		return err
	}
	mark := g.mark(fmt.Sprint("groups ", g.Connected, g.Keep), cv)
	var behind pairPlace
	if after != "" {
		var err error
		if behind, err = pairCursorPlace(after, mark); err != nil {
			return err
		}
	}
	w, err := worthOf(ctx, v, cv, g.Keep)
	if err != nil {
		return err
	}
	var groups [][]Near
	if g.Modality != "" {
		groups, err = similarGroups(ctx, tools, v, cv, g, w)
	} else {
		groups, err = codeGroups(ctx, v, cv, g, w)
	}
	if err != nil {
		return err
	}
	slices.SortFunc(groups, func(a, b []Near) int { return cmp.Compare(a[0].Row, b[0].Row) })
	for _, group := range groups {
		at := placeOf(group[0].Row, 0)
		if after != "" && at <= behind {
			continue
		}
		slices.SortStableFunc(group[1:], func(a, b Near) int {
			return cmp.Or(cmp.Compare(a.Distance, b.Distance), cmp.Compare(b.Similarity, a.Similarity),
				cmp.Compare(a.Row, b.Row))
		})
		if err := f(group, pairCursor(mark, at)); err != nil {
			return err
		}
	}
	return nil
}

// heads says in which group each member is: heads[i] is the most preferred member of the group of i.
type heads []uint32

func newHeads(n int) heads {
	h := make(heads, n)
	for i := range h {
		h[i] = uint32(i)
	}
	return h
}

// of returns the head of a member, and makes the way to it shorter.
func (h heads) of(i uint32) uint32 {
	for h[i] != i {
		h[i] = h[h[i]]
		i = h[i]
	}
	return i
}

// connect makes one group of the groups of two members.
func (h heads) connect(a, b uint32) {
	a, b = h.of(a), h.of(b)
	h[max(a, b)] = min(a, b)
}

// codeGroups returns the groups by codes.
func codeGroups(ctx context.Context, v *state.View, cv *state.CollectionView, g Grouping,
	w *worth) ([][]Near, error) {
	own, err := codedRowsOf(ctx, v, cv, g.Where, g.Args)
	if err != nil {
		return nil, err
	}
	n := own.codes.Len()
	// The members are codes, by the worth of their best row.
	type member struct {
		worth   uint64
		row, in uint32 // best row; number of the code
	}
	members, codes := make([]member, n), codec.NewCodes(own.codes.Bits(), n)
	for i := range uint32(n) {
		row := slices.MinFunc(own.of(i), w.compare)
		members[i] = member{w.number(row), row, i}
	}
	slices.SortFunc(members, func(a, b member) int {
		if a.worth != b.worth {
			return cmp.Compare(a.worth, b.worth)
		}
		return w.byAge(a.row, b.row)
	})
	for i := range members {
		codes.Append(own.codes.At(int(members[i].in)))
	}
	h := newHeads(n)
	if g.Connected {
		err = (&mih.Join{Codes: codes, Radius: g.Radius}).Run(ctx, func(pairs []mih.Pair) error {
			for _, p := range pairs {
				h.connect(p.Earlier, p.Later)
			}
			return nil
		})
	} else {
		err = h.lead(ctx, codes, g.Radius)
	}
	if err != nil {
		return nil, err
	}
	several := func(i uint32) bool { return len(own.of(members[i].in)) > 1 }
	return h.groups(several, func(head, i uint32) (items []Near) {
		d := codec.Distance(codes.At(int(head)), codes.At(int(i)))
		for _, row := range own.of(members[i].in) {
			items = append(items, Near{row, d, 0})
			if head == i && row == members[i].row {
				last := len(items) - 1
				items[0], items[last] = items[last], items[0]
			}
		}
		return items
	}), nil
}

// lead makes each code a member of the group of the first code within the radius that is no member itself.
func (h heads) lead(ctx context.Context, codes codec.Codes, radius int) error {
	for from := pairPlace(0); ; {
		// What is a member already leads nobody, and is not led.
		left, numbers := codec.NewCodes(codes.Bits(), codes.Len()-int(from.row())), []uint32{}
		for i := from.row(); i < uint32(codes.Len()); i++ {
			if h[i] == i {
				left.Append(codes.At(int(i)))
				numbers = append(numbers, i)
			}
		}
		found := &firstPairs{from: from, last: math.MaxUint64}
		err := (&mih.Join{Codes: left, Radius: radius}).Run(ctx, func(pairs []mih.Pair) error {
			for _, p := range pairs {
				found.add(placedPair{placeOf(numbers[p.Earlier], numbers[p.Later]), 0})
			}
			return nil
		})
		if err != nil {
			return err
		}
		found.sort()
		for _, p := range found.pairs {
			if a, b := p.place.row(), p.place.other(); h[a] == a && h[b] == b {
				h[b] = a
			}
		}
		if !found.full {
			return nil
		}
		from = found.last + 1
	}
}

// groups returns the groups of two items or more. items returns the items of a member of the group of head,
// and several reports whether they are more than one.
func (h heads) groups(several func(i uint32) bool, items func(head, i uint32) []Near) (groups [][]Near) {
	at := map[uint32]int{} // by head: its group, of those with several members
	for i := range uint32(len(h)) {
		if head := h.of(i); head != i {
			k, ok := at[head]
			if !ok {
				k = len(groups)
				at[head], groups = k, append(groups, items(head, head))
			}
			groups[k] = append(groups[k], items(head, i)...)
		}
	}
	for i := range uint32(len(h)) {
		if _, ok := at[i]; !ok && h.of(i) == i && several(i) {
			groups = append(groups, items(i, i))
		}
	}
	return groups
}

// similarGroups returns the groups by vectors. It searches for each item, or, unless groups are connected,
// for each first item of a group.
func similarGroups(ctx context.Context, tools *Tools, v *state.View, cv *state.CollectionView, g Grouping,
	w *worth) ([][]Near, error) {
	s, rows, err := newSimilarSearch(ctx, tools, v, cv, g.Likeness)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, w.compare)
	member := make(map[uint32]uint32, len(rows))
	for i, row := range rows {
		member[row] = uint32(i)
	}
	h := newHeads(len(rows))
	similarity := make([]float32, len(rows)) // to the head, of members of a group that is not connected
	for at := 0; at < len(rows); {
		var part []uint32
		for ; at < len(rows) && len(part) < similarAtOnce; at++ {
			if g.Connected || h[at] == uint32(at) {
				part = append(part, rows[at])
			}
		}
		found, err := s.find(ctx, part)
		if err != nil {
			return nil, err
		}
		for i, row := range part {
			a := member[row]
			for _, x := range found[i] {
				b := member[x.Row]
				switch {
				case g.Connected:
					h.connect(a, b)
				case h[a] == a && h[b] == b && a < b:
					h[b], similarity[b] = a, x.Similarity
				}
			}
		}
	}
	groups := h.groups(func(uint32) bool { return false }, func(head, i uint32) []Near {
		return []Near{{rows[i], -1, similarity[i]}}
	})
	if g.Connected {
		if err := s.compareWithFirst(ctx, groups); err != nil {
			return nil, err
		}
	}
	return groups, nil
}

// compareWithFirst sets the similarity of each item of a group to its first one.
func (s *similarSearch) compareWithFirst(ctx context.Context, groups [][]Near) error {
	t, err := s.cv.ModalityOf(s.q.From)
	if err != nil {
		return err
	}
	read := func(row uint32) (model.Vector, error) {
		x, _, err := record.ReadVector(s.v.Snap, s.cv.ID, row, t, s.cv.Modalities[t])
		return x, err
	}
	shown := Searcher{metric: s.cv.Modalities[t].Metric.OrCosine()}
	return work.Parallel(ctx, len(groups), func(i int) error {
		x, err := read(groups[i][0].Row)
		if err != nil {
			return err
		}
		c := NewComparer(shown.metric, x)
		for k := 1; k < len(groups[i]); k++ {
			y, err := read(groups[i][k].Row)
			if err != nil {
				return err
			}
			groups[i][k].Similarity = shown.shownOfVectors(c.Compare(y))
		}
		return nil
	})
}
